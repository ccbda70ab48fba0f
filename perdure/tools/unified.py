"""Unified diffs as models write them: read leniently in form, applied exactly in content."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from perdure.errors import ToolFault

_HUNK = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")
_NO_END = "\\ No newline"


@dataclass
class Hunk:
    """One place of a file that changes."""

    line: int
    """Where its author thinks that it stands, from 1; 0: a new file."""
    most: int
    """Lines of the old file that its author counted."""
    parts: list[tuple[str, str]] = field(default_factory=list)
    """(sign, text) by line: `` `` stays, ``-`` goes, ``+`` comes."""
    ends_bare: bool = False
    """The last line that comes has no line end."""

    def old(self) -> list[str]:
        """The lines that must stand there."""
        return [text for sign, text in self.parts if sign != "+"]


@dataclass
class FilePatch:
    """What happens to one file."""

    path: str
    is_new: bool = False
    is_gone: bool = False
    executable: bool | None = None
    hunks: list[Hunk] = field(default_factory=list)


def parse_patch(text: str) -> list[FilePatch]:
    """Read a unified diff of one or more files.

    Raises:
        ToolFault: it is none; says which line is wrong and what was expected.
    """
    lines = text.rstrip("\n").split("\n")
    found: list[FilePatch] = []
    at, executable = 0, None
    while at < len(lines):
        line = lines[at]
        if line.startswith(("rename ", "copy ", "GIT binary patch", "Binary files ")):
            raise ToolFault(f"Line {at + 1} of the patch: {line[:40]!r} is not supported. Use files.write and remove.")
        if line.startswith(("new file mode ", "new mode ")):
            executable = line.endswith("755")
        if line.startswith("--- ") and at + 1 < len(lines) and lines[at + 1].startswith("+++ "):
            file = _begin(lines[at][4:], lines[at + 1][4:], at + 1)
            file.executable, executable = executable, None
            found.append(file)
            at += 2
            continue
        if line.startswith("@@"):
            if not found:
                raise ToolFault(f"Line {at + 1} of the patch: a hunk before any `--- a/file` and `+++ b/file`.")
            at = _read_hunk(lines, at, found[-1])
            continue
        at += 1
    if not found or any(not file.hunks and not file.is_gone for file in found):
        raise ToolFault("The patch changes nothing; expected `--- a/file`, `+++ b/file` and hunks `@@ -1,3 +1,4 @@`.")
    return found


def apply_patch(file: FilePatch, data: bytes) -> bytes:
    """Return the file's bytes after its hunks; line ends stay as they are in the file.

    Raises:
        ToolFault: a hunk's lines do not stand in the file, or stand in more than one place.
    """
    lines, ends = _split(data)
    moved = 0
    for number, hunk in enumerate(file.hunks, 1):
        old = hunk.old()
        at = _find(lines, old, hunk.line - 1 + moved, f"{file.path}, hunk {number}")
        new_lines, new_ends = _replace(hunk, lines, ends, at)
        lines[at : at + len(old)] = new_lines
        ends[at : at + len(old)] = new_ends
        moved = at - (hunk.line - 1) + len(new_lines) - len(old)
    return _join(lines, ends)


def _begin(old: str, new: str, line: int) -> FilePatch:
    names = [name.split("\t")[0].strip() for name in (old, new)]
    if any(name.startswith('"') for name in names):
        raise ToolFault(f"Line {line} of the patch: quoted names are not read. Use files.edit for that file.")
    plain = [name[2:] if name.startswith(prefix) else name for name, prefix in zip(names, ("a/", "b/"), strict=True)]
    is_new, is_gone = names[0] == "/dev/null", names[1] == "/dev/null"
    if not is_new and not is_gone and plain[0] != plain[1]:
        raise ToolFault(f"Line {line} of the patch: it renames {plain[0]!r}. Use files.write and files.remove.")
    return FilePatch(plain[0] if is_gone else plain[1], is_new, is_gone)


def _read_hunk(lines: list[str], at: int, file: FilePatch) -> int:
    """Read one hunk into ``file``; return the line behind it. Counts are only believed for blank lines at its end."""
    match = _HUNK.match(lines[at])
    if match is None:
        raise ToolFault(f"Line {at + 1} of the patch: {lines[at][:60]!r} is no hunk; expected @@ -1,3 +1,4 @@.")
    hunk = Hunk(int(match.group(1)), int(match.group(2) or 1))
    at += 1
    while at < len(lines) and not _is_head(lines, at):
        line = lines[at].removesuffix("\r")
        if line.startswith(_NO_END):
            hunk.ends_bare = bool(hunk.parts) and hunk.parts[-1][0] != "-"
        elif line and line[0] not in " -+":
            raise ToolFault(
                f"Line {at + 1} of the patch: {line[:40]!r} begins with none of ' ', '-', '+'. Lines that stay begin "
                "with a blank."
            )
        else:
            # Editors and models drop the blank of an empty line that stays.
            hunk.parts.append((line[:1] or " ", line[1:]))
        at += 1
    while len(hunk.old()) > hunk.most and hunk.parts[-1] == (" ", ""):
        hunk.parts.pop()
    file.hunks.append(hunk)
    return at


def _is_head(lines: list[str], at: int) -> bool:
    line = lines[at]
    is_file = line.startswith("--- ") and at + 1 < len(lines) and lines[at + 1].startswith("+++ ")
    return is_file or line.startswith(("@@", "diff --git "))


def _split(data: bytes) -> tuple[list[str], list[str]]:
    """Lines without their ends, and the ends. Bytes that are no UTF-8 survive as surrogates."""
    pieces = data.decode("utf-8", "surrogateescape").split("\n")
    lines = [piece.removesuffix("\r") for piece in pieces]
    ends = ["\r\n" if piece.endswith("\r") else "\n" for piece in pieces]
    if not lines[-1] and ends[-1] == "\n":
        return lines[:-1], ends[:-1]
    return [*lines[:-1], pieces[-1]], [*ends[:-1], ""]


def _join(lines: list[str], ends: list[str]) -> bytes:
    common = "\r\n" if ends.count("\r\n") > len(ends) // 2 else "\n"
    last = len(lines) - 1
    text = "".join(line + (end or ("" if at == last else common)) for at, (line, end) in enumerate(zip(lines, ends)))  # noqa: B905
    return text.encode("utf-8", "surrogateescape")


def _find(lines: list[str], old: list[str], near: int, where: str) -> int:
    """Where the old lines stand: where they are said to, else in the one place that there is."""
    if not old:
        return min(max(near, 0), len(lines)) if lines else 0
    if near >= 0 and lines[near : near + len(old)] == old:
        return near
    places = [at for at in range(len(lines) - len(old) + 1) if lines[at] == old[0] and lines[at : at + len(old)] == old]
    if len(places) == 1:
        return places[0]
    if places:
        shown = ", ".join(str(at + 1) for at in places[:10])
        raise ToolFault(f"{where}: its lines stand in {len(places)} places (lines {shown}). Add lines around them.")
    first = [at + 1 for at, line in enumerate(lines) if line.strip() == old[0].strip()][:5]
    hint = f" Its first line stands at {', '.join(map(str, first))}." if first else ""
    raise ToolFault(f"{where}: the lines that should stay or go do not stand in the file.{hint} Read it again.")


def _replace(hunk: Hunk, lines: list[str], ends: list[str], at: int) -> tuple[list[str], list[str]]:
    """The lines that come in their place; those that stay keep their own end, new ones take that of a neighbour."""
    new_lines: list[str] = []
    new_ends: list[str] = []
    place = at
    usual = next((end for end in ends[at : at + len(hunk.old())] if end), ends[0] if ends and ends[0] else "\n")
    for sign, text in hunk.parts:
        if sign != "-":
            new_lines.append(text)
            new_ends.append(ends[place] if sign == " " else usual)
        if sign != "+":
            place += 1
    reaches_end = at + len(hunk.old()) >= len(lines)
    if new_ends and reaches_end and hunk.parts[-1][0] != " ":
        new_ends[-1] = "" if hunk.ends_bare else usual
    return new_lines, new_ends
