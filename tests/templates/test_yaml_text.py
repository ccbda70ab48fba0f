"""YAML 1.2 as templates are written in it: what is plain stays plain, what surprises is refused with its line."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.policy.yaml_text import NODE_LIMIT, SIZE_LIMIT_BYTES, YamlProblem, read_yaml


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1.10", "1.10"),
        ("1e3", "1e3"),
        (".inf", ".inf"),
        ("007", "007"),
        ("0x1f", "0x1f"),
        ("2026-11-30", "2026-11-30"),
        ("12:30:45", "12:30:45"),
        ("12345678901234567890", "12345678901234567890"),
        ("yes", "yes"),
        ("no", "no"),
        ("on", "on"),
        ("0", 0),
        ("-12", -12),
        ("'12'", "12"),
        ("!!str 12", "12"),
        ("true", True),
        ("'true'", "true"),
        ("False", False),
        ("~", None),
        ("null", None),
        ("'~'", "~"),
    ],
)
def test_a_value_stays_as_it_was_written(text: str, value: Any) -> None:
    """Only whole numbers, true, false and null become values; `1.10`, dates and YAML 1.1's `yes` stay text."""
    read = read_yaml(f"key: {text}\n").value["key"]
    assert read == value
    assert type(read) is type(value)


def test_every_value_knows_its_line() -> None:
    """A key's value stands on the key's line, an item on its own."""
    lines = read_yaml("a: 1\nb:\n  - x\n  - c:\n      d: 2\n").lines
    assert lines == {(): 1, ("a",): 1, ("b",): 2, ("b", 0): 3, ("b", 1): 4, ("b", 1, "c"): 4, ("b", 1, "c", "d"): 5}


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("a: 1\nb: 2\na: 3\n", 3, "twice, first on line 1"),
        ("x:\n  {a: 1, a: 2}\n", 2, "twice"),
        ("a: &x {b: 1}\nc:\n  <<: *x\n", 3, "Merge keys"),
        ("a: !thing 1\n", 1, "tag !thing"),
        ("a: 1\nb: !!python/object:os.system x\n", 2, "tag"),
        ("a: &x [*x]\n", 1, "anchor holds itself"),
        ("a: [\n", 2, "no YAML"),
        ("a: 1\n\tb: 2\n", 2, "no YAML"),
        ("a: *nobody\n", 1, "nobody"),
        ("a: 1\n---\nb: 2\n", 2, "another document"),
        ("? [a]\n: 1\n", 1, "key must be text"),
        ("", 1, "empty"),
        ("a: \x01\n", 1, "no YAML"),
        ("[" * 2000, 1, "nested"),
        ("a: " + "[" * 40 + "]" * 40, 1, "nested"),
    ],
)
def test_what_surprises_is_refused_with_its_line(text: str, line: int, says: str) -> None:
    """Duplicate and merge keys, tags, circles, several documents and broken text are refused with their line."""
    with pytest.raises(YamlProblem, match=says) as caught:
        read_yaml(text)
    assert caught.value.line == line


def test_aliases_may_be_used_but_not_to_blow_up() -> None:
    """An anchor saves typing; nine of them nested, which would be 10⁹ values, are refused at once."""
    assert read_yaml("a: &x [1]\nb: *x\n").value == {"a": [1], "b": [1]}
    bomb = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 10))
    with pytest.raises(YamlProblem, match=str(NODE_LIMIT)):
        read_yaml(bomb)


def test_a_huge_file_is_refused_before_it_is_parsed() -> None:
    """A template is a page of text."""
    with pytest.raises(YamlProblem, match="larger"):
        read_yaml("#" * (SIZE_LIMIT_BYTES + 1))


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    """Whatever the text is, the answer is data or a problem with a line, never another error."""
    try:
        read_yaml(text)
    except YamlProblem as problem:
        assert problem.line >= 1
        assert problem.message
