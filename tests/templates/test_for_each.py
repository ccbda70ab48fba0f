"""``for_each``: a step becomes one effect an item, and everything about that is decided before the review."""

from __future__ import annotations

from typing import Any

import pytest

from perdure.contracts.template import ApplyStep
from perdure.errors import UserError
from perdure.policy.for_each import MOST_ITEMS, read_items
from perdure.policy.templates import TemplateError, parse_template
from tests.templates.texts import changed, line_of

STEP = "  - id: write\n"
WITH = '    with: {path: "{{ inputs.where }}"}\n'


def items(value: Any) -> list[tuple[str, Any]]:
    """What a step ``tag`` makes of a rendered value."""
    step = ApplyStep.model_validate({"id": "tag", "effect": "git.tag", "for_each": "{{ analyze.sum.tags }}"})
    return list(read_items(step, value))


def refuse(text: str) -> str:
    """The one problem of a text that must be refused."""
    with pytest.raises(TemplateError) as caught:
        parse_template(text, path="jobs/notes.yaml")
    [problem] = caught.value.problems
    return problem


def test_an_item_gives_the_effect_its_id() -> None:
    """Effects are called after the step and the item, in the list's order; an empty list gives none."""
    assert items([{"id": "core", "n": 1}, {"id": "app"}]) == [
        ("tag.core", {"id": "core", "n": 1}),
        ("tag.app", {"id": "app"}),
    ]
    assert items([]) == []


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (None, "gives None; expected a list of at most 500 objects"),
        ({"id": "a"}, "expected a list"),
        (["core"], "item 1 of `for_each` is 'core'; expected an object with an `id`"),
        ([{"id": "a"}, {"id": "B"}], "item 2"),
        ([{"id": "../x"}], "item 1"),
        ([{"id": 1}], "item 1"),
        ([{"id": "a"}, {"id": "a"}], "two items of `for_each` have the id 'a'"),
        ([{"id": str(number)} for number in range(MOST_ITEMS + 1)], "a list of 501 items"),
    ],
)
def test_a_list_that_names_no_effects_is_refused(value: Any, says: str) -> None:
    """What is no list of objects with ids of their own is refused with the step and the item."""
    with pytest.raises(UserError) as caught:
        items(value)
    assert "Step 'tag'" in caught.value.message
    assert says in caught.value.message


def test_each_is_known_in_the_step_that_has_a_list() -> None:
    """``with``, ``when``, ``probe`` and ``undo`` of the step see the item, together with all stages."""
    text = changed(STEP, STEP + '    for_each: "{{ analyze.sum.files }}"\n    when: "{{ each.changed }}"\n')
    text = text.replace(WITH, '    with: {path: "{{ inputs.where }}/{{ each.name }}"}\n')
    assert parse_template(text, path="notes.yaml").apply[0].for_each == "{{ analyze.sum.files }}"


@pytest.mark.parametrize(
    ("old", "new", "part", "says"),
    [
        (WITH, '    with: {path: "{{ each.name }}"}\n', 'path: "{{ each', "no 'each' here: it needs a `for_each`"),
        (STEP, STEP + '    for_each: "{{ each }}"\n', "for_each", "no 'each' here"),
        (STEP, STEP + "    for_each: [a, b]\n", "for_each", "is no expression; expected one {{ expression }}"),
        (STEP, STEP + '    for_each: "a {{ inputs.where }}"\n', "for_each", "is no expression"),
        (STEP, STEP + '    for_each: "{{ inputs.where }}{{ 1 }}"\n', "for_each", "makes text; expected one"),
        (STEP, STEP + '    for_each: "{{ analyze.smu.x }}"\n', "for_each", "Did you mean 'sum'?"),
        ("with: {text:", 'with: {text: "{{ each.x }}", more:', "each.x", "no 'each' here"),
    ],
)
def test_a_wrong_list_is_refused_with_its_line(old: str, new: str, part: str, says: str) -> None:
    """A list is one expression of what the stages gave, and ``each`` is nowhere but in its step."""
    text = changed(old, new)
    problem = refuse(text)
    assert says in problem
    assert problem.startswith(f"jobs/notes.yaml:{line_of(text, part)}: ")
