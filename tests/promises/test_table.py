"""The table of promises is true today: every line stands where it says, every test is there, and some are tried."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.promises.kept import Kept
from tests.promises.sweep import ROOT, break_one, copied_tree
from tests.promises.table import PROMISES

TRIED = (
    "test_changed_bytes_are_another_plan",
    "test_a_changed_decision_does_not_verify",
    "test_one_rejection_denies",
)
"""Quick ones that are broken for real in every run; all of them are in ``make torture``."""


@pytest.mark.parametrize("kept", PROMISES, ids=lambda kept: kept.name)
def test_line_stands_once_in_its_file(kept: Kept) -> None:
    """What keeps a promise is exact text that stands exactly once; without it the file is another one, and legal."""
    text = (ROOT / kept.file).read_text(encoding="utf-8")
    assert text.count(kept.line) == 1
    assert kept.without != kept.line
    compile(text.replace(kept.line, kept.without), kept.file, "exec")


def test_every_named_test_is_collected() -> None:
    """No test of the table was renamed or removed."""
    names = sorted({kept.test for kept in PROMISES})
    argv = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *names]
    ended = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout[-3000:] + ended.stderr[-1000:]
    collected = {line.split("[")[0] for line in ended.stdout.splitlines() if "::" in line}
    assert collected == set(names)


def test_breaking_a_promise_is_noticed() -> None:
    """Taking a line away turns its test red, tried on a copy of the tree."""
    chosen = [kept for kept in PROMISES if kept.test.rpartition("::")[2] in TRIED]
    assert len(chosen) == len(TRIED)
    with copied_tree() as tree:
        assert [break_one(tree, kept) for kept in chosen] == [""] * len(chosen)
