"""Conventional Commits 1.0.0: a commit message to type, scope, description, body and footers.

Source of every rule: https://www.conventionalcommits.org/en/v1.0.0/ (numbers in comments are its items). One thing is
read more widely than it says: a line that begins with ``BREAKING CHANGE:`` counts wherever it stands in the body, for a
breaking change missed is worse than one too many.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

BREAKING_TOKENS = frozenset({"BREAKING CHANGE", "BREAKING-CHANGE"})  # item 16: the two are the same; upper case (15)

_HEADER = re.compile(r"(?P<type>[^\W_][\w-]*)(?:\((?P<scope>[^()\n]+)\))?(?P<mark>!)?: +(?P<text>\S.*)")
_FOOTER = re.compile(r"(?P<token>BREAKING CHANGE|[A-Za-z][A-Za-z0-9-]*)(?:: +| (?=#\S))(?P<value>.*)")
_BREAKING = re.compile(r"BREAKING[ -]CHANGE: *(?P<value>.*)")


@dataclass(frozen=True)
class Footer:
    """One footer: ``Reviewed-by: Z`` or ``Refs #133``."""

    token: str
    value: str
    """May hold newlines (item 10)."""


@dataclass(frozen=True)
class ConventionalCommit:
    """A message that follows the convention."""

    type: str
    """In lower case: types are not case sensitive (item 15)."""
    scope: str
    description: str
    body: str
    footers: tuple[Footer, ...]
    breaking: bool
    breaking_note: str
    """What breaks, in one line; empty when only ``!`` says so."""


def parse_conventional(message: str) -> ConventionalCommit | None:
    """Read a message; ``None`` when its first line is not ``type(scope)!: description``.

    Line ends may be ``\\n`` or ``\\r\\n``; blank lines before the first line are passed over. Never raises.
    """
    lines = message.replace("\r\n", "\n").strip("\n").split("\n")
    header = _HEADER.fullmatch(lines[0].strip())
    if header is None:
        return None
    body, footers = _split_body(lines[1:])
    note = _find_breaking_note(body, footers)
    return ConventionalCommit(
        type=header["type"].lower(),
        scope=(header["scope"] or "").strip(),
        description=header["text"].strip(),
        body="\n".join(body).strip(),
        footers=tuple(footers),
        breaking=bool(header["mark"]) or note is not None,
        breaking_note=note or "",
    )


def _split_body(lines: list[str]) -> tuple[list[str], list[Footer]]:
    """Split what follows the header: footers begin at the first line after a blank one that looks like one (item 8)."""
    for position, line in enumerate(lines):
        starts_paragraph = position > 0 and not lines[position - 1].strip()
        if starts_paragraph and _FOOTER.fullmatch(line):
            return lines[:position], _read_footers(lines[position:])
    return lines, []


def _read_footers(lines: list[str]) -> list[Footer]:
    """A footer's value goes on until the next line that begins one (item 10)."""
    found: list[tuple[str, list[str]]] = []
    for line in lines:
        start = _FOOTER.fullmatch(line)
        if start is not None:
            found.append((start["token"], [start["value"]]))
        else:
            found[-1][1].append(line)
    return [Footer(token, "\n".join(value).strip()) for token, value in found]


def _find_breaking_note(body: list[str], footers: list[Footer]) -> str | None:
    """The first breaking note, ``None`` when there is none: of the footers, else of a line that begins like one."""
    for footer in footers:
        if footer.token in BREAKING_TOKENS:
            return _first_paragraph(footer.value.split("\n"))
    for position, line in enumerate(body):
        start = _BREAKING.fullmatch(line.strip())
        if start is not None:
            return _first_paragraph([start["value"], *body[position + 1 :]])
    return None


def _first_paragraph(lines: list[str]) -> str:
    """Join the lines up to the first blank one (blank ones before any text are passed over)."""
    words: list[str] = []
    for line in lines:
        if line.strip():
            words.append(line.strip())
        elif words:
            break
    return " ".join(words)
