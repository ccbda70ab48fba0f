"""What a plan that is being applied waits for, as the word of a person that lets it go on."""

from __future__ import annotations

from perdure.contracts import names
from perdure.contracts.application import is_pause
from perdure.contracts.base import JsonDict
from perdure.contracts.http import JobView
from perdure.contracts.job import JobPhase
from perdure.errors import Conflict
from perdure.store.ledger import Ledger
from perdure.store.reading import Reader

_WAITING = (JobPhase.paused, JobPhase.unknown, JobPhase.applying)
"""``applying``: the pause may not be written yet."""


def find_pause(ledger: Ledger, reader: Reader, job: JobView) -> JsonDict:
    """Return kind, digest, effect (and answer) of the decision that lets a job's plan go on.

    A step that failed is tried again: its probe is asked first, and the steps before must still be as they were left.

    Raises:
        Conflict: nothing waits for such a word, or nobody knows what became of the step.
    """
    if job.phase not in _WAITING or not job.digest:
        raise Conflict(f"{job.name} is {job.phase.value}: no agent works on it, and no step of it waits.")
    row = ledger.plan(job.digest)
    rows = ledger.intents(application_id=names.application_id(job.job_id, row.round))
    ends = {one.index: one for one in rows if one.direction == "do"}
    effects = reader.load_plan(row).effects
    number = next((index for index in range(len(effects)) if index not in ends or not ends[index].is_final), None)
    at = ends.get(number) if number is not None else None
    if number is not None and at is None and effects[number].pause:
        return {"kind": "go_on", "digest": row.digest, "effect": number}
    if number is not None and at is not None and at.state == "unknown":
        if not is_pause(at.detail):
            raise Conflict(
                f"Nobody knows what became of step {number + 1} ({effects[number].id}) of {job.name}: {at.detail}. "
                f"Look first, then `perdure resolve {job.number} {number + 1} --done`, `--not-done` or `--stop`."
            )
        return {"kind": "resolve", "digest": row.digest, "effect": number, "answer": "not_done"}
    raise Conflict(f"{job.name} ({job.phase.value}) does not wait between steps; there is nothing to go on with.")
