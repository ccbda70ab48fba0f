"""What happens at one instant: two people decide, a vote meets the deadline, a withdrawal meets the gate's end."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest

from activities.ledger import Decisions, LedgerActivities
from perdure.contracts.decisions import WeighInput
from perdure.contracts.names import gate_id
from perdure.contracts.plan import ApprovalRule, ReviewRule
from perdure.errors import Conflict, PerdureError
from perdure.store.signing import public_keys
from tests.store.ledger_kit import AT

TWO = ReviewRule(approvals=[ApprovalRule(group="maintainers", count=2)])
LAST = timedelta(microseconds=1)


@pytest.fixture
def clock():
    return [AT]


@pytest.fixture
def gate(scene, clock, tmp_path):
    """A plan that two have to approve, and the activity that ends its gate by a clock that the test holds."""
    job_id = scene.admit()
    plan = scene.freeze(job_id, rule=TWO)
    scene.open_gate(job_id, plan)
    keys = public_keys(tmp_path / "keys")
    activities = LedgerActivities(scene.ledger, scene.blobs, Decisions(scene.ledger, lambda: keys), lambda: clock[0])
    question = WeighInput(gate_id=gate_id(job_id, plan.round), job_id=job_id, digest=plan.digest, ref=plan.ref)
    return job_id, plan, lambda: activities.end_gate(question)


def at_once(*deeds):
    """Run deeds in threads that start together; return what each raised, or ``None``."""
    barrier, ends = threading.Barrier(len(deeds)), [None] * len(deeds)

    def run(number, deed):
        barrier.wait()
        try:
            deed()
        except PerdureError as error:
            ends[number] = error

    threads = [threading.Thread(target=run, args=item) for item in enumerate(deeds)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return ends


def test_two_approvers_at_one_instant_are_two(scene, gate):
    """Both are recorded, whoever of the two closes the gate has weighed both, and there is one permit."""
    job_id, plan, end = gate
    deeds = [lambda by=by: (scene.decide("approve", job_id, plan, by=by), end()) for by in ("bo", "cy")]
    assert at_once(*deeds) == [None, None]
    assert end().outcome == "satisfied"
    assert sorted(end().weighing.by) == ["bo", "cy"]
    assert scene.ledger.permit(plan.digest).state == "granted"


def test_the_deciding_vote_and_the_deadline_at_one_instant(scene, gate, clock):
    """The last instant before the deadline counts, also when it is weighed later; the deadline itself is too late."""
    job_id, plan, end = gate
    scene.decide("approve", job_id, plan, by="bo")
    with pytest.raises(Conflict, match="expired"):
        scene.decide("approve", job_id, plan, by="cy", at=plan.expires_at, recorded_at=plan.expires_at)
    just = plan.expires_at - LAST
    scene.decide("approve", job_id, plan, by="cy", at=just, recorded_at=just)
    clock[0] = plan.expires_at
    assert end().outcome == "satisfied"


def test_the_deadline_with_one_vote_too_few_denies(scene, gate, clock):
    """At the deadline the gate ends as expired, and nobody approves any more."""
    job_id, plan, end = gate
    scene.decide("approve", job_id, plan, by="bo")
    clock[0] = plan.expires_at - LAST
    assert end().outcome == "open"
    clock[0] = plan.expires_at
    assert end().outcome == "expired"
    with pytest.raises(Conflict, match="expired"):
        scene.decide("approve", job_id, plan, by="cy", at=AT)
    assert scene.ledger.permit(plan.digest) is None


def test_a_clock_that_is_set_back_revives_nothing(scene, gate, clock):
    """What has expired stays so, whatever the clock says afterwards."""
    job_id, plan, end = gate
    clock[0] = plan.expires_at
    assert end().outcome == "expired"
    clock[0] = AT
    assert end().outcome == "expired"
    with pytest.raises(Conflict):
        scene.decide("approve", job_id, plan, by="bo")


def test_a_withdrawal_and_the_gates_end_at_one_instant(scene, gate):
    """Either the withdrawal was weighed and the gate stays open, or it comes after it and takes the permit away."""
    job_id, plan, end = gate
    for by in ("bo", "cy"):
        scene.decide("approve", job_id, plan, by=by)
    at_once(lambda: scene.decide("withdraw", job_id, plan, by="bo"), end)
    permit = scene.ledger.permit(plan.digest)
    if end().outcome == "open":
        assert permit is None
    else:
        assert permit.state == "withdrawn"
