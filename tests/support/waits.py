"""Waits for what a job comes to."""

from __future__ import annotations

from perdure.contracts.http import JobView
from perdure.contracts.job import JobPhase
from tests.support.installation import Installation, wait_until


def ended(home: Installation, job: JobView) -> JobView:
    """Wait until nothing more happens by itself."""

    def look() -> JobView | None:
        now = home.job(job)
        return now if now.phase.is_final else None

    found: JobView = wait_until(look, f"{job.name} to end", explain=home.worker_log)
    return found


def asked_again(home: Installation, job: JobView, digest: str) -> JobView:
    """Wait until people are asked about another plan than ``digest``."""

    def look() -> JobView | None:
        now = home.job(job)
        assert not now.phase.is_final, f"{now.name} is {now.phase}: {now.summary}"
        return now if now.phase is JobPhase.waiting and now.digest != digest else None

    found: JobView = wait_until(look, f"{job.name} to ask again", explain=home.worker_log)
    return found
