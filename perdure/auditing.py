"""An audit: the ledger compared with itself, its signatures, the blobs, Temporal and the world."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Literal, Protocol

from perdure.contracts.http import AuditFinding, AuditReport, JobView
from perdure.contracts.plan import read_plan
from perdure.effects.base import Effect, EffectContext, Finished, Found
from perdure.errors import EffectUnknown, PerdureError, SetupError
from perdure.scratch import scratch_folder
from perdure.store import audit
from perdure.store.blobs import BlobStore
from perdure.store.ledger import Ledger
from perdure.store.reading import PublicKeys
from perdure.store.rows import IntentRow

RETENTION = timedelta(days=30)
"""How long Temporal keeps a closed history."""

NOT_LOOKED_AT = frozenset({"shell.run", "agent.call", "http.request", "sql.execute"})
"""Kinds whose probe a template wrote, or a tool of an agent is: an audit runs none, and has no secrets for them."""

ASKED_FOR_ONE_JOB = frozenset({"git.push"})
"""Kinds whose probe asks another machine: not for every job that ever was."""

_OF_A_JOB = re.compile(r"(?:job|gate|apply|agent)/[^ ]+|plan [0-9a-f]{8}|spec of job \d+")

Fate = Literal["open", "closed", "missing"]


class Historian(Protocol):
    """Knows whether Temporal still has an execution."""

    async def describe(self, workflow_id: str) -> Fate: ...

    async def describe_all(self) -> Mapping[str, Fate]: ...


class Auditor:
    """Reads everything and changes nothing."""

    def __init__(
        self,
        ledger: Ledger,
        blobs: BlobStore,
        public_keys: PublicKeys,
        effects: Mapping[str, Effect],
        historian: Historian,
    ) -> None:
        self._ledger = ledger
        self._blobs = blobs
        self._public_keys = public_keys
        self._effects = effects
        self._historian = historian

    async def audit(self, job: JobView | None, *, now: datetime) -> AuditReport:
        """Return what was found; with ``job`` only what concerns that job and the ledger as a whole.

        Temporal that cannot be asked is a gap, not an error: the rest is compared all the same.
        """
        loop = asyncio.get_running_loop()

        def ask(workflow_id: str) -> Fate:
            return asyncio.run_coroutine_threadsafe(self._historian.describe(workflow_id), loop).result()

        def describe(workflow_id: str) -> Fate:
            return ask(workflow_id) if job is None or _belongs(workflow_id, job) else "open"  # not looked at

        def describe_listed() -> Callable[[str], Fate]:
            # Measured: 3,000 executions one by one 11.1 s, by pages 1.9 s.
            listed = asyncio.run_coroutine_threadsafe(self._historian.describe_all(), loop).result()
            return lambda workflow_id: listed.get(workflow_id, "missing")

        return await asyncio.to_thread(self._audit, job, now, describe, describe_listed)

    def export(self, path: str, job: JobView | None) -> str:
        """Write a bundle to a new file and return the ledger's head at its end."""
        job_id = job.job_id if job else None
        return audit.export_bundle(self._ledger, self._blobs, self._public_keys(), Path(path), job_id)

    @property
    def public_keys(self) -> dict[str, str]:
        """Raw public keys in hex by key id: what a verifier must get by another way than a bundle."""
        return {name: key.hex() for name, key in self._public_keys().items()}

    def _audit(
        self,
        job: JobView | None,
        now: datetime,
        describe: Callable[[str], Fate],
        describe_listed: Callable[[], Callable[[str], Fate]],
    ) -> AuditReport:
        report = audit.audit(self._ledger, self._blobs, self._public_keys())
        history = self._compare_history(describe, describe_listed if job is None else lambda: describe, now)
        findings = [*report.findings, *history, *self._compare_world(job)]
        if job is None:
            return audit.report_of(self._ledger, findings)
        digests = [row.digest[:8] for row in self._ledger.job_plans(job.job_id)]
        whole = audit.report_of(self._ledger, [one for one in findings if _concerns(one.about, job, digests)])
        return whole.model_copy(update={"records": self._count(job.job_id)})

    def _compare_history(
        self, describe: Callable[[str], Fate], listed: Callable[[], Callable[[str], Fate]], now: datetime
    ) -> list[AuditFinding]:
        archived = self._archived()
        try:
            return audit.compare_history(
                self._ledger, listed(), archived.__contains__, now, RETENTION, confirm=describe
            )
        except SetupError as error:
            return [AuditFinding(severity="gap", about="history", detail=f"not compared: {error.message}")]

    def _compare_world(self, job: JobView | None) -> list[AuditFinding]:
        @cache
        def was_taken_back(job_id: str) -> bool:
            return bool(self._ledger.job(job_id).undone_by)

        def look(row: IntentRow) -> str:
            if row.kind in NOT_LOOKED_AT or row.kind not in self._effects or was_taken_back(row.job_id):
                return ""
            if job is None and row.kind in ASKED_FOR_ONE_JOB:
                return ""
            return self._look(row) if job is None or row.job_id == job.job_id else ""

        return audit.compare_world(self._ledger, look)

    def _look(self, row: IntentRow) -> str:
        """Say that the world is as it was before the effect. That it has moved on since is no finding."""
        try:
            ref = self._ledger.plan(row.digest).ref
            body = read_plan(row.digest, self._blobs.get(ref)).effects[row.index].body
            with scratch_folder("audit") as scratch:
                started = row.started_at or datetime.min
                context = EffectContext(blobs=self._blobs, scratch=scratch, runner=_NoRunner(), now=started)
                probe = self._effects[row.kind].probe(body, context)
        except PerdureError:
            return ""  # damaged evidence is named by the other comparisons; a silent remote is no difference
        return (
            f"the ledger says done and the world says not done ({probe.detail})"
            if probe.found is Found.not_done
            else ""
        )

    def _archived(self) -> set[str]:
        return {str(body.get("workflow_id")) for kind, body in self._events(None) if kind == "history.archived"}

    def _count(self, job_id: str) -> int:
        return sum(1 for _ in self._events(job_id))

    def _events(self, job_id: str | None) -> Iterable[tuple[str, dict[str, object]]]:
        after = 0
        while events := self._ledger.events(job_id=job_id, after=after):
            yield from ((event.kind, event.body) for event in events)
            after = events[-1].position


class _NoRunner:
    """An audit runs no command."""

    def run(self, argv: Sequence[str], **options: object) -> Finished:
        """Refuse."""
        raise EffectUnknown(f"An audit runs nothing, and {argv[0]!r} was asked for.")


def _belongs(workflow_id: str, job: JobView) -> bool:
    """Whether an execution is the job's own, its gate's or its application's."""
    return workflow_id.partition("/")[2].startswith(job.job_id.partition("/")[2])


def _concerns(about: str, job: JobView, digests: Sequence[str]) -> bool:
    """Whether a finding is about this job, or about no job in particular."""
    found = _OF_A_JOB.search(about)
    if found is None:
        return True
    text = found.group()
    if text.startswith("plan "):
        return text.removeprefix("plan ") in digests
    if text.startswith("spec of job "):
        return text == f"spec of job {job.number}"
    return _belongs(text, job)
