"""A call of an agent, edited before anybody approves it: its arguments, from options or as JSON in an editor."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from perdure.contracts.base import JsonDict
from perdure.contracts.http import Review
from perdure.errors import UserError

CALL_KIND = "agent.call"


def is_call(review: Review) -> bool:
    """Whether the plan is one call of an agent."""
    return [view.effect.kind for view in review.effects] == [CALL_KIND]


def arguments_of(review: Review) -> JsonDict:
    """Return the arguments of the plan's call. Raises ``UserError`` when it is no call."""
    if not is_call(review):
        raise UserError(
            f"Plan {review.digest[:8]} is no call of an agent: it has no arguments. See `perdure edit --help`."
        )
    arguments: JsonDict = json.loads(review.effects[0].effect.body["arguments"])
    return arguments


def call_changes(review: Review, options: Sequence[str]) -> JsonDict:
    """Return ``Edits.changes`` for ``NAME=VALUE`` options; a value that reads as JSON is JSON, any other is text.

    Raises:
        UserError: the plan is no call, or an option is not of that form.
    """
    arguments = arguments_of(review)
    for option in options:
        name, equals, value = option.partition("=")
        if not equals or not name.strip():
            raise UserError(f"--argument {option!r} is not of the form NAME=VALUE.")
        arguments[name.strip()] = _value(value)
    return {"arguments": arguments}


def read_call_form(text: str) -> JsonDict:
    """Read edited arguments. Raises ``UserError`` when they are no JSON object."""
    try:
        found = json.loads(text)
    except ValueError as error:
        raise UserError(f"The edited arguments are no JSON: {error}") from error
    if not isinstance(found, dict):
        raise UserError("The edited arguments are no JSON object; expected { … }.")
    return found


def compare_call(before: JsonDict, after: JsonDict) -> JsonDict:
    """Return the changes that lead from one to the other; empty when there are none."""
    return {"arguments": after} if after != before else {}


def write_call_form(arguments: JsonDict) -> str:
    """Return the JSON that the reviewer edits."""
    return json.dumps(arguments, ensure_ascii=False, indent=2) + "\n"


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
