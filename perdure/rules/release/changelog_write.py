"""Extending a Markdown changelog by one release. Everything that was there before stays, byte for byte."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from perdure.errors import UserError
from perdure.rules.release.changelog import Changelog, find_comments, read_changelog
from perdure.rules.release.changelog_links import extend_links
from perdure.rules.release.entries import Entry
from perdure.rules.release.markdown import write_sections

NEW_CHANGELOG = """# Changelog

All notable changes to this project are documented in this file.
The format is based on [Keep a Changelog](https://keepachangelog.com/en/1.1.0/).

## [Unreleased]
"""

_BOM = "\ufeff"


@dataclass(frozen=True)
class Release:
    """What a changelog needs to know of a release."""

    version: str
    tag: str
    last_tag: str
    date: str
    entries: Sequence[Entry]


def write_release(text: str, release: Release, *, path: str) -> tuple[str, str]:
    """Return (the changelog with a section for ``release``, finding). An empty ``text`` begins a new changelog.

    The section stands before the newest one; an ``[Unreleased]`` section is emptied (its entries are the release's by
    now) but keeps its heading and its comments.

    Raises:
        UserError: the version has a section already.
        ValueError: there are no entries; an empty section is never written.
    """
    if not release.entries:
        raise ValueError("a release without entries has no section")
    mark = _BOM if text.startswith(_BOM) else ""
    changelog = read_changelog(text.removeprefix(_BOM) or NEW_CHANGELOG)
    if any(section.version == release.version for section in changelog.versions):
        raise UserError(
            f"{path} has a section for {release.version} already. Choose another version, "
            "or move its entries under [Unreleased]."
        )
    newline = changelog.newline
    section = [line + newline for line in _write_section(changelog, release)]
    before, after = _split_place(changelog)
    lines = [*_end_with_blank(before, newline), *section, *_begin_with_blank(after, newline)]
    label = f"{changelog.style.v}{release.version}"
    lines, finding = extend_links(lines, label=label, tag=release.tag, last_tag=release.last_tag, newline=newline)
    return mark + "".join(lines), finding


def _write_section(changelog: Changelog, release: Release) -> list[str]:
    heading = changelog.style.write(release.version, release.date)
    return [heading, "", *write_sections(release.entries, level=changelog.style.level + 1, bullet=changelog.bullet)]


def _split_place(changelog: Changelog) -> tuple[list[str], list[str]]:
    """Return the lines before and after the place for a new section; the body of ``[Unreleased]`` is left out."""
    lines = changelog.lines
    if changelog.unreleased is not None:
        heading, end = changelog.unreleased
        comments = find_comments(lines[heading + 1 : end])
        return [*lines[: heading + 1], *([changelog.newline, *comments] if comments else [])], lines[end:]
    place = changelog.versions[0].start if changelog.versions else changelog.end_of_sections
    return lines[:place], lines[place:]


def _end_with_blank(lines: Sequence[str], newline: str) -> list[str]:
    ended = list(lines)
    if ended and not ended[-1].endswith("\n"):
        ended[-1] += newline
    return [*ended, newline] if ended and ended[-1].strip() else ended


def _begin_with_blank(lines: Sequence[str], newline: str) -> list[str]:
    return [newline, *lines] if lines and lines[0].strip() else list(lines)


def section_lines(text: str, version: str) -> list[str] | None:
    """Return the body's lines of a version's section; ``None`` when there is none."""
    changelog = read_changelog(text.removeprefix(_BOM))
    for section in changelog.versions:
        if section.version == version:
            return changelog.lines[section.start + 1 : section.end]
    return None
