"""``files.patch``: a unified diff over several files; all of it fits or nothing is written."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import Field

from perdure.contracts.agent import ToolOutcome
from perdure.contracts.agent_ports import ToolContext
from perdure.errors import ToolFault
from perdure.tools.base import Arguments, make_tool
from perdure.tools.files_write import RemoveFile, look, put, remove_file
from perdure.tools.places import place_of, target_of
from perdure.tools.unified import FilePatch, apply_patch, parse_patch
from perdure.workspace.beneath import Entry


class PatchFiles(Arguments):
    """Arguments of ``files.patch``."""

    patch: str = Field(min_length=1, max_length=2_000_000, description="A unified diff with paths in the workspace.")


@dataclass(frozen=True)
class _Step:
    """One file's change, computed and not yet written."""

    file: FilePatch
    place: bytes
    found: Entry | None
    data: bytes

    @property
    def mode(self) -> str:
        if self.file.executable is None:
            return self.found.mode if self.found else "100644"
        return "100755" if self.file.executable else "100644"


def patch_files(arguments: PatchFiles, context: ToolContext) -> ToolOutcome:
    """Apply a patch: every hunk is placed before the first file is written."""
    steps = [_prepare(file, context) for file in parse_patch(arguments.patch)]
    if len({step.place for step in steps}) < len(steps):
        raise ToolFault("The patch names a file twice; write all hunks of a file under one `---`/`+++`.")
    told: list[str] = []
    for step in steps:
        try:
            done = _write(step, context)
        except ToolFault as fault:
            written = f" Written before: {'; '.join(told)}." if told else ""
            raise ToolFault(f"{fault.message}{written}") from None
        told.append(done.text.removesuffix("."))
    summary = f"patched {len(steps)} file{'s' * (len(steps) != 1)}"
    return ToolOutcome(status="ok", text="\n".join(told), summary=summary, changed=True)


def _prepare(file: FilePatch, context: ToolContext) -> _Step:
    place = place_of(file.path)
    found = look(place, context)
    if file.is_new and found is not None:
        raise ToolFault(f"{file.path!r} is there already; the patch makes it anew. Nothing was changed.")
    if found is None and not file.is_new:
        raise ToolFault(f"{file.path!r} is not in the workspace. Nothing was changed. A new file is `--- /dev/null`.")
    data = apply_patch(file, found.data if found else b"")
    if file.is_gone and file.hunks and data:
        raise ToolFault(f"{file.path!r} holds more than the patch takes away, so it is not removed.")
    return _Step(file, place, found, data)


def _write(step: _Step, context: ToolContext) -> ToolOutcome:
    if step.file.is_gone:
        return remove_file(RemoveFile(path=step.file.path), context)
    return put(step.place, step.found, step.mode, step.data, context)


def _targets(arguments: PatchFiles) -> str:
    return "\n".join(sorted({target_of(file.path) for file in parse_patch(arguments.patch)}))


PATCH = make_tool(
    "files.patch",
    PatchFiles,
    patch_files,
    touch=_targets,
    about="Apply a unified diff to files of the workspace. Lines that stay or go must stand there exactly.",
    effect_class="workspace",
)
