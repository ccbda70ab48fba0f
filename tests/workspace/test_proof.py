"""The proof of the sandbox: what it tries gets through where nothing holds it, and a sandbox with a hole is told."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from perdure.errors import SetupError
from perdure.workspace import handover
from perdure.workspace.proof import prove
from perdure.workspace.sandbox import Sandbox


def test_this_machines_sandbox_is_proven() -> None:
    """All that is tried is refused, quickly, and it is said who runs commands and what is only watched."""
    sandbox = Sandbox.find()
    began = time.process_time()
    proof = prove(sandbox)
    assert proof.got_through == ()
    assert len(proof.held) >= 15
    assert proof.backend.startswith("bubblewrap ")
    assert "uid " in proof.identity
    assert any("watched" in text for text in proof.limits)
    assert time.process_time() - began < 1


def test_sandbox_with_holes_is_told(tmp_path: Path) -> None:
    """A program that only pretends to shut in is found out by what gets through."""
    pretending = tmp_path / "bwrap"
    script = """
import os, sys
if "--version" in sys.argv: print("bubblewrap 9.9"); raise SystemExit
words = os.read(int(sys.argv[sys.argv.index("--args") + 1]), 1 << 20).decode().split("\\0")
for number, word in enumerate(words):
    if word == "--setenv": os.environ[words[number + 1]] = words[number + 2]
    if word in ("--bind", "--ro-bind") and words[number + 2] == "/workspace": os.chdir(words[number + 1])
command = sys.argv[sys.argv.index("--") + 1:]
if "setpriv" in command[0]: command = command[command.index("--") + 1:]
os.execvp(command[0], command)
"""
    pretending.write_text(f"#!/usr/bin/env python3\n{script}")
    pretending.chmod(0o755)
    proof = prove(replace(Sandbox.find(), program=pretending))
    assert proof.backend == f"bubblewrap 9.9 ({pretending})"
    for name in (
        "files outside of the workspace are read",
        "files outside of the workspace are written",
        "a link leads outside",
        "another job's folder is seen",
        "processes of the machine are reached",
        "the machine's own addresses are reached",
        "privileges can be gained",
        "system calls are not filtered",
    ):
        assert name in proof.got_through


def test_root_that_cannot_hand_folders_over_is_held_and_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """In a container, where owners cannot be exchanged, commands still run, nothing gets out, and everybody is told."""

    def cannot(folders: Sequence[Path]) -> int:
        raise SetupError(f"{len(folders)} folders cannot be handed over here.")

    monkeypatch.setattr(handover, "hand_over", cannot)
    proof = prove(Sandbox.find())
    assert proof.got_through == ()
    if handover.is_root():
        assert proof.identity.startswith("root, without capabilities")
        assert "cannot be handed over" in caplog.text
