"""Says what is wrong with a template's field in words of the language, not of pydantic."""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from perdure.contracts.template import Place, Template
from perdure.policy.names import nearest, suggest


def describe_fault(fault: ErrorDetails, path: str, lines: Mapping[Place, int]) -> str:
    """Return ``path:line: place: what is wrong and what was expected``."""
    place = tuple(part for part in fault["loc"] if part != "[key]")
    line = next(lines[place[:end]] for end in range(len(place), -1, -1) if place[:end] in lines)
    where = ".".join(str(part) for part in place[:-1] if part != "")
    message = _explain(fault, place)
    return f"{path}:{line}: {f'in {where}: ' if where else ''}{message}"


def _explain(fault: ErrorDetails, place: Place) -> str:
    kind, found, context = fault["type"], fault["input"], fault.get("ctx", {})
    name = str(place[-1]) if place else "the template"
    if kind == "extra_forbidden":
        return f"There is no field {name!r}.{suggest(name, fields_at(place[:-1]), 'fields')}"
    if kind == "missing":
        return f"The field {name!r} is missing. Fields here: {', '.join(sorted(fields_at(place[:-1])))}."
    if kind == "literal_error":
        return _explain_choice(name, found, str(context.get("expected", "")))
    if kind == "string_pattern_mismatch":
        return f"{found!r} is no {name}; expected the form {context.get('pattern')}."
    if kind == "value_error":
        return f"{name}: {context.get('error')}."
    expected = fault["msg"].removeprefix("Input should be ").replace("a valid dictionary", "fields with values")
    expected = expected.replace("a valid integer", "a whole number").replace("a valid ", "")
    expected = expected.partition(" or instance of")[0]
    return f"{name} is {_show(found)}; expected {expected}."


def _explain_choice(name: str, found: object, expected: str) -> str:
    if name == "perdure":
        return f"Language version {found!r} is unknown; this Perdure reads `perdure: {expected}`."
    known = [word.strip("' ") for part in expected.split(" or ") for word in part.split(",")]
    best = nearest(str(found), known)
    return f"{name} is {_show(found)}; expected {expected}.{f' Did you mean {best!r}?' if best else ''}"


def _show(value: object) -> str:
    if isinstance(value, dict | list):
        return "a list" if isinstance(value, list) else "a group of fields"
    text = "null" if value is None else repr(value)
    return text if len(text) <= 60 else text[:59] + "…"


def fields_at(place: Place) -> list[str]:
    """Return the names of the fields that may stand at a place; empty where names are free."""
    kind: Any = Template
    for part in place:
        kind = _step_into(kind, part)
    return _names(kind) if _is_model(kind) else []


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _names(model: type[BaseModel]) -> list[str]:
    return [info.alias or name for name, info in model.model_fields.items()]


def _step_into(kind: Any, part: str | int) -> Any:
    if _is_model(kind):
        found = [info.annotation for name, info in kind.model_fields.items() if (info.alias or name) == part]
        return _unwrap(found[0]) if found else None
    inner = typing.get_args(kind)
    return _unwrap(inner[-1]) if inner else None


def _unwrap(kind: Any) -> Any:
    """Take ``Annotated`` and ``| None`` away."""
    origin = typing.get_origin(kind)
    if origin is typing.Annotated:
        return _unwrap(typing.get_args(kind)[0])
    if origin in (typing.Union, types.UnionType):
        return _unwrap(next(part for part in typing.get_args(kind) if part is not type(None)))
    return kind
