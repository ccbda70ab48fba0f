"""``files.glob``: which files there are, beneath the workspace's root, following no link."""

from __future__ import annotations

from pydantic import Field

from perdure.contracts.agent import ToolOutcome
from perdure.contracts.agent_ports import ToolContext
from perdure.contracts.base import path_text
from perdure.errors import ToolFault
from perdure.policy.patterns import glob_matches
from perdure.tools.base import Arguments, make_tool
from perdure.tools.output import give
from perdure.tools.places import explained, place_of, target_of, workspace_of
from perdure.workspace.reading import Found, walk

MOST_SEEN = 200_000
MOST_GIVEN = 1000


class GlobFiles(Arguments):
    """Arguments of ``files.glob``."""

    pattern: str = Field(default="**", max_length=300, description="`**/*.py`, `src/*`; `**` stands for any folders.")
    within: str = Field(default=".", description="Folder to look in; the pattern is relative to it.")
    folders: bool = Field(default=False, description="Folders too, with a `/` behind them.")


def glob_files(arguments: GlobFiles, context: ToolContext) -> ToolOutcome:
    """List what matches, sorted by path, with the size of files."""
    start = place_of(arguments.within)
    lines: list[str] = []
    note = ""
    with explained():
        for found in walk(workspace_of(context), start, most=MOST_SEEN):
            if context.is_stopped():
                raise ToolFault("The search was stopped.")
            if found.kind == "cut":
                note = f"; only the first {MOST_SEEN} entries were looked at"
            elif _is_wanted(found, arguments, start):
                lines.append(_line(found))
    count = len(lines)
    more = f", the first {MOST_GIVEN} are shown" if count > MOST_GIVEN else ""
    head = f"[{count} match{'es' * (count != 1)} {arguments.pattern}{more}{note}]"
    data = "\n".join(lines[:MOST_GIVEN]).encode("utf-8", "replace")
    return give(GLOB.spec, context, data, head=head, summary=f"{count} paths match {arguments.pattern}")


def _is_wanted(found: Found, arguments: GlobFiles, start: bytes) -> bool:
    if found.kind == "folder" and not arguments.folders:
        return False
    path = found.path[len(start) + 1 :] if start else found.path
    return glob_matches(arguments.pattern, path_text(path))


def _line(found: Found) -> str:
    path = path_text(found.path)
    return {"folder": f"{path}/", "link": f"{path} (link)", "other": f"{path} (no file)"}.get(
        found.kind, f"{path} {found.size}"
    )


GLOB = make_tool(
    "files.glob",
    GlobFiles,
    glob_files,
    touch=lambda arguments: target_of(arguments.within),
    about="List files of the workspace whose path matches a pattern, with their sizes.",
    effect_class="read",
    may_repeat=True,
)
