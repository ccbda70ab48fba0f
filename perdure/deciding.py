"""People's decisions on their way: signed, written to the ledger, then told to the workflow that waits for them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Literal

from perdure.contracts import names
from perdure.contracts.base import BlobRef, JsonDict
from perdure.contracts.decisions import STEERING, Decision, DecisionNotice, Edits, SignedDecision, Weighing
from perdure.contracts.http import CancelRequest, DecideRequest, JobView, ResolveRequest, SteerRequest
from perdure.contracts.job import JobPhase, Poke
from perdure.contracts.plan import Plan
from perdure.errors import Conflict, NotFound, PerdureError, SetupError, UserError
from perdure.going_on import find_pause
from perdure.people import TodayOf, as_today
from perdure.policy.authorize import Principal, refuse_agent
from perdure.policy.gates import GATE_KINDS
from perdure.policy.people import Today
from perdure.rules.base import Rule
from perdure.runtime.messenger import Messenger
from perdure.store.blobs import BlobStore
from perdure.store.ledger import Ledger
from perdure.store.plans import OPEN, describe_end
from perdure.store.reading import Reader
from perdure.store.results import read_results
from perdure.store.rows import PlanRow
from perdure.store.signing import DecisionKey

UNHEARD = ("expired", "cancelled", "superseded")
"""How a gate ends whatever was decided."""


class Decider:
    """Records and passes on decisions of principals who were authorized before.

    A decision counts from the moment it is in the ledger. One that could not be told is told again by :meth:`retell`; a
    workflow that was told twice looks twice.
    """

    def __init__(
        self,
        ledger: Ledger,
        blobs: BlobStore,
        reader: Reader,
        key: DecisionKey,
        messenger: Messenger,
        rules: Mapping[str, Rule],
        today: TodayOf = Today,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._today = today
        self._ledger = ledger
        self._blobs = blobs
        self._reader = reader
        self._key = key
        self._messenger = messenger
        self._rules = rules
        self._now = now

    async def decide(self, principal: Principal, digest: str, request: DecideRequest) -> Weighing:
        """Decide on the plan of that whole digest; return what all decisions on it amount to now."""
        if request.kind == "break_glass" and not request.comment.strip():
            raise UserError("Breaking the glass needs a reason, for all who could have decided. Give one with -m.")
        row = await asyncio.to_thread(self._ledger.plan, digest)
        plan = await asyncio.to_thread(self._reader.load_plan, row)
        signed = await asyncio.to_thread(
            self._record,
            principal,
            request.passphrase,
            id=request.decision_id,
            kind=request.kind,
            job_id=row.job_id,
            digest=digest,
            comment=request.comment,
            since=await asyncio.to_thread(self._check_since, principal, row, request.since or ""),
            edits=await asyncio.to_thread(self._store_edits, principal, plan, request),
        )
        weighing = await self._tell_or_explain(signed)
        if weighing is None:
            weighing = await asyncio.to_thread(self._reader.weigh_plan, row, plan, now=self._now())
        return weighing

    async def resolve(self, principal: Principal, job: JobView, request: ResolveRequest) -> None:
        """Say what became of an effect in doubt."""
        about = {"digest": request.digest, "effect": request.effect, "answer": request.answer}
        await self._say(principal, job, request, kind="resolve", comment=request.comment, **about)

    async def go_on(self, principal: Principal, job: JobView, request: SteerRequest) -> None:
        """Let an application go on that waits for a person between two steps, or at one that failed.

        Raises:
            Conflict: it waits for nothing of the kind, or nobody knows what became of the step.
        """
        said = await asyncio.to_thread(find_pause, self._ledger, self._reader, job)
        await self._say(principal, job, request, comment=request.text, **said)

    async def cancel(self, principal: Principal, job: JobView, request: CancelRequest) -> None:
        """Ask a job to stop at its next boundary."""
        await self._say(principal, job, request, kind="cancel", comment=request.comment)

    async def steer(self, principal: Principal, job: JobView, request: SteerRequest) -> None:
        """Write a word to the agent at work on a job, and wake it."""
        await self._say(principal, job, request, kind=request.kind, comment=request.text)

    async def say(self, principal: Principal, passphrase: str, **said: Any) -> None:
        """Record any other decision, and tell whoever waits for it."""
        await self._tell_or_explain(await asyncio.to_thread(self._record, principal, passphrase, **said))

    async def _say(
        self, principal: Principal, job: JobView, request: ResolveRequest | CancelRequest | SteerRequest, **said: Any
    ) -> None:
        """Record a word about a job, and tell whoever waits for it."""
        await self.say(principal, request.passphrase, id=request.decision_id, job_id=job.job_id, **said)

    def trust(self, principal: Principal, digest: str, decision_id: str, path: str, passphrase: str) -> None:
        """Let a template's text run. No workflow waits for it."""
        said = {"id": decision_id, "kind": "trust", "job_id": "", "digest": digest, "comment": path}
        signed = self.sign(principal, passphrase, **said)
        self._ledger.trust_template(digest, by=principal.name, at=signed.decision.at, decision=signed)

    def sign(self, principal: Principal, passphrase: str, **said: Any) -> SignedDecision:
        """Return a signed decision that is recorded nowhere yet. Raises ``Refused``: the passphrase does not open."""
        return self._key.sign(self._draft(principal, **said), passphrase)

    def who(self, principal: Principal) -> Principal:
        """Return a principal as the settings know it today: its groups, and the person behind an agent."""
        return as_today(principal, self._today())

    def delegate(self, principal: Principal, passphrase: str, **said: Any) -> None:
        """Record a delegation, or the end of one. No workflow waits for it."""
        found = self._ledger.decision(said["id"])
        if found is None or not _says(found.decision, principal, said):
            signed = self._key.sign(self._draft(principal, job_id="", **said), passphrase)
            self._ledger.record_delegation(signed, at=signed.decision.at)

    @property
    def key(self) -> DecisionKey:
        """The key that signs."""
        return self._key

    async def look(self, job_id: str) -> None:
        """Make an application that waits for somebody look at once; one that does not wait is not disturbed."""
        job = await asyncio.to_thread(self._ledger.job, job_id)
        if job.phase in (JobPhase.waiting_for_merge, JobPhase.paused):
            await self._poke(names.application_id(job.job_id, job.round), Poke(about="look"))

    async def retell(self) -> int:
        """Tell workflows of decisions that they may not have heard of; return of how many.

        One that cannot be told now stays for the next time, and keeps no other from being told.
        """
        told = 0
        for signed in await asyncio.to_thread(self._ledger.untold_decisions):
            if signed.decision.kind == "schedule":
                continue  # passed on by perdure.scheduling
            try:
                await self._tell(signed)
            except PerdureError:
                continue  # it stays untold in the ledger
            told += 1
        return told

    def _record(self, principal: Principal, passphrase: str, **said: Any) -> SignedDecision:
        """Sign and write a decision; the same one again is found, not made again."""
        found = self._ledger.decision(said["id"])
        if found is not None and _says(found.decision, principal, said):
            return found
        decision = self._draft(principal, **said)
        signed = self._key.sign(decision, passphrase)
        self._ledger.record_decision(signed, thread=names.JobId.parse(decision.job_id).thread, at=decision.at)
        return signed

    def _draft(self, principal: Principal, **said: Any) -> Decision:
        """What is going to be signed. No decision of any kind is ever signed for an agent."""
        who = self.who(principal)
        refuse_agent(who)
        known = {"by": who.name, "groups": list(who.groups), "door": who.door}
        return Decision.model_validate({**said, **known, "at": self._now(), "head": self._ledger.head()})

    def _check_since(self, principal: Principal, row: PlanRow, since: str) -> str:
        """Nobody says that they looked at a difference from a plan that they never decided."""
        if since and self._reader.last_decided(row, principal.name) != since:
            raise UserError(f"{principal.name} did not decide plan {since[:8]} last, before {row.digest[:8]}.")
        return since

    def _store_edits(self, principal: Principal, plan: Plan, request: DecideRequest) -> BlobRef | None:
        if request.kind != "request_changes":
            if request.changes:
                raise UserError(f"Edits go with request_changes, not with {request.kind}. Nothing was decided.")
            return None
        editable = plan.envelope.rule.editable
        if unknown := sorted(request.changes.keys() - set(editable)):
            raise UserError(
                f"{', '.join(unknown)} cannot be edited in this plan; it allows: {', '.join(editable) or 'nothing'}."
            )
        if not request.changes and not request.comment.strip():
            raise UserError("What should be different? Give a comment or an edit. Nothing was decided.")
        if request.changes and plan.envelope.round >= names.CALL_ROUNDS:
            _check_call(request.changes)
        elif request.changes:
            self._check_edits(plan, request.changes)
        edits = Edits(by=principal.name, comment=request.comment, changes=request.changes)
        return self._blobs.put_json(edits.model_dump(mode="json"))

    def _check_edits(self, plan: Plan, changes: JsonDict) -> None:
        """Ask the rules whose values are edited: a mistake costs no round. Raises ``UserError`` with every problem."""
        results = read_results(self._ledger, self._blobs, plan.envelope.job_id, plan.envelope.round)
        problems: list[str] = []
        for value in results["analyze"].values():
            rule = self._rules.get(value.get("rule", "")) if isinstance(value, dict) else None
            if rule is not None and rule.check_edits is not None:
                problems += rule.check_edits(changes, value, results)
        if problems:
            raise UserError(f"{' '.join(problems)} Nothing was recorded.")

    async def _tell_or_explain(self, signed: SignedDecision) -> Weighing | None:
        try:
            return await self._tell(signed)
        except SetupError as error:
            raise SetupError(
                f"Your decision is recorded and counts, but {error.message} It is passed on as soon as that works."
            ) from error

    async def _tell(self, signed: SignedDecision) -> Weighing | None:
        """Tell whoever waits for it, once it works out; who has ended needs no telling."""
        decision = signed.decision
        weighing = None
        if decision.kind in GATE_KINDS:
            weighing = await self._tell_gate(decision)
        elif decision.kind == "cancel":
            await self._wake(decision.job_id, Poke(about="cancel"))
            await self.look(decision.job_id)
        elif decision.kind in STEERING:
            await self._tell_agents(decision)
        elif decision.kind == "standing":
            await self._tell_askers(decision)
        elif decision.kind in ("resolve", "go_on"):
            row = await asyncio.to_thread(self._ledger.plan, decision.digest)
            application = names.application_id(decision.job_id, row.round)
            appliers = (application, f"{application}/undo")
            if not any([await self._poke(applier, Poke(about="resolve")) for applier in appliers]):
                await self._wake(decision.job_id, Poke(about="gate"))
        await asyncio.to_thread(self._ledger.mark_told, decision.id)
        return weighing

    async def _tell_gate(self, decision: Decision) -> Weighing | None:
        row = await asyncio.to_thread(self._ledger.plan, decision.digest)
        gate = row.gate_id or names.gate_id(decision.job_id, row.round)
        if row.round >= names.CALL_ROUNDS:  # its agent waits for it, and weighs it when it looks
            await self._poke(gate.rpartition("/")[0], Poke(about="gate"))
            return None
        try:
            return await self._messenger.tell_gate(gate, DecisionNotice(decision_id=decision.id, digest=row.digest))
        except (NotFound, Conflict) as error:
            await asyncio.to_thread(self._ledger.mark_told, decision.id)
            row = await asyncio.to_thread(self._ledger.plan, decision.digest)
            if row.state in UNHEARD and decision.kind != "withdraw":
                how = describe_end(row)
                raise Conflict(f"Your decision came too late for plan {row.digest[:8]}: {how}.") from error
            # It is in the ledger, and no gate closes before it was weighed there, be it this one or another.
            if row.state == OPEN:
                await self._wake(decision.job_id, Poke(about="gate"))
            return None

    async def _tell_agents(self, decision: Decision) -> None:
        """Tell the agents at work on a job; they read what it was in the ledger."""
        about: Literal["now", "message"] = "now" if decision.kind in ("interrupt", "rewind", "pause") else "message"
        for agent_id in await asyncio.to_thread(self._ledger.open_agents, decision.job_id):
            if not await self._poke(agent_id, Poke(about=about)):
                await self._wake(decision.job_id, Poke(about="gate"))

    async def _tell_askers(self, decision: Decision) -> None:
        """Tell every agent of the thread that waits with a call: what stands approved may cover it."""
        thread = names.JobId.parse(decision.job_id).thread
        for row in await asyncio.to_thread(self._ledger.thread_plans, thread, [OPEN]):
            if row.round >= names.CALL_ROUNDS:
                await self._poke(row.gate_id.rpartition("/")[0], Poke(about="gate"))

    async def _wake(self, job_id: str, poke: Poke) -> None:
        """Make a job look into the ledger, and start again what it waits for and lost; itself too, when it is lost."""
        if not await self._poke(job_id, poke):
            await self._messenger.revive(job_id)

    async def _poke(self, workflow_id: str, poke: Poke) -> bool:
        """Whether it is there. One that has ended, or was never started, would have read what stands in the ledger."""
        try:
            await self._messenger.poke(workflow_id, poke)
        except NotFound:
            return False
        return True


def _check_call(changes: JsonDict) -> None:
    """Whether an edited call fits its tool is for the worker to say: users' tools are not loaded here."""
    if not isinstance(changes.get("arguments"), dict):
        raise UserError("An edited call has all its arguments as one object: {arguments: {…}}. Nothing was recorded.")


def _says(decision: Decision, principal: Principal, said: dict[str, Any]) -> bool:
    """Whether a recorded decision is the one that is being made again."""
    return decision.by == principal.name and all(getattr(decision, name) == value for name, value in said.items())
