"""``files.grep``: lines that match a regular expression, in a process that is ended when the pattern does not."""

from __future__ import annotations

import json
import os
import sys
from datetime import timedelta
from pathlib import Path

from pydantic import Field

from perdure.contracts.agent import ToolOutcome
from perdure.contracts.agent_ports import ToolContext
from perdure.errors import ToolFault
from perdure.tools import grep_child
from perdure.tools.base import Arguments, make_tool
from perdure.tools.output import give
from perdure.tools.places import place_of, target_of, workspace_of
from perdure.workspace.commands import Command, LimitMet, run_command

LIMIT = timedelta(seconds=20)
MOST = 500
_OUTPUT_BYTES = 2 << 20


class GrepFiles(Arguments):
    """Arguments of ``files.grep``."""

    pattern: str = Field(min_length=1, max_length=1000, description="A regular expression of Python, line by line.")
    within: str = Field(default=".", description="Folder or file to search.")
    paths: str = Field(default="**", max_length=300, description="Only files whose path matches: `**/*.py`.")
    literal: bool = Field(default=False, description="The pattern is plain text.")
    ignore_case: bool = False
    most: int = Field(default=100, ge=1, le=MOST, description="Matches to show.")


def grep_files(arguments: GrepFiles, context: ToolContext) -> ToolOutcome:
    """Give matching lines as ``path:number:text``, sorted by path; binary files are passed over."""
    place = place_of(arguments.within)
    asked = {
        **arguments.model_dump(),
        "root": str(workspace_of(context)),
        "within": os.fsdecode(place),
        "seconds": int(LIMIT.total_seconds()),
    }
    lines = _search(asked, context).decode("utf-8", "replace").split("\n")[:-1]
    notes = [line[1:] for line in lines if line.startswith(grep_child.NOTE)]
    found = [line for line in lines if not line.startswith(grep_child.NOTE)]
    count = f"{len(found)} matching line{'s' * (len(found) != 1)}"
    head = f"[{'; '.join([count, *notes])}]"
    return give(GREP.spec, context, "\n".join(found).encode(), head=head, summary=f"{count} of {arguments.pattern}")


def _search(asked: dict[str, object], context: ToolContext) -> bytes:
    """Run the child, isolated: nothing in the workspace or in our environment is imported by it."""
    argv = [sys.executable, "-I", "-m", grep_child.__name__]
    command = Command(
        argv,
        {},
        Path("/"),
        json.dumps(asked).encode(),
        min(LIMIT, context.limit),
        _OUTPUT_BYTES,
        tick=timedelta(seconds=0.2),
    )
    try:
        ended = run_command(command, watch=lambda _pgid: "was stopped." if context.is_stopped() else "")
    except LimitMet as met:
        raise ToolFault(f"The search {met.reason} {_SIMPLER}") from None
    if ended.code == grep_child.NOT_A_PATTERN:
        said = ended.stderr.decode("utf-8", "replace")
        raise ToolFault(f"{asked['pattern']!r} cannot be searched for: {said}. Set `literal` for plain text.")
    if ended.code < 0:
        raise ToolFault(f"The search used more time or memory than it may. {_SIMPLER}")
    if ended.code:
        raise ToolFault(f"The search failed: {ended.stderr.decode('utf-8', 'replace')[-300:]}")
    return ended.stdout


_SIMPLER = "Use a simpler pattern, `literal`, or fewer `paths`."


GREP = make_tool(
    "files.grep",
    GrepFiles,
    grep_files,
    touch=lambda arguments: target_of(arguments.within),
    about="Search the workspace's files for lines that match a regular expression.",
    effect_class="read",
    may_repeat=True,
)
