"""What was typed becomes typed, complete and checked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from perdure.contracts.base import JsonDict
from perdure.errors import UserError
from perdure.policy.inputs import resolve_inputs
from perdure.policy.templates import parse_template

TEXT = """\
perdure: 1
name: many
inputs:
  repo: {type: git-repository, default: "."}
  path: {type: path, default: "."}
  tag: {type: string, default: "v{version}"}
  scheme: {type: choice, of: [semver, pep440], default: semver}
  version: {type: version, optional: true}
  test: {type: command, optional: true}
  publish: {type: command, optional: true, needs: [published]}
  published: {type: command, optional: true}
  key: {type: secret, default: registry-token}
  dry: {type: boolean, default: false}
  count: {type: integer, default: 3}
"""
TEMPLATE = parse_template(TEXT, path="many.yaml")


def describe(folder: Path) -> JsonDict:
    """Describe any folder but the missing one."""
    if folder.name == "missing":
        raise UserError(f"{folder} is not inside a git repository.")
    return {"path": str(folder), "slug": folder.name, "identity": f"{folder}/.git"}


def resolve(**given: Any) -> JsonDict:
    """Resolve what was given, typed in /home/me/src."""
    return resolve_inputs(TEMPLATE, given, folder="/home/me/src", describe_repository=describe)


def test_every_input_is_there_in_the_templates_order() -> None:
    """Defaults are filled in, optional ones are null, the repository is described."""
    assert list(resolve().items()) == [
        ("repo", {"path": "/home/me/src", "slug": "src", "identity": "/home/me/src/.git"}),
        ("path", "."),
        ("tag", "v{version}"),
        ("scheme", "semver"),
        ("version", None),
        ("test", None),
        ("publish", None),
        ("published", None),
        ("key", "registry-token"),
        ("dry", False),
        ("count", 3),
    ]


@pytest.mark.parametrize(
    ("name", "typed", "value"),
    [
        ("path", "packages/a/", "packages/a"),
        ("path", "/srv//x", "/srv/x"),
        ("tag", "", ""),
        ("tag", 7, "7"),
        ("scheme", "pep440", "pep440"),
        ("version", "1.10", "1.10"),
        ("version", 2, "2"),
        ("version", "", None),
        ("test", "make test", ["make", "test"]),
        ("test", "sh -c 'a && b'", ["sh", "-c", "a && b"]),
        ("test", '["make", "a b"]', ["make", "a b"]),
        ("test", ["make", "test"], ["make", "test"]),
        ("test", ["sh", "-c", "a", "&&"], ["sh", "-c", "a", "&&"]),
        ("test", "", None),
        ("key", "other.token", "other.token"),
        ("dry", "true", True),
        ("dry", "No", False),
        ("dry", True, True),
        ("count", "-12", -12),
        ("count", 4, 4),
    ],
)
def test_text_becomes_a_value_of_the_inputs_type(name: str, typed: Any, value: Any) -> None:
    """Text from a command line and JSON values are both read."""
    found = resolve(**{name: typed})[name]
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("name", "typed", "says"),
    [
        ("shceme", "semver", "no input 'shceme'. Did you mean 'scheme'?"),
        ("scheme", "semvr", "expected one of semver, pep440. Did you mean 'semver'?"),
        ("version", "v1.2.3", "without a `v`"),
        ("version", 1.1, "in quotes"),
        ("path", "", "expected a path"),
        ("path", "a\0b", "NUL"),
        ("test", "make 'test", "expected a list"),
        ("test", "[1, 2]", "expected a list"),
        ("test", [], "expected a list"),
        ("test", "make a && make b", '["sh", "-c", "make a && make b"]'),
        ("dry", "perhaps", "expected true or false"),
        ("count", "1.5", "expected a whole number"),
        ("count", True, "expected a whole number"),
        ("count", "9" * 5000, "expected a whole number"),
        ("tag", ["x"], "expected text"),
        ("repo", "missing", "not inside a git repository"),
        ("publish", "x", "'publish' needs 'published' too"),
    ],
)
def test_a_wrong_input_is_named_with_what_was_expected(name: str, typed: Any, says: str) -> None:
    """The message says what was typed, what was expected, and the nearest name."""
    with pytest.raises(UserError) as caught:
        resolve(**{name: typed})
    assert says in caught.value.message


def test_every_problem_is_told_at_once() -> None:
    """Nobody fixes one input to be told about the next."""
    with pytest.raises(UserError) as caught:
        resolve(scheme="x", count="y", nobody=1)
    assert caught.value.message.count("\n") == 3


def test_a_secret_typed_as_value_is_never_shown() -> None:
    """What looks like a secret's value instead of its name stands in no message."""
    with pytest.raises(UserError) as caught:
        resolve(key="hunter2 is my password!")
    assert "hunter2" not in caught.value.message
    assert "name that it is stored under" in caught.value.message


def test_an_input_that_must_be_given_is_asked_for() -> None:
    """A missing input is named with its help and its type."""
    text = TEXT + '  build: {type: path, help: "e.g. /srv/builds/7"}\n'
    with pytest.raises(UserError, match=r"'build' is missing \(e.g. /srv/builds/7\). Give build=<path>"):
        resolve_inputs(parse_template(text, path="t"), {}, folder="/", describe_repository=describe)


def test_a_relative_repository_starts_where_it_was_typed() -> None:
    """`repo=../other` is seen from the caller's folder, whatever the server's is."""
    assert resolve(repo="../other")["repo"]["path"] == "/home/me/other"
    assert resolve(repo="/srv/x")["repo"]["path"] == "/srv/x"
