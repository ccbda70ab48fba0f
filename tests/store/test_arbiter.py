"""Whether an effect may start: every rule of ``begin_effect``, and how an effect ends."""

from __future__ import annotations

from datetime import timedelta

import pytest

from perdure.contracts.names import application_id
from perdure.errors import Conflict, NotFound, Refused
from perdure.store.ledger import TargetBusy
from tests.store.ledger_kit import AT, NO_GATE, TARGET


@pytest.fixture
def approved(scene):
    """An approved plan of three effects: (job id, plan)."""
    job_id, plan, _ = scene.approved(effects=3)
    return job_id, plan


def _intents(scene):
    return [kind for kind in scene.kinds() if kind in ("effect.intent", "permit.spent")]


def test_the_first_effect_spends_the_permit_with_its_intent(scene, approved):
    """Permit, target and intent are taken together; the second effect spends nothing more."""
    job_id, plan = approved
    intent = scene.begin(job_id, plan)
    assert (intent.state, intent.attempts, intent.started_at) == ("intent", 1, AT)
    assert scene.ledger.permit(plan.digest).state == "spent"
    scene.finish(job_id, plan)
    scene.begin(job_id, plan, 1)
    assert _intents(scene) == ["permit.spent", "effect.intent", "effect.intent"]


def test_an_effect_without_a_permit_is_refused(scene):
    """An approved plan nobody was permitted to apply starts nothing."""
    job_id = scene.admit()
    plan = scene.freeze(job_id, rule=NO_GATE)
    with pytest.raises(Refused, match="nobody was permitted"):
        scene.begin(job_id, plan)
    assert _intents(scene) == []


def test_a_withdrawn_permit_starts_nothing(scene, approved):
    """A withdrawal before the first effect stops all of them."""
    job_id, plan = approved
    scene.decide("withdraw", job_id, plan)
    with pytest.raises(Refused, match="withdrawn by bo"):
        scene.begin(job_id, plan)
    assert _intents(scene) == []


def test_a_withdrawal_after_the_first_effect_is_too_late(scene, approved):
    """Who withdraws too late is told so, with what can be done instead."""
    job_id, plan = approved
    scene.begin(job_id, plan)
    with pytest.raises(Conflict, match="too late"):
        scene.decide("withdraw", job_id, plan)


def test_a_permit_serves_its_own_application_only(scene, approved):
    """Another application or job cannot use the permit, before and after it was spent."""
    job_id, plan = approved
    other = scene.admit("x", "links")
    for _ in range(2):
        with pytest.raises(Refused, match="belongs to apply/releases/one/1"):
            scene.begin(job_id, plan, application_id="apply/releases/one/9")
        with pytest.raises(Refused, match="belongs to apply/releases/one/1"):
            scene.begin(other, plan, application_id="apply/releases/one/1")
        scene.begin(job_id, plan)


def test_the_thread_named_must_be_the_jobs(scene, approved):
    """Records of an effect go to the thread of its job and nowhere else."""
    job_id, plan = approved
    with pytest.raises(Refused, match="belongs to thread"):
        scene.begin(job_id, plan, thread="links")


@pytest.mark.parametrize("index", [-1, 3])
def test_an_effect_that_is_not_in_the_plan_is_refused(scene, approved, index):
    """A plan of three effects has no fourth one."""
    job_id, plan = approved
    with pytest.raises(Refused, match="has 3 effects"):
        scene.begin(job_id, plan, index)


def test_effects_start_in_order(scene, approved):
    """No effect starts before the ones before it have ended."""
    job_id, plan = approved
    with pytest.raises(Refused, match="effect 1 before it is 'not begun'"):
        scene.begin(job_id, plan, 1)
    scene.begin(job_id, plan)
    with pytest.raises(Refused, match="effect 1 before it is 'intent'"):
        scene.begin(job_id, plan, 1)
    scene.finish(job_id, plan)
    scene.begin(job_id, plan, 1)


@pytest.mark.parametrize("state", ["unknown", "drift", "refused", "stopped"])
def test_nothing_starts_after_an_effect_that_ended_badly(scene, approved, state):
    """Doubt, drift and a person's stop end the way forward."""
    job_id, plan = approved
    scene.begin(job_id, plan)
    scene.finish(job_id, plan, 0, state)
    with pytest.raises(Refused, match=state):
        scene.begin(job_id, plan, 1)


@pytest.mark.parametrize("state", ["already", "failed"])
def test_the_next_effect_starts_after_one_that_needs_nothing_more(scene, approved, state):
    """What was so already, or is proven not to have happened, is settled."""
    job_id, plan = approved
    scene.begin(job_id, plan)
    scene.finish(job_id, plan, 0, state)
    scene.begin(job_id, plan, 1)


def test_a_second_attempt_is_the_same_intent(scene, approved):
    """After a crash the intent is found again and its attempts are counted; nothing else is written."""
    job_id, plan = approved
    scene.begin(job_id, plan)
    later = AT + timedelta(hours=1)
    intent = scene.begin(job_id, plan, at=later)
    assert (intent.attempts, intent.started_at) == (2, later)  # from when on a remote's "no" has to settle
    assert _intents(scene) == ["permit.spent", "effect.intent"]


def test_a_second_attempt_cannot_become_another_effect(scene, approved):
    """An intent's kind, target and plan are fixed by its first attempt."""
    job_id, plan = approved
    scene.begin(job_id, plan)
    with pytest.raises(Refused, match="begun as files"):
        scene.begin(job_id, plan, target="git:/elsewhere")


@pytest.mark.parametrize("state", ["done", "already", "failed", "stopped"])
def test_an_effect_that_ended_never_starts_again(scene, approved, state):
    """Once its end is written, an effect is over."""
    job_id, plan = approved
    scene.begin(job_id, plan)
    scene.finish(job_id, plan, 0, state)
    with pytest.raises(Refused, match=f"ended as '{state}'"):
        scene.begin(job_id, plan)


def test_unknown_starts_again_only_after_a_person_said_not_done(scene, approved):
    """What cannot be known goes to a person and is never retried blindly."""
    job_id, plan = approved
    scene.begin(job_id, plan)
    scene.finish(job_id, plan, 0, "unknown")
    with pytest.raises(Refused, match="nobody said"):
        scene.begin(job_id, plan)
    scene.decide("resolve", job_id, plan, effect=0, answer="done")
    with pytest.raises(Refused, match="said 'done'"):
        scene.begin(job_id, plan)
    scene.decide("resolve", job_id, plan, effect=0, answer="not_done")
    assert scene.ledger.resolution("apply/releases/one/1", 0, "do").decision.answer == "not_done"
    assert scene.begin(job_id, plan).attempts == 2


def test_an_answer_serves_one_doubt(scene, approved):
    """When the effect becomes unknown again, the answer given before does not count for it."""
    job_id, plan = approved
    scene.begin(job_id, plan)
    scene.finish(job_id, plan, 0, "unknown")
    scene.decide("resolve", job_id, plan, effect=0, answer="not_done")
    scene.begin(job_id, plan)
    scene.finish(job_id, plan, 0, "unknown")
    assert scene.ledger.resolution("apply/releases/one/1", 0, "do") is None
    with pytest.raises(Refused, match="nobody said"):
        scene.begin(job_id, plan)


def test_only_doubt_can_be_resolved(scene, approved):
    """Resolving an effect that was not begun, goes on, or has ended is refused."""
    job_id, plan = approved
    with pytest.raises(NotFound, match="never begun"):
        scene.decide("resolve", job_id, plan, effect=0, answer="done")
    scene.begin(job_id, plan)
    with pytest.raises(Conflict, match="not in doubt"):
        scene.decide("resolve", job_id, plan, effect=0, answer="done")
    scene.finish(job_id, plan)
    with pytest.raises(Conflict, match="not in doubt"):
        scene.decide("resolve", job_id, plan, effect=0, answer="done")


@pytest.mark.parametrize("state", ["done", "failed", "stopped"])
def test_unknown_becomes_known_once(scene, approved, state):
    """Doubt may be settled; what is settled stays so."""
    job_id, plan = approved
    scene.begin(job_id, plan)
    scene.finish(job_id, plan, 0, "unknown")
    scene.finish(job_id, plan, 0, state)
    scene.finish(job_id, plan, 0, state)
    with pytest.raises(Conflict, match=state):
        scene.finish(job_id, plan, 0, "drift")
    assert scene.kinds().count("effect.receipt") == 2


def test_a_cancelled_job_starts_nothing_more_and_is_taken_back(scene, approved):
    """A recorded cancel stops the way forward at once, also a second attempt, and leaves the way back open."""
    job_id, plan = approved
    scene.begin(job_id, plan)
    scene.finish(job_id, plan)
    scene.begin(job_id, plan, 1)
    scene.decide("cancel", job_id)
    for index in (1, 2):
        with pytest.raises(Refused, match="cancelled by bo"):
            scene.begin(job_id, plan, index)
    scene.finish(job_id, plan, 1, "failed")
    scene.begin(job_id, plan, 0, "undo")


def test_a_finished_job_starts_nothing(scene):
    """A job that ended, for example one that was only planned, has no effects."""
    job_id, plan, _ = scene.approved(rule=NO_GATE)
    scene.note(job_id, 1, "done")
    with pytest.raises(Refused, match="ended as 'done'"):
        scene.begin(job_id, plan)


def test_an_irreversible_effect_needs_a_gate(scene):
    """What cannot be undone is refused in a plan that nobody was asked about."""
    job_id, plan, _ = scene.approved(rule=NO_GATE)
    with pytest.raises(Refused, match="cannot be undone"):
        scene.begin(job_id, plan, irreversible=True)
    scene.begin(job_id, plan)


def test_a_target_is_held_until_the_application_closes(scene, approved):
    """Two applications never work on one target at once; the refusal says who holds it."""
    job_id, plan = approved
    other, other_plan, _ = scene.approved("two")
    scene.begin(job_id, plan)
    with pytest.raises(TargetBusy, match="releases/1"):
        scene.begin(other, other_plan)
    assert scene.ledger.permit(other_plan.digest).state == "granted"
    scene.apply(job_id, plan)
    scene.begin(other, other_plan)


def test_target_of_a_whole_plan_is_taken_before_its_first_effect(scene, approved):
    """Who comes second is told who holds it and what lets it go; nobody takes it without a permit."""
    job_id, plan = approved
    other, other_plan, _ = scene.approved("two")
    ours, theirs = application_id(job_id, 1), application_id(other, 1)
    for _ in range(2):
        scene.ledger.take_target(ours, plan.digest, "orders", at=AT)
    with pytest.raises(TargetBusy, match="releases/1") as busy:
        scene.ledger.take_target(theirs, other_plan.digest, "orders", at=AT)
    assert "perdure show" in busy.value.message
    with pytest.raises(Refused, match="no permit"):
        scene.ledger.take_target(theirs, plan.digest, "else", at=AT)
    scene.close(job_id, plan, "refused")
    scene.ledger.take_target(theirs, other_plan.digest, "orders", at=AT)


def test_an_application_may_hold_several_targets(scene, approved):
    """Each effect takes its own target; all are released together."""
    job_id, plan = approved
    other, other_plan, _ = scene.approved("two")
    scene.begin(job_id, plan)
    scene.finish(job_id, plan)
    scene.begin(job_id, plan, 1, target="files:/srv/site")
    for target in (TARGET, "files:/srv/site"):
        with pytest.raises(TargetBusy):
            scene.begin(other, other_plan, target=target)


def test_a_closed_application_starts_nothing(scene, approved):
    """After the end, neither the next effect nor an undo starts under the old permit."""
    job_id, plan = approved
    scene.begin(job_id, plan)
    scene.finish(job_id, plan)
    scene.close(job_id, plan, "stuck")
    for index, direction in ((1, "do"), (0, "undo")):
        with pytest.raises(Refused, match="has ended"):
            scene.begin(job_id, plan, index, direction)


def test_an_application_ends_once(scene, approved):
    """The same end again is a no-op that writes nothing; another end is a conflict."""
    job_id, plan = approved
    scene.close(job_id, plan, "drift")
    scene.close(job_id, plan, "drift")
    with pytest.raises(Conflict, match="drift"):
        scene.close(job_id, plan, "applied")
    assert scene.kinds().count("application.closed") == 1


@pytest.mark.parametrize("state", ["intent", "unknown"])
def test_an_application_cannot_claim_success_over_an_open_effect(scene, approved, state):
    """While an effect's end is not written, an application may only end as stuck, refused or cancelled."""
    job_id, plan = approved
    scene.begin(job_id, plan)
    if state == "unknown":
        scene.finish(job_id, plan, 0, "unknown")
    with pytest.raises(Conflict, match=state):
        scene.close(job_id, plan, "applied")
    scene.close(job_id, plan, "stuck")


def test_an_application_is_applied_when_every_effect_has_ended_well(scene, approved):
    """With an effect that was never begun, nobody can close the application as applied."""
    job_id, plan = approved
    for index in range(2):
        scene.begin(job_id, plan, index)
        scene.finish(job_id, plan, index)
    with pytest.raises(Conflict, match="effect 3 is 'not begun'"):
        scene.close(job_id, plan, "applied")
    scene.finish(job_id, plan, 2, "already")
    scene.close(job_id, plan, "applied")


@pytest.mark.parametrize("state", ["applied", "undone"])
def test_nothing_was_applied_without_a_permit(scene, state):
    """An application that nobody was permitted to begin cannot claim to have done or undone anything."""
    job_id = scene.admit()
    with pytest.raises(Conflict, match="nobody was permitted"):
        scene.close(job_id, scene.freeze(job_id), state)


def test_a_refused_application_closes_without_a_permit(scene):
    """An application that never got a permit still writes how it ended."""
    job_id = scene.admit()
    plan = scene.freeze(job_id)
    scene.close(job_id, plan, "refused")
    scene.close(job_id, plan, "refused")
    assert scene.kinds().count("application.closed") == 1


def test_only_what_was_done_is_taken_back_newest_first(scene, approved):
    """Undo needs something of ours to undo, and waits for what came after to be settled."""
    job_id, plan = approved
    with pytest.raises(Refused, match="nothing of ours"):
        scene.begin(job_id, plan, 0, "undo")
    scene.begin(job_id, plan, 0)
    scene.finish(job_id, plan, 0)
    scene.begin(job_id, plan, 1)
    with pytest.raises(Refused, match="newest first"):
        scene.begin(job_id, plan, 0, "undo")
    scene.finish(job_id, plan, 1)
    scene.begin(job_id, plan, 1, "undo")
    with pytest.raises(Refused, match="newest first"):
        scene.begin(job_id, plan, 0, "undo")
    scene.finish(job_id, plan, 1, "failed", "undo")
    scene.begin(job_id, plan, 0, "undo")


def test_what_was_so_before_is_not_ours_to_take_back(scene, approved):
    """An effect found done before it began is left alone by undo."""
    job_id, plan = approved
    scene.finish(job_id, plan, 0, "already")
    with pytest.raises(Refused, match="nothing of ours"):
        scene.begin(job_id, plan, 0, "undo")


def test_no_way_forward_while_going_back(scene, approved):
    """Once something was taken back, the rest of the plan is not applied any more."""
    job_id, plan = approved
    scene.begin(job_id, plan)
    scene.finish(job_id, plan)
    scene.begin(job_id, plan, 0, "undo")
    with pytest.raises(Refused, match="taken back"):
        scene.begin(job_id, plan, 1)


@pytest.mark.parametrize("state", ["done", "failed", "unknown"])
def test_an_effect_that_never_began_cannot_have_ended(scene, approved, state):
    """A receipt without an intent is refused: it would be an effect nobody allowed."""
    job_id, plan = approved
    with pytest.raises(Conflict, match="never begun"):
        scene.finish(job_id, plan, 0, state)
    assert scene.ledger.intent("apply/releases/one/1", 0, "do") is None


@pytest.mark.parametrize("state", ["already", "drift", "refused", "stopped"])
def test_an_effect_may_end_without_having_begun(scene, approved, state):
    """Found done, drifted, refused or stopped before its intent: the end is written, no attempt is counted."""
    job_id, plan = approved
    scene.finish(job_id, plan, 0, state)
    intent = scene.ledger.intent("apply/releases/one/1", 0, "do")
    assert (intent.state, intent.attempts, intent.started_at, intent.finished_at) == (state, 0, None, AT)


def test_the_process_of_an_attempt_is_remembered(scene, approved):
    """A later attempt finds the process group and boot of the one before it."""
    job_id, plan = approved
    with pytest.raises(NotFound):
        scene.ledger.note_process("apply/releases/one/1", 0, "do", pgid=1, boot_id="b")
    scene.begin(job_id, plan)
    scene.ledger.note_process("apply/releases/one/1", 0, "do", pgid=4242, boot_id="boot")
    intent = scene.begin(job_id, plan)
    assert (intent.pgid, intent.boot_id) == (4242, "boot")


def test_a_receipt_is_found_by_job_and_application(scene, approved):
    """Undo days later works from the ledger alone: every effect, its end and its receipt are listed in order."""
    job_id, plan = approved
    for index in range(3):
        scene.begin(job_id, plan, index)
        scene.finish(job_id, plan, index)
    scene.begin(job_id, plan, 2, "undo")
    rows = scene.ledger.intents(job_id=job_id)
    assert [(row.index, row.direction) for row in rows] == [(0, "do"), (1, "do"), (2, "do"), (2, "undo")]
    assert scene.blobs.get_json(rows[0].receipt_ref)["state"] == "done"
    assert scene.ledger.intents(application_id="apply/releases/one/1") == rows
