"""``agents.delegate``: an agent starts another one for a part of its task. The loop runs it; it answers by fields."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from perdure.contracts.agent import ToolOutcome
from perdure.contracts.agent_ports import ToolContext
from perdure.contracts.base import JsonDict
from perdure.errors import ToolFault
from perdure.policy.answers import close_schema
from perdure.policy.delegation import DELEGATE
from perdure.tools.base import Arguments, make_tool

FieldName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
Kind = Literal["text", "number", "yes_no", "texts"]

_KINDS: dict[Kind, JsonDict] = {
    "text": {"type": "string"},
    "number": {"type": "integer"},
    "yes_no": {"type": "boolean"},
    "texts": {"type": "array", "items": {"type": "string"}},
}


class Delegate(Arguments):
    """Arguments of ``agents.delegate``."""

    task: Annotated[str, StringConstraints(min_length=1, max_length=8000, strip_whitespace=True)] = Field(
        description="All that it has to know: it sees nothing of this conversation."
    )
    tools: list[str] = Field(default=[], max_length=32, description="Some of yours; none: all but this one.")
    paths: list[str] = Field(
        default=[], max_length=32, description="Globs of what it may change, within yours; none: yours."
    )
    turns: int = Field(default=12, ge=1, le=200, description="At most; they count as yours.")
    answer: dict[FieldName, Kind] = Field(
        default={"report": "text"}, min_length=1, max_length=12, description="Fields that it must answer with."
    )


def schema_of_answer(fields: dict[str, Kind]) -> JsonDict:
    """The closed JSON schema of the answer."""
    return close_schema({"type": "object", "properties": {name: _KINDS[kind] for name, kind in fields.items()}})


def _refuse(_arguments: Delegate, _context: ToolContext) -> ToolOutcome:
    raise ToolFault(f"{DELEGATE} starts an agent, which only an agent's own loop can do.")


DELEGATE_TOOL = make_tool(
    DELEGATE,
    Delegate,
    _refuse,
    touch=lambda arguments: f"agent:{' '.join(arguments.task.split())[:80]}",
    about="Have another agent do a part of your task in the same workspace, with no more rights than you have, and get "
    "its answer. What it uses counts as yours. Several at once work beside each other: give each its own files.",
    effect_class="read",
    may_repeat=True,
)
