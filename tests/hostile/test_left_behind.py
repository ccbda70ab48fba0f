"""What a sandboxed command leaves in its workspace runs nothing outside, afterwards, of whoever looks at it."""

from __future__ import annotations

import contextlib
import subprocess
from datetime import timedelta
from pathlib import Path

import pytest

from perdure.workspace.sandbox import Sandbox

LIMIT = timedelta(seconds=30)


@pytest.fixture(scope="module")
def sandbox() -> Sandbox:
    """A proven sandbox."""
    return Sandbox.find()


GIT_TRAPS = """
git init -q . && git config user.name n && git config user.email e && echo x > f && git add f && git commit -qm m
printf '#!/bin/sh\\necho ran >> "%s"\\n' "$0" > trap.sh; chmod 755 trap.sh
git config core.fsmonitor "$PWD/trap.sh"; git config diff.external "$PWD/trap.sh"; git config core.pager "$PWD/trap.sh"
"""


def test_git_of_the_machine_would_run_what_is_left(tmp_path: Path) -> None:
    """The control: plain git, asked for the state of such a folder, runs its program (CVE-2026-55607 and kin)."""
    canary, work = tmp_path / "canary", tmp_path / "work"
    work.mkdir()
    subprocess.run(["sh", "-c", GIT_TRAPS, str(canary)], cwd=work, check=True, capture_output=True)
    subprocess.run(["git", "status"], cwd=work, capture_output=True)
    assert canary.exists()


@pytest.mark.parametrize("name", ["LD_DEBUG", "LD_PRELOAD", "GCONV_PATH", "MALLOC_TRACE", "BASH_ENV"])
def test_environment_of_a_command_means_nothing_outside(sandbox: Sandbox, tmp_path: Path, name: str) -> None:
    """A variable for the command is none of the programs that start it: the loader outside must not heed it."""
    traces, work = tmp_path / "traces", tmp_path / "work"
    traces.mkdir()
    work.mkdir()
    env = {name: "files" if name == "LD_DEBUG" else str(traces / "x"), "LD_DEBUG_OUTPUT": str(traces / "trace")}
    env.setdefault("LD_DEBUG", "files")
    control = subprocess.run(["/bin/true"], env=env)
    assert control.returncode == 0
    assert list(traces.iterdir()), "the loader of this machine writes no trace"
    for trace in traces.iterdir():
        trace.unlink()
    sandbox.run(["env"], workspace=work, limit=LIMIT, env=env)
    assert list(traces.iterdir()) == []


def test_words_of_a_command_are_no_options_of_the_sandbox(sandbox: Sandbox, tmp_path: Path) -> None:
    """A command that begins with an option is a program that is not there (CVE-2024-32462)."""
    done = sandbox.run(["--bind", "/", "/host", "ls", "/host/etc/shadow"], workspace=tmp_path, limit=LIMIT)
    assert done.code != 0
    assert b"shadow" not in done.stdout


def test_programs_left_in_the_workspace_stand_in_for_none(sandbox: Sandbox, tmp_path: Path) -> None:
    """Files named like the programs and modules that Perdure starts are not found by it, then or later."""
    work, canary = tmp_path / "work", tmp_path / "canary"
    work.mkdir()
    names = "bwrap git sh bash python3 sitecustomize.py usercustomize.py ctypes.py perdure.py ld.so.preload"
    leave = f'for name in {names}; do printf "#!/bin/sh\\necho ran >> {canary}\\n" > $name; chmod 755 $name; done'
    assert sandbox.run(["sh", "-c", leave], workspace=work, limit=LIMIT).code == 0
    with contextlib.chdir(work):
        done = sandbox.run(["sh", "-c", "echo fine"], workspace=work, limit=LIMIT)
        Sandbox.find().run(["sh", "-c", "git --version"], workspace=work, limit=LIMIT)
    assert done.stdout == b"fine\n"
    assert not canary.exists()


def test_workspace_that_became_a_link_is_not_followed(sandbox: Sandbox, tmp_path: Path) -> None:
    """A command that puts a link in the place of its folder does not move the next command there (CVE-2021-30465)."""
    secret, work = tmp_path / "secret", tmp_path / "work"
    secret.mkdir()
    (secret / "token").write_text("canary")
    work.symlink_to(secret)
    try:
        done = sandbox.run(["cat", "token"], workspace=work, limit=LIMIT)
    except Exception as refused:  # how it is refused is the sandbox's own
        assert "link" in str(refused)
    else:
        assert done.stdout == b""
