"""What a model is told about its calls, beside what its tools say."""

from __future__ import annotations

import json

from temporalio import activity

from perdure.contracts.agent import CallVerdict, ToolOutcome
from perdure.contracts.agent_ports import Tool, ToolContext
from perdure.contracts.agent_run import AgentSpec, CallRecord
from perdure.contracts.base import JsonDict
from perdure.contracts.messages import CallPart
from perdure.errors import PerdureError, ToolFault
from perdure.policy.names import suggest

_SHOWN = 4000


def find_fault(part: CallPart, tool: Tool | None, spec: AgentSpec) -> str:
    """Why a call cannot run at all; empty when it can."""
    if tool is None:
        return f"There is no tool {part.name!r} here.{suggest(part.name, spec.tools, 'tools')}"
    if part.fault:
        return f"The arguments could not be read: {part.fault}. Send one JSON object that fits the tool's schema."
    return find_misfit(tool, part.arguments)


def find_misfit(tool: Tool, arguments: JsonDict) -> str:
    """Why arguments do not fit their tool; empty when they do."""
    try:
        tool.target(arguments)
    except ToolFault as fault:
        return fault.message
    return ""


def find_out(tool: Tool, arguments: JsonDict, context: ToolContext) -> ToolOutcome:
    """An earlier attempt began and told no end: look what became of it, and never simply run it again."""
    try:
        found = tool.probe(arguments, context)
    except PerdureError as error:
        activity.logger.warning("probing %s failed: %s", tool.spec.name, error.message)
        found = None
    if found is not None:
        return found
    text = (
        f"The worker that ran this call of {tool.spec.name} died before it ended. Whether it happened, or how much of "
        "it, is not known; it was not run again. Look at what is there before you do anything else."
    )
    return ToolOutcome(status="unknown", text=text, summary="its end is not known; not run again")


def say_denied(verdict: CallVerdict) -> ToolOutcome:
    """What a denied call came to."""
    text = f"Not allowed ({verdict.rule}): {verdict.reason} Do not try to reach the same by another way."
    return ToolOutcome(status="denied", text=text, summary=verdict.reason[:300])


def say_failed(tool: Tool, error: Exception) -> ToolOutcome:
    """What a tool came to that raised what it should not."""
    text = f"{tool.spec.name} failed: {type(error).__name__}: {error}. This is a fault of the tool."
    return ToolOutcome(status="error", text=text[:_SHOWN], summary=text[:300])


def say_running(record: CallRecord, tool: Tool) -> str:
    """What stands for the result of a call that goes on."""
    call = name_of(record)
    return (
        f"[running: after {tool.spec.grace_seconds} s it has not ended and goes on as call {call}. Go on with "
        "something else, or wait by answering without a call; its end is told to you by itself. calls.look and "
        f'calls.cancel take call="{call}".]'
    )


def say_edited(record: CallRecord, text: str) -> str:
    """A result with the news that the call ran otherwise than the model wrote it, where a person changed it."""
    if record.arguments is None:
        return text
    arguments = json.dumps(record.arguments, ensure_ascii=False)
    shown = arguments if len(arguments) <= _SHOWN else f"{arguments[:_SHOWN]}…"
    return f"[{record.edited_by} changed this call before it ran; its arguments were {shown}]\n{text}"


def name_of(record: CallRecord) -> str:
    """How a model names a call: "turn/position"."""
    return f"{record.turn}/{record.position}"
