"""``git.run``: git's reading commands on the history, in the sandbox. Commits are made by the draft stage."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Literal

from pydantic import Field

from perdure.contracts.agent import ToolOutcome
from perdure.contracts.agent_ports import Ended, ToolContext
from perdure.errors import ToolFault
from perdure.tools.base import Arguments, make_tool
from perdure.tools.places import escape, workspace_of
from perdure.tools.shell import CAPTURED_BYTES, Word, sandbox_of, tell_end

Reading = Literal[
    "blame", "cat-file", "describe", "diff", "diff-tree", "for-each-ref", "grep", "log", "ls-files", "ls-tree",
    "merge-base", "name-rev", "rev-list", "rev-parse", "shortlog", "show", "show-ref", "status",
]  # fmt: skip

_LIMIT = timedelta(minutes=2)
_INDEX = "/tmp/index"
_ESCAPED = re.compile(rb"\\([0-7]{3})")

_SETTINGS = {
    "safe.directory": "*",
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.pager": "cat",
    "core.bare": "false",
    "log.showSignature": "false",
}


class RunGit(Arguments):
    """Arguments of ``git.run``."""

    command: Reading
    arguments: list[Word] = Field(default=[], max_length=100, description="What follows the command's name.")


def run_git(arguments: RunGit, context: ToolContext) -> ToolOutcome:
    """Run git in the sandbox; workspace, git directory and the objects that it borrows are there for reading only.

    The sandbox holds whatever an option might start, so options are not judged.
    """
    root = workspace_of(context)
    git_dir = context.git_dir or root / ".git"
    if not (git_dir / "HEAD").is_file() or git_dir.is_symlink():
        raise ToolFault("The workspace has no git history.")
    # The index is written by reading commands too; a copy of it is theirs alone.
    script = f'test ! -f "$GIT_DIR/index" || cp "$GIT_DIR/index" {_INDEX}; exec git "$@"'
    ended: Ended = sandbox_of(context).run(
        ["sh", "-c", script, "sh", "--no-pager", arguments.command, *_text(arguments), *arguments.arguments],
        workspace=root,
        writable=False,
        env=_environment(git_dir, root),
        limit=min(context.limit, _LIMIT),
        output_limit_bytes=CAPTURED_BYTES,
        extra_read=_stores(git_dir, root),
        is_stopped=context.is_stopped,
    )
    shown = " ".join(["git", arguments.command, *arguments.arguments])
    return tell_end(GIT.spec, shown, ended, context, changed=False)


def _text(arguments: RunGit) -> list[str]:
    """Differences are shown as text: a private git directory calls every file binary, so that no filter is run."""
    return ["--text"] if arguments.command in ("diff", "diff-tree", "grep", "log", "show") else []


def _environment(git_dir: Path, root: Path) -> dict[str, str]:
    inside = git_dir == root / ".git"
    settings = {
        part: text
        for number, (key, value) in enumerate(_SETTINGS.items())
        for part, text in ((f"GIT_CONFIG_KEY_{number}", key), (f"GIT_CONFIG_VALUE_{number}", value))
    }
    return {
        "GIT_DIR": "/workspace/.git" if inside else str(git_dir.resolve()),
        "GIT_WORK_TREE": "/workspace",
        "GIT_INDEX_FILE": _INDEX,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_COUNT": str(len(_SETTINGS)),
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_LAZY_FETCH": "1",
        **settings,
    }


def _stores(git_dir: Path, root: Path) -> list[Path]:
    """The git directory when it lies beside the workspace, and the object stores that our own one borrows.

    One that lies in the workspace was perhaps written by the agent: what it says that it borrows is not shown.
    """
    if git_dir == root / ".git":
        return []
    try:
        lines = (git_dir / "objects" / "info" / "alternates").read_bytes().splitlines()
    except FileNotFoundError:
        lines = []
    return [git_dir, *(path for line in lines if (path := _unquote(line)).is_dir())]


def _unquote(line: bytes) -> Path:
    """Read a path as ``workspace.view.quote_alternate`` writes it."""
    text = line[1:-1] if line.startswith(b'"') and line.endswith(b'"') else line
    return Path(_ESCAPED.sub(lambda match: bytes([int(match.group(1), 8)]), text).decode("utf-8", "surrogateescape"))


def _target(arguments: RunGit) -> str:
    rest = [word for word in arguments.arguments if not word.startswith("-")]
    return "command:" + escape(" ".join(["git", arguments.command, *rest]))


GIT = make_tool(
    "git.run",
    RunGit,
    run_git,
    touch=_target,
    about="Read the history of the workspace's repository: log, show, diff, blame, grep, status and the like.",
    effect_class="read",
    may_repeat=True,
)
