"""Words to agents at work: who may say which, what they must look like, and how far they have come."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Sequence

from perdure.contracts.agent import Dial, Limits
from perdure.contracts.agent_run import AgentSpec
from perdure.contracts.checkpoints import Rewind
from perdure.contracts.decisions import STEERING, Decision
from perdure.contracts.http import AgentView, JobView, SteerRequest, WordView
from perdure.deciding import Decider
from perdure.errors import Conflict, NotFound, UserError
from perdure.policy.authorize import Principal, Right, authorize
from perdure.policy.budgets import add
from perdure.policy.dial import turn_dial
from perdure.store.agent_rows import AgentRow
from perdure.store.agents import Agents
from perdure.store.blobs import BlobStore
from perdure.store.checkpoints import CheckpointLog
from perdure.store.ledger import Ledger


class Steerer:
    """Checks and records words; shows agents."""

    def __init__(self, ledger: Ledger, blobs: BlobStore, decider: Decider) -> None:
        self._ledger = ledger
        self._blobs = blobs
        self._decider = decider
        self._agents = Agents(ledger.database)
        self._checkpoints = CheckpointLog(ledger.database)

    def check(self, principal: Principal, job: JobView, request: SteerRequest) -> None:
        """Refuse a word that this person may not say, or that says nothing.

        Raises:
            Refused: no right to it.
            UserError: its text does not fit its kind.
            Conflict: no agent works on the job.
        """
        authorize(principal, self._right(principal, job, request))
        if request.kind in ("say", "interrupt", "amend") and not request.text.strip():
            raise UserError(f"What should the agent of {job.name} hear? Give a text. Nothing was said.")
        if request.kind == "more":
            _check_more(request.text)
        if request.kind == "rewind":
            self._check_rewind(job, request.text)

    def _check_rewind(self, job: JobView, text: str) -> None:
        wanted = _rewind_of(text)
        numbers = [view.number for view in self._checkpoints.of_job(job.job_id)]
        if not numbers or wanted.to not in (0, *numbers[:-1]):
            there = f"it has 1 to {numbers[-1]}" if numbers else "it has none yet"
            raise NotFound(
                f"{job.name} cannot be taken back to checkpoint {wanted.to}: {there}; 0 is what it began with."
            )
        if wanted.seen != numbers[-1]:
            raise Conflict(
                f"{numbers[-1] - wanted.seen} more calls have written since you looked. `perdure pause {job.number}`, "
                "look again, then decide. Nothing was taken back."
            )

    def _right(self, principal: Principal, job: JobView, request: SteerRequest) -> Right:
        if request.kind == "dial":
            return "read" if self._is_lower(job, request.text) else "decide"
        is_own = job.requester == principal.name and "submit" in principal.may
        return "submit" if is_own and request.kind != "more" else "decide"

    def _is_lower(self, job: JobView, text: str) -> bool:
        wanted = _dial_of(text)
        working = [row for row in self._agents.of_job(job.job_id) if row.end is None]
        if not working:
            raise Conflict(f"No agent works on {job.name} (it is {job.phase}); there is no dial to turn.")
        current = self._dial(job.job_id, self._spec(working[-1]))
        ceiling = self._spec(working[-1]).ceiling
        return turn_dial(current, wanted, ceiling, has_sandbox=True, decided=False).done

    def views(self, job_id: str) -> list[AgentView]:
        """Return a job's agents, oldest first."""
        rows = self._agents.of_job(job_id)
        return [self._view(row, rows) for row in rows]

    def _view(self, row: AgentRow, rows: Sequence[AgentRow]) -> AgentView:
        spec = self._spec(row)
        transcripts = self._agents.transcripts
        calls = transcripts.calls(row.agent_id)
        state = row.end.reason if row.end else "parked" if row.parked_at else "working"
        return AgentView(
            agent_id=row.agent_id,
            ordinal=row.ordinal,
            task=_task_of(spec),
            parent=next((one.ordinal for one in rows if one.agent_id == spec.parent), 0),
            children=add(*(one.spent for one in rows if one.agent_id.startswith(f"{row.agent_id}/"))),
            state=state,
            sentence=row.end.sentence if row.end else "",
            dial=self._dial(row.job_id, spec),
            turns=row.spent.turns,
            calls=row.spent.calls,
            tokens=row.spent.tokens,
            cost_microdollars=row.spent.cost_microdollars,
            unknown_cost=row.spent.unknown_cost,
            models=sorted({turn.model for turn in transcripts.turns(row.agent_id)}),
            started_at=row.started_at,
            tools=dict(Counter(call.tool for call in calls)),
            trouble=dict(Counter(call.status for call in calls if call.status not in ("ok", ""))),
            words=self._words(row),
        )

    def _words(self, row: AgentRow) -> list[WordView]:
        delivered = self._agents.deliveries(row.job_id)
        found = []
        for word in self._said(row.job_id):
            agent_id, turn = delivered.get(word.id, ("", 0))
            if agent_id in ("", row.agent_id):
                about = {"id": word.id, "kind": word.kind, "by": word.by, "at": word.at}
                found.append(WordView(text=word.comment, turn=turn, **about))
        return found

    def _said(self, job_id: str) -> list[Decision]:
        signed = self._ledger.decisions(job_id=job_id)
        return [one.decision for one in signed if one.decision.kind in STEERING]

    def _dial(self, job_id: str, spec: AgentSpec) -> Dial:
        turned = [word.comment for word in self._said(job_id) if word.kind == "dial"]
        return self._agents.lowered_dial(job_id) or (Dial(turned[-1]) if turned else spec.dial)

    def _spec(self, row: AgentRow) -> AgentSpec:
        return AgentSpec.model_validate(self._blobs.get_json(row.spec))

    async def steer(self, principal: Principal, job: JobView, request: SteerRequest) -> None:
        """Check and record a word, and wake the agent; without one ``resume`` is said to the job's plan."""
        if request.kind == "resume" and not await asyncio.to_thread(self._ledger.open_agents, job.job_id):
            authorize(principal, "decide")
            await self._decider.go_on(principal, job, request)
            return
        await asyncio.to_thread(self.check, principal, job, request)
        await self._decider.steer(principal, job, request)


def _task_of(spec: AgentSpec) -> str:
    if spec.prompt:
        return f"analyze.{spec.prompt}"
    return " ".join(spec.goal.partition("\n\n")[2].split())[:80] if spec.parent else "draft"


def _dial_of(text: str) -> Dial:
    try:
        return Dial(text)
    except ValueError:
        raise UserError(f"The dial has no place {text!r}. Known, from least to most: {', '.join(Dial)}.") from None


def _rewind_of(text: str) -> Rewind:
    try:
        return Rewind.model_validate_json(text)
    except ValueError:
        raise UserError(
            f'{text!r} names no checkpoint; expected {{"to": N, "seen": M}}. Nothing was taken back.'
        ) from None


def _check_more(text: str) -> None:
    known = ", ".join(Limits.model_fields)
    try:
        given = json.loads(text)
    except ValueError:
        given = None
    if not isinstance(given, dict) or not given or set(given) - set(Limits.model_fields):
        raise UserError(f"What should there be more of? Expected some of: {known}.")
    for name, amount in given.items():
        if not isinstance(amount, int) or isinstance(amount, bool) or not 0 < amount <= 10**12:
            raise UserError(f"{name}: {amount!r} more is no amount; expected a whole number above 0.")
