"""A worker killed between a fire and its job: the fire is one job, once."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from perdure.contracts.job import JobPhase
from tests.schedules.kit import Scheduled, days_ago
from tests.support.installation import Installation


@pytest.mark.parametrize("point", ["schedules.take#1:before", "schedules.take#1:after", "schedules.standing#1:after"])
def test_killed_between_fire_and_admission(schedule_home: Installation, tmp_path: Path, point: str) -> None:
    """SIGKILL before or after the ledger has taken a fire, and the workflow knows nothing: it is one job."""
    schedule_home.kill_workers()
    daily = Scheduled(schedule_home, f"k{uuid.uuid4().hex[:8]}", tmp_path, "unattended")
    daily.add()
    daily.set_back(days_ago(2))
    with schedule_home.dying_worker(point):
        daily.fire_past(days_ago(2), days_ago(0))
        daily.wait_jobs(JobPhase.done)
    assert len(daily.records("fired")) == 1
