"""What of a transcript goes into a request: the charter and the goal always, the rest as policy fits it."""

from __future__ import annotations

import json

from perdure.contracts.agent import Assembled, ContextInput, ModelFacts, ToolSpec
from perdure.contracts.agent_run import TurnRecord
from perdure.contracts.messages import Message
from perdure.policy.context import assemble

FIRST = 2
"""Messages 0 and 1 of every transcript: the charter and the goal."""


def fit(
    messages: tuple[Message, ...], tools: tuple[ToolSpec, ...], facts: ModelFacts, last: TurnRecord | None
) -> Assembled:
    """Choose what fits into the model's window, the answer and the tools' schemas kept free."""
    # What the provider counted is only good for a request that held everything, uncut.
    whole = last is not None and last.sent == last.number and last.usage.input_tokens is not None
    return assemble(
        ContextInput(
            charter=messages[:1],
            goal=messages[1],
            messages=messages[FIRST:],
            window_tokens=facts.window_tokens,
            reserved_tokens=facts.max_output_tokens + _size(tools),
            counted_messages=last.number - FIRST if whole and last else 0,
            counted_tokens=(last.usage.input_tokens or 0) if whole and last else 0,
        )
    )


def _size(tools: tuple[ToolSpec, ...]) -> int:
    return sum(len(tool.description) + len(json.dumps(tool.parameters)) for tool in tools) // 4
