"""The help teaches: sections, examples that work, exit codes, and messages that say what to type."""

from __future__ import annotations

import itertools
import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from perdure.cli import codes
from perdure.cli.catalog import (
    APPROVALS,
    AUDIT,
    COMMANDS,
    EFFECTS,
    EVERY_MAP,
    KEY,
    MESSAGES,
    MODELS,
    PEOPLE,
    SCHEDULE,
    TEMPLATES,
    THREADS,
    TOKENS,
    TOOLS,
    Entry,
)
from perdure.cli.lazy import LazyGroup, TeachingCommand, load
from tests.cli.conftest import Ended

Call = Callable[..., Ended]


def entries() -> dict[str, Entry]:
    """Every command by the words that call it."""
    found = {name: entry for part in COMMANDS.values() for name, entry in part.items()}
    groups = {
        "models": MODELS,
        "schedule": SCHEDULE,
        "threads": THREADS,
        "approvals": APPROVALS,
        "messages": MESSAGES,
        "people": PEOPLE,
        "templates": TEMPLATES,
        "tools": TOOLS,
        "effects": EFFECTS,
        "tokens": TOKENS,
        "key": KEY,
        "audit": AUDIT,
    }
    for group, sections in groups.items():
        found |= {f"{group} {name}": entry for part in sections.values() for name, entry in part.items()}
    return found


def command_lines(text: str) -> list[list[str]]:
    """The calls of perdure inside a shell line, without redirections."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars="&|<>()")
    lexer.whitespace_split, lexer.commenters = True, ""
    parts = [
        list(words) for is_sign, words in itertools.groupby(lexer, lambda word: not word.strip("&|<>()")) if not is_sign
    ]
    return [words[1:] for words in parts if words[0] == "perdure"]


def test_help_is_grouped_as_one_thinks(call: Call) -> None:
    """Start, Decide, Follow, Take back, Operate, in this order; each command with one line."""
    out = call("--help").out
    places = [out.index(f"\n{title}:\n") for title in ["Start", "Decide", "Follow", "Take back", "Operate"]]
    assert places == sorted(places)
    for sections in [COMMANDS]:
        for part in sections.values():
            for name, entry in part.items():
                assert re.search(rf"^  {name} +{re.escape(entry.help)}$", out, re.MULTILINE), name


def test_nothing_typed_shows_the_help(call: Call) -> None:
    """`perdure` alone is no error."""
    ended = call()
    assert ended.code == 0
    assert "Take back:" in ended.out


@pytest.mark.parametrize(("words", "entry"), entries().items())
def test_every_command_teaches_by_examples(call: Call, words: str, entry: Entry) -> None:
    """Its help says what it does and shows examples; `perdure help` prints the same."""
    command = load(entry.target)
    assert isinstance(command, TeachingCommand | LazyGroup)
    assert command.examples, words
    ended = call(*words.split(), "--help")
    assert ended.code == 0
    assert "Examples:" in ended.out
    assert call("help", *words.split()).out == ended.out


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the commands that were called; none of them does anything here."""
    names: list[str] = []
    for words, entry in entries().items():
        command = load(entry.target)
        if not isinstance(command, click.Group):
            monkeypatch.setattr(command, "callback", lambda words=words, **given: names.append(words))
    return names


@pytest.mark.parametrize(("words", "entry"), [("", Entry("perdure.cli.main:perdure", "")), *entries().items()])
def test_every_example_is_a_line_that_works(
    call: Call, called: list[str], words: str, entry: Entry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each example is accepted by the command it names: no option in the help that is not there."""
    monkeypatch.chdir(tmp_path)
    lines = [line for text, _ in load(entry.target).examples for line in command_lines(text)]
    for line in lines:
        line = [str(tmp_path) if word.startswith("~/") else word for word in line]
        for file in (Path(word) for word in line if word.endswith((".yaml", ".zip"))):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()
        ended = call(*line)
        assert ended.code == 0, f"{line}: {ended.err}"
    assert len(called) == len(lines) > 0


def test_all_maps_are_known() -> None:
    """A new group's map is added to what these tests walk over."""
    assert len(entries()) == sum(len(part) for sections in EVERY_MAP for part in sections.values())


def test_exit_codes_are_explained(call: Call) -> None:
    """`perdure help exit-codes` has every code; so has the end of `perdure --help`."""
    out = call("help", "exit-codes").out
    for code, meaning in codes.MEANINGS.items():
        assert re.search(rf"^ +{code}  {re.escape(meaning)}$", out, re.MULTILINE)
    assert {int(code) for code in call("help", "exit-codes", "--json").json} == set(codes.MEANINGS)
    tail = call("--help").out.split("Exit codes:")[1]
    assert set(map(int, re.findall(r"\b\d+\b", tail))) == set(codes.MEANINGS)


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("aprove 7f3a91c2", "Did you mean `perdure approve`?"),
        ("templates shw", "Did you mean `perdure templates show`?"),
        ("run", "Missing argument 'TEMPLATE'"),
        ("jobs --opne", "--open"),
        ("jobs --limit many", "'many' is not a valid integer"),
    ],
)
def test_a_wrong_line_ends_with_64_and_says_what_was_near(call: Call, line: str, hint: str) -> None:
    """A wrong call is 64, never click's 2: that one means "would change something"."""
    ended = call(*line.split())
    assert ended.code == 64
    assert hint in ended.err
    assert "--help`" in ended.err
    as_json = call(*line.split(), "--json")
    assert as_json.code == 64
    assert json.loads(as_json.err)["exit_code"] == 64


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_the_shells_script(call: Call, shell: str) -> None:
    """The script calls perdure back for every tab."""
    ended = call("completion", shell)
    assert ended.code == 0
    assert "_PERDURE_COMPLETE" in ended.out


def test_help_for_another_program_names_every_option_and_command(call: Call) -> None:
    """`help --json` gives what the text says: commands with their sections, options with defaults, examples."""
    whole = call("help", "--json").json
    assert {"name": "run", "section": "Start", "help": "Start a job from a template and follow it."} in whole[
        "commands"
    ]
    run = call("help", "run", "--json").json
    options = {name: option for option in run["parameters"] for name in option["names"]}
    assert options["--plan"]["takes_value"] is False
    assert options["template"]["required"] is True
    assert options["inputs"]["may_repeat"] is True
    assert run["examples"][0]["line"] == "perdure run release"
    assert call("help", "templates", "show", "--json").json["name"] == "perdure templates show"
