"""Ports of an agent: what a model client and a tool must be able to do. Implemented in ``models`` and ``tools``.

The worker puts them together by ``perdure.models.registry.open_models(settings) -> ModelClient | None`` (``None``: no
model is configured) and ``perdure.tools.registry.default_tools() -> dict[str, Tool]`` (by name; users' tools added by
settings). Pure decisions are functions in ``perdure.policy``:

- ``permissions.decide_call(question: CallQuestion) -> CallVerdict``
- ``budgets.find_stop(spent: Spent, limits: Limits, *, wall_seconds: int, idle_seconds: int) -> AgentEnd | None`` and
  ``budgets.may_ask(spent: Spent, limits: Limits, facts: ModelFacts, input_tokens: int) -> AgentEnd | None`` (reserves
  the dearest outcome of the next model call; unknown price counts as a stop where a cost limit is set)
- ``loops.find_loop(traces: Sequence[CallTrace]) -> LoopFinding | None``
- ``context.assemble(given: ContextInput) -> Assembled``
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

from perdure.contracts.agent import ModelAnswer, ModelFacts, ModelRequest, ToolOutcome, ToolSpec
from perdure.contracts.base import BlobRef, JsonDict

OnText = Callable[[str], None]
"""Told each piece of text as it streams, for watchers; called on the client's own thread, must not block."""


class ModelClient(Protocol):
    """Asks models. Async, on an event loop of the caller's choosing.

    The worker runs one in a thread of its own, so that converting a long conversation never holds up Temporal's loop.
    Cancelling the task closes the connection at once.
    """

    def facts(self, model: str) -> ModelFacts:
        """What is known about a configured model. Raises ``SetupError`` naming the setting when there is none."""
        ...

    async def ask(self, request: ModelRequest, on_text: OnText | None = None) -> ModelAnswer:
        """Ask once, with fallbacks in their order. An answer that is malformed in a way a model can mend comes back.

        Raises:
            ModelTrouble: nobody answers now; it may pass (``retry_after_seconds`` says when, where the provider did).
            ModelFailed: it will not pass by itself: key refused, unknown model, request refused as too long.
            SetupError: no model of that name is configured.
        """
        ...


class Blobs(Protocol):
    """The part of the blob store that tools use."""

    def put(self, data: bytes) -> BlobRef:
        """Store bytes durably."""
        ...

    def get(self, ref: BlobRef) -> bytes:
        """Read bytes back."""
        ...


class Ended(Protocol):
    """How a command ended (``effects.base.Finished``)."""

    code: int
    output: bytes
    stdout: bytes
    stderr: bytes


class Shell(Protocol):
    """Runs commands in the sandbox; ``perdure.workspace.sandbox.Sandbox`` is one."""

    def run(
        self,
        argv: Sequence[str],
        *,
        workspace: Path,
        writable: bool = True,
        env: Mapping[str, str] | None = None,
        network: Sequence[str] = (),
        limit: timedelta,
        output_limit_bytes: int = 0,
        extra_read: Sequence[Path] = (),
        is_stopped: Callable[[], bool] = lambda: False,
    ) -> Any:
        """Run to the end, give :class:`Ended`. A command over its limit or bounds is killed and has code 124."""
        ...


class Notes(Protocol):
    """An agent's lasting notes (the thread's memory)."""

    def read(self) -> Mapping[str, str]:
        """All notes by key, sorted."""
        ...

    def write(self, key: str, text: str) -> None:
        """Keep a note; empty text forgets it."""
        ...


@dataclass(frozen=True)
class CallView:
    """How a call of an agent stands."""

    call: str
    """"turn/position"."""
    tool: str
    target: str
    status: str
    summary: str
    began_at: datetime | None


class Calls(Protocol):
    """An agent's own calls."""

    def look(self, call: str) -> CallView:
        """How one stands. Raises ``ToolFault`` when there is none."""
        ...

    def give_up(self, call: str) -> CallView:
        """Ask one to end."""
        ...


@dataclass(frozen=True)
class ToolContext:
    """What a tool's call may use. Anything not here it does not get."""

    agent: str
    key: str
    """The call's own, the same on every attempt."""
    blobs: Blobs
    now: datetime
    limit: timedelta
    is_stopped: Callable[[], bool] = lambda: False
    """Asked now and then by what runs long: the call was cancelled."""
    workspace: Path | None = None
    """The job's private workspace; its content is hostile: opened beneath it, links not followed. ``None``: none."""
    paths: tuple[str, ...] = ()
    """Globs of what may be changed in it; empty: all of it."""
    base_commit: str = ""
    git_dir: Path | None = None
    """The workspace's private git directory, where it lies beside it; ``None``: it is the workspace's own ``.git``."""
    sandbox: Callable[[], Shell] | None = None
    """Finds the sandbox when first needed; raises ``SetupError`` with how to install it."""
    notes: Notes | None = None
    hosts: tuple[str, ...] = ()
    """Hosts that HTTP may reach."""
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    """By name, only those the tool declares."""
    calls: Calls | None = None
    """Calls that go on beside the agent."""


class Tool(Protocol):
    """One tool. Synchronous: each call runs in a worker thread of its own; it may block, and watches ``is_stopped``."""

    @property
    def spec(self) -> ToolSpec:
        """Its definition."""
        ...

    def target(self, arguments: JsonDict) -> str:
        """What a call with these arguments touches, for permissions: "file:src/a.py", "command:git push origin".

        Several targets stand on lines of their own. The same thing is always written the same way.
        """
        ...

    def run(self, arguments: JsonDict, context: ToolContext) -> ToolOutcome:
        """Do it. ``target`` has taken the arguments.

        Raises:
            ToolFault: it failed in a way the model can react to; becomes an ``error`` outcome with its text.
            SetupError: the machine cannot do it; becomes an ``error`` outcome too, and a note for people.
        """
        ...

    def probe(self, arguments: JsonDict, context: ToolContext) -> ToolOutcome | None:
        """What became of an earlier attempt whose end is unknown, by looking only; ``None``: it cannot be told."""
        ...
