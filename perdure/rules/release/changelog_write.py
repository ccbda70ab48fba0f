"""Extending a changelog by one release. Everything that was there before stays, byte for byte."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from perdure.errors import UserError
from perdure.rules.release.changelog import Changelog, read_changelog
from perdure.rules.release.changelog_items import find_kept, read_items
from perdure.rules.release.changelog_links import extend_links, move_link
from perdure.rules.release.changelog_markup import markup_named
from perdure.rules.release.entries import Entry

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
    left: Sequence[Entry] = ()
    """What stays under the heading of what is to come."""


def write_release(text: str, release: Release, *, path: str, form: str = "markdown") -> tuple[str, str]:
    """Return (the changelog with a section for ``release``, finding). An empty ``text`` begins a new changelog.

    ``form`` is the changelog's ``format``. The section stands beside the newest one: before it, or after it where the
    oldest comes first. A section of what is to come is emptied (its entries are the release's by now) but keeps its
    heading, comments, link definitions and what is ``left``; ``1.3.0 (unreleased)`` becomes the release's own.

    Raises:
        UserError: the version has a section already.
        ValueError: there are no entries; an empty section is never written.
    """
    if not release.entries:
        raise ValueError("a release without entries has no section")
    mark = _BOM if text.startswith(_BOM) else ""
    changelog = read_changelog(text.removeprefix(_BOM) or NEW_CHANGELOG, markup_named(form))
    if any(section.version == release.version for section in changelog.versions):
        raise UserError(
            f"{path} has a section for {release.version} already. Choose another version, "
            "or move its entries under [Unreleased]."
        )
    newline = changelog.newline
    section = [line + newline for line in _write_section(changelog, release)]
    before, after = _split_place(changelog, release.left)
    lines = [*_end_with_blank(before, newline), *section, *_begin_with_blank(after, newline)]
    finding = ""
    if changelog.markup.name == "markdown":
        label = f"{changelog.style.v}{release.version}"
        lines, finding = extend_links(lines, label=label, tag=release.tag, last_tag=release.last_tag, newline=newline)
    return mark + "".join(lines), finding


def _write_section(changelog: Changelog, release: Release) -> list[str]:
    link = move_link(changelog.style.link, tag=release.tag, last_tag=release.last_tag)
    lead, day_first = changelog.lead, changelog.day_first
    text = changelog.style.write(release.version, "" if lead else release.date, link=link, day_first=day_first)
    return [
        *changelog.markup.write_heading(text, changelog.like),
        "",
        *([lead.write(release.date, day_first=day_first), ""] if lead else []),
        *changelog.markup.write_body(release.entries, changelog.inner, changelog.bullet),
    ]


def _split_place(changelog: Changelog, left: Sequence[Entry]) -> tuple[list[str], list[str]]:
    """Return the lines before and after the place for a new section; the body of what is to come is left out."""
    lines, pending, versions = changelog.lines, changelog.unreleased, changelog.versions
    if pending is not None:
        stays = find_kept(lines[pending.body : pending.end], changelog.markup)
        kept = [changelog.newline, *stays] if stays else []
        kept += _write_left(changelog, left)
        if not pending.keeps_heading:
            return lines[: pending.start], [*kept, *lines[pending.end :]]
        if changelog.is_oldest_first and pending.start > versions[-1].start:
            return lines[: pending.start], [*lines[pending.start : pending.body], *kept, *lines[pending.end :]]
        return [*lines[: pending.body], *kept], lines[pending.end :]
    if versions:
        place = versions[-1].end if changelog.is_oldest_first else versions[0].start
    else:
        place = changelog.start_mark if changelog.start_mark >= 0 else changelog.end_of_sections
    return lines[:place], lines[place:]


def _write_left(changelog: Changelog, left: Sequence[Entry]) -> list[str]:
    body = changelog.markup.write_body(left, changelog.inner, changelog.bullet) if left else []
    return [line + changelog.newline for line in ["", *body]] if body else []


def _end_with_blank(lines: Sequence[str], newline: str) -> list[str]:
    ended = list(lines)
    if ended and not ended[-1].endswith("\n"):
        ended[-1] += newline
    return [*ended, newline] if ended and ended[-1].strip() else ended


def _begin_with_blank(lines: Sequence[str], newline: str) -> list[str]:
    return [newline, *lines] if lines and lines[0].strip() else list(lines)


def section_lines(text: str, version: str, form: str = "markdown") -> list[str] | None:
    """Return the body's lines of a version's section; ``None`` when there is none."""
    changelog = read_changelog(text.removeprefix(_BOM), markup_named(form))
    for section in changelog.versions:
        if section.version == version:
            return changelog.lines[section.body : section.end]
    return None


def section_items(text: str, version: str, form: str) -> list[tuple[str, str]] | None:
    """Return (section, text) of the items in a version's section; ``None`` when there is none."""
    lines = section_lines(text, version, form)
    return None if lines is None else read_items(lines, markup_named(form))
