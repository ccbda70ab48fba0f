"""What a reviewer may change in a release of several packages, judged before it is recorded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from perdure.contracts.base import JsonDict
from perdure.rules.release.bump import Last, find_illegal
from perdure.rules.release.concerns import split_line
from perdure.rules.release.edit_checks import judge_change, list_remembered, list_sections
from perdure.rules.release.entries import read_entries
from perdure.rules.release.packages.gather import PACKAGES
from perdure.rules.release.results import find_value
from perdure.rules.release.tags import parse_tag_form
from perdure.rules.release.type_map import find_map_problems
from perdure.rules.release.versions import find_scheme


def find_package_edit_problems(changes: JsonDict, release: JsonDict, results: JsonDict) -> list[str]:
    """Return why edits cannot be made in a ``release.propose_packages`` value, one sentence each; empty when they can.

    ``version`` is a version by package (name or id). An ``add`` names its ``package``; ids are unique across packages.
    A line of ``map`` is about all packages, or about one: ``feat:core``.
    """
    gathered = find_value(results.get("gather"), PACKAGES) or {"packages": []}
    problems = [*_judge_versions(changes.get("version"), gathered), *_judge_map(changes.get("map"), gathered)]
    operations = changes.get("entries") or []
    if not isinstance(operations, list):
        return [*problems, f"entries={operations!r} is no list of changes, such as {{op: drop, id: a41c9e0:core}}."]
    entries, remembered = read_entries(release), _list_remembered(release)
    sections = list(dict.fromkeys(name for one in release["packages"] for name in list_sections(one)))
    for change in operations:
        problems += judge_change(change, entries, sections, remembered)
        problems += _judge_place(change, gathered)
    return problems


def _judge_versions(versions: Any, gathered: JsonDict) -> Iterator[str]:
    if versions is None:
        return
    named = versions if isinstance(versions, dict) else {"": versions}
    for name, version in named.items():
        facts = _find(str(name), gathered)
        if facts is None:
            yield f"The version {version!r} names no package ({name!r}): write PACKAGE=VERSION. {_known(gathered)}"
            continue
        taken = [*gathered["tags"], *(ref.removeprefix("refs/tags/") for ref in gathered["remote_refs"])]
        form, scheme = parse_tag_form(facts["tag_form"]), find_scheme(facts["scheme"])
        problem = find_illegal(str(version).strip(), Last(facts["last_version"]), taken, form, scheme)
        if problem:
            yield f"{facts['name']}: {problem}"


def _judge_map(lines: Any, gathered: JsonDict) -> Iterator[str]:
    if not isinstance(lines, dict):
        yield from find_map_problems(lines) if lines else ()
        return
    for key, step in lines.items():
        line, package = split_line(str(key))
        yield from find_map_problems({line or key: step})
        if package and _find(package, gathered) is None:
            yield f"The line {key!r} names no package ({package!r}): write TYPE:PACKAGE. {_known(gathered)}"


def _list_remembered(release: JsonDict) -> list[str]:
    """What may be forgotten; a line of the map of all packages at once, too."""
    listed = list_remembered(release)
    return list(dict.fromkeys([*listed, *(split_line(line)[0] for line in release["settled"])]))


def _judge_place(change: Any, gathered: JsonDict) -> Iterator[str]:
    change = change if isinstance(change, dict) else {}
    if change.get("op") == "add" and _find(str(change.get("package") or ""), gathered) is None:
        yield f"The new entry names no package ({change.get('package')!r}): write PACKAGE:SECTION. {_known(gathered)}"
    if change.get("op") == "drop" and str(change.get("id", "")).startswith("d-"):
        yield f"Entry {change['id']!r} follows from another package's version: it is not dropped."


def _find(name: str, gathered: JsonDict) -> JsonDict | None:
    """A package that may be released, by name or id; where there is only one nobody need name it."""
    public = [one for one in gathered["packages"] if not one["private"]]
    if not name and len(public) == 1:
        return dict(public[0])
    return next((one for one in public if name and name in (one["name"], one["id"])), None)


def _known(gathered: JsonDict) -> str:
    return f"Known packages: {', '.join(one['name'] for one in gathered['packages'] if not one['private'])}."
