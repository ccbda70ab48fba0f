"""An agent: ask the model, run what it asks for, until the named checks are green or a limit is met.

Text never comes by here: the transcript lies in the store, and this workflow knows turns, numbers and ids. One activity
for the model and one for each call a turn, nothing else; so history grows by a constant, and the run continues as new.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta

from temporalio import workflow
from temporalio.exceptions import ActivityError, is_cancelled_exception

from perdure.contracts import names
from perdure.contracts.agent import AgentEnd
from perdure.contracts.agent_run import (
    AgentState,
    CallHeader,
    CallInput,
    CallResult,
    CloseAgentInput,
    CloseAgentResult,
    TurnInput,
    TurnResult,
)
from perdure.contracts.job import ChildEvent, Poke
from workflows.calls import LIE, call, cause_of, check_place, poke, start_child, tell
from workflows.summarizing import Summarizing

_MODEL_LIMIT = timedelta(minutes=20)
_CHECKS_LIMIT = timedelta(hours=1)
_MARGIN = timedelta(seconds=60)
"""Beside a tool's own limit: waiting for its turn in the workspace, writing what it came to."""


class Over(Exception):
    """The agent has ended, by the ledger. Never leaves this module."""


@workflow.defn(name=names.AGENT_WORKFLOW)
class AgentWorkflow:
    """One run is many turns; the ledger says when it is over."""

    @workflow.init
    def __init__(self, state: AgentState) -> None:
        check_place(state.agent_id)
        self._state = state
        self._poked = False
        self._interrupted = False
        self._told: set[str] = set()
        self._pokes = 0
        self._cancelled = False
        self._summaries = Summarizing(lambda: self._state.turn)
        self._beside: dict[tuple[int, int], asyncio.Task[None]] = {}

    @workflow.run
    async def run(self, state: AgentState) -> AgentState:
        """Turn after turn; end by telling the job."""
        try:
            await self._work_to_the_end()
        except Over:
            workflow.logger.info("%s is over", state.agent_id)
        self._summaries.cancel()
        await tell(state.parent or state.job_id, ChildEvent(child_id=state.agent_id, seq=1, state="ended"))
        return self._state

    async def _work_to_the_end(self) -> None:
        """Raises ``Over``, also where an activity fails for good: that ends the agent by name."""
        try:
            await self._work()
        except ActivityError as error:
            await self._close(AgentEnd(reason="failed", sentence=cause_of(error)[:500]), for_good=True)

    async def _work(self) -> None:
        """Raises ``Over``."""
        for header in self._state.running:
            self._follow(header)
        while True:
            if self._state.waiting:
                await self._run_waiting()
            turn = await self._ask()
            self._summaries.begin(turn.summarize)
            if turn.parked:
                await self._wait_for_people()
            elif turn.end is not None:
                await self._stop(turn.end)
            elif turn.calls:
                await self._run_calls(turn)
            elif self._state.running:
                self._advance(turn.number)
                await self._wait_for_people()
            else:
                await self._finish(turn)
            if workflow.info().is_continue_as_new_suggested() and not self._summaries.is_at_work:
                workflow.continue_as_new(self._state)

    async def _ask(self) -> TurnResult:
        """Ask the model; a person who says so interrupts it, and it is asked again with what was said."""
        while True:
            task = asyncio.create_task(call(names.ASK_MODEL, self._turn(), TurnResult, limit=_MODEL_LIMIT))
            if not await self._is_interrupted(task):
                return task.result()
            task.cancel()
            try:
                return await task
            except (ActivityError, asyncio.CancelledError) as error:
                if not is_cancelled_exception(error):
                    raise

    async def _is_interrupted(self, task: asyncio.Task[TurnResult]) -> bool:
        """Wait for the end of a model call, or for somebody who does not want to."""
        self._interrupted = False
        await workflow.wait_condition(lambda: task.done() or self._interrupted)
        return not task.done()

    async def _run_calls(self, turn: TurnResult) -> None:
        """All calls of an answer beside each other; those that wait for a person do not hold up the others."""
        results = await asyncio.gather(*(self._run_call(header) for header in turn.calls))
        waiting = [header for header, found in zip(turn.calls, results, strict=True) if found.status == "waits"]
        self._advance(turn.number, waiting)
        self._follow_running(turn.calls, results)
        await self._pause_if_insisting(results)
        if waiting:
            await self._run_waiting(_first(results))

    async def _run_waiting(self, until: datetime | None = None) -> None:
        """Wait for people until every call that needs them is decided and has run."""
        while self._state.waiting:
            if until is not None:
                await self._wait_for_people(until)
            asked = self._state.waiting
            results = await asyncio.gather(*(self._run_call(header) for header in asked))
            left = tuple(header for header, found in zip(asked, results, strict=True) if found.status == "waits")
            self._state = self._state.model_copy(update={"waiting": left})
            self._follow_running(asked, results)
            await self._pause_if_insisting(results)
            until = _first(results)

    async def _run_call(self, header: CallHeader, *, late: bool = False) -> CallResult:
        question, limit = CallInput(call=header, late=late), timedelta(seconds=header.limit) + _MARGIN
        while True:
            found = await call(names.RUN_TOOL, question, CallResult, limit=limit)
            if found.child is None:
                return found
            await self._run_child(found.child)

    async def _run_child(self, child: AgentState) -> None:
        """Keep an agent of ours at work until it is said to have ended, or there is a reason to look after it."""
        await start_child(names.AGENT_WORKFLOW, child, child.agent_id)
        if child.agent_id in self._told:  # said while the ledger was asked: it has ended since, or that was a lie
            self._told.discard(child.agent_id)
            await workflow.sleep(LIE)
            return
        pokes = self._pokes
        await workflow.wait_condition(lambda: child.agent_id in self._told or self._pokes > pokes)
        if self._cancelled and child.agent_id not in self._told:
            await poke(child.agent_id, Poke(about="cancel"))  # it finds the cancel in the ledger

    def _follow_running(self, headers: Sequence[CallHeader], results: Sequence[CallResult]) -> None:
        """Wait beside the turns for the calls that outlasted their grace."""
        new = tuple(header for header, found in zip(headers, results, strict=True) if found.status == "running")
        if new:
            self._state = self._state.model_copy(update={"running": (*self._state.running, *new)})
            for header in new:
                self._follow(header)

    def _follow(self, header: CallHeader) -> None:
        self._beside[header.turn, header.position] = asyncio.create_task(self._await_late(header))

    async def _await_late(self, header: CallHeader) -> None:
        """Wait for the end of a call that goes on; it wakes the agent, and the next turn tells it."""
        try:
            await self._run_call(header, late=True)
        except ActivityError as error:
            workflow.logger.warning("call %d/%d was lost: %s", header.turn, header.position, cause_of(error))
        left = tuple(other for other in self._state.running if other != header)
        self._state = self._state.model_copy(update={"running": left})
        self._poked = True

    async def _pause_if_insisting(self, results: list[CallResult]) -> None:
        if any(found.pause for found in results):
            await self._stop(AgentEnd(reason="denied", sentence="It insists on what a person denied."))

    async def _finish(self, turn: TurnResult) -> None:
        """The model stopped asking for calls: the checks say whether that is the end."""
        closed = await self._close(None, number=turn.number)
        self._advance(closed.number)
        if closed.end is not None:
            await self._wait_or_end(closed, closed.end)

    async def _stop(self, end: AgentEnd) -> None:
        """A limit is met: it is over, or a person may give more."""
        await self._wait_or_end(await self._close(end), end)

    async def _wait_or_end(self, closed: CloseAgentResult, end: AgentEnd) -> None:
        """Raises ``Over`` when nobody lets it go on in time."""
        if closed.state == "parked" and not await self._wait_for_people(closed.until):
            idle = AgentEnd(reason="idle", sentence=f"Nobody answered. {end.sentence}"[:500])
            await self._close(idle, for_good=True)

    async def _close(
        self, end: AgentEnd | None, *, number: int | None = None, for_good: bool = False
    ) -> CloseAgentResult:
        """Raises ``Over`` when it has ended."""
        state = self._state
        question = CloseAgentInput(
            turn=state.turn,
            number=state.number if number is None else number,
            end=end,
            for_good=for_good,
        )
        closed = await call(names.CLOSE_AGENT, question, CloseAgentResult, limit=_CHECKS_LIMIT)
        if closed.state == "ended":
            raise Over
        return closed

    async def _wait_for_people(self, until: datetime | None = None) -> bool:
        """Until somebody wrote something, or ``until``; whether somebody did."""
        left = until - workflow.now() if until is not None else None
        try:
            await workflow.wait_condition(lambda: self._poked, timeout=left)
        except TimeoutError:
            return False
        self._poked = False
        return True

    def _advance(self, number: int, waiting: list[CallHeader] | None = None) -> None:
        update = {"turn": self._state.turn + 1, "number": number, "waiting": tuple(waiting or ())}
        self._state = self._state.model_copy(update=update)

    def _turn(self) -> TurnInput:
        state = self._state
        return TurnInput(turn=state.turn, number=state.number)

    @workflow.signal(name=names.POKE_SIGNAL)
    def poke(self, poke: Poke) -> None:
        """Something was written to the ledger: look. Carries no authority."""
        self._poked = True
        self._pokes += 1
        self._cancelled = self._cancelled or poke.about == "cancel"
        if poke.about in ("now", "cancel"):
            self._interrupted = True

    @workflow.signal(name=names.CHILD_SIGNAL)
    def hear_child(self, event: ChildEvent) -> None:
        """An agent of ours is said to have ended: the call that started it asks the ledger how."""
        self._told.add(event.child_id)

    @workflow.query(name=names.STATE_QUERY)
    def state(self) -> AgentState:
        """Where it is."""
        return self._state


def _first(results: list[CallResult]) -> datetime | None:
    """When the first of the calls that wait need not be waited for any more."""
    ends = [found.until for found in results if found.status == "waits" and found.until is not None]
    return min(ends, default=None)
