"""How a release's entries read in Markdown: the changelog's section and the notes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from perdure.rules.release.entries import Entry, group_by_section

BREAKING_MARK = "**Breaking:**"


def write_sections(entries: Iterable[Entry], *, level: int = 3, bullet: str = "-") -> list[str]:
    """Return the lines of all sections (headings of ``level``, a bullet an entry), without a blank line at the end."""
    lines: list[str] = []
    for section, members in group_by_section(entries):
        lines += ["", f"{'#' * level} {section}", ""] if lines else [f"{'#' * level} {section}", ""]
        for entry in members:
            lines += write_entry(entry, bullet)
    return lines


def write_entry(entry: Entry, bullet: str = "-") -> list[str]:
    """Return the lines of one entry: ``- **Breaking:** **scope:** text (a41c9e0)``; later lines are indented."""
    first, *rest = entry.text.split("\n") or [""]
    marks = [BREAKING_MARK] if entry.breaking else []
    marks += [f"**{entry.scope}:**"] if entry.scope else []
    commits = commit_sources(entry)
    lines = [" ".join([bullet, *marks, first]), *rest]
    if commits:
        lines[0] += f" ({', '.join(commits)})"
    indent = " " * (len(bullet) + 1)
    return [lines[0], *(f"{indent}{line}" if line else "" for line in lines[1:])]


def commit_sources(entry: Entry) -> list[str]:
    """The sources of an entry that are commits; what a person wrote needs no reference."""
    return [source for source in entry.sources if " " not in source]


def write_notes(title: str, entries: Sequence[Entry]) -> str:
    """Return the release notes: a title line that ``git tag -n`` shows, then the sections."""
    return "\n".join([title, "", *write_sections(entries)]).rstrip() + "\n"
