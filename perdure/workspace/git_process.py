"""Starting git: always with a git directory that we wrote, never with what a repository or the environment brings."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import lru_cache
from pathlib import Path

from perdure.errors import SetupError, StageFailed

READ_LIMIT = timedelta(minutes=2)
"""Wall limit of one git command that only reads."""

PROTOCOLS = "file:git:https:ssh"
"""Transports that git may speak; ``ext::`` would run a program that the repository names."""

_HARDENED = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null",
    "core.pager=cat",
    "core.editor=false",
    "core.askPass=",
    "gc.auto=0",
    "maintenance.auto=false",
    "protocol.ext.allow=never",
    "submodule.recurse=false",
    "commit.gpgSign=false",
    "tag.gpgSign=false",
    "push.gpgSign=false",
    "log.showSignature=false",
)


class GitError(StageFailed):
    """A git command failed; ``code`` is its exit code, ``stderr`` what it said."""

    def __init__(self, message: str, *, code: int = 0, stderr: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.stderr = stderr


@lru_cache(maxsize=1)
def git_program() -> str:
    """Absolute path of git.

    Raises:
        SetupError: there is none on PATH.
    """
    found = shutil.which("git")
    if found is None:
        raise SetupError("git was not found on PATH. Install it (for example `apt install git`), then try again.")
    return str(Path(found).absolute())


def git_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The whole environment of a git process: nothing of ours leaks in, no configuration file is read by itself."""
    return {
        "PATH": os.pathsep.join(dict.fromkeys([str(Path(git_program()).parent), "/usr/local/bin", "/usr/bin", "/bin"])),
        "HOME": "/nonexistent",
        "LC_ALL": "C.UTF-8",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_PROTOCOL_FROM_USER": "0",
        "GIT_ALLOW_PROTOCOL": PROTOCOLS,
        "GIT_LITERAL_PATHSPECS": "1",
        "GIT_ADVICE": "0",
        **(extra or {}),
    }


def git_command(git_dir: Path, args: Sequence[str]) -> list[str]:
    """Return the argv of git on exactly ``git_dir``: nothing is discovered."""
    hardened = [part for setting in _HARDENED for part in ("-c", setting)]
    return [git_program(), f"--git-dir={git_dir}", "--no-pager", *hardened, *args]


def run_git(
    git_dir: Path,
    *args: str,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    limit: timedelta = READ_LIMIT,
    codes: Sequence[int] = (0,),
) -> bytes:
    """Run git on ``git_dir`` and return what it wrote to stdout. ``env`` goes over :func:`git_environment`.

    Raises:
        GitError: it ended with a code that is not in ``codes``, or met ``limit`` (its process group is killed).
    """
    argv = git_command(git_dir, args)
    code, stdout, stderr = run_plain(argv, stdin=stdin, env=git_environment(env), cwd=cwd or git_dir, limit=limit)
    if code not in codes:
        said = stderr.decode("utf-8", "replace").strip()
        raise GitError(f"git {args[0]} failed (exit {code}): {said or 'it said nothing'}", code=code, stderr=said)
    return stdout


def run_plain(
    argv: Sequence[str], *, stdin: bytes, env: Mapping[str, str], cwd: Path, limit: timedelta
) -> tuple[int, bytes, bytes]:
    """Run a short command to its end; return (exit code, stdout, stderr). The group is killed at ``limit``."""
    with subprocess.Popen(
        argv,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=dict(env),
        cwd=cwd,
        process_group=0,
    ) as process:
        try:
            stdout, stderr = process.communicate(stdin, timeout=limit.total_seconds())
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise GitError(
                f"{' '.join(argv[-3:])!r} did not end within {limit}. Is a disk or a server hanging?"
            ) from None
        return process.returncode, stdout, stderr
