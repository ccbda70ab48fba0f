"""A reviewer's hand on a release: another version; entries reworded, moved, dropped or added."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from perdure.contracts.base import JsonDict
from perdure.contracts.decisions import Edits
from perdure.rules.release.entries import Entry, clean_text, find_section
from perdure.rules.release.evidence import made_id
from perdure.rules.release.versions import Bump

OPERATIONS = ("reword", "move", "drop", "add", "forget")
"""``forget`` takes back what is remembered of earlier reviews: of an entry, of the version, of the type map."""

_LEAST_ID = 4


@dataclass
class Edited:
    """Entries after all edits, and the version that was asked for last."""

    entries: list[Entry]
    version: str = ""
    version_by: str = ""
    findings: list[str] = field(default_factory=list)
    """Edits that could not be made, each with the reason: a job does not fail for a typing error in a review."""


def apply_edits(entries: Sequence[Entry], edits: Sequence[Edits]) -> Edited:
    """Apply edits oldest first; a later one wins. Every edit that cannot be made becomes a finding.

    What they forget was never applied to ``entries``.
    """
    edited = Edited(list(entries))
    for edit in edits:
        version = edit.changes.get("version")
        if version:
            edited.version, edited.version_by = str(version).strip(), edit.by
        for change in edit.changes.get("entries") or []:
            if not isinstance(change, dict) or change.get("op") != "forget":
                _apply(edited, change, edit.by)
    return edited


def _apply(edited: Edited, change: Any, by: str) -> None:
    change = change if isinstance(change, dict) else {}
    op, wanted = str(change.get("op", "")), str(change.get("id", ""))
    if op == "add":
        _add(edited, change, by)
        return
    places = find_ids([entry.id for entry in edited.entries], wanted)
    if op not in ("reword", "move", "drop") or len(places) != 1:
        edited.findings.append(_explain(edited.entries, op, wanted, len(places), by))
    elif op == "drop":
        del edited.entries[places[0]]
    else:
        _change(edited, places[0], op, change, by)


def _change(edited: Edited, place: int, op: str, change: JsonDict, by: str) -> None:
    entry = edited.entries[place]
    value = clean_text(str(change.get("text" if op == "reword" else "section") or ""))
    if not value:
        edited.findings.append(f"The {op} of entry {entry.id!r} by {by} was skipped: it gives no new text or section.")
        return
    fields: dict[str, Any] = {"text": value} if op == "reword" else {"section": find_section(value)}
    edited.entries[place] = replace(entry, **fields, edited_by=by)


def _add(edited: Edited, change: JsonDict, by: str) -> None:
    added = added_entry(str(change.get("section") or "Added"), str(change.get("text") or ""), by)
    if not added.text:
        edited.findings.append(f"An entry added by {by} was skipped: it has no text.")
    elif all(entry.id != added.id for entry in edited.entries):
        edited.entries.append(added)


def added_entry(section: str, text: str, by: str) -> Entry:
    """Return the entry that a reviewer adds; the same words give the same id in every round."""
    text, section = clean_text(text), find_section(section)
    bump: Bump = "minor" if section == "Added" else "patch"
    reason = f"{section}: {text.splitlines()[0]}" if text else section
    return Entry(added_id(section, text), section, text, (f"review: {by}",), bump, reason=reason, edited_by=by)


def added_id(section: str, text: str) -> str:
    """The id of an entry that a reviewer adds."""
    return made_id("r", find_section(section), clean_text(text))


def find_ids(known: Sequence[str], wanted: str) -> list[int]:
    """Positions of the ids that ``wanted`` names: the same, else those of which one begins the other."""
    exact = [place for place, one in enumerate(known) if one == wanted]
    if exact or len(wanted) < _LEAST_ID:
        return exact
    return [
        place
        for place, one in enumerate(known)
        if one.startswith(wanted) or (len(one) >= _LEAST_ID and wanted.startswith(one))
    ]


def _explain(entries: Sequence[Entry], op: str, wanted: str, found: int, by: str) -> str:
    if op not in ("reword", "move", "drop"):
        return f"An edit by {by} was skipped: {op!r} is not known. Expected reword, move, drop or add."
    known = ", ".join(entry.id for entry in entries)
    problem = "several entries begin so" if found else "there is no such entry"
    return f"The {op} of entry {wanted!r} by {by} was skipped: {problem}. Known entries: {known or 'none'}."
