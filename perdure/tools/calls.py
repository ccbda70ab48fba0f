"""``calls.look`` and ``calls.cancel``: calls of the agent's own that outlasted their grace and go on beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import Field

from perdure.contracts.agent import ToolOutcome
from perdure.contracts.agent_ports import Calls, CallView, Tool, ToolContext
from perdure.errors import ToolFault
from perdure.tools.base import Arguments, make_tool

NAMES = ("calls.look", "calls.cancel")


def with_call_tools(names: Sequence[str], tools: Mapping[str, Tool]) -> tuple[str, ...]:
    """Return the tools of an agent, with those about running calls where one of them may outlast its grace."""
    may_outlast = any(tools[name].spec.grace_seconds for name in names if name in tools)
    return (*names, *(name for name in NAMES if may_outlast and name not in names))


class NamedCall(Arguments):
    """Arguments of both."""

    call: str = Field(pattern=r"^\d{1,6}/\d{1,4}$", description='As the line named it that said "running": 3/0.')


def look_at_call(arguments: NamedCall, context: ToolContext) -> ToolOutcome:
    """Say how a call stands."""
    view = _calls(context).look(arguments.call)
    text = _say(view, context)
    return ToolOutcome(status="ok", text=text, summary=text[:300])


def cancel_call(arguments: NamedCall, context: ToolContext) -> ToolOutcome:
    """Ask a call to end; how it ended is told like the end of any other."""
    view = _calls(context).give_up(arguments.call)
    text = _say(view, context)
    if view.status == "running":
        text += " It is being ended; what it came to is told when it has."
    return ToolOutcome(status="ok", text=text, summary=text[:300])


def _say(view: CallView, context: ToolContext) -> str:
    about = f"Call {view.call} ({view.tool} on {view.target})"
    if view.status == "running":
        since = round((context.now - view.began_at).total_seconds()) if view.began_at else 0
        return f"{about} runs since {since} s."
    return f"{about} has ended: {view.status}. {view.summary}"


def _calls(context: ToolContext) -> Calls:
    if context.calls is None:
        raise ToolFault("Nothing goes on beside this agent.")
    return context.calls


LOOK = make_tool(
    "calls.look",
    NamedCall,
    look_at_call,
    touch=lambda arguments: f"call:{arguments.call}",
    about='See whether a call of yours that was answered with "running" still runs. Its end is told to you by itself.',
    effect_class="read",
    may_repeat=True,
)
CANCEL = make_tool(
    "calls.cancel",
    NamedCall,
    cancel_call,
    touch=lambda arguments: f"call:{arguments.call}",
    about='End a call of yours that was answered with "running" and is not needed any more.',
    # What it ends is the agent's own, and was allowed to begin.
    effect_class="read",
    may_repeat=True,
)
