"""Searching: what matches where, and patterns that never end are ended."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest

from perdure.testing.tools import ToolBench
from perdure.tools import files_grep
from perdure.tools.files_grep import GREP


def test_matches_are_given_by_path_and_line(bench: ToolBench) -> None:
    """`path:number:text`, sorted by path; binary files, links and git directories are passed over."""
    files = {"b.py": b"x\nfind me\n", "a.py": b"Find Me", "c.bin": b"\0find me", "d": "fünd".encode()}
    for path, data in files.items():
        (bench.workspace / path).write_bytes(data)
    (bench.workspace / "link").symlink_to("b.py")
    (bench.workspace / ".git").mkdir()
    (bench.workspace / ".git/x").write_text("find me")
    assert bench.call(GREP, pattern=r"f\w+d me").text == "[1 matching line]\nb.py:2:find me"
    assert (
        bench.call(GREP, pattern="FIND", ignore_case=True).text == "[2 matching lines]\na.py:1:Find Me\nb.py:2:find me"
    )
    assert "d:1:fünd" in bench.call(GREP, pattern="ü").text


def test_search_is_narrowed_by_folder_glob_and_plain_text(bench: ToolBench) -> None:
    """Only files beneath a folder, only those that match, and a text that is no pattern."""
    (bench.workspace / "src/deep").mkdir(parents=True)
    for path in ("a.py", "src/a.txt", "src/deep/a.py"):
        (bench.workspace / path).write_text("f(x)\n")
    assert bench.call(GREP, pattern="f(x)").text == "[0 matching lines]"
    assert bench.call(GREP, pattern="f(x)", literal=True, within="src", paths="**/*.py").text.endswith(
        "\nsrc/deep/a.py:1:f(x)"
    )
    assert "a.py:1" in bench.call(GREP, pattern="f", within="a.py").text
    assert bench.call(GREP, pattern="f", within="../").status == "error"


def test_pattern_that_never_ends_is_ended(bench: ToolBench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pattern made to backtrack for years costs its limit and is told; the worker's own thread is free."""
    (bench.workspace / "a").write_text("a" * 60 + "!")
    monkeypatch.setattr(files_grep, "LIMIT", timedelta(seconds=2))
    begun = time.monotonic()
    outcome = bench.call(GREP, pattern="(a+)+$")
    assert outcome.status == "error" and "simpler pattern" in outcome.text
    assert time.monotonic() - begun < 30


def test_pattern_that_is_none_or_too_large_is_told(bench: ToolBench) -> None:
    """The fault says why it cannot be searched for."""
    (bench.workspace / "a").write_text("a")
    assert "cannot be searched for" in bench.call(GREP, pattern="(unclosed").text
    assert bench.call(GREP, pattern="(?:" * 400 + "a" + "){900}" * 400).status == "error"


def test_very_many_matches_and_long_lines_are_cut(bench: ToolBench) -> None:
    """The most that was asked for is given, the rest said; of a long line what is around the match."""
    (bench.workspace / "many").write_text("x\n" * 1000)
    many = bench.call(GREP, pattern="x", most=10)
    assert many.text.count("many:") == 10 and "more than 10 matches" in many.text
    (bench.workspace / "long").write_text("y" * 100_000 + "HERE" + "y" * 100_000)
    line = bench.call(GREP, pattern="HERE").text.split("\n")[1]
    assert "HERE" in line and len(line) < 400


def test_stopped_search_ends(bench: ToolBench) -> None:
    """A cancelled call is not waited for."""
    (bench.workspace / "a").write_text("a" * 60 + "!")
    bench.is_stopped = lambda: True
    assert "was stopped" in bench.call(GREP, pattern="(a+)+$").text


def test_file_that_looks_like_a_note_is_no_note(bench: ToolBench) -> None:
    """What a file says or is called is data: it stands among the matches."""
    (bench.workspace / "# only the first").write_text("push now\n")
    assert bench.call(GREP, pattern="push").text == "[1 matching line]\n# only the first:1:push now"
