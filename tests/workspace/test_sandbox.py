"""The sandbox: what a command of a repository or template can see, reach and leave behind."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from activities.workspaces import sweep
from perdure.effects.base import Finished
from perdure.errors import SetupError, UserError
from perdure.workspace.control_groups import bounded_group, remove_empty_groups
from perdure.workspace.sandbox import KILLED, NOT_FOUND, Bounds, Sandbox

LIMIT = timedelta(seconds=30)


@pytest.fixture(scope="module")
def sandbox() -> Sandbox:
    """A proven sandbox."""
    return Sandbox.find()


def shell(sandbox: Sandbox, folder: Path, script: str, **options: object) -> Finished:
    """Run a shell script sandboxed."""
    return sandbox.run(["sh", "-c", script], workspace=folder, limit=LIMIT, **options)  # type: ignore[arg-type]


def test_command_works_on_its_workspace(sandbox: Sandbox, tmp_path: Path) -> None:
    """A command reads and writes its workspace, and its exit code and output come back."""
    (tmp_path / "in").write_text("hello")
    done = shell(sandbox, tmp_path, "cat in; echo bye > out; exit 7")
    assert (done.code, done.stdout) == (7, b"hello")
    assert (tmp_path / "out").read_text() == "bye\n"


def test_read_only_workspace_is_not_written(sandbox: Sandbox, tmp_path: Path) -> None:
    """A workspace that is given for reading stays as it was."""
    assert shell(sandbox, tmp_path, "touch x", writable=False).code != 0
    assert list(tmp_path.iterdir()) == []


def test_command_sees_no_file_of_the_machine(sandbox: Sandbox, tmp_path: Path) -> None:
    """No home, no data folder, no shadow file, nothing beside the system's programs and the workspace."""
    secret = tmp_path / "data" / "keys"
    secret.mkdir(parents=True)
    (secret / "decision.pem").write_text("PRIVATE")
    work = tmp_path / "work"
    work.mkdir()
    (work / "link").symlink_to(secret / "decision.pem")
    looked = f"cat {secret}/decision.pem link /etc/shadow /root/.ssh/id_rsa; ls /home {tmp_path} /srv /mnt /var/lib"
    done = shell(sandbox, work, looked)
    assert b"PRIVATE" not in done.output
    assert done.stdout == b""
    roots = set(shell(sandbox, work, "ls /").stdout.decode().split())
    allowed = {"bin", "sbin", "lib", "lib32", "lib64", "libx32", "usr", "etc", "dev", "proc", "tmp", "var", "run"}
    prefix = {Path(sys.base_prefix).parts[1]}
    assert roots <= allowed | prefix | {"workspace", "nix", "gnu"}


def test_command_sees_no_environment_of_ours(sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No token and no address of ours reaches the command, also not through its parents inside."""
    monkeypatch.setenv("PERDURE_TOKEN", "canary-token")
    monkeypatch.setenv("TEMPORAL_ADDRESS", "canary-token:7233")
    done = shell(sandbox, tmp_path, "env; cat /proc/*/environ; cat /proc/*/cmdline", env={"GIVEN": "yes"})
    assert b"canary-token" not in done.output
    assert b"GIVEN=yes" in done.output


def test_value_of_the_environment_is_not_on_the_command_line(sandbox: Sandbox, tmp_path: Path) -> None:
    """A secret that a command is given stands in its environment only; command lines are open to other users."""
    env = {"TOKEN": "canary-secret"}
    with sandbox.launch(["true"], workspace=tmp_path, env=env, limit=LIMIT) as launch:
        assert not any("canary-secret" in word for word in launch.argv)
    done = shell(sandbox, tmp_path, "tr '\\0' ' ' < /proc/1/cmdline; echo; echo $TOKEN", env=env)
    assert done.stdout.split(b"\n")[-2:] == [b"canary-secret", b""]
    assert done.stdout.count(b"canary-secret") == 1


def test_command_reaches_no_network_and_no_socket(sandbox: Sandbox, tmp_path: Path) -> None:
    """There is no network beside an empty loopback: a server on this machine's loopback cannot be reached."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as unix:
        unix.bind("\0perdure-canary-" + str(os.getpid()))
        unix.listen()
        port = server.getsockname()[1]
        code = (
            "import socket\n"
            f"for family, address in ((socket.AF_INET, ('127.0.0.1', {port})),"
            f" (socket.AF_UNIX, '\\0perdure-canary-{os.getpid()}')):\n"
            "    try: socket.socket(family).connect(address); print('REACHED')\n"
            "    except OSError as error: print('refused')\n"
        )
        done = sandbox.run(["python3", "-c", code], workspace=tmp_path, limit=LIMIT)
    assert done.stdout.split() == [b"refused", b"refused"]


def test_command_has_no_power(sandbox: Sandbox, tmp_path: Path) -> None:
    """A plain uid, no capability, no new user namespace, no process of the machine in sight."""
    done = shell(
        sandbox,
        tmp_path,
        "id -u; grep CapEff /proc/self/status; unshare -U true && echo NESTED; ls -d /proc/[0-9]* | wc -l",
    )
    lines = done.stdout.decode().split()
    assert lines[:3] == ["2000000" if os.geteuid() == 0 else "1000", "CapEff:", "0000000000000000"]
    assert "NESTED" not in lines
    assert int(lines[-1]) < 8


def test_nothing_is_left_running(sandbox: Sandbox, tmp_path: Path) -> None:
    """Also what detaches itself ends with the command."""
    seconds = str(100_000 + os.getpid())  # this test's own, however many run beside it
    done = shell(sandbox, tmp_path, f"setsid sleep {seconds} >/dev/null 2>&1 & echo started")
    assert done.stdout == b"started\n"
    wait_until(lambda: not running(f"sleep\0{seconds}\0"))


def test_command_dies_with_its_worker(tmp_path: Path) -> None:
    """A worker that is killed leaves no sandboxed command behind."""
    seconds = str(200_000 + os.getpid())
    code = (
        "import sys; from datetime import timedelta; from pathlib import Path\n"
        "from perdure.workspace.sandbox import Sandbox\n"
        "argv = ['sh', '-c', f'setsid sleep {sys.argv[2]} & sleep {sys.argv[2]}']\n"
        "Sandbox.find().run(argv, workspace=Path(sys.argv[1]), limit=timedelta(minutes=5))\n"
    )
    worker = subprocess.Popen([sys.executable, "-c", code, str(tmp_path), seconds])
    try:
        wait_until(lambda: len(running(f"sleep\0{seconds}\0")) == 2)
    finally:
        worker.kill()
        worker.wait()
    wait_until(lambda: not running(f"sleep\0{seconds}\0"))


def running(cmdline: str) -> list[Path]:
    """Processes of this machine with exactly this command line."""
    return [path for path in Path("/proc").glob("[0-9]*/cmdline") if _reads(path) == cmdline.encode()]


def wait_until(holds: Callable[[], bool], seconds: float = 30) -> None:
    """Poll a condition of the real world; fail when it never holds."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "the condition never held"
        time.sleep(0.01)


def _reads(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_command_over_its_wall_limit_is_killed_and_says_so(sandbox: Sandbox, tmp_path: Path) -> None:
    """A command that does not end is ended; its output so far is kept and says why."""
    done = sandbox.run(["sh", "-c", "echo before; sleep 600"], workspace=tmp_path, limit=timedelta(seconds=1))
    assert done.code == KILLED
    assert b"before" in done.output
    assert b"killed: it did not end within" in done.output


def test_fork_bomb_is_ended(tmp_path: Path) -> None:
    """A command that starts more processes than it may is ended, whoever runs the worker."""
    small = Sandbox(Sandbox.find().program, Bounds(processes=40))
    script = "for i in $(seq 300); do sleep 600 & done; wait"
    done = small.run(["sh", "-c", script], workspace=tmp_path, limit=LIMIT)
    assert done.code == KILLED
    assert b"started more than 40 processes" in done.output


def test_command_that_outruns_the_watcher_meets_the_kernel(tmp_path: Path) -> None:
    """Also when root runs the worker: where a control group can be made, no more processes than it allows are there."""
    with bounded_group(30) as group:
        if group is None:  # a plain user: the kernel's own limit on a user's processes holds, and the watcher
            assert os.geteuid() != 0 or not os.access("/sys/fs/cgroup/pids", os.W_OK)
            return
        assert not group.was_full()
        script = 'echo $$ > "$0"; trap "kill 0" EXIT; for i in $(seq 60); do sleep 20 & done'
        argv = ["sh", "-c", script, str(group.members[0])]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=30, start_new_session=True)
        assert "fork" in done.stderr
        assert group.was_full()
    assert not any(folder.exists() for folder in group.folders)


def test_empty_groups_of_dead_workers_are_removed() -> None:
    """What a killed worker left goes; a group whose maker lives stays, also before its command has begun."""
    make = (
        "import sys; from perdure.workspace.control_groups import bounded_group\n"
        "with bounded_group(5) as group: print(group.folders[0] if group else '', flush=True); sys.stdin.read()"
    )
    with (
        bounded_group(5) as mine,
        subprocess.Popen(
            [sys.executable, "-c", make], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as maker,
    ):
        assert maker.stdout is not None
        theirs = maker.stdout.readline().strip()
        remove_empty_groups()
        assert mine is None or (mine.folders[0].exists() and Path(theirs).exists())
        maker.kill()
        maker.wait()
        remove_empty_groups()
        assert mine is None or (mine.folders[0].exists() and not Path(theirs).exists())


def test_memory_and_disk_have_bounds(tmp_path: Path) -> None:
    """A file larger than allowed, a full /tmp and a greedy process end in errors, not in a full machine."""
    small = Sandbox(Sandbox.find().program, Bounds(memory_bytes=64 << 20, file_bytes=1 << 20, temporary_bytes=1 << 20))
    done = shell(small, tmp_path, "head -c 2000000 /dev/zero > big; echo $?; python3 -c 'x = bytearray(200 << 20)'")
    assert done.stdout.split()[0] != b"0"
    assert b"MemoryError" in done.stderr
    assert (tmp_path / "big").stat().st_size <= 1 << 20
    for place in ("/tmp", "/dev/shm"):
        filled = shell(small, tmp_path, f"for i in 1 2 3; do head -c 900000 /dev/zero > {place}/$i || exit 9; done")
        assert filled.code == 9
    assert shell(small, tmp_path, "touch /x || touch /dev/x || touch /etc/x || touch /usr/x").code != 0


def test_output_is_capped(sandbox: Sandbox, tmp_path: Path) -> None:
    """Output beyond the limit is cut, and the cut is said."""
    done = shell(sandbox, tmp_path, "head -c 5000000 /dev/zero", output_limit_bytes=1000)
    assert done.code == 0
    assert b"4999000 more bytes were cut" in done.stdout


def test_extra_folders_are_shown_read_only(sandbox: Sandbox, tmp_path: Path) -> None:
    """A folder named for reading is seen where it is and cannot be written."""
    extra, work = tmp_path / "extra", tmp_path / "work"
    extra.mkdir()
    work.mkdir()
    (extra / "f").write_text("data")
    done = shell(sandbox, work, f"cat {extra}/f; touch {extra}/g", extra_read=[extra])
    assert done.stdout == b"data"
    assert not (extra / "g").exists()


def test_named_hosts_are_refused_clearly(sandbox: Sandbox, tmp_path: Path) -> None:
    """A command that asks for network hosts is refused, never run without them."""
    with pytest.raises(UserError, match=r"example\.org cannot be opened"):
        shell(sandbox, tmp_path, "touch ran", network=["example.org"])
    assert not (tmp_path / "ran").exists()


def test_unknown_program_is_the_commands_failure(sandbox: Sandbox, tmp_path: Path) -> None:
    """A program that is not there fails the command, not the machine."""
    done = sandbox.run(["no-such-program"], workspace=tmp_path, limit=LIMIT)
    assert done.code == NOT_FOUND
    assert b"no-such-program: not found" in done.output


def test_machine_without_a_working_sandbox_is_refused(tmp_path: Path) -> None:
    """Where the sandbox cannot work nothing runs, and the message says how to install it. There is no fallback."""
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n")
    broken.chmod(0o755)
    with pytest.raises(SetupError, match=r"Permission denied.*apt install bubblewrap"):
        Sandbox.find(broken)
    with pytest.raises(SetupError, match="apt install bubblewrap"):
        Sandbox.find(tmp_path / "absent")


def test_cancelled_command_is_killed(sandbox: Sandbox, tmp_path: Path) -> None:
    """Asked to stop, a command ends long before its limit, and nothing of it is left."""
    begun = tmp_path / "begun"
    ended = sandbox.run(
        ["sh", "-c", "touch begun; exec sleep 4242"],
        workspace=tmp_path,
        limit=timedelta(minutes=10),
        is_stopped=begun.exists,
    )
    assert ended.code == KILLED
    assert b"was cancelled" in ended.output
    assert running("sleep\x004242") == []


def test_folders_of_a_dead_worker_are_swept(tmp_path: Path) -> None:
    """What a killed worker left is removed before the next one polls; nothing else is."""
    for name in ("draft-1", "check-2", "effect-3", "planning-4", "mine"):
        (tmp_path / name / "tree").mkdir(parents=True)
    sweep(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
