"""Summaries of a long conversation, made beside an agent's turns."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError

from perdure.contracts import names
from perdure.contracts.agent_run import SummaryInput, SummaryResult
from workflows.calls import call, cause_of

_LIMIT = timedelta(minutes=20)
_TRIES = RetryPolicy(initial_interval=timedelta(seconds=1), maximum_attempts=6)
_PAUSE = 10
"""Turns until a summary that nobody could make is tried again."""


class Summarizing:
    """One summary at a time: the turns go on meanwhile."""

    def __init__(self, turn: Callable[[], int]) -> None:
        """``turn`` says which turn the agent is at."""
        self._turn = turn
        self._task: asyncio.Task[None] | None = None
        self._next = 0
        """None is begun before this turn."""

    @property
    def is_at_work(self) -> bool:
        """Whether one is being made."""
        return self._task is not None and not self._task.done()

    def begin(self, until: int) -> None:
        """Have the messages before ``until`` summed up; 0, or while one is made or none can be: a no-op."""
        if until and not self.is_at_work and self._turn() >= self._next:
            self._task = asyncio.create_task(self._summarize(until))

    def cancel(self) -> None:
        """Nobody will read it."""
        if self._task is not None:
            self._task.cancel()

    async def _summarize(self, until: int) -> None:
        question = SummaryInput(until=until)
        try:
            found = await call(names.SUMMARIZE, question, SummaryResult, limit=_LIMIT, retry=_TRIES)
        except ActivityError as error:
            found = SummaryResult(made=False, why=cause_of(error)[:500])
        if not found.made:
            workflow.logger.warning("%s goes on without a summary: %s", workflow.info().workflow_id, found.why)
            self._next = self._turn() + _PAUSE
