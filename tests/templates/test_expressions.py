"""Expressions read plain data and nothing else; every mistake is named."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.errors import UserError
from perdure.policy.expressions import parse_source, prune, render, used_paths
from perdure.policy.sandbox import OUTPUT_LIMIT_BYTES

CONTEXT: dict[str, Any] = {
    "inputs": {
        "repo": {"slug": "orders", "items": 3},
        "version": "1.10",
        "nothing": None,
        "yes": True,
        "words": ["make", "test"],
        "numbers": [3, 1, 2],
    },
    "gather": {"schema": {"rows": [{"version": 41}]}},
}


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("{{ inputs.words }}", ["make", "test"]),
        ("{{ inputs.version }}", "1.10"),
        ("{{ inputs.version }}\n", "1.10\n"),
        (" {{ inputs.version -}}\n", " 1.10"),
        ("{{ inputs.nothing }}", None),
        ("  {{ inputs.yes }}\n", True),
        ("{{- inputs.numbers -}}", [3, 1, 2]),
        ("{{ -1 }}", -1),
        ("{{ gather.schema.rows[0].version == 41 }}", True),
        ("{{ gather.schema.rows | length == 0 }}", False),
        ("{{ inputs.numbers | sort }}", [1, 2, 3]),
        ("{{ inputs.numbers | select('odd') }}", [3, 1]),
        ("{{ {'a': [inputs.nothing, inputs.yes]} }}", {"a": [None, True]}),
        ("{{ inputs.nobody is defined }}", False),
        ("{{ inputs.nobody | default('x') }}", "x"),
    ],
)
def test_a_whole_expression_keeps_its_type(source: str, value: Any) -> None:
    """A string that is one expression from end to end gives the expression's own value; a text keeps its line end."""
    result = render(source, CONTEXT)
    assert result == value
    assert type(result) is type(value)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("release-{{ inputs.repo.slug }}", "release-orders"),
        ("{{ inputs.version }}{{ inputs.version }}", "1.101.10"),
        ("{% for word in inputs.words %}{{ loop.index }}{{ word }} {% endfor %}", "1make 2test "),
        ("is {{ inputs.yes }}", "is true"),
        ("{{ inputs.words | join(' ') }}!", "make test!"),
        ("no expression { here }", "no expression { here }"),
        ("{# a remark #}x", "x"),
    ],
)
def test_an_expression_inside_text_makes_text(source: str, text: str) -> None:
    """Anything else with an expression inside becomes text."""
    assert render(source, CONTEXT) == text


def test_values_are_rendered_all_the_way_down_and_keys_are_not() -> None:
    """Lists and objects are walked; a key is not an expression."""
    value = {"{{ key }}": ["{{ inputs.version }}", {"x": "{{ inputs.yes }}"}, 7, None]}
    assert render(value, CONTEXT) == {"{{ key }}": ["1.10", {"x": True}, 7, None]}


def test_what_comes_out_is_never_rendered_again() -> None:
    """A commit message that holds an expression stays text."""
    context = {"evil": "{{ secret }}", "secret": "s3cret"}
    assert render("{{ evil }}", context) == "{{ secret }}"
    assert render("say {{ evil }}", context) == "say {{ secret }}"


def test_a_key_is_never_taken_for_a_method() -> None:
    """`repo.items` is the key of that name; where there is no such key, there is no method either."""
    assert render("{{ inputs.repo.items }}", CONTEXT) == 3
    with pytest.raises(UserError, match="There is no 'keys' here"):
        render("{{ inputs.repo.keys }}", CONTEXT)


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("{{ inputs.rpeo }}", "no 'rpeo' here. Did you mean 'repo'? Known names: nothing, numbers, repo"),
        ("{{ inptus.repo }}", "no 'inptus'. Did you mean 'inputs'?"),
        ("x{{ inputs.nobody }}", "no 'nobody'"),
        ("{{ inputs.nothing.x }}", "no 'x' in null"),
        ("{{ inputs.words[9] }}", "no position 9 in a list of 2"),
        ("a{{ inputs.nothing }}", "null, which cannot stand inside text"),
        ("a{{ inputs.words }}", "a list, which cannot stand inside text"),
        ("{{ 1 / 2 }}", "a fraction"),
        ("{{ 99999999999 * 99999999 }}", "beyond 9007199254740991"),
        ("{{ inputs.words + 1 }}", "has no value"),
        ("{{ inputs.words | lenght }}", "Did you mean 'length'"),
        ("{{ 1 is evne }}", "Did you mean 'even'"),
        ("{{ inputs", "cannot be read"),
        ("{{ 'x' if inputs.nothing }}", "no else"),
    ],
)
def test_a_mistake_is_named_with_the_nearest_name(source: str, says: str) -> None:
    """The message quotes the expression, says what is missing, and what there is."""
    with pytest.raises(UserError) as caught:
        render(source, CONTEXT)
    assert says in caught.value.message
    assert source.strip()[:30] in caught.value.message


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ ''.__class__ }}",
        "{{ inputs.words.__class__ }}",
        "{{ inputs.words | map(attribute='__class__') | list }}",
        "{{ inputs.words | sort(attribute='__class__') }}",
        "{{ inputs.words | attr('__class__') }}",
        "{{ inputs['__class__'] }}",
        "{{ inputs.version.upper() }}",
        "{{ inputs.words.append('x') }}",
        "{{ range(10) }}",
        "{{ lipsum }}",
        "{{ cycler }}",
        "{{ self }}",
        "{{ self.__init__ }}",
        "{{ '%s' | format(inputs) }}",
        "{{ '%1000000d' % 1 }}",
        "{{ 'x' | safe }}",
        "{{ 2 ** 100000000 }}",
        "{{ 'a' * 1000000000 }}",
        "{{ inputs.words * 1000000000 }}",
        "{% include 'x' %}",
        "{% import 'x' as x %}",
        "{% extends 'x' %}",
        "{% macro f() %}{% endmacro %}{{ f() }}",
        "{% autoescape true %}{{ 'x' }}{% endautoescape %}",
        "{% for x in inputs.words recursive %}{{ loop(inputs.words) }}{% endfor %}",
        "{% for x in inputs.words %}{{ loop.__class__ }}{% endfor %}",
        "{% for x in inputs.words %}{{ loop }}{% endfor %}",
    ],
)
def test_nothing_but_plain_data_can_be_reached(source: str) -> None:
    """No attribute, method, global, call, import or multiplication of text gets through, and none takes long."""
    begun = time.perf_counter()
    with pytest.raises(UserError):
        render(source, CONTEXT)
    assert time.perf_counter() - begun < 5


def test_reading_an_expression_evaluates_nothing() -> None:
    """Templates are checked in processes that cannot be killed: no constant is folded while one is read or compiled."""
    bomb = "{{ 'a'" + "|replace('a','aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa')" * 20 + " }}"
    begun = time.perf_counter()
    parse_source(bomb)
    assert used_paths(bomb) == set()
    with pytest.raises(UserError, match="no 'missing'"):
        render("{{ missing }}" + bomb, CONTEXT)
    assert time.perf_counter() - begun < 5


@pytest.mark.parametrize(
    "source", ["{{ " + "(" * 4000 + "1" + ")" * 4000 + " }}", "{{ 1" + "+1" * 4000 + " }}", "{{ 'x' }}" + " " * 30_000]
)
def test_an_expression_too_deep_or_too_long_is_refused(source: str) -> None:
    """Nesting and length have limits with names of their own; no stack overflows."""
    with pytest.raises(UserError):
        render(source, CONTEXT)


def test_the_text_made_is_capped_over_the_whole_value() -> None:
    """Two halves that fit alone do not fit together; data that is passed on whole does."""
    half = "a" * (OUTPUT_LIMIT_BYTES // 2 + 1)
    assert render("{{ half }}", {"half": half}) == half
    with pytest.raises(UserError, match="more than"):
        render(["{{ half }}", "{{ half }}"], {"half": half})
    with pytest.raises(UserError, match="more than"):
        render("x{{ half }}{{ half }}", {"half": half})
    assert len(render("{{ halves }}", {"halves": [half] * 4})) == 4


@given(st.recursive(st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.text(), st.lists))
def test_plain_data_goes_through_unchanged(value: Any) -> None:
    """An expression that only names data gives exactly that data."""
    assert render("{{ it }}", {"it": value}) == value
    assert render({"deep": ["{{ a.it }}"]}, {"a": {"it": value}}) == {"deep": [value]}


@given(st.text(alphabet="{}%#| .'\"ab()[]+-~in", max_size=40))
def test_any_text_is_rendered_or_refused(source: str) -> None:
    """Whatever stands in a template, the answer is a value or a ``UserError``."""
    try:
        render(source, {"a": {"b": 1}, "b": [1]})
    except UserError as error:
        assert error.message


def test_only_what_is_read_is_handed_on() -> None:
    """Two names deep it is known what an expression reads; what is read whole, or is missing, is kept whole."""
    assert used_paths("{{ gather.a.b }} {{ inputs['x'] }} {{ draft }} {% set y = 1 %}{{ y }}") == {
        ("gather", "a"),
        ("inputs", "x"),
        ("draft",),
    }
    context = {"inputs": {"x": 1, "y": 2}, "gather": {"big": "…"}, "draft": None}
    assert prune(context, ["{{ inputs.x }}"]) == {"inputs": {"x": 1}, "gather": {}, "draft": None}
    assert prune(context, {"k": "{{ inputs }}{{ gather.big }}"}) == {**context}
    assert prune(context, "{{ inputs.z }}")["inputs"] == {"x": 1, "y": 2}
