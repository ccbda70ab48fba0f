"""Standing approvals in the ledger: said, taken back, and counted where they are used."""

from __future__ import annotations

from datetime import timedelta

import pytest

from perdure.contracts.decisions import Revocation, StandingScope
from perdure.contracts.names import CALL_ROUNDS
from perdure.errors import Conflict, NotFound, UserError
from perdure.store.approvals import ApprovalGone, use_approval
from tests.store.ledger_kit import AT

THREAD = "releases"


def scope(**more):
    """What stands, as JSON."""
    about = {"thread": THREAD, "template_digest": "b" * 64, "tool": "shell.run", "tool_digest": "a" * 64}
    return StandingScope.model_validate({**about, "until": AT + timedelta(hours=1), **more}).model_dump_json()


def stand(scene, job_id, id, **more):
    """Let calls of a plan stand approved; returns the plan."""
    plan = scene.freeze(job_id, round_number=CALL_ROUNDS + 1, effects=1)
    scene.decide("standing", job_id, plan, id=id, comment=scope(**more))
    return plan


def use(scene, job_id, approval, gate, *, at=AT):
    """Use one for a gate."""
    with scene.ledger.database.write() as connection:
        about = {"thread": THREAD, "job_id": job_id, "gate_id": gate, "digest": "d" * 64}
        use_approval(connection, approval, **about, at=at)


def test_each_use_is_counted_once_and_no_more_often_than_said(scene):
    """The same gate's use is one use; one more than it says, or after its time, is refused."""
    job_id = scene.admit()
    stand(scene, job_id, "s1", uses=2)
    for gate in ("agent/releases/one/1.0.0/5", "agent/releases/one/1.0.0/5", "agent/releases/one/1.0.0/6"):
        use(scene, job_id, "s1", gate)
    assert scene.ledger.count_uses(THREAD) == {"s1": 2}
    assert scene.ledger.approvals_used("agent/releases/one/1.0.0/6") == ["s1"]
    with pytest.raises(ApprovalGone):
        use(scene, job_id, "s1", "agent/releases/one/1.0.0/7")
    stand(scene, job_id, "s2")
    with pytest.raises(ApprovalGone):
        use(scene, job_id, "s2", "agent/releases/one/1.0.0/8", at=AT + timedelta(hours=2))


def test_revoked_approval_is_not_used_and_is_revoked_once(scene):
    """Whoever weighed it just before weighs again; what is not there cannot be taken back."""
    job_id = scene.admit()
    plan = stand(scene, job_id, "s1")
    scene.decide("revoke", job_id, plan, id="r1", comment=Revocation(approval="s1").model_dump_json())
    with pytest.raises(ApprovalGone):
        use(scene, job_id, "s1", "agent/releases/one/1.0.0/5")
    for approval, error in (("s1", Conflict), ("s9", NotFound)):
        with pytest.raises(error):
            scene.decide("revoke", job_id, plan, comment=Revocation(approval=approval).model_dump_json())


def test_what_says_nothing_or_too_much_is_not_recorded(scene):
    """No scope, another thread's, one that is over already, or on a draft."""
    job_id = scene.admit()
    call = scene.freeze(job_id, round_number=CALL_ROUNDS + 1, effects=1)
    draft = scene.freeze(job_id)
    past = scope(until=AT)
    for plan, comment in ((call, "yes"), (call, scope(thread="other")), (call, past), (draft, scope())):
        with pytest.raises(UserError):
            scene.decide("standing", job_id, plan, comment=comment)
    assert scene.ledger.standing_words(THREAD) == []
