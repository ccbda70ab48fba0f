"""Commands on the host: bounded, fenced by a lock, found again after their worker died."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from perdure.errors import EffectUnknown
from perdure.workspace.commands import Command, LimitMet, run_command
from perdure.workspace.processes import GroupRunner, boot_id, end_group, take_lock

ENV = {"PATH": "/usr/bin:/bin"}
LIMIT = timedelta(seconds=20)


def wait_until(holds: Callable[[], bool], seconds: float = 15) -> None:
    """Poll a condition of the real world; fail when it never holds."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "the condition never held"
        time.sleep(0.01)


def is_alive(pid: int) -> bool:
    """Whether a process runs (a zombie does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def make_runner(lock: Path, seen: list[tuple[int, str]] | None = None) -> GroupRunner:
    """A runner that notes its groups in ``seen``."""
    return GroupRunner(lock, lambda pgid, mark: (seen if seen is not None else []).append((pgid, mark)))


def test_command_gets_only_the_given_environment_and_input(tmp_path: Path) -> None:
    """A command sees the environment it is given and nothing else, reads its stdin, and both outputs are kept apart."""
    done = make_runner(tmp_path / "lock").run(
        ["sh", "-c", "cat; env | sort >&2; exit 3"], env={**ENV, "A": "b"}, stdin=b"in" * 100_000, limit=LIMIT
    )
    assert done.code == 3
    assert done.stdout == b"in" * 100_000
    names = {line.split(b"=")[0] for line in done.stderr.splitlines()}
    assert names - {b"PWD", b"OLDPWD", b"SHLVL", b"_"} == {b"A", b"PATH"}


def test_output_beyond_the_limit_is_cut_and_said(tmp_path: Path) -> None:
    """Output is capped; the cut is named with its size, and the command still ends by itself."""
    runner = GroupRunner(tmp_path / "lock", lambda *_: None, output_limit_bytes=1000)
    done = runner.run(["sh", "-c", "head -c 3000000 /dev/zero"], env=ENV, limit=LIMIT)
    assert done.code == 0
    assert len(done.stdout) < 1100
    assert b"2999000 more bytes were cut" in done.stdout


def test_wall_limit_ends_the_whole_group_and_the_fate_is_unknown(tmp_path: Path) -> None:
    """A command over its wall limit is killed with all its group, and what it did counts as unknown."""
    pidfile = tmp_path / "pid"
    with pytest.raises(EffectUnknown, match="did not end within"):
        make_runner(tmp_path / "lock").run(
            ["sh", "-c", f"trap '' TERM; sleep 600 & echo $! > {pidfile}; echo busy; wait; wait"],
            env=ENV,
            limit=timedelta(seconds=0.5),
        )
    left = int(pidfile.read_text())  # killed; its new parent takes a moment to reap it
    wait_until(lambda: not is_alive(left))


def test_stragglers_are_killed_when_the_command_ends(tmp_path: Path) -> None:
    """What a command leaves in the background neither blocks its end nor outlives it."""
    started = time.monotonic()
    done = make_runner(tmp_path / "lock").run(["sh", "-c", "sleep 600 & echo $!"], env=ENV, limit=LIMIT)
    assert time.monotonic() - started < 10
    wait_until(lambda: not is_alive(int(done.stdout)))


def test_command_never_begins_when_its_group_cannot_be_noted(tmp_path: Path) -> None:
    """No command begins before its process group is written down."""

    def refuse(_pgid: int, _mark: str) -> None:
        raise RuntimeError("the ledger is locked")

    with pytest.raises(RuntimeError, match="ledger"):
        GroupRunner(tmp_path / "lock", refuse).run(["touch", str(tmp_path / "canary")], env=ENV, limit=LIMIT)
    assert not (tmp_path / "canary").exists()


def test_watch_ends_a_command_that_goes_over_its_bounds(tmp_path: Path) -> None:
    """A watcher's objection ends the command and is its reason."""
    command = Command(["sleep", "600"], ENV, tick=timedelta(seconds=0.01))
    with pytest.raises(LimitMet, match="too many processes"):
        run_command(command, watch=lambda _pgid: "started too many processes.")


def test_lock_is_exclusive_between_holders(tmp_path: Path) -> None:
    """While one holds a target, another does not get it, and learns so within its limit."""
    lock = tmp_path / "locks" / "a.lock"
    with take_lock(lock, LIMIT):
        code = (
            "import sys; from datetime import timedelta; from pathlib import Path\n"
            "from perdure.workspace.processes import take_lock\n"
            "with take_lock(Path(sys.argv[1]), timedelta(seconds=0.2)): print('got it')"
        )
        other = subprocess.run([sys.executable, "-c", code, str(lock)], capture_output=True, text=True)
        assert "still locked" in other.stderr and "got it" not in other.stdout
        # The holder's own commands share it.
        assert make_runner(lock).run(["true"], env=ENV, limit=LIMIT).code == 0
    with take_lock(lock, timedelta(0)):
        pass


WORKER = textwrap.dedent("""
    import sys
    from datetime import timedelta
    from pathlib import Path
    from perdure.workspace.processes import GroupRunner, take_lock

    lock, note, argv = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]
    def on_start(pgid, mark):
        note.with_suffix(".new").write_text(f"{pgid} {mark}")
        note.with_suffix(".new").rename(note)
    with take_lock(lock, timedelta(seconds=5)):
        GroupRunner(lock, on_start).run(argv, env={"PATH": "/usr/bin:/bin"}, limit=timedelta(minutes=5))
""")


def kill_worker_during(lock: Path, note: Path, argv: list[str], begun: Path) -> tuple[int, str]:
    """Start a worker process, SIGKILL it once its command has begun; return the noted group and mark."""
    worker = subprocess.Popen([sys.executable, "-c", WORKER, str(lock), str(note), *argv])
    try:
        wait_until(begun.exists)
    finally:
        worker.kill()
        worker.wait()
    pgid, mark = note.read_text().split()
    return int(pgid), mark


def test_command_of_a_dead_worker_keeps_the_target_locked_until_it_is_ended(tmp_path: Path) -> None:
    """A `do` that outlives its worker keeps everyone else off the target; the next attempt ends it by its mark."""
    lock, begun = tmp_path / "a.lock", tmp_path / "begun"
    argv = ["sh", "-c", f"touch {begun}; sleep 600"]
    pgid, mark = kill_worker_during(lock, tmp_path / "note", argv, begun)
    assert is_alive(pgid)
    with pytest.raises(EffectUnknown, match="still locked"), take_lock(lock, timedelta(seconds=0.1)):
        pass
    assert end_group(pgid, mark) is True
    with take_lock(lock, timedelta(seconds=5)):
        assert not is_alive(pgid)


def test_group_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    """Ending a group asks first and then kills."""
    lock, begun = tmp_path / "a.lock", tmp_path / "begun"
    argv = ["sh", "-c", f"trap '' TERM; touch {begun}; while :; do sleep 1; done"]
    pgid, mark = kill_worker_during(lock, tmp_path / "note", argv, begun)
    assert end_group(pgid, mark) is True
    assert not is_alive(pgid)


def test_foreign_group_is_never_touched(tmp_path: Path) -> None:
    """A process id used again by somebody else is left alone: other boot, no lock held, or another lock."""
    seen: list[tuple[int, str]] = []
    lock = tmp_path / "a.lock"
    make_runner(lock, seen).run(["true"], env=ENV, limit=LIMIT)
    mark = seen[0][1]
    assert mark.startswith(boot_id())
    stranger = subprocess.Popen(["sleep", "600"], start_new_session=True)
    try:
        assert end_group(stranger.pid, mark) is False
        assert end_group(stranger.pid, "another-boot/" + mark.partition("/")[2]) is False
        assert end_group(0, mark) is False
        assert end_group(1, mark) is False
        assert is_alive(stranger.pid)
    finally:
        os.killpg(stranger.pid, signal.SIGKILL)
        stranger.wait()
