"""Delegations in the ledger: signed, once, ended by whoever gave them."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from perdure.errors import Conflict, NotFound, UserError
from tests.store.ledger_kit import AT


def delegation(scene, *, by="bo", to="cy", until=AT + timedelta(days=1), **more):
    comment = json.dumps({"to": to, "groups": ["dba"], "until": until.isoformat()})
    return scene.sign("delegate", "", by=by, comment=comment, **more)


def end_of(scene, signed, by="bo", at=AT):
    return scene.sign("undelegate", "", by=by, comment=signed.decision.id, at=at)


def test_a_delegation_is_recorded_once_for_every_job(scene):
    """It lies in the installation's own thread, under whoever gave it, and the same one again is a no-op."""
    given = delegation(scene)
    assert [scene.ledger.record_delegation(given, at=AT) for _ in range(2)] == [True, False]
    assert scene.ledger.delegations() == [given]
    assert scene.kinds() == ["decision.delegate"]
    assert scene.ledger.untold_decisions() == []


@pytest.mark.parametrize("wrong", [{"to": "bo"}, {"until": AT}])
def test_a_delegation_to_oneself_or_without_a_time_is_refused(scene, wrong):
    """Nothing is recorded."""
    with pytest.raises(UserError, match=r"names somebody else|before it begins"):
        scene.ledger.record_delegation(delegation(scene, **wrong), at=AT)
    assert scene.ledger.delegations() == []


def test_only_its_giver_ends_a_delegation_and_only_once(scene):
    """Somebody else's end, the end of nothing and a second end are refused."""
    given = delegation(scene)
    with pytest.raises(NotFound, match="no delegation"):
        scene.ledger.record_delegation(end_of(scene, given), at=AT)
    scene.ledger.record_delegation(given, at=AT)
    with pytest.raises(Conflict, match="is bo's to end"):
        scene.ledger.record_delegation(end_of(scene, given, by="eve"), at=AT)
    assert scene.ledger.record_delegation(end_of(scene, given), at=AT) is True
    with pytest.raises(Conflict, match="has ended already"):
        scene.ledger.record_delegation(end_of(scene, given), at=AT)


def test_a_delegation_is_no_decision_of_a_job(scene):
    """It cannot be recorded on a job, nor a job's decision as one."""
    job_id = scene.admit()
    with pytest.raises(UserError, match="not as a job's"):
        scene.ledger.record_decision(delegation(scene), thread="releases", at=AT)
    with pytest.raises(UserError, match="delegates nothing"):
        scene.ledger.record_delegation(scene.sign("cancel", job_id), at=AT)
