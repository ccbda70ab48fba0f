"""Scratch folders of the dead are swept, those of the living are not."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from perdure.scratch import scratch_folder, sweep_scratch

MAKER = """
import subprocess, sys
from perdure.scratch import scratch_folder
with scratch_folder("view") as folder:
    (folder / "HEAD.lock").write_text("half written")
    if sys.argv[1] == "child":
        child = subprocess.Popen(["sleep", "60"], cwd=folder, stdout=subprocess.DEVNULL)
        print(child.pid, flush=True)
    print(folder, flush=True)
    sys.stdin.read()
"""

Start = Callable[[str], tuple[subprocess.Popen[str], Path, int]]


@pytest.fixture(autouse=True)
def own_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests' folders are not ours to sweep."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)


@pytest.fixture
def start() -> Iterator[Start]:
    """Give a way to start a process that holds a scratch folder: (it, the folder, pid of its child or 0)."""
    started: list[subprocess.Popen[str]] = []

    def begin(kind: str) -> tuple[subprocess.Popen[str], Path, int]:
        argv = [sys.executable, "-c", MAKER, kind]
        maker = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        started.append(maker)
        assert maker.stdout is not None
        child = int(maker.stdout.readline()) if kind == "child" else 0
        return maker, Path(maker.stdout.readline().strip()), child

    yield begin
    for maker in started:
        maker.kill()
        maker.communicate()


def test_a_killed_makers_folder_is_swept(start: Start) -> None:
    """What a SIGKILLed process left, a git lock file in it too, is gone after the sweep; before, it is kept."""
    maker, folder, _ = start("alone")
    assert sweep_scratch() == []
    assert folder.is_dir()
    maker.kill()
    maker.wait()
    assert sweep_scratch() == [folder]
    assert not folder.exists()


def test_a_folder_is_kept_while_a_child_of_the_killed_maker_works_in_it(start: Start) -> None:
    """A git that outlived its maker finds its folder until it ends."""
    maker, folder, child = start("child")
    maker.kill()
    maker.wait()
    try:
        assert sweep_scratch() == []
        assert folder.is_dir()
    finally:
        os.kill(child, signal.SIGKILL)


def test_what_is_not_surely_ours_is_left(tmp_path: Path) -> None:
    """A link, a folder that others may enter, and a folder without our mark stay."""
    (tmp_path / "target").mkdir()
    (tmp_path / "perdure-view-a.held").symlink_to(tmp_path / "target")
    (tmp_path / "perdure-view-b.held").mkdir()
    (tmp_path / "perdure-view-b.held").chmod(0o755)
    (tmp_path / "perdure-view-c").mkdir(mode=0o700)
    with scratch_folder("view") as held:
        assert sweep_scratch() == []
        assert held.is_dir()
    assert not held.exists()
    assert len(list(tmp_path.iterdir())) == 4
