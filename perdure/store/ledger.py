"""The ledger: the evidence, and the arbiter of whether an effect may start. One facade over the rooms beside it.

Every method is one transaction, synchronous and thread-safe. One that writes takes its place as the only writer first,
so that what it decides on cannot change before it has written. All of them raise ``SetupError`` when the ledger cannot
be reached, is locked for too long or is full; nothing is half-written then.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

from perdure.contracts.application import ApplicationStanding, CloseApplicationInput, Direction, Receipt
from perdure.contracts.base import BlobRef, JsonDict
from perdure.contracts.decisions import CloseGateInput, GateInput, SignedDecision
from perdure.contracts.http import EventView, JobView, TokenView
from perdure.contracts.job import Admission, AdmitInput, JobPhase, JobState, NoteInput, PlanRef
from perdure.contracts.plan import Envelope
from perdure.store import (
    access,
    agent_rows,
    approvals,
    arbiter,
    decisions,
    delegations,
    erasure,
    events,
    fires,
    intents,
    jobs,
    permits,
    plans,
    standing,
)
from perdure.store.database import PATIENCE, Database
from perdure.store.migrate import prepare_ledger
from perdure.store.rows import BeginEffect, IntentRow, PermitRow, PlanRow, TargetBusy


class Ledger:
    """All that is ever asked of the ledger. Made by :meth:`open`."""

    def __init__(self, database: Database) -> None:
        self.database = database

    @classmethod
    def open(cls, url: str, *, patience: timedelta = PATIENCE) -> Ledger:
        """Open the ledger at an SQLAlchemy URL (sqlite:///… or postgresql+psycopg://…), making or upgrading its tables.

        ``patience``: how long a call waits for another writer before it gives up.

        Raises:
            SetupError: it cannot be reached or written, or a newer Perdure wrote it.
        """
        database = Database(url, patience)
        try:
            prepare_ledger(database)
        except BaseException:
            database.close()
            raise
        return cls(database)

    def close(self) -> None:
        """Close all connections. The ledger may not be used afterwards."""
        self.database.close()

    # Jobs

    def request_job(self, job: AdmitInput, *, at: datetime) -> None:
        """Write that a front door was asked for a job; a no-op for the same one, ``Conflict`` for another of its id."""
        with self.database.write() as connection:
            jobs.request_job(connection, job, at)

    def was_requested(self, job: AdmitInput) -> bool:
        """Whether a front door was asked for exactly this job."""
        with self.database.read() as connection:
            return jobs.was_requested(connection, job)

    def admit_job(self, job: AdmitInput, *, at: datetime) -> Admission:
        """Number a job. Again for the same job id: the same numbers, ``already`` true; ``Conflict`` for other specs."""
        with self.database.write() as connection:
            return jobs.admit_job(connection, job, at)

    def job(self, ref: str) -> JobView:
        """Return a job by whole id, "3", "releases/3" or "@last". Raises ``NotFound`` with the nearest names."""
        with self.database.read() as connection:
            return jobs.find_job(connection, ref)

    def jobs(
        self,
        *,
        thread: str | None = None,
        open_only: bool = False,
        limit: int = 50,
        phases: Collection[JobPhase] = (),
    ) -> list[JobView]:
        """Return jobs, newest first; ``phases``: those in one of these."""
        with self.database.read() as connection:
            return jobs.list_jobs(connection, thread=thread, open_only=open_only, limit=limit, phases=phases)

    def note_job(self, note: NoteInput, *, workflow_id: str, at: datetime) -> None:
        """Write a change of phase; a no-op when this (workflow id, step) was noted before."""
        with self.database.write() as connection:
            jobs.note_job(connection, note, workflow_id, at)

    # Events

    def append(
        self,
        *,
        thread: str,
        kind: str,
        actor: str,
        body: JsonDict,
        job_id: str = "",
        workflow_id: str = "",
        step: str = "",
        at: datetime,
    ) -> int:
        """Add a record and return its position; with (workflow id, step) a second call gives the first position."""
        with self.database.write() as connection:
            position, _ = events.append_event(
                connection,
                thread=thread,
                kind=kind,
                actor=actor,
                body=body,
                job_id=job_id,
                workflow_id=workflow_id,
                step=step,
                at=at,
            )
            return position

    def events(self, *, job_id: str | None = None, after: int = 0, limit: int = 500) -> list[EventView]:
        """Return records after a position, oldest first; all jobs' when ``job_id`` is ``None``."""
        with self.database.read() as connection:
            return events.read_events(connection, job_id=job_id, after=after, limit=limit)

    def head(self) -> str:
        """Return the hash of the newest link of the global chain; 64 zeros for an empty ledger."""
        with self.database.read() as connection:
            return events.head_of(connection)

    def erase_thread(self, thread: str, *, by: str, at: datetime) -> int:
        """Delete what a finished thread's records say; the chain stays whole. Returns how many contents went.

        Raises:
            NotFound: there is no such thread.
            Conflict: a job of it is not finished.
        """
        with self.database.write() as connection:
            return erasure.erase_thread(connection, thread, by, at)

    # Plans and gates

    def record_plan(self, *, job_id: str, plan: PlanRef, envelope: Envelope, at: datetime) -> None:
        """Write a frozen plan; a no-op for a digest already there. ``UserError`` when it contradicts its envelope."""
        with self.database.write() as connection:
            plans.record_plan(connection, job_id, plan, envelope, at)

    def plan(self, digest: str) -> PlanRow:
        """Return the plan of that whole digest. Raises ``NotFound``."""
        with self.database.read() as connection:
            return plans.plan_row(connection, digest)

    def plans_like(self, prefix: str) -> list[PlanRow]:
        """Return every plan ever whose digest starts with ``prefix``; ``UserError`` when that is not hexadecimal."""
        with self.database.read() as connection:
            return plans.plans_like(connection, prefix)

    def job_plans(self, job_id: str, *, calls: bool = False) -> list[PlanRow]:
        """Return a job's plans, oldest first; with ``calls`` those of single calls of its agents after them."""
        with self.database.read() as connection:
            return plans.job_plans(connection, job_id, calls=calls)

    def thread_plans(self, thread: str, states: Collection[str]) -> list[PlanRow]:
        """Return the plans of a thread's jobs whose gates stand or ended so, oldest first."""
        with self.database.read() as connection:
            return plans.thread_plans(connection, thread, states)

    def open_plans(self, *, thread: str = "", before: int = 0, limit: int) -> list[tuple[int, PlanRow]]:
        """Return (position, plan) of the plans whose gate is open, newest first; ``before``: of lower positions."""
        with self.database.read() as connection:
            return plans.open_plans(connection, thread, before, limit)

    def open_gate(self, gate: GateInput, *, at: datetime) -> list[str]:
        """Let people decide, once; return gates of earlier fires closed by it. ``Conflict``: the plan is past that."""
        with self.database.write() as connection:
            plans.open_gate(connection, gate, at)
            return fires.supersede_older(connection, gate, at)

    def close_gate(self, close: CloseGateInput, *, at: datetime, weighed: int | None = None) -> None:
        """Write how a gate ended, and grant the permit of a satisfied one; ``Conflict`` when it ended otherwise before.

        ``weighed``: how many of ``decisions(digest=…)`` the outcome rests on. Given, a decision recorded since is a
        ``Conflict`` ("weigh again"), so that nobody who was told "recorded" goes unheard.
        """
        with self.database.write() as connection:
            plans.close_gate(connection, close, at, weighed)
            if close.application_id:
                permits.grant_permit(connection, close.digest, close.job_id, close.application_id, at, weighed)

    def void_call(self, digest: str) -> None:
        """Take back the question about one call that came to its end another way; a no-op once it was decided."""
        with self.database.write() as connection:
            plans.void_call(connection, digest)

    # Decisions

    def record_decision(self, signed: SignedDecision, *, thread: str, at: datetime) -> bool:
        """Write a signed decision and let it count at once; ``False`` when exactly this one was there before.

        Raises:
            Conflict: its id was used for other content; its plan's gate is not open (and how it ended); a withdrawal
                after the permit was spent; a cancel of a job that has ended; a resolve of what is not in doubt.
            NotFound: no such plan, job or effect.
        """
        with self.database.write() as connection:
            return decisions.record_decision(connection, signed, thread, at)

    def decision(self, decision_id: str) -> SignedDecision | None:
        """Return the decision of that id, ``None`` when it was never recorded; ask before signing a request again."""
        with self.database.read() as connection:
            return decisions.find_decision(connection, decision_id)

    def decisions(self, *, digest: str | None = None, job_id: str | None = None) -> list[SignedDecision]:
        """Return decisions, oldest first. Their signatures are not checked here."""
        with self.database.read() as connection:
            return decisions.list_decisions(connection, digest=digest, job_id=job_id)

    def untold_decisions(self) -> list[SignedDecision]:
        """Return the decisions that no workflow was told about, oldest first."""
        with self.database.read() as connection:
            return decisions.list_decisions(connection, untold=True)

    def mark_told(self, decision_id: str) -> None:
        """Remember that the workflow was told."""
        with self.database.write() as connection:
            decisions.mark_told(connection, decision_id)

    def open_agents(self, job_id: str) -> list[str]:
        """Return the ids of the agents at work on a job, oldest first."""
        with self.database.read() as connection:
            return agent_rows.open_agents(connection, job_id)

    def standing_words(self, thread: str | None) -> list[SignedDecision]:
        """Return standing approvals of a thread (``None``: all) and what takes them back, oldest first; not checked."""
        with self.database.read() as connection:
            return approvals.standing_words(connection, thread)

    def count_uses(self, thread: str | None) -> dict[str, int]:
        """Return how often each standing approval of a thread (``None``: all) was used, by its id."""
        with self.database.read() as connection:
            return approvals.count_uses(connection, thread)

    def approvals_used(self, gate_id: str) -> list[str]:
        """Return the ids of the standing approvals that a gate was satisfied by."""
        with self.database.read() as connection:
            return approvals.used_at(connection, gate_id)

    # Permits and effects

    def grant_permit(
        self, *, digest: str, job_id: str, application_id: str, at: datetime, weighed: int | None = None
    ) -> None:
        """Give an application the right to apply a digest; a no-op when it has it.

        ``weighed``: as in :meth:`close_gate`. When it was given neither here nor there, nobody compared what was
        weighed with what is recorded, and any person whose last word is not "approve" stops it.

        Raises:
            Refused: the gate was not satisfied, the approval was withdrawn, or another application has the right.
            Conflict: other decisions are recorded by now than were weighed: weigh again.
        """
        with self.database.write() as connection:
            permits.grant_permit(connection, digest, job_id, application_id, at, weighed)

    def permit(self, digest: str) -> PermitRow | None:
        """Return the permit for a digest, if there is one."""
        with self.database.read() as connection:
            return permits.find_permit(connection, digest)

    def begin_effect(self, begin: BeginEffect, *, at: datetime) -> IntentRow:
        """Ask whether an effect may start; when it may, its intent is durable on return.

        One transaction: the permit is this application's and not withdrawn (and is spent now); the application is open;
        going forward, the job is not cancelled or ended, the effects before have ended well and nothing was taken back
        yet; going back, it was done and what came after is settled; the target is free or ours (and is taken now); the
        effect has no end yet, or is ``unknown`` and a person said "not done" since. Called again it counts an attempt.

        Raises:
            Refused: with the rule; nothing was written. Its subclass ``TargetBusy`` may pass by itself.
        """
        with self.database.write() as connection:
            return arbiter.begin_effect(connection, begin, at)

    def take_target(self, application_id: str, digest: str, target: str, *, at: datetime) -> None:
        """Lock a whole plan's target; see :func:`arbiter.take_target`. Raises ``Refused`` (``TargetBusy``)."""
        with self.database.write() as connection:
            arbiter.take_target(connection, application_id, digest, target, at)

    def intent(self, application_id: str, index: int, direction: Direction) -> IntentRow | None:
        """Return one effect's intent, ``None`` when it was never begun."""
        with self.database.read() as connection:
            return intents.find_intent(connection, application_id, index, direction)

    def intents(self, *, application_id: str | None = None, job_id: str | None = None) -> list[IntentRow]:
        """Return intents by application, index and direction ("do" before "undo")."""
        with self.database.read() as connection:
            return intents.list_intents(connection, application_id=application_id, job_id=job_id)

    def note_process(self, application_id: str, index: int, direction: Direction, *, pgid: int, boot_id: str) -> None:
        """Remember the process group of the newest attempt. Raises ``NotFound`` without an intent."""
        with self.database.write() as connection:
            arbiter.note_process(connection, application_id, index, direction, pgid, boot_id)

    def finish_effect(self, receipt: Receipt, ref: BlobRef, *, at: datetime) -> None:
        """Write how an effect ended; a no-op when it is written that it ended so.

        ``unknown`` may still become another end. Without an intent only already, drift, refused and stopped are taken.
        Raises ``Conflict``: it has another end already, or no intent.
        """
        with self.database.write() as connection:
            arbiter.finish_effect(connection, receipt, ref, at)

    def resolution(self, application_id: str, index: int, direction: Direction) -> SignedDecision | None:
        """Return the newest ``resolve`` recorded since the effect became ``unknown``; ``None`` while none is."""
        with self.database.read() as connection:
            found = intents.find_intent(connection, application_id, index, direction)
            if found is None or found.state != "unknown":
                return None
            asked = intents.asked_at(connection, found)
            return decisions.resolution_after(connection, found.digest, index, asked)

    def close_application(self, close: CloseApplicationInput, *, at: datetime) -> None:
        """Release the application's targets and write its end; a no-op when it ended so before.

        Raises ``Conflict``: it ended otherwise, or was never permitted; ``OpenEnd``: an effect's end is not written.
        """
        with self.database.write() as connection:
            arbiter.close_application(connection, close, at)

    def standing(self, application_id: str) -> ApplicationStanding:
        """Return how an application stands; ``open`` also when there is none."""
        with self.database.read() as connection:
            return standing.application_standing(connection, application_id)

    def job_state(self, job_id: str) -> JobState | None:
        """Return what a job's workflow is started with again, without edits; ``None``: it ended, or is not there."""
        with self.database.read() as connection:
            return standing.job_state(connection, job_id)

    def gate_detail(self, digest: str) -> str:
        """Return what was written about the end of a plan's gate; empty while it is open. Raises ``NotFound``."""
        with self.database.read() as connection:
            return standing.gate_detail(connection, digest)

    # Access

    def add_token(
        self, principal: str, groups: Sequence[str], may: Sequence[str], *, at: datetime, acts_for: str = ""
    ) -> TokenView:
        """Make a token; only the view returned here holds its text. ``may``: read, submit, decide, break_glass.

        ``acts_for``: the person behind an agent, which may read and submit. Raises ``UserError`` when it gets more.
        """
        with self.database.write() as connection:
            return access.add_token(connection, principal, groups, may, at, acts_for)

    def token(self, text: str) -> TokenView | None:
        """Return the token of that text; ``None`` when there is none or it was revoked."""
        with self.database.read() as connection:
            return access.find_token(connection, text)

    def token_by_id(self, token_id: str) -> TokenView | None:
        """Return a token by its id; ``None`` when there is none or it was revoked."""
        with self.database.read() as connection:
            return access.token_by_id(connection, token_id)

    def tokens(self) -> list[TokenView]:
        """Return all tokens without their texts, oldest first, revoked ones too."""
        with self.database.read() as connection:
            return access.list_tokens(connection)

    def revoke_token(self, token_id: str, *, at: datetime) -> None:
        """End a token at once. Raises ``NotFound``."""
        with self.database.write() as connection:
            access.revoke_token(connection, token_id, at)

    def record_delegation(self, signed: SignedDecision, *, at: datetime) -> bool:
        """Write a ``delegate`` or its end; ``False`` when it was written before. Raises ``NotFound``, ``Conflict``."""
        with self.database.write() as connection:
            return delegations.record_delegation(connection, signed, at)

    def delegations(self) -> list[SignedDecision]:
        """Return every ``delegate`` and ``undelegate``, oldest first; whether they hold is for the reader to say."""
        with self.database.read() as connection:
            return delegations.list_delegations(connection)

    def trust_template(self, digest: str, *, by: str, at: datetime, decision: SignedDecision) -> None:
        """Allow a template's text to run; ``decision`` is the signed ``trust`` by the same person for that digest."""
        with self.database.write() as connection:
            decisions.trust_template(connection, digest, by, decision, at)

    def is_trusted(self, digest: str) -> bool:
        """Whether a template's text may run."""
        with self.database.read() as connection:
            return decisions.is_trusted(connection, digest)

    def was_trusted(self, path: str) -> bool:
        """Whether a template's text at ``path`` was trusted once; it may be another one by now."""
        with self.database.read() as connection:
            return decisions.was_trusted(connection, path)


__all__ = ["BeginEffect", "IntentRow", "Ledger", "PermitRow", "PlanRow", "TargetBusy"]
