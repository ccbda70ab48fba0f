"""The ledger compared with Temporal's executions and with the world."""

from __future__ import annotations

from datetime import timedelta

import pytest

from perdure.store import audit
from tests.store.ledger_kit import AT

RETENTION = timedelta(days=30)


@pytest.fixture
def finished(sqlite_scene):
    """A finished job with one application."""
    job_id, plan, _ = sqlite_scene.approved(effects=1)
    sqlite_scene.begin(job_id, plan)
    sqlite_scene.finish(job_id, plan)
    sqlite_scene.close(job_id, plan)
    sqlite_scene.note(job_id, 1, "done")
    return sqlite_scene


def _compare(scene, fate, *, archived=False, after=timedelta(days=1)):
    findings = audit.compare_history(scene.ledger, lambda _: fate, lambda _: archived, AT + after, RETENTION)
    return {one.severity for one in findings}, {one.about for one in findings}


def test_closed_executions_are_as_they_should_be(finished):
    """A finished job's executions are known to Temporal and have ended."""
    assert _compare(finished, "closed") == ({"ok"}, {"history"})


def test_expired_and_archived_is_no_gap(finished):
    """Past the retention an archived history is expired; job, gate and application are each looked up."""
    severities, about = _compare(finished, "missing", archived=True, after=timedelta(days=40))
    assert severities == {"expired", "ok"}
    assert about >= {"job/releases/one", "gate/releases/one/1", "apply/releases/one/1"}


@pytest.mark.parametrize("after", [timedelta(days=1), timedelta(days=40)])
def test_missing_without_an_archive_is_a_gap(finished, after):
    """A history that is neither there nor archived is missing, before and after the retention."""
    assert _compare(finished, "missing", after=after)[0] == {"gap"}


def test_an_open_job_that_temporal_does_not_know_is_a_gap(sqlite_scene):
    """A job that goes on in the ledger and nowhere else is named."""
    sqlite_scene.admit()
    assert _compare(sqlite_scene, "missing", archived=True)[0] == {"gap"}
    assert _compare(sqlite_scene, "closed")[0] == {"gap"}
    assert _compare(sqlite_scene, "open")[0] == {"ok"}


def test_the_world_is_asked_about_effects_that_stand(finished):
    """Every effect that was done and not taken back is looked at; a difference is one finding."""
    seen = []
    findings = audit.compare_world(finished.ledger, lambda row: seen.append(row.effect_id) or "f0 is gone")
    assert seen == ["write-0"]
    assert [(one.severity, one.detail) for one in findings] == [("gap", "f0 is gone")]
    assert [one.severity for one in audit.compare_world(finished.ledger, lambda row: "")] == ["ok"]


def test_what_was_taken_back_is_not_looked_for(sqlite_scene):
    """An effect that was undone is not expected to stand."""
    job_id, plan, _ = sqlite_scene.approved(effects=1)
    sqlite_scene.begin(job_id, plan)
    sqlite_scene.finish(job_id, plan)
    sqlite_scene.begin(job_id, plan, 0, "undo")
    sqlite_scene.finish(job_id, plan, 0, "done", "undo")
    assert audit.compare_world(sqlite_scene.ledger, lambda row: "gone")[0].severity == "ok"


def test_a_list_that_is_a_moment_behind_names_no_gap(finished):
    """What a list of executions does not show is asked for by itself before anything is called missing."""
    asked = []

    def confirm(workflow_id):
        asked.append(workflow_id)
        return "closed"

    def compare(listed):
        return audit.compare_history(
            finished.ledger, lambda _: listed, lambda _: False, AT + timedelta(days=1), RETENTION, confirm=confirm
        )

    assert {one.severity for one in compare("closed")} == {"ok"}
    assert asked == []
    assert {one.severity for one in compare("missing")} == {"ok"}
    assert asked
