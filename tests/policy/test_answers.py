"""Typed answers: a small part of JSON Schema, every word of which is kept."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.policy.answers import check_schema, close_schema, read_answer

REPORT = close_schema(
    {
        "type": "object",
        "properties": {
            "level": {"type": "string", "enum": ["low", "high"]},
            "risks": {"type": "array", "items": {"type": "string", "minLength": 2}, "maxItems": 2},
            "count": {"type": "integer", "minimum": 0},
        },
        "required": ["level"],
    }
)

LEAVES = st.sampled_from(
    [
        {"type": "string"},
        {"type": "string", "minLength": 1, "maxLength": 3},
        {"type": "string", "enum": ["a", "b"]},
        {"type": "integer", "minimum": -1, "maximum": 2},
        {"type": "boolean"},
    ]
)


def _nest(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    named = st.dictionaries(st.sampled_from("xyz"), inner, max_size=3)
    lists = st.builds(lambda item: {"type": "array", "items": item, "maxItems": 2}, inner)
    return lists | st.builds(lambda properties: {"type": "object", "properties": properties}, named)


SCHEMAS = st.recursive(LEAVES, _nest, max_leaves=6).filter(lambda schema: schema["type"] == "object")
VALUES = st.recursive(
    st.sampled_from(["a", "b", "", "long", 0, 3, -2, True, False, None]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("xyzw"), inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None)
@given(SCHEMAS, VALUES)
def test_what_fits_is_what_json_schema_says(schema: dict[str, Any], value: Any) -> None:
    """On whole values the verdict is a full validator's."""
    assert check_schema(schema) == []
    closed = close_schema(schema)
    answer, problems = read_answer(json.dumps(value), closed)
    assert (answer is not None) == jsonschema.Draft202012Validator(closed).is_valid(value)
    assert (answer is None) == bool(problems)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "It is empty."),
        ("Sure! Here you are.", "It is no JSON (it begins with 'Sure! Here you are.')."),
        ('{"level": "low"', "It is no JSON"),
        ('{"level": NaN}', "It is no JSON"),
        ("[" * 100_000, "It is no JSON"),
        ('["low"]', 'the answer is ["low"]; expected an object.'),
        ("{}", "level is missing."),
        ('{"level": "medium"}', 'level is "medium"; expected one of ["low", "high"].'),
        ('{"level": "low", "risks": ["x"]}', "risks[0] has 1 characters; expected at least 2."),
        ('{"level": "low", "risks": ["xx", "xx", "xx"]}', "risks has 3 items; expected at most 2."),
        ('{"level": "low", "count": 1.0}', "count is 1.0; expected a whole number."),
        ('{"level": "low", "count": true}', "count is true; expected a whole number."),
        ('{"level": "low", "count": -1}', "count is -1; expected at least 0."),
        ('{"level": "low", "count": 9007199254740992}', "expected at most 9007199254740991."),
        ('{"level": "low", "risks": ["\\ud800x"]}', "half a character"),
        ('{"level": "low", "lvel": 1}', "lvel is not asked for; known there: level, risks, count."),
    ],
)
def test_what_does_not_fit_is_told_with_its_place(text: str, says: str) -> None:
    """A model is told where it went wrong, what stands there and what was expected."""
    answer, problems = read_answer(text, REPORT)
    assert answer is None
    assert any(says in problem for problem in problems), problems


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        ({}, "expected a schema with `type`"),
        ({"type": "string"}, "an answer is one JSON object"),
        ({"type": ["object", "null"]}, "expected a schema with `type`"),
        ({"type": "object", "properties": {"a": {"type": "number"}}}, "answer.a: expected a schema with `type`"),
        ({"type": "object", "properties": {"a": {"type": "string", "pattern": "(a+)+$"}}}, "'pattern' is not checked"),
        ({"type": "object", "properties": {"a": {"$ref": "https://example.org"}}}, "answer.a: expected a schema"),
        ({"type": "object", "required": ["b"]}, "`required` names what is not among `properties`"),
        ({"type": "object", "additionalProperties": True}, "can only be false"),
        ({"type": "object", "properties": {"a": {"type": "array"}}}, "answer.a[]: expected a schema"),
        ({"type": "object", "properties": {"a": {"type": "string", "maxLength": "9"}}}, "expected a whole number"),
    ],
)
def test_a_schema_that_could_not_be_kept_is_refused(schema: dict[str, Any], says: str) -> None:
    """A keyword that nobody would check is a problem of the template, not a hope."""
    assert any(says in problem for problem in check_schema(schema)), check_schema(schema)
