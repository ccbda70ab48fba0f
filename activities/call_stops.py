"""Whether a call at work is to end: its job was cancelled, its agent is over, or the model gave it up."""

from __future__ import annotations

import time
from collections.abc import Callable

from activities.agent_desk import AgentDesk
from perdure.contracts.agent_ports import CallView
from perdure.contracts.agent_run import CallRecord
from perdure.errors import ToolFault
from perdure.store.trouble import StoreTrouble

_LOOK_SECONDS = 0.5
"""A running command asks many times a second; the ledger is asked this often."""


def stop_watch(desk: AgentDesk, agent_id: str, job_id: str, key: str) -> Callable[[], bool]:
    """Return a function that says whether the call is to end. A ledger that cannot be read stops nothing."""
    looked, stopped = time.monotonic(), False

    def is_over() -> bool:
        nonlocal looked, stopped
        if not stopped and time.monotonic() - looked >= _LOOK_SECONDS:
            looked = time.monotonic()
            try:
                stopped = _is_over(desk, agent_id, job_id, key)
            except StoreTrouble:
                return False
        return stopped

    return is_over


def _is_over(desk: AgentDesk, agent_id: str, job_id: str, key: str) -> bool:
    record = desk.agents.transcripts.call(key)
    given_up = record is not None and record.given_up
    return given_up or desk.row(agent_id).end is not None or bool(desk.steering(job_id).cancelled_by)


class AgentCalls:
    """An agent's own calls, as its tools may see and end them. Implements ``agent_ports.Calls``."""

    def __init__(self, desk: AgentDesk, agent_id: str) -> None:
        self._desk = desk
        self._agent_id = agent_id

    def look(self, call: str) -> CallView:
        """How a call stands, named "turn/position". Raises ``ToolFault`` when there is none."""
        record = self._record(call)
        return CallView(call, record.tool, record.target, record.status, record.summary, record.began_at)

    def give_up(self, call: str) -> CallView:
        """End a call that goes on beside the model; a no-op for one that has ended."""
        self._record(call)
        self._desk.agents.give_up_call(f"{self._agent_id}/{call}")
        return self.look(call)

    def _record(self, call: str) -> CallRecord:
        record = self._desk.agents.transcripts.call(f"{self._agent_id}/{call}")
        if record is None:
            raise ToolFault(f'There is no call {call!r}; it is named as the line says that told you it goes on: "3/0".')
        return record
