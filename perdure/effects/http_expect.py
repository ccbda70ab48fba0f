"""What an answer over HTTP must say: its status, and values in its JSON by pointer (RFC 6901)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from perdure.contracts.base import JsonDict
from perdure.effects.http_call import Answer
from perdure.errors import PerdureError, UserError

KEYS = ("status", "json")
"""What an expectation says."""

_MISSING = object()


def read_expected(step: str, name: str, given: Mapping[str, Any]) -> JsonDict:
    """Return ``{status: [numbers], json: {pointer: value}}``; no status means any 2xx.

    Raises:
        UserError: ``given`` says something that no answer could be compared with.
    """
    status = given.get("status", [])
    codes = status if isinstance(status, list) else [status]
    if not all(isinstance(code, int) and not isinstance(code, bool) and 100 <= code <= 599 for code in codes):
        raise UserError(f"Step {step!r}: `{name}.status` is {status!r}; expected a number like 200, or a list of them.")
    values = given.get("json", {})
    if not isinstance(values, Mapping) or not all(_is_pointer(pointer) for pointer in values):
        raise UserError(
            f"Step {step!r}: `{name}.json` is {values!r}; expected values by JSON pointer: {{/state: active}}."
        )
    if any(_has_float(value) for value in values.values()):
        raise UserError(f"Step {step!r}: `{name}.json` compares a fraction; a plan holds whole numbers and texts only.")
    return {"status": codes, "json": dict(values)}


def find_mismatch(expected: JsonDict, answer: Answer) -> str:
    """Say what of an answer is not as expected; empty when all of it is."""
    codes = expected["status"]
    if answer.status not in codes and (codes or not answer.is_good):
        wanted = " or ".join(str(code) for code in codes) or "a 2xx"
        return f"answers {answer.status} instead of {wanted}: {answer.gist()[:200]}"
    if not expected["json"]:
        return ""
    try:
        found = answer.json()
    except PerdureError as error:
        return error.message
    for pointer, value in expected["json"].items():
        there = _look_up(found, pointer)
        if there is _MISSING:
            return f"has nothing at {pointer}"
        if _text(there) != _text(value):
            return f"has {_text(there)[:80]} at {pointer} instead of {_text(value)[:80]}"
    return ""


def describe(expected: JsonDict) -> str:
    """An expectation for the reviewer: ``200, /state = "active"``."""
    codes = " or ".join(str(code) for code in expected["status"]) or "2xx"
    return ", ".join([codes, *(f"{pointer} = {_text(value)}" for pointer, value in expected["json"].items())])


def _look_up(value: Any, pointer: str) -> Any:
    for part in pointer.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and name.isdecimal() and int(name) < len(value):
            value = value[int(name)]
        else:
            return _MISSING
    return value


def _is_pointer(pointer: object) -> bool:
    return isinstance(pointer, str) and (not pointer or pointer.startswith("/"))


def _has_float(value: Any) -> bool:
    if isinstance(value, list | dict):
        return any(_has_float(one) for one in (value.values() if isinstance(value, dict) else value))
    return isinstance(value, float)


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
