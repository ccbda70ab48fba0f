"""What a reviewer may change in a release: every edit is judged before it is recorded, in the words of the rule."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from perdure.contracts.base import JsonDict
from perdure.contracts.changelog import SECTIONS
from perdure.rules.git_history import NAME as HISTORY
from perdure.rules.release.bump import Last, find_illegal
from perdure.rules.release.edits import OPERATIONS, find_ids
from perdure.rules.release.entries import Entry, clean_text, find_section, read_entries
from perdure.rules.release.results import find_value
from perdure.rules.release.tags import parse_tag_form
from perdure.rules.release.type_map import find_map_problems
from perdure.rules.release.versions import find_scheme


def find_edit_problems(changes: JsonDict, release: JsonDict, results: JsonDict) -> list[str]:
    """Return why edits cannot be made in a ``release.propose`` value, one sentence each; empty when they can.

    ``results``: all that the plan was made from; the history in it says which versions are taken.
    """
    problems = [*_judge_version(changes.get("version"), release, results)]
    operations = changes.get("entries") or []
    if not isinstance(operations, list):
        return [*problems, f"entries={operations!r} is no list of changes, such as {{op: drop, id: a41c9e0}}."]
    problems += find_map_problems(changes["map"]) if changes.get("map") else []
    entries, sections, remembered = read_entries(release), list_sections(release), list_remembered(release)
    return [*problems, *(problem for one in operations for problem in judge_change(one, entries, sections, remembered))]


def list_remembered(release: JsonDict) -> list[str]:
    """What may be forgotten: ids of entries, ``version``, and lines of the type map that people settled."""
    return list(dict.fromkeys([*(one["id"] for one in release.get("remembered", [])), *release.get("settled", [])]))


def list_sections(release: JsonDict) -> list[str]:
    """The sections that an entry may stand under: the common ones, and those of the project's own changelog."""
    own = [*(entry["section"] for entry in release["entries"]), *(release["changelog"] or {}).get("sections", [])]
    return list(dict.fromkeys([*SECTIONS, *map(find_section, own)]))


def _judge_version(version: Any, release: JsonDict, results: JsonDict) -> Iterator[str]:
    history = find_value(results.get("gather"), HISTORY)
    if version is None or history is None:
        return
    taken = [*history["tags"], *(ref.removeprefix("refs/tags/") for ref in history["remote_refs"])]
    last, form = Last(history["last_version"]), parse_tag_form(history["tag_form"])
    problem = find_illegal(str(version).strip(), last, taken, form, find_scheme(release["scheme"]))
    if problem:
        yield problem


def judge_change(
    change: Any, entries: list[Entry], sections: list[str], remembered: Sequence[str] = ()
) -> Iterator[str]:
    """Give what is wrong with one change of the entries."""
    change = change if isinstance(change, dict) else {}
    op, wanted = str(change.get("op", "")), str(change.get("id", ""))
    if op not in OPERATIONS:
        yield f"{op!r} is no edit of an entry; expected one of {', '.join(OPERATIONS)}."
        return
    if op == "forget":
        yield from _judge_forgotten(wanted, remembered)
    elif op != "add":
        yield from _judge_id(wanted, [entry.id for entry in entries])
    if op in ("reword", "add") and not clean_text(str(change.get("text") or "")):
        yield f"The {op} gives no text."
    if op in ("move", "add"):
        yield from _judge_section(str(change.get("section") or ""), sections)


def _judge_id(wanted: str, known: list[str]) -> Iterator[str]:
    found = find_ids(known, wanted)
    if not found:
        yield f"No entry has the id {wanted!r}; expected one of {', '.join(known) or 'none: there are no entries'}."
    elif len(found) > 1:
        yield f"Several entries have an id like {wanted!r}: {', '.join(known[place] for place in found)}. Give more."


def _judge_forgotten(wanted: str, known: Sequence[str]) -> Iterator[str]:
    if not find_ids(known, wanted):
        told = f"Nothing is remembered of {wanted!r}; expected one of {', '.join(known) or 'none: nothing is'}."
        yield f"{told} A line of the type map that was only learnt is refused by setting another step."


def _judge_section(section: str, sections: list[str]) -> Iterator[str]:
    if find_section(section) not in sections:
        yield f"{section!r} is no section of this changelog; expected one of {', '.join(sections)}."
