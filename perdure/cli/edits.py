"""A reviewer's edits: from options, or from a small YAML text in an editor. Both become ``Edits.changes``."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import click
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from perdure.cli.door import Door
from perdure.cli.edit_call import arguments_of, compare_call, is_call, read_call_form, write_call_form
from perdure.contracts.base import JsonDict
from perdure.contracts.changelog import SECTIONS
from perdure.contracts.http import ArtifactView, Review
from perdure.contracts.visible import visible
from perdure.errors import Conflict, UserError

T = TypeVar("T")

# A section may hold a colon of its own: "Breaking: API".
_PACKAGE_SECTION = re.compile(r"(?P<package>[^\s:]+):(?P<section>\S.*)")

_HEAD = """\
# The plan {digest} of {job}: {title}
# Change the version, reword or delete an entry, move it to another section, or add one
# without an id ("- text"). Save and close: the job drafts a new plan and shows the difference.
# Leave everything as it is to change nothing.
"""


@dataclass(frozen=True)
class Entry:
    """One line of a release as the reviewer sees it; a new one has no id yet."""

    id: str
    section: str
    text: str


@dataclass(frozen=True)
class Proposal:
    """What can be edited in a plan."""

    version: str
    entries: tuple[Entry, ...]
    packages: tuple[tuple[str, Proposal], ...] = ()
    """Of a release of several packages: each with its name, and nothing beside them."""
    map: tuple[tuple[str, str], ...] = ()
    """Lines of the type map, (type, step), that differ from the convention."""


def changes_from_options(
    versions: Sequence[str],
    reword: Sequence[str],
    drop: Sequence[str],
    add: Sequence[str],
    move: Sequence[str],
    forget: Sequence[str] = (),
    lines: Sequence[str] = (),
) -> JsonDict:
    """Return ``Edits.changes`` for what was typed; empty when nothing was.

    ``versions``: one version, or ``PACKAGE=VERSION`` for each of several packages. Of several packages a section is
    ``PACKAGE:SECTION``.

    Raises:
        UserError: an option is not of the form NAME=TEXT.
    """
    entries: list[JsonDict] = []
    for name, text in _pairs("--reword", "ID=TEXT", reword):
        entries.append({"op": "reword", "id": name, "text": text})
    for name, text in _pairs("--move", "ID=SECTION", move):
        entries.append({"op": "move", "id": name, "section": text})
    entries += [{"op": "drop", "id": name} for name in drop]
    for name, text in _pairs("--add", "SECTION=TEXT", add):
        match = _PACKAGE_SECTION.fullmatch(name)
        added = match.groupdict() if match else {"section": name}
        entries.append({"op": "add", **added, "text": text})
    entries += [{"op": "forget", "id": name} for name in forget]
    return _changes(_read_versions(versions), entries, dict(_pairs("--map", "TYPE=STEP", lines)))


def _read_versions(versions: Sequence[str]) -> str | dict[str, str]:
    """One version, or version by package; empty when none was given."""
    if any("=" in value for value in versions):
        return dict(_pairs("--version", "PACKAGE=VERSION", versions))
    if len(versions) > 1:
        raise UserError("--version was given twice. For several packages write --version PACKAGE=VERSION for each.")
    return versions[0] if versions else ""


def edit_in_editor(door: Door, review: Review, send: Callable[[JsonDict], T]) -> T | None:
    """Open the plan's version and entries in the reader's editor and send what was changed; ``None`` when nothing was.

    What cannot be read or is refused is told, and the editor opens again with what was typed.

    Raises:
        UserError: the plan has nothing to edit.
    """
    if is_call(review):
        arguments = arguments_of(review)
        return _edit(
            write_call_form(arguments), lambda text: compare_call(arguments, read_call_form(text)), send, ".json"
        )
    before = read_proposal(door, review)
    return _edit(write_form(before, review), lambda text: compare(before, read_form(text)), send, ".yaml")


def _edit(text: str, read: Callable[[str], JsonDict], send: Callable[[JsonDict], T], ending: str) -> T | None:
    while True:
        edited = click.edit(text, extension=ending)
        if edited is None:
            return None
        try:
            changes = read(edited)
            return send(changes) if changes else None
        except Conflict:
            raise  # the plan is past deciding: typing helps no more
        except UserError as error:
            click.echo(visible(error.message, keep_lines=True), err=True)
            if not click.confirm("Open the editor again?", default=True, err=True):
                return None
            text = edited


def read_proposal(door: Door, review: Review) -> Proposal:
    """Return what the analysis proposed for the plan's job.

    Raises:
        UserError: the job has no entries that could be edited.
    """
    artifacts = door.get("/v1/artifacts", list[ArtifactView], ref=review.job.job_id)
    for artifact in reversed(artifacts):
        if artifact.name.split(".")[0] != "analyze":
            continue
        data = door.read_bytes(f"/v1/blobs/{artifact.ref.sha256}", size=artifact.ref.size_bytes, ref=review.job.job_id)
        for value in _objects(json.loads(data)):
            if found := _read_value(value):
                return found
    raise UserError(
        f"{review.job.name} has no entries to edit. Ask for what you want in words: "
        f"perdure request-changes {review.digest[:8]} -m '…'"
    )


def _read_value(value: JsonDict) -> Proposal | None:
    """What an analysis' value proposes; ``None`` when it proposes no release."""
    packages = value.get("packages")
    if isinstance(packages, list) and packages and all("version" in one and "entries" in one for one in packages):
        return Proposal("", (), packages=tuple((str(one["name"]), _read_one(one)) for one in packages))
    if isinstance(value.get("entries"), list) and "version" in value:
        return _read_one(value)
    return None


def _read_one(value: JsonDict) -> Proposal:
    lines = tuple(sorted((value.get("map") or {}).items()))
    return Proposal(str(value["version"]), _read_entries(value["entries"]), map=lines)


def write_form(proposal: Proposal, review: Review) -> str:
    """Return the YAML text that the reviewer edits."""
    out = io.StringIO()
    yaml = YAML()
    yaml.width = 4096
    packages = {name: _form_of(one) for name, one in proposal.packages}
    yaml.dump({"packages": packages} if packages else _form_of(proposal), out)
    head = _HEAD.format(digest=review.digest[:8], job=review.job.name, title=visible(review.title))
    return head + out.getvalue()


def _form_of(proposal: Proposal) -> JsonDict:
    sections: dict[str, list[Any]] = {}
    order = {section: place for place, section in enumerate(SECTIONS)}
    for entry in sorted(proposal.entries, key=lambda entry: (order.get(entry.section, len(order)), entry.section)):
        sections.setdefault(entry.section, []).append({entry.id: entry.text})
    lines = {"map": dict(proposal.map)} if proposal.map else {}
    return {"version": proposal.version, **lines, "entries": sections}


def read_form(text: str) -> Proposal:
    """Read the edited text.

    Raises:
        UserError: it is no YAML, or not of the form that was given.
    """
    try:
        value = YAML(typ="safe", pure=True).load(text)
    except YAMLError as error:
        raise UserError(f"The edited text is no YAML: {error}") from error
    packages = value.get("packages") if isinstance(value, dict) else None
    if isinstance(packages, dict):
        parts = tuple((str(name), _read_part(one)) for name, one in packages.items())
        return Proposal("", (), packages=parts)
    return _read_part(value)


def _read_part(value: Any) -> Proposal:
    if not isinstance(value, dict) or not isinstance(value.get("entries") or {}, dict):
        raise UserError("The edited text has lost its form; expected `version:` and `entries:` with sections beneath.")
    lines = value.get("map") or {}
    if not isinstance(lines, dict):
        raise UserError("The edited text has lost its form; expected lines such as `feat(words): patch` under `map:`.")
    entries = tuple(_entries(value.get("entries") or {}))
    return Proposal(str(value.get("version", "")), entries, map=tuple((str(key), str(lines[key])) for key in lines))


def compare(before: Proposal, after: Proposal) -> JsonDict:
    """Return the changes that lead from one to the other; empty when there are none.

    Raises:
        UserError: an entry has an id that the plan does not know.
    """
    if before.packages:
        return _compare_packages(dict(before.packages), dict(after.packages))
    known = {entry.id: entry for entry in before.entries}
    unknown = [entry.id for entry in after.entries if entry.id and entry.id not in known]
    if unknown:
        raise UserError(
            f"No entry has the id {unknown[0]!r}. Known: {', '.join(known)}. A new entry has none: `- text`."
        )
    kept = {entry.id for entry in after.entries}
    ops = [{"op": "drop", "id": entry.id} for entry in before.entries if entry.id not in kept]
    for entry in after.entries:
        ops += _ops(known.get(entry.id), entry)
    lines = {key: step for key, step in after.map if (key, step) not in before.map}
    forgotten = [{"op": "forget", "id": key} for key, _ in before.map if key not in dict(after.map)]
    return _changes(after.version if after.version != before.version else "", ops + forgotten, lines)


def _compare_packages(before: dict[str, Proposal], after: dict[str, Proposal]) -> JsonDict:
    """The changes of all packages as one; a package that was taken out loses its entries."""
    if unknown := [name for name in after if name not in before]:
        raise UserError(f"No package is called {unknown[0]!r} here. Known: {', '.join(before)}.")
    versions: dict[str, str] = {}
    lines: dict[str, str] = {}
    ops: list[JsonDict] = []
    for name, proposal in before.items():
        changes = compare(proposal, after.get(name, Proposal(proposal.version, (), map=proposal.map)))
        versions |= {name: changes["version"]} if "version" in changes else {}
        lines |= {f"{line}:{name}": step for line, step in changes.get("map", {}).items()}
        ops += [_name_package(op, name) for op in changes.get("entries", [])]
    return _changes(versions, ops, lines)


def _name_package(op: JsonDict, name: str) -> JsonDict:
    """What is about one package names it where its id does not."""
    if op["op"] == "add":
        return {**op, "package": name}
    return {**op, "id": f"{op['id']}:{name}"} if op["op"] == "forget" else op


def _ops(old: Entry | None, new: Entry) -> list[JsonDict]:
    if old is None:
        return [{"op": "add", "section": new.section, "text": new.text}]
    ops: list[JsonDict] = []
    if new.text != old.text:
        ops.append({"op": "reword", "id": new.id, "text": new.text})
    if new.section != old.section:
        ops.append({"op": "move", "id": new.id, "section": new.section})
    return ops


def _changes(version: str | dict[str, str], entries: list[JsonDict], lines: dict[str, str] | None = None) -> JsonDict:
    changes: JsonDict = {"version": version, "entries": entries, "map": lines}
    return {name: value for name, value in changes.items() if value}


def _pairs(option: str, form: str, values: Sequence[str]) -> Iterator[tuple[str, str]]:
    for value in values:
        name, equals, text = value.partition("=")
        if not equals or not name.strip() or not text.strip():
            raise UserError(f"{option} {value!r} is not of the form {form}.")
        yield name.strip(), text.strip()


def _objects(value: Any) -> Iterator[JsonDict]:
    if isinstance(value, dict):
        yield value
        for inner in value.values():
            yield from _objects(inner)


def _read_entries(values: list[JsonDict]) -> tuple[Entry, ...]:
    return tuple(
        Entry(str(value.get("id", "")), str(value.get("section", "")), str(value.get("text", ""))) for value in values
    )


def _entries(sections: dict[Any, Any]) -> Iterator[Entry]:
    for section, items in sections.items():
        for item in items or []:
            if isinstance(item, dict):
                yield from (Entry(str(key), str(section), str(text).strip()) for key, text in item.items())
            else:
                yield Entry("", str(section), str(item).strip())
