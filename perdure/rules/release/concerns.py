"""What reviewers said, as it concerns one package: releases of it alone and of several packages remember together.

An edit of several packages is read as one of each of them, in the form of a release of that package alone, so that
overrides and type maps know one form only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from perdure.contracts.base import JsonDict
from perdure.contracts.decisions import Edits
from perdure.contracts.memory import Memory, RememberedEdit
from perdure.rules.release.edits import find_ids
from perdure.rules.release.results import PROPOSE, PROPOSE_PACKAGES, find_value

_LINE = re.compile(r"(?P<line>[^\s:()]+(?:\([^()]*\))?)(?::(?P<package>\S+))?")


@dataclass(frozen=True)
class Place:
    """The package that a release is about."""

    path: str
    """Its folder; empty for the root."""
    id: str = ""
    """What ends the ids of its entries where it is one of several; empty where it is released alone."""
    name: str = ""

    def own(self, identifier: str) -> str:
        """Return an id as it is shown here: ``a41c9e0``, or ``a41c9e0:core`` of one package among several."""
        return f"{bare_id(identifier)}:{self.id}" if self.id else bare_id(identifier)

    def own_line(self, line: str) -> str:
        """Return a line of the type map as it is named here: ``feat(words):core`` of one package among several."""
        return f"{line}:{self.id}" if self.id else line

    def is_called(self, name: Any) -> bool:
        """Whether a reviewer's name or id of a package means this one."""
        return bool(name) and name in (self.id, self.name)


def bare_id(identifier: str) -> str:
    """Return an entry's id without its package: ``a41c9e0`` of ``a41c9e0:core``."""
    return identifier.partition(":")[0]


def split_line(key: str) -> tuple[str, str]:
    """Return (line of a type map, package) of ``feat(words):core``; without a package all of them are meant.

    Both are empty where it has not that form.
    """
    match = _LINE.fullmatch(key)
    return (match["line"], match["package"] or "") if match else ("", "")


def concern_memory(memory: Memory, place: Place) -> Memory:
    """Return what is remembered of a package, ids as they are shown here, whichever kind of release it was said of."""
    edits = [narrowed for edit in memory.edits if (narrowed := _narrow(edit, place))]
    return Memory(edits=edits, confirmed=memory.confirmed)


def concern_edits(edits: Sequence[Edits], place: Place) -> list[Edits]:
    """Return this job's edits as they concern a package; ids stay as they were typed."""
    if not place.id:
        return list(edits)
    return [Edits(by=edit.by, changes=_concern(edit.changes, place, _keep)) for edit in edits]


def _narrow(edit: RememberedEdit, place: Place) -> RememberedEdit | None:
    alone, several = find_value(edit.seen, PROPOSE), find_value(edit.seen, PROPOSE_PACKAGES)
    if alone is not None and alone["path"] == place.path:
        return edit.model_copy(update={"seen": {"release": _own_ids(alone, place)}})
    there = next((one for one in (several or {}).get("known", []) if one["path"] == place.path), None)
    if several is None or there is None:
        return None
    then = Place(place.path, there["id"], there["name"])
    seen = _view(several, then)
    known = [*(one["id"] for one in several["entries"]), *(one["id"] for one in several["remembered"])]
    changes = _concern(edit.changes, then, lambda change: _resolve(change, known, then, place))
    return edit.model_copy(update={"changes": changes, "seen": {"release": _own_ids(seen, place)}})


def _view(several: JsonDict, place: Place) -> JsonDict:
    """One package of a ``release.propose_packages`` value as a ``release.propose`` value says it."""
    known = next(one for one in several["known"] if one["path"] == place.path)
    nothing: JsonDict = {"entries": []}
    package = next((one for one in several["packages"] if one["path"] == place.path), nothing)
    remembered = [one for one in several["remembered"] if one["path"] == place.path]
    return {**package, **known, "rule": PROPOSE, "base": several["base"], "remembered": remembered}


def _own_ids(seen: JsonDict, place: Place) -> JsonDict:
    def own(values: Sequence[JsonDict]) -> list[JsonDict]:
        return [{**value, "id": place.own(value["id"])} for value in values]

    return {**seen, "entries": own(seen.get("entries", [])), "remembered": own(seen.get("remembered", []))}


def _concern(changes: JsonDict, place: Place, resolve: Any) -> JsonDict:
    """The part of an edit of several packages that is about one of them, as an edit of it alone."""
    operations = [change for change in changes.get("entries") or [] if isinstance(change, dict)]
    lines = changes.get("map") or {}
    return {
        "version": _find_version(changes.get("version"), place),
        "entries": [own for change in operations for own in _take(change, place, resolve)],
        "map": {line: step for key, step in lines.items() if (line := _line_of(str(key), place))},
    }


def _find_version(version: Any, place: Place) -> str:
    if not isinstance(version, dict):
        return str(version or "")  # only of a workspace with one package nobody need name it
    return next((str(one) for name, one in version.items() if not name or place.is_called(name)), "")


def _take(change: JsonDict, place: Place, resolve: Any) -> Iterator[JsonDict]:
    if change.get("op") == "add":
        if not change.get("package") or place.is_called(change["package"]):
            yield {**change, "package": ""}
        return
    yield from resolve(change)
    if change.get("op") == "forget" and (line := _line_of(str(change.get("id", "")), place)):
        yield {"op": "forget", "id": line}


def _line_of(key: str, place: Place) -> str:
    """The line of the map that a key names in this package; empty when it names none, or another package's."""
    line, package = split_line(key)
    return line if not package or place.is_called(package) else ""


def _keep(change: JsonDict) -> list[JsonDict]:
    return [change]


def _resolve(change: JsonDict, known: Sequence[str], then: Place, place: Place) -> list[JsonDict]:
    """What a remembered change of an entry was made on, when that is this package's; of several only what is forgotten.

    ``known``: all ids that could be named in that plan.
    """
    named = {known[at] for at in find_ids(known, str(change.get("id", "")))}
    if len(named) > 1 and change.get("op") != "forget":
        return []
    return [{**change, "id": place.own(one)} for one in sorted(named) if one == then.own(one)]
