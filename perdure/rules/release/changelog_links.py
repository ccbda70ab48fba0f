"""Links of a Keep a Changelog file: ``[1.3.0]: …/compare/v1.2.0...v1.3.0`` at its end, or in a heading."""

from __future__ import annotations

import re
from collections.abc import Sequence

from perdure.rules.release.markdown_text import find_definitions

_RANGE = re.compile(r"(?P<base>.*/)(?P<old>[^/]*?)(?P<dots>\.{2,3})(?P<new>[^/]+)")
_VERSION_LABEL = re.compile(r"v?\d+\.\d.*")


def move_link(url: str, *, tag: str, last_tag: str) -> str:
    """Return the new version's address from that of the last one; empty where its form is not understood.

    ``…/compare/v1.1.0...v1.2.0`` goes on from the last tag; ``…/releases/tag/v1.2.0`` names the new one.
    """
    match = _RANGE.fullmatch(url)
    if match:
        is_known = bool(last_tag) and match["new"] == last_tag
        return f"{match['base']}{last_tag}{match['dots']}{tag}" if is_known else ""
    base, slash, end = url.rpartition("/")
    return f"{base}/{tag}" if slash and last_tag and end == last_tag else ""


def extend_links(lines: Sequence[str], *, label: str, tag: str, last_tag: str, newline: str) -> tuple[list[str], str]:
    """Return (lines with the new version's definition, finding).

    ``[Unreleased]`` moves on to ``tag``; ``label`` is defined from ``last_tag`` to ``tag`` in the same form. Files
    without such definitions stay as they are. Where the form is not understood nothing is written, and the finding says
    so.
    """
    defined = find_definitions(lines)
    if any(name.lower() == label.lower() for _, name, _ in defined):
        return list(lines), ""
    pending = next(((number, url) for number, name, url in defined if name.lower() == "unreleased"), None)
    newest = next(((number, url) for number, name, url in defined if _VERSION_LABEL.fullmatch(name)), None)
    if pending:
        match = _RANGE.fullmatch(pending[1])
        if match and (not last_tag or match["old"] == last_tag):
            return _move_pending(lines, pending[0], match, f"[{label}]: ", tag, newline), ""
    elif newest:
        match = _RANGE.fullmatch(newest[1])
        if match:
            start = f"[{label}]: {match['base']}{last_tag or match['new']}{match['dots']}{tag}{newline}"
            return [*lines[: newest[0]], start, *lines[newest[0] :]], ""
    chosen = pending or newest
    return list(lines), f"The link [{label}] was not written: {chosen[1]} has no known form." if chosen else ""


def _move_pending(
    lines: Sequence[str], number: int, match: re.Match[str], start: str, tag: str, newline: str
) -> list[str]:
    """``[Unreleased]`` compares with the new tag; what it compared with begins the new version's range."""
    old, dots = match["old"], match["dots"]
    moved = lines[number].replace(f"/{old}{dots}", f"/{tag}{dots}", 1)
    moved = moved if moved.endswith("\n") else moved + newline
    return [*lines[:number], moved, f"{start}{match['base']}{old}{dots}{tag}{newline}", *lines[number + 1 :]]
