"""The link definitions at the end of a Keep a Changelog file: ``[1.3.0]: …/compare/v1.2.0...v1.3.0``."""

from __future__ import annotations

from collections.abc import Sequence

from perdure.rules.release.markdown_text import find_definitions

_RANGE = "..."


def move_link(url: str, *, tag: str, last_tag: str) -> str:
    """Return the new version's address from that of the last one; empty where its form is not understood.

    ``…/compare/v1.1.0...v1.2.0`` goes on from the last tag; ``…/releases/tag/v1.2.0`` names the new one.
    """
    start, middle, end = url.rpartition(_RANGE)
    base, slash, _ = start.rpartition("/")
    if middle:
        return f"{base}/{last_tag}{_RANGE}{tag}" if slash and last_tag and end == last_tag else ""
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
    versions = [(number, url) for number, name, url in defined if name.lstrip("v")[:1].isdigit()]
    chosen = pending or (versions[0] if versions else None)
    if chosen is None:
        return list(lines), ""
    number, url = chosen
    start, middle, _ = url.rpartition(_RANGE)
    base, slash, old = start.rpartition("/")
    if not middle or not slash or (pending and last_tag and old != last_tag):
        return list(lines), f"The link [{label}] was not written: {url} has no known form."
    written = list(lines)
    definition = f"[{label}]: {base}/{last_tag or old}{_RANGE}{tag}{newline}"
    if pending:
        written[number] = written[number].replace(f"{old}{_RANGE}", f"{tag}{_RANGE}", 1)
        if not written[number].endswith("\n"):
            written[number] += newline
    written.insert(number + 1 if pending else number, definition)
    return written, ""
