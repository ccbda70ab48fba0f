"""Plans, gates and people's decisions in the ledger."""

from __future__ import annotations

from datetime import timedelta

import pytest

from perdure.contracts.decisions import CloseGateInput, GateInput
from perdure.errors import Conflict, NotFound, Refused, UserError
from perdure.store.plans import GATE_WORDS
from tests.store.ledger_kit import AT, NO_GATE, RULE

THREAD = "releases"


@pytest.fixture
def waiting(scene):
    """A job whose plan waits for a decision: (job id, plan)."""
    job_id = scene.admit()
    plan = scene.freeze(job_id)
    scene.open_gate(job_id, plan)
    return job_id, plan


def test_a_plan_recorded_twice_is_recorded_once(scene):
    """Freezing again after a crash gives one record for one digest."""
    job_id = scene.admit()
    plan = scene.freeze(job_id)
    scene.freeze(job_id)
    assert [row.digest for row in scene.ledger.job_plans(job_id)] == [plan.digest]
    assert scene.kinds().count("plan.frozen") == 1


def test_a_plan_frozen_again_supersedes_the_one_nobody_saw(scene):
    """Of two plans of one round that were never opened, only the newest can be decided on."""
    job_id = scene.admit()
    first = scene.freeze(job_id, title="first")
    second = scene.freeze(job_id, title="second")
    assert scene.ledger.plan(first.digest).state == "superseded"
    with pytest.raises(Conflict, match="newer plan took its place"):
        scene.open_gate(job_id, first)
    scene.open_gate(job_id, second)


def test_a_plan_that_contradicts_its_envelope_is_refused(scene):
    """A plan whose rule wants approvals cannot be recorded as one that needs no gate."""
    job_id = scene.admit()
    plan = scene.freeze(job_id, rule=NO_GATE)
    with pytest.raises(UserError, match="needs no gate"):
        _record_with_rule(scene, job_id, plan, RULE)


def test_a_digest_is_found_by_its_first_digits(scene, waiting):
    """Every plan whose digest begins so is given, in any case; what is no hexadecimal is refused."""
    job_id, plan = waiting
    other = scene.freeze(job_id, round_number=2)
    assert [row.digest for row in scene.ledger.plans_like(plan.digest[:8].upper())] == [plan.digest]
    assert {row.digest for row in scene.ledger.job_plans(job_id)} == {plan.digest, other.digest}
    for odd in ("", "%", "_", "zz"):
        with pytest.raises(UserError, match="hexadecimal"):
            scene.ledger.plans_like(odd)


def test_a_gate_opened_twice_stays_as_it_is(scene, waiting):
    """A late retry of opening a gate does not open it again after it closed."""
    job_id, plan = waiting
    scene.decide("reject", job_id, plan)
    scene.close_gate(job_id, plan, "denied")
    scene.open_gate(job_id, plan)
    assert scene.ledger.plan(plan.digest).state == "denied"
    assert scene.kinds().count("gate.opened") == 1


def test_a_gate_ends_once(scene, waiting):
    """The first end stands: the same again is a no-op, another one a conflict that names it."""
    job_id, plan = waiting
    scene.close_gate(job_id, plan, "denied")
    scene.close_gate(job_id, plan, "denied")
    with pytest.raises(Conflict, match="rejected"):
        scene.close_gate(job_id, plan, "satisfied")
    assert scene.kinds().count("gate.closed") == 1


def test_a_gate_is_closed_by_itself_only(scene, waiting):
    """Another gate's id, or another job's, cannot close or open the gate of a plan."""
    job_id, plan = waiting
    foreign = {"job_id": job_id, "digest": plan.digest}
    with pytest.raises(Conflict, match="waits at gate/releases/one/1"):
        scene.ledger.close_gate(CloseGateInput(gate_id="gate/releases/one/2", outcome="satisfied", **foreign), at=AT)
    with pytest.raises(Conflict, match="belongs to"):
        scene.close_gate(scene.admit("two"), plan)
    with pytest.raises(Conflict, match="its gate is open"):
        other = GateInput(gate_id="gate/releases/one/2", ref=plan.ref, expires_at=plan.expires_at, **foreign)
        scene.ledger.open_gate(other, at=AT)
    assert scene.ledger.plan(plan.digest).state == "open"


def test_a_decision_recorded_twice_is_one_decision(scene, waiting):
    """The same signed decision again is not new and writes nothing."""
    job_id, plan = waiting
    signed = scene.sign("approve", job_id, plan)
    assert scene.ledger.record_decision(signed, thread=THREAD, at=AT) is True
    assert scene.ledger.record_decision(signed, thread=THREAD, at=AT) is False
    assert scene.ledger.decisions(digest=plan.digest) == [signed]
    assert scene.ledger.decision(signed.decision.id) == signed
    assert scene.ledger.decision("never") is None


def test_a_decision_id_is_used_once(scene, waiting):
    """Other content under an id that was used is refused, whoever sends it."""
    job_id, plan = waiting
    scene.decide("approve", job_id, plan, id="d-same")
    with pytest.raises(Conflict, match="new id"):
        scene.decide("reject", job_id, plan, id="d-same")


@pytest.mark.parametrize("kind", ["approve", "reject", "request_changes"])
@pytest.mark.parametrize("outcome", ["satisfied", "denied", "changes_requested", "expired", "cancelled", "superseded"])
def test_a_late_decision_says_how_the_gate_ended(scene, waiting, kind, outcome):
    """After a gate has closed, a decision is refused with the way it closed, and not recorded."""
    job_id, plan = waiting
    scene.close_gate(job_id, plan, outcome)
    with pytest.raises(Conflict, match=rf"{GATE_WORDS[outcome]}\. `perdure show \d+` tells how its job went on"):
        scene.decide(kind, job_id, plan)
    assert scene.ledger.decisions(job_id=job_id) == []


def test_a_decision_after_the_expiry_is_refused_before_the_gate_knows(scene, waiting):
    """The ledger does not wait for the gate's timer to refuse a decision on an expired plan."""
    job_id, plan = waiting
    with pytest.raises(Conflict, match="expired"):
        scene.decide("approve", job_id, plan, recorded_at=AT + timedelta(days=7))


def test_nobody_decides_on_a_plan_that_is_not_there(scene, waiting):
    """A digest that names no plan, another job's plan, an unopened gate, a foreign thread: each is refused."""
    job_id, plan = waiting
    with pytest.raises(NotFound):
        scene.decide("approve", job_id, plan.model_copy(update={"digest": "0" * 64}))
    other = scene.admit("two")
    with pytest.raises(Conflict, match="belongs to"):
        scene.decide("approve", other, plan)
    with pytest.raises(Conflict, match="never opened"):
        scene.decide("approve", other, scene.freeze(other))
    with pytest.raises(Conflict, match="belongs to thread"):
        scene.ledger.record_decision(scene.sign("approve", job_id, plan), thread="links", at=AT)


def test_untold_decisions_are_given_until_they_are_told(scene, waiting):
    """A decision recorded just before a crash is told to its gate afterwards."""
    job_id, plan = waiting
    scene.decide("request_changes", job_id, plan, id="d-1")
    scene.decide("approve", job_id, plan, id="d-2")
    assert [signed.decision.id for signed in scene.ledger.untold_decisions()] == ["d-1", "d-2"]
    scene.ledger.mark_told("d-1")
    assert [signed.decision.id for signed in scene.ledger.untold_decisions()] == ["d-2"]


def test_a_gate_cannot_close_over_a_decision_that_was_not_weighed(scene, waiting):
    """Somebody who was told "recorded" is heard: the gate has to weigh again."""
    job_id, plan = waiting
    scene.decide("approve", job_id, plan)
    scene.decide("reject", job_id, plan, by="cy")
    with pytest.raises(Conflict, match="Weigh them again"):
        scene.close_gate(job_id, plan, "satisfied", weighed=1)
    scene.close_gate(job_id, plan, "denied", weighed=2)


def test_a_permit_needs_a_satisfied_gate(scene, waiting):
    """No permit while the gate is open, after it was denied, for another job's plan, or for one never asked about."""
    job_id, plan = waiting
    with pytest.raises(Refused, match="open"):
        scene.grant(job_id, plan)
    scene.close_gate(job_id, plan, "denied")
    with pytest.raises(Refused, match="rejected"):
        scene.grant(job_id, plan)
    other = scene.admit("two")
    with pytest.raises(Refused, match="belongs to"):
        scene.grant(other, plan)
    with pytest.raises(Refused, match="never opened"):
        scene.grant(other, scene.freeze(other))


def test_a_superseded_plan_gets_no_permit(scene):
    """Of two plans that ask nobody, the one that was replaced cannot be applied any more."""
    job_id = scene.admit()
    replaced = scene.freeze(job_id, rule=NO_GATE, title="first")
    newest = scene.freeze(job_id, rule=NO_GATE, title="second")
    with pytest.raises(Refused, match="superseded"):
        scene.grant(job_id, replaced)
    scene.grant(job_id, newest)


def test_a_permit_is_not_granted_over_a_no(scene, waiting):
    """A gate that claims to be satisfied gives no permit while somebody's last word is against the plan."""
    job_id, plan = waiting
    scene.decide("approve", job_id, plan)
    scene.decide("reject", job_id, plan, by="cy")
    scene.close_gate(job_id, plan, "satisfied")
    with pytest.raises(Refused, match="cy"):
        scene.grant(job_id, plan)
    with pytest.raises(Conflict, match="Weigh them again"):
        scene.grant(job_id, plan, weighed=1)


def test_a_gate_closed_on_what_was_weighed_gives_its_permit(scene, waiting):
    """Who took an approval back does not stop a plan that others approve sufficiently: their words were weighed."""
    job_id, plan = waiting
    scene.decide("approve", job_id, plan, by="cy")
    scene.decide("withdraw", job_id, plan, by="cy")
    scene.decide("approve", job_id, plan)
    scene.close_gate(job_id, plan, weighed=3)
    scene.grant(job_id, plan)
    scene.begin(job_id, plan)


def test_a_withdrawal_after_the_weighing_is_in_time(scene, waiting):
    """A gate that closed on what was weighed gives no permit when somebody withdrew right after."""
    job_id, plan = waiting
    scene.decide("approve", job_id, plan)
    scene.close_gate(job_id, plan, weighed=1)
    scene.decide("withdraw", job_id, plan)
    with pytest.raises(Refused, match="withdrawn by bo"):
        scene.grant(job_id, plan)


def test_a_permit_is_granted_to_one_application(scene):
    """The same application again is a no-op; another one is refused."""
    job_id, plan, application = scene.approved()
    scene.grant(job_id, plan)
    with pytest.raises(Refused, match="has no right"):
        scene.ledger.grant_permit(digest=plan.digest, job_id=job_id, application_id="apply/x/y/9", at=AT)
    assert scene.ledger.permit(plan.digest).application_id == application
    assert scene.kinds().count("permit.granted") == 1


def test_a_withdrawal_before_the_grant_leaves_no_permit(scene, waiting):
    """Withdrawing after the gate closed and before the application opened is in time."""
    job_id, plan = waiting
    scene.decide("approve", job_id, plan)
    scene.close_gate(job_id, plan)
    scene.decide("withdraw", job_id, plan)
    with pytest.raises(Refused, match="withdrawn by bo"):
        scene.grant(job_id, plan)


def test_a_withdrawal_while_the_gate_is_open_is_honoured_by_the_permit(scene, waiting):
    """A gate that closes as satisfied without having heard a withdrawal still gives no permit."""
    job_id, plan = waiting
    scene.decide("approve", job_id, plan)
    scene.decide("withdraw", job_id, plan)
    scene.close_gate(job_id, plan)
    with pytest.raises(Refused, match="last word of bo"):
        scene.grant(job_id, plan)


def test_approving_again_after_a_withdrawal_counts(scene, waiting):
    """While the gate is open, each person's last word counts."""
    job_id, plan = waiting
    for kind in ("approve", "withdraw", "approve"):
        scene.decide(kind, job_id, plan)
    scene.close_gate(job_id, plan)
    scene.grant(job_id, plan)


def test_only_who_decided_can_withdraw(scene, waiting):
    """A withdrawal takes back one's own decision, and nobody else's."""
    job_id, plan = waiting
    scene.decide("approve", job_id, plan)
    with pytest.raises(Conflict, match="cy has no decision"):
        scene.decide("withdraw", job_id, plan, by="cy")
    scene.close_gate(job_id, plan)
    scene.decide("withdraw", job_id, plan)
    with pytest.raises(Conflict, match="bo has no decision"):
        scene.decide("withdraw", job_id, plan)


def test_a_denied_plan_has_nothing_to_withdraw_from(scene, waiting):
    """Withdrawing from a gate that ended otherwise says how it ended."""
    job_id, plan = waiting
    scene.decide("reject", job_id, plan)
    scene.close_gate(job_id, plan, "denied")
    with pytest.raises(Conflict, match="rejected"):
        scene.decide("withdraw", job_id, plan)


def test_a_finished_job_cannot_be_cancelled(scene):
    """A cancel that comes too late says how the job ended."""
    job_id = scene.admit()
    scene.note(job_id, 1, "done")
    with pytest.raises(Conflict, match="done"):
        scene.decide("cancel", job_id)


def test_trust_is_recorded_with_its_signed_decision(scene):
    """A template's text is trusted by its digest, once, by a decision that names exactly it."""
    digest = "ab" * 32
    decision = scene.sign("trust", "", None, by="ada")
    trust = scene.key.sign(decision.decision.model_copy(update={"digest": digest}))
    assert scene.ledger.is_trusted(digest) is False
    with pytest.raises(Conflict, match="no trust"):
        scene.ledger.trust_template("cd" * 32, by="ada", at=AT, decision=trust)
    scene.ledger.trust_template(digest, by="ada", at=AT, decision=trust)
    scene.ledger.trust_template(digest, by="ada", at=AT, decision=trust)
    assert scene.ledger.is_trusted(digest) is True
    assert scene.kinds() == ["decision.trust"]
    with pytest.raises(UserError, match="a call of its own"):
        scene.ledger.record_decision(trust, thread=THREAD, at=AT)


def _record_with_rule(scene, job_id, plan, rule):
    from perdure.contracts.plan import read_plan

    envelope = read_plan(plan.digest, scene.blobs.get(plan.ref)).envelope
    lying = envelope.model_copy(update={"rule": rule})
    scene.ledger.record_plan(job_id=job_id, plan=plan, envelope=lying, at=AT)
