"""Entries: what a release says changed. One computed set feeds both the version and the changelog."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from perdure.contracts.base import JsonDict
from perdure.contracts.changelog import SECTIONS
from perdure.rules.release.versions import Bump

_CONTROLS = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]+")


@dataclass(frozen=True)
class Entry:
    """One line of a release."""

    id: str
    """Short commit id, or ``u-``/``r-`` and six hex digits for what a person wrote (before, in the review)."""
    section: str
    text: str
    """Without bullet, scope and source. May have several lines when a person wrote it so."""
    sources: tuple[str, ...]
    """Short commit ids, or "CHANGELOG.md [Unreleased]", or "review: <who>". Never empty."""
    bump: Bump
    """How far this entry alone moves the version."""
    scope: str = ""
    breaking: bool = False
    reason: str = ""
    """The evidence as it was written: ``feat: bulk import``."""
    edited_by: str = ""
    rule: str = ""
    """File and key of the project's settings that say how far it moves the version; empty when none do."""

    def to_json(self) -> JsonDict:
        """Return plain JSON; inverse of :func:`read_entry`."""
        return {
            "id": self.id,
            "section": self.section,
            "text": self.text,
            "scope": self.scope,
            "breaking": self.breaking,
            "sources": list(self.sources),
            "bump": self.bump,
            "reason": self.reason,
            "edited_by": self.edited_by,
            "rule": self.rule,
        }


def read_entry(value: JsonDict) -> Entry:
    """Return the entry that :meth:`Entry.to_json` wrote."""
    fields: dict[str, Any] = {**value, "sources": tuple(value["sources"])}
    return Entry(**fields)


def read_entries(release: JsonDict) -> list[Entry]:
    """Return the entries of a ``release.propose`` value, in order."""
    return [read_entry(value) for value in release["entries"]]


def clean_text(text: str) -> str:
    """Drop control characters (an escape sequence has no place in a changelog) and outer blanks; keep lines."""
    if text.isprintable():  # nearly every text, and there may be hundreds of thousands: one line, no controls
        return text.strip()
    lines = [_CONTROLS.sub(" ", line).rstrip() for line in text.replace("\r\n", "\n").split("\n")]
    return "\n".join(lines).strip()


def find_section(name: str) -> str:
    """Return the known section of that name in any case, or the name itself on one line; empty becomes ``Other``."""
    line = " ".join(clean_text(name).split()).lstrip("# ")
    known = {section.lower(): section for section in SECTIONS}
    return known.get(line.lower(), line) or "Other"


def group_by_section(entries: Iterable[Entry]) -> list[tuple[str, list[Entry]]]:
    """Return (section, its entries) in the order of ``SECTIONS``; breaking entries first, else the order given."""
    grouped: dict[str, list[Entry]] = {}
    for entry in entries:
        grouped.setdefault(entry.section, []).append(entry)
    order = {section: place for place, section in enumerate(SECTIONS)}
    names = sorted(grouped, key=lambda name: (order.get(name, len(order)), name))
    return [(name, sorted(grouped[name], key=lambda entry: not entry.breaking)) for name in names]
