"""What Temporal lost and the ledger holds: a file that lost its tail, or workflows that somebody ended."""

from __future__ import annotations

import asyncio

from perdure.contracts import names
from perdure.contracts.http import JobView
from perdure.contracts.job import JobPhase, Poke
from perdure.runtime.messenger import Messenger
from perdure.store.ledger import Ledger

_MOST = 1000
"""Open jobs that are looked at, newest first."""

_APPLYING = (JobPhase.applying, JobPhase.unknown, JobPhase.waiting_for_merge, JobPhase.paused, JobPhase.undoing)


async def recover(ledger: Ledger, messenger: Messenger) -> int:
    """Start again the workflows of open jobs that Temporal does not have any more; return of how many jobs.

    What runs is left alone. A gate is not looked for: the next decision finds it.

    Raises:
        SetupError: Temporal cannot be asked now.
    """
    jobs = await asyncio.to_thread(ledger.jobs, open_only=True, limit=_MOST)
    return sum([await _recover_one(messenger, job) for job in jobs])


async def _recover_one(messenger: Messenger, job: JobView) -> bool:
    if await messenger.describe(job.job_id) != "open":
        await messenger.revive(job.job_id)
        return True
    if job.phase not in _APPLYING:
        return False
    application = names.application_id(job.job_id, job.round)
    if "open" in {await messenger.describe(one) for one in (application, f"{application}/undo")}:
        return False
    await messenger.poke(job.job_id, Poke(about="gate"))
    return True
