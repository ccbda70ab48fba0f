"""Output that goes elsewhere: a reader that leaves early, a terminal without UTF-8."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from perdure.contracts.job import JobPhase
from tests.cli.world import World
from tests.support.installation import ROOT


def test_a_reader_that_leaves_early_is_no_error(world: World, data: Path) -> None:
    """`perdure logs | head -1` ends quietly, without a traceback, however much there is to say."""
    for number in range(3000):
        world.stage("gather", f"source-{number}", "x" * 60)
    shell = f"set -o pipefail; {sys.executable} -m perdure logs 1 | head -1"
    ended = subprocess.run(
        ["bash", "-c", shell], env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=60
    )
    assert ended.stdout.count("\n") == 1
    assert ended.stderr == ""
    assert ended.returncode == 0


@pytest.mark.parametrize(("line", "code"), [("run release --plan", 2), ("run release", 3), ("approve 7f3a91c2", 3)])
def test_what_goes_on_unread_ends_with_its_own_code(world: World, data: Path, line: str, code: int) -> None:
    """`run --plan | head -1` still ends with 2 for changes; what goes on in the background never says "done"."""

    def tell_much(then: Callable[[], None]) -> None:
        for number in range(3000):
            world.stage("gather", f"source-{number}", "x" * 60, "failed")
        then()

    def end_planned() -> None:
        world.draft()
        world.move(JobPhase.done)

    world.on_submit = lambda: tell_much(end_planned if "--plan" in line else world.draft)
    world.on_decide = lambda kind: tell_much(lambda: world.move(JobPhase.applying))
    if line.startswith("approve"):
        world.draft()
    process = subprocess.Popen(
        [sys.executable, "-m", "perdure", *line.split()],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.close()
    process.stdout = None
    _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (code, b"")


def test_output_that_is_not_utf_8_is_still_complete(world: World, data: Path) -> None:
    """Where a mark cannot be written it is spelled out; nothing fails half-way."""
    world.freeze()
    ended = subprocess.run(
        [sys.executable, "-m", "perdure", "jobs"],
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        timeout=60,
    )
    assert ended.returncode == 0, ended.stderr
    assert b"\\u25c6 waiting" in ended.stdout


def test_output_that_cannot_be_written_is_said_and_is_no_traceback(world: World, data: Path) -> None:
    """A full disk behind `> file` ends with one message, what to do, and the exit code of a machine not ready."""
    world.freeze()
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "perdure", "jobs"],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
        )
    assert ended.returncode == 69
    assert ended.stderr.startswith("✗ The output could not be written to its end (No space left on device).")
    assert ended.stderr.count("\n") == 1


def test_closed_output_is_no_error(world: World, data: Path) -> None:
    """`perdure jobs <&- >&-` does what it does and shows nothing."""
    world.freeze()
    ended = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m perdure jobs <&- >&-"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
