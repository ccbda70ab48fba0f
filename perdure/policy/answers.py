"""Typed answers: which JSON schemas a template may ask by, and whether what a model said fits one.

A small part of JSON Schema, so that every keyword that is written is also kept, every provider can be asked by it, and
no regular expression or reference of anybody's is followed. Numbers are whole: an answer may become part of a plan.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from perdure.contracts.base import JsonDict

_KINDS: Mapping[str, frozenset[str]] = {
    "object": frozenset({"properties", "required", "additionalProperties"}),
    "array": frozenset({"items", "minItems", "maxItems"}),
    "string": frozenset({"minLength", "maxLength"}),
    "integer": frozenset({"minimum", "maximum"}),
    "boolean": frozenset(),
}
"""Type → the keywords that may stand beside ``type``, ``description`` and ``enum``."""

_MEASURES = frozenset({"minItems", "maxItems", "minLength", "maxLength", "minimum", "maximum"})
_WORDS: Mapping[str, str] = {
    "object": "an object", "array": "a list", "string": "text", "integer": "a whole number", "boolean": "true or false",
}  # fmt: skip
MOST_DEEP = 12
LARGEST = 2**53 - 1
"""The largest whole number that a plan can hold (RFC 8785)."""
MOST_TOLD = 8
"""Problems that are told at once."""


class NoAnswer(Exception):
    """A text does not hold an answer; the message is for the model. Never leaves :func:`read_answer`."""


def check_schema(schema: Any) -> list[str]:
    """Return what is wrong with a schema, one sentence each; empty: answers can be asked by it."""
    problems = list(_check(schema, "answer", 0))
    if not problems and schema["type"] != "object":
        problems.append(f"answer: type is {schema['type']!r}; expected object: an answer is one JSON object.")
    return problems[:MOST_TOLD]


def close_schema(schema: JsonDict) -> JsonDict:
    """Return the schema as it is asked by: objects hold what is named, all of it unless they say so, nothing else."""
    closed = dict(schema)
    if closed.get("type") == "object":
        closed["properties"] = {name: close_schema(inner) for name, inner in closed.get("properties", {}).items()}
        closed.setdefault("required", list(closed["properties"]))
        closed["additionalProperties"] = False
    if "items" in closed:
        closed["items"] = close_schema(closed["items"])
    return closed


def read_answer(text: str, schema: JsonDict) -> tuple[JsonDict | None, list[str]]:
    """Return (the answer, nothing) when a model's text is one JSON object that fits; else (None, what is wrong).

    ``schema`` is one that :func:`check_schema` finds nothing wrong with, closed by :func:`close_schema`.
    """
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError, NoAnswer):
        start = " ".join(text.split())[:80]
        return None, [f"It is no JSON (it begins with {start!r})." if start else "It is empty."]
    problems = list(_fit(value, schema, ""))[:MOST_TOLD]
    return (None, problems) if problems else (value, [])


def _refuse_constant(name: str) -> Any:
    raise NoAnswer(name)


def _check(schema: Any, place: str, depth: int) -> Iterator[str]:
    if depth > MOST_DEEP:
        yield f"{place}: it is nested more than {MOST_DEEP} deep."
        return
    kind = schema.get("type") if isinstance(schema, dict) else None
    if not isinstance(kind, str) or kind not in _KINDS:
        yield f"{place}: expected a schema with `type`, one of {', '.join(_KINDS)}."
        return
    known = {"type", "description", "enum", *_KINDS[kind]}
    for word in sorted(set(schema) - known):
        yield f"{place}: {word!r} is not checked by Perdure for {kind}; known there: {', '.join(sorted(known))}."
    yield from _check_words(schema, place)
    for name, inner in (schema.get("properties") or {}).items() if kind == "object" else ():
        yield from _check(inner, f"{place}.{name}", depth + 1)
    if kind == "array":
        yield from _check(schema.get("items"), f"{place}[]", depth + 1)


def _check_words(schema: JsonDict, place: str) -> Iterator[str]:
    """What stands beside the type has the form that its keyword wants."""
    properties = schema.get("properties", {})
    if not isinstance(properties, dict):
        yield f"{place}: `properties` is no object."
    elif not isinstance(schema.get("required", []), list) or set(schema.get("required", [])) - set(properties):
        yield f"{place}: `required` names what is not among `properties`."
    if schema.get("additionalProperties", False) is not False:
        yield f"{place}: `additionalProperties` can only be false: what nobody named is nothing that anybody checks."
    for word in _MEASURES & set(schema):
        if not isinstance(schema[word], int) or isinstance(schema[word], bool):
            yield f"{place}: `{word}` is {schema[word]!r}; expected a whole number."
    if "enum" in schema and (not isinstance(schema["enum"], list) or not schema["enum"]):
        yield f"{place}: `enum` is no list of values."


def _fit(value: Any, schema: JsonDict, place: str) -> Iterator[str]:
    kind = schema["type"]
    if not _is(value, kind):
        yield f"{place or 'the answer'} is {_show(value)}; expected {_WORDS[kind]}."
        return
    if "enum" in schema and not any(value == one and type(value) is type(one) for one in schema["enum"]):
        yield f"{place or 'the answer'} is {_show(value)}; expected one of {_show(schema['enum'])}."
    if kind == "object":
        yield from _fit_object(value, schema, place)
    elif kind == "array":
        yield from _measure(len(value), schema, place, "minItems", "maxItems", "items")
        for position, item in enumerate(value):
            yield from _fit(item, schema["items"], f"{place}[{position}]")
    elif kind == "string":
        yield from _measure(len(value), schema, place, "minLength", "maxLength", "characters")
        if any("\ud800" <= character <= "\udfff" for character in value):
            yield f"{place} holds half a character (a lone surrogate); expected whole ones."
    elif kind == "integer":
        bounds = {"minimum": -LARGEST, "maximum": LARGEST, **schema}
        yield from _measure(value, bounds, place, "minimum", "maximum", "")


def _fit_object(value: JsonDict, schema: JsonDict, place: str) -> Iterator[str]:
    properties: JsonDict = schema.get("properties", {})
    before = f"{place}." if place else ""
    for name in schema.get("required", []):
        if name not in value:
            yield f"{before}{name} is missing."
    for name, inner in value.items():
        if name in properties:
            yield from _fit(inner, properties[name], f"{before}{name}")
        else:
            yield f"{before}{name[:80]} is not asked for; known there: {', '.join(properties) or 'nothing'}."


def _measure(size: int, schema: JsonDict, place: str, least: str, most: str, what: str) -> Iterator[str]:
    is_few, is_many = size < schema.get(least, size), size > schema.get(most, size)
    if is_few or is_many:
        bound = f"at least {schema[least]}" if is_few else f"at most {schema[most]}"
        yield f"{place} has {size} {what}; expected {bound}." if what else f"{place} is {size}; expected {bound}."


def _is(value: Any, kind: str) -> bool:
    if kind == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, {"object": dict, "array": list, "string": str, "boolean": bool}[kind])


def _show(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 120 else text[:119] + "…"
