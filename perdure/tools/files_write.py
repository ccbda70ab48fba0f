"""``files.write``, ``files.edit``, ``files.remove``: whole files and exact edits, only over what was read just now."""

from __future__ import annotations

from pydantic import Field

from perdure.contracts.agent import ToolOutcome
from perdure.contracts.agent_ports import ToolContext
from perdure.contracts.base import path_text
from perdure.errors import ToolFault
from perdure.tools.base import Arguments, make_tool
from perdure.tools.places import explained, place_of, refuse_foreign, target_of, workspace_of
from perdure.workspace.beneath import Entry, read_entry, remove_entry, write_entry
from perdure.workspace.reading import find_entry

LARGEST_BYTES = 8 << 20
"""A file that is edited is held in memory."""

_TEXT_LIMIT = 2_000_000
_REGULAR = ("100644", "100755")


class WriteFile(Arguments):
    """Arguments of ``files.write``."""

    path: str = Field(description="In the workspace, relative.")
    content: str = Field(max_length=_TEXT_LIMIT, description="All of the file.")
    executable: bool | None = Field(default=None, description="Leave out to keep a file's mode; new files are not.")


class Edit(Arguments):
    """One exact replacement."""

    old: str = Field(min_length=1, max_length=_TEXT_LIMIT, description="Text as it stands in the file, exactly.")
    new: str = Field(max_length=_TEXT_LIMIT)
    all: bool = Field(default=False, description="Every occurrence; else there must be exactly one.")


class EditFile(Arguments):
    """Arguments of ``files.edit``."""

    path: str = Field(description="In the workspace, relative.")
    edits: list[Edit] = Field(min_length=1, max_length=100, description="One after the other; all or none happen.")


class RemoveFile(Arguments):
    """Arguments of ``files.remove``."""

    path: str = Field(description="In the workspace, relative; a file or a link.")


def write_file(arguments: WriteFile, context: ToolContext) -> ToolOutcome:
    """Put a file in place, whole."""
    place = place_of(arguments.path)
    found = look(place, context)
    mode = found.mode if found else "100644"
    if arguments.executable is not None:
        mode = "100755" if arguments.executable else "100644"
    return put(place, found, mode, arguments.content.encode("utf-8", "surrogateescape"), context)


def edit_file(arguments: EditFile, context: ToolContext) -> ToolOutcome:
    """Replace exact texts in one file."""
    place = place_of(arguments.path)
    found = look(place, context)
    if found is None:
        raise ToolFault(f"{arguments.path!r} is not in the workspace. Make it with files.write.")
    data = found.data
    for number, edit in enumerate(arguments.edits, 1):
        data = apply_edit(data, edit, f"{arguments.path}, edit {number}")
    return put(place, found, found.mode, data, context)


def apply_edit(data: bytes, edit: Edit, where: str) -> bytes:
    """Return ``data`` with one edit made. Raises ``ToolFault`` saying where the text stands, or what is near."""
    old, new = edit.old.encode(), edit.new.encode()
    count = data.count(old)
    if count == 1 or (count and edit.all):
        return data.replace(old, new)
    if count:
        places = ", ".join(str(line) for line in _lines_of(data, old)[:10])
        raise ToolFault(
            f"{where}: `old` stands {count} times (lines {places}); nothing was changed. Take more of the text around "
            "it, or set `all`."
        )
    raise ToolFault(f"{where}: `old` does not stand in the file; nothing was changed. {_hint(data, edit.old)}")


def remove_file(arguments: RemoveFile, context: ToolContext) -> ToolOutcome:
    """Remove a file or a link; a link's target stays."""
    place = place_of(arguments.path)
    refuse_foreign(place, context)
    with explained():
        found = read_entry(workspace_of(context), place)
        if found is None:
            raise ToolFault(f"{arguments.path!r} is not in the workspace.")
        if found.mode == "other":
            raise ToolFault(f"{arguments.path!r} is a folder or no plain file. Remove the files in it one by one.")
        if not remove_entry(workspace_of(context), place, expected=found):
            raise ToolFault(f"{arguments.path!r} was changed just now by something else; it was left. Read it again.")
    return ToolOutcome(
        status="ok", text=f"Removed {arguments.path}.", summary=f"removed {arguments.path}", changed=True
    )


def probe_write(arguments: WriteFile, context: ToolContext) -> ToolOutcome | None:
    """Look whether the file is as it was to be written."""
    found = look(place_of(arguments.path), context)
    is_done = found is not None and found.data == arguments.content.encode("utf-8", "surrogateescape")
    return _tell(arguments.path, "written", done=is_done)


def probe_edit(arguments: EditFile, context: ToolContext) -> ToolOutcome | None:
    """Look whether all edits are made or none is; nothing can be told where one could be made twice over."""
    found = look(place_of(arguments.path), context)
    if found is None or any(edit.old in edit.new or edit.new in edit.old for edit in arguments.edits):
        return None
    texts = [(edit.old.encode() in found.data, edit.new.encode() in found.data) for edit in arguments.edits]
    if all(new and not old for old, new in texts):
        return _tell(arguments.path, "edited", done=True)
    return _tell(arguments.path, "edited", done=False) if all(old and not new for old, new in texts) else None


def probe_remove(arguments: RemoveFile, context: ToolContext) -> ToolOutcome | None:
    """Look whether the file is gone."""
    with explained():
        return _tell(
            arguments.path, "removed", done=find_entry(workspace_of(context), place_of(arguments.path)) is None
        )


def _tell(path: str, what: str, *, done: bool) -> ToolOutcome:
    if done:
        return ToolOutcome(status="ok", text=f"{path} was {what}.", summary=f"{what} {path}"[:300], changed=True)
    text = f"{path} was not {what}: the call ended before. Call again."
    return ToolOutcome(status="error", text=text, summary=f"{path} was not {what}"[:300])


def look(place: bytes, context: ToolContext) -> Entry | None:
    """Return what lies at a place that may be changed, ``None`` when nothing does.

    Raises:
        ToolFault: it may not be changed, is no plain file or too large.
    """
    refuse_foreign(place, context)
    root = workspace_of(context)
    with explained():
        lies = find_entry(root, place)
        if lies is not None and lies.size > LARGEST_BYTES:
            raise ToolFault(f"{path_text(place)!r} is larger than {LARGEST_BYTES >> 20} MB; change it with a command.")
        found = read_entry(root, place)
    if found is not None and found.mode not in _REGULAR:
        what = "a link" if found.mode == "120000" else "a folder or no plain file"
        raise ToolFault(f"{path_text(place)!r} is {what} and is not written to; links are not followed.")
    return found


def put(place: bytes, found: Entry | None, mode: str, data: bytes, context: ToolContext) -> ToolOutcome:
    """Write over what was found just now, in one step."""
    path = path_text(place)
    if found is not None and (found.data, found.mode) == (data, mode):
        return ToolOutcome(status="ok", text=f"{path} holds exactly that already.", summary=f"{path} unchanged")
    with explained():
        if not write_entry(workspace_of(context), place, mode, data, expected=found):
            raise ToolFault(f"{path!r} was changed just now by something else; nothing was written. Read it again.")
    done = "Wrote" if found is None else "Changed"
    lines = data.count(b"\n")
    text = f"{done} {path}: {len(data)} bytes, {lines} line end{'s' * (lines != 1)}."
    return ToolOutcome(status="ok", text=text, summary=f"{done.lower()} {path}"[:300], changed=True)


def _lines_of(data: bytes, text: bytes) -> list[int]:
    found: list[int] = []
    at = data.find(text)
    while at >= 0 and len(found) < 10:
        found.append(data.count(b"\n", 0, at) + 1)
        at = data.find(text, at + 1)
    return found


def _hint(data: bytes, old: str) -> str:
    """Say where the text stands but for blanks, or where its first line does."""
    wanted = [line.strip() for line in old.splitlines() if line.strip()]
    lines = [line.strip() for line in data.decode("utf-8", "replace").splitlines()]
    first = wanted[0] if wanted else ""
    near = [number for number, line in enumerate(lines, 1) if first and line == first][:5]
    if not near:
        return "Read the file and copy the text from it."
    same = [at for at in near if [line for line in lines[at - 1 :] if line][: len(wanted)] == wanted]
    what = "It stands there with other blanks or line ends" if same else "Its first line stands there"
    return f"{what}: line {', '.join(map(str, same or near))}. Read those lines and copy them exactly."


WRITE = make_tool(
    "files.write",
    WriteFile,
    write_file,
    look=probe_write,
    touch=lambda arguments: target_of(arguments.path),
    about="Write a whole file of the workspace; missing folders are made.",
    effect_class="workspace",
    may_repeat=True,
)
EDIT = make_tool(
    "files.edit",
    EditFile,
    edit_file,
    look=probe_edit,
    touch=lambda arguments: target_of(arguments.path),
    about="Replace exact pieces of text in a file of the workspace.",
    effect_class="workspace",
)
REMOVE = make_tool(
    "files.remove",
    RemoveFile,
    remove_file,
    look=probe_remove,
    touch=lambda arguments: target_of(arguments.path),
    about="Remove a file of the workspace.",
    effect_class="workspace",
)
