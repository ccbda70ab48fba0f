"""``ask.person``: a question to a person, with options. The outcome is the question; the answer comes as a message."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from perdure.contracts.agent import ToolOutcome
from perdure.contracts.agent_ports import ToolContext
from perdure.errors import ToolFault
from perdure.tools.base import Arguments, make_tool

Option = Annotated[str, StringConstraints(min_length=1, max_length=200, strip_whitespace=True)]


class AskPerson(Arguments):
    """Arguments of ``ask.person``."""

    question: Annotated[str, StringConstraints(min_length=1, max_length=4000, strip_whitespace=True)] = Field(
        description="All that a person has to know to answer; they may not have seen anything else."
    )
    options: list[Option] = Field(default=[], max_length=8, description="What may be answered; none: any text.")


def ask_person(arguments: AskPerson, _context: ToolContext) -> ToolOutcome:
    """Give the question on; the job waits for the answer."""
    if len(set(arguments.options)) < len(arguments.options):
        raise ToolFault("Two of the `options` are the same; each must be another answer.")
    if len(arguments.options) == 1:
        raise ToolFault("One option is no choice. Give two or more, or none for any text.")
    summary = " ".join(arguments.question.split())[:300]
    return ToolOutcome(status="asks", text=arguments.question, summary=summary, options=tuple(arguments.options))


ASK = make_tool(
    "ask.person",
    AskPerson,
    ask_person,
    touch=lambda _arguments: "person",
    about="Ask a person and wait. For what only a person can decide or know, not for permission.",
    effect_class="read",
    may_repeat=True,
)
