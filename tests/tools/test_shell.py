"""Commands and git in the sandbox: what they see and change, how they are bounded, what is left of them."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from perdure.errors import SetupError
from perdure.testing.tools import ToolBench
from perdure.tools.git import GIT
from perdure.tools.output import OUTPUT
from perdure.tools.shell import RUN
from perdure.workspace.copies import open_draft
from perdure.workspace.git import open_repository
from perdure.workspace.sandbox import Bounds, Sandbox


def running(seconds: str) -> list[Path]:
    """Processes on this machine that sleep so many seconds."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found += [path] if path.read_bytes() == f"sleep\0{seconds}\0".encode() else []
        except OSError:
            continue  # it ended meanwhile
    return found


def wait_until_gone(seconds: str) -> None:
    """The kernel ends what is left in a namespace a moment after its first process."""
    deadline = time.monotonic() + 20
    while running(seconds):
        assert time.monotonic() < deadline, "something lives on"
        time.sleep(0.01)


def test_command_runs_on_the_workspace(bench: ToolBench) -> None:
    """Words or a text for `sh -c`; the code, both streams, and whether anything was changed."""
    (bench.workspace / "in").write_text("hello\n")
    read = bench.call(RUN, command=["cat", "in"])
    assert (read.status, read.changed, read.text) == ("ok", False, "[exit code 0]\nhello\n")
    wrote = bench.call(RUN, command="echo out; echo err >&2; touch made; exit 3")
    assert (wrote.status, wrote.changed) == ("error", True)
    assert wrote.text.startswith("[exit code 3]\n") and "out" in wrote.text and "err" in wrote.text
    assert bench.call(RUN, command=["true"]).text == "[exit code 0; it wrote nothing]"
    assert bench.call(RUN, command=["no-such-program"]).status == "error"
    assert bench.call(RUN, command=[]).status == "error"


def test_command_changes_only_what_the_step_may(bench: ToolBench) -> None:
    """What it does outside of the step's paths never reaches the workspace, and is named; all else is taken over."""
    bench.paths = ("docs/**", "*.md")
    for name in ("tests", "docs/old"):
        (bench.workspace / name).mkdir(parents=True)
    for name in ("tests/judge", "docs/old/gone", "docs/kept", "README.md"):
        (bench.workspace / name).write_text("before")
    script = "echo x > docs/a; rm -r docs/old; ln -s /etc docs/old; chmod +x docs/kept; sed -i s/before/after/ *.md"
    outcome = bench.call(RUN, command=f"{script}; echo x > tests/judge; mkfifo docs/pipe; mv README.md tests/moved.md")
    assert outcome.changed
    said = outcome.text.partition("; only docs/**, *.md may be changed here, so what it did to ")[2]
    assert said.partition(" was dropped")[0] == "docs/pipe, tests/judge, tests/moved.md"
    there = {str(path.relative_to(bench.workspace)) for path in bench.workspace.rglob("*")}
    assert there == {"docs", "docs/a", "docs/kept", "docs/old", "tests", "tests/judge"}
    assert (bench.workspace / "docs/old").is_symlink() and (bench.workspace / "docs/kept").stat().st_mode & 0o100
    assert (bench.workspace / "tests/judge").read_text() == "before"


def test_command_sees_nothing_of_the_machine(bench: ToolBench, monkeypatch: pytest.MonkeyPatch) -> None:
    """No file beside the workspace, no variable of ours, no way to Perdure or Temporal."""
    monkeypatch.setenv("PERDURE_TOKEN", "CANARY")
    secret = bench.workspace.parent / "secret"
    outcome = bench.call(RUN, command=f"cat {secret} ../secret; env; cat /proc/*/environ; ls {secret.parent}")
    assert "SECRET" not in outcome.text and "CANARY" not in outcome.text


def test_output_of_100_megabytes_is_cut_and_can_be_read_on(bench: ToolBench) -> None:
    """Head and tail are shown, what is kept lies in a blob, and output.read gives the middle."""
    outcome = bench.call(RUN, command="echo BEGIN; yes line | head -c 100000000; echo END")
    assert (outcome.status, len(outcome.text.encode()) <= RUN.spec.output_limit_bytes) == ("ok", True)
    assert "BEGIN" in outcome.text and outcome.text.endswith("END\n")
    assert outcome.blob is not None and outcome.blob.size_bytes < 5_000_000
    name = outcome.text.partition("output=")[2].partition(",")[0]
    offset = int(outcome.text.partition("offset=")[2].split()[0])
    middle = bench.call(OUTPUT, output=name, offset=offset, size=10)
    assert middle.text.startswith(f"[bytes {offset} to {offset + 10} of ")
    assert middle.text.endswith("line\nline\n")
    kept = bench.blobs.get(outcome.blob)
    assert b"more bytes were cut" in kept


def test_command_that_never_ends_is_ended(bench: ToolBench) -> None:
    """After its limit it is killed, with all that it started, and what it wrote is told."""
    seconds = str(300_000 + os.getpid())
    begun = time.monotonic()
    outcome = bench.call(RUN, command=f"echo begun; sleep {seconds}", seconds=1)
    assert outcome.status == "error"
    assert "begun" in outcome.text and "did not end within" in outcome.text
    assert time.monotonic() - begun < 30
    wait_until_gone(seconds)


def test_command_that_forks_without_end_is_ended(bench: ToolBench) -> None:
    """One that starts process after process meets the sandbox's bound; nothing of it is left."""
    seconds = str(500_000 + os.getpid())
    small = Sandbox(Sandbox.find().program, Bounds(processes=40))
    bench.sandbox = lambda: small
    outcome = bench.call(RUN, command=f"while :; do sleep {seconds} & sleep 0.01; done", seconds=30)
    assert outcome.status == "error" and "started more than 40 processes" in outcome.text
    wait_until_gone(seconds)


def test_daemon_does_not_outlive_the_call(bench: ToolBench) -> None:
    """What detaches itself, closes its streams and starts a session of its own ends with the call."""
    seconds = str(400_000 + os.getpid())
    outcome = bench.call(RUN, command=f"setsid nohup sleep {seconds} </dev/null >/dev/null 2>&1 & echo started")
    assert "started" in outcome.text
    wait_until_gone(seconds)


def test_cancelled_command_is_killed(bench: ToolBench) -> None:
    """Once the call is cancelled the command is ended, long before its limit."""
    bench.is_stopped = (bench.workspace / "begun").exists
    begun = time.monotonic()
    outcome = bench.call(RUN, command="touch begun; sleep 50")
    assert "was cancelled" in outcome.text
    assert time.monotonic() - begun < 40


def test_without_a_sandbox_nothing_runs(bench: ToolBench) -> None:
    """There is no fallback to the machine itself."""
    bench.sandbox = lambda: Sandbox.find(bench.workspace / "absent")
    with pytest.raises(SetupError, match="bubblewrap"):
        bench.call(RUN, command=["touch", "ran"])
    bench.sandbox = None
    assert bench.call(RUN, command=["touch", "ran"]).status == "error"
    assert list(bench.workspace.iterdir()) == []


@pytest.mark.parametrize(
    ("command", "target"),
    [
        (["git", "push", "origin", "main"], "command:git push origin main"),
        (["/usr/bin/git", "push", "--force", "origin", "main"], "command:git push origin main"),
        (["env", "A=1", "git", "push"], "command:git push"),
        (["timeout", "-k", "5", "10s", "git", "push"], "command:git push"),
        ("cd x && git  push | tee log", "command:cd x\ncommand:git push\ncommand:tee log"),
        (["bash", "-ec", "true; (git push)"], "command:git push\ncommand:true"),
        ("sh -c 'git push'", "command:git push"),
        ('echo "$(git push)"', "command:echo $(git push)\ncommand:git push"),
        ("true\ngit push", "command:git push\ncommand:true"),
        ("unclosed 'quote", "command:unclosed 'quote"),
    ],
)
def test_targets_name_each_command_whatever_its_options(command: str | list[str], target: str) -> None:
    """Permissions and remembered denials see programs and their words, not how they were dressed."""
    assert RUN.target({"command": command}) == target


def git(folder: Path, *args: str) -> None:
    identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    subprocess.run(["git", "-C", str(folder), *identity, *args], check=True, capture_output=True)


@pytest.fixture
def drafted(tmp_path: Path) -> ToolBench:
    """A draft's private workspace on a repository with two commits."""
    source = tmp_path / "source"
    source.mkdir()
    git(source, "init", "-q", "-b", "main")
    for text in ("one", "two"):
        (source / "a").write_text(text + "\n")
        git(source, "add", "a")
        git(source, "commit", "-qm", f"Say {text}")
    repository = open_repository(source)
    (tmp_path / "draft").mkdir()
    copy = open_draft(repository, repository.resolve("HEAD") or "", tmp_path / "draft")
    return ToolBench(copy.root, git_dir=tmp_path / "draft/git")


def test_git_reads_the_history_of_a_draft(drafted: ToolBench) -> None:
    """Log, show, blame and diff see the repository's commits and the draft's changes, and write nothing."""
    base = open_repository(drafted.workspace.parents[1] / "source").resolve("HEAD") or ""
    log = drafted.call(GIT, command="log", arguments=["--format=%s", base])
    assert log.text == "[exit code 0]\nSay two\nSay one\n"
    (drafted.workspace / "a").write_text("three\n")
    before = sorted((path, path.stat().st_mtime_ns) for path in drafted.workspace.parent.rglob("*"))
    assert "-two\n+three" in drafted.call(GIT, command="diff").text
    assert "three" in drafted.call(GIT, command="grep", arguments=["three"]).text
    assert sorted((path, path.stat().st_mtime_ns) for path in drafted.workspace.parent.rglob("*")) == before


def test_git_only_reads_and_is_held_by_the_sandbox(drafted: ToolBench) -> None:
    """Commands that write are not there, and an option that starts a program starts it in the sandbox."""
    assert drafted.call(GIT, command="commit", arguments=["-m", "x"]).status == "error"
    planted = drafted.workspace.parents[1] / "planted"
    drafted.call(GIT, command="grep", arguments=[f"--open-files-in-pager=touch {planted} x", "two"])
    drafted.call(GIT, command="diff", arguments=[f"--output={planted}"])
    assert not planted.exists()
    assert [path.name for path in drafted.workspace.iterdir()] == ["a"]


def test_git_directory_that_an_agent_made_shows_nothing_else(bench: ToolBench) -> None:
    """A `.git` in the workspace that borrows other objects or runs programs gains nothing."""
    elsewhere = bench.workspace.parent / "elsewhere"
    elsewhere.mkdir()
    git(elsewhere, "init", "-q", "-b", "main")
    git(elsewhere, "commit", "-qm", "SECRET", "--allow-empty")
    git(bench.workspace, "init", "-q", "-b", "main")
    alternates = bench.workspace / ".git/objects/info/alternates"
    alternates.write_text(f"{elsewhere}/.git/objects\n")
    (bench.workspace / ".git/config").write_text(f"[core]\n\tfsmonitor = touch {bench.workspace.parent}/planted\n")
    oid = open_repository(elsewhere).resolve("HEAD") or ""
    assert "SECRET" not in bench.call(GIT, command="show", arguments=[oid]).text
    bench.call(GIT, command="status")
    assert not (bench.workspace.parent / "planted").exists()
