"""The draft step ``release.write_versions``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from perdure.contracts.base import JsonDict
from perdure.errors import StageFailed
from perdure.rules.base import DraftSpace, Rule, RuleContext, RuleResult
from perdure.rules.release.files.base import find_places, replace_version
from perdure.rules.release.files.deciding import is_placeholder
from perdure.rules.release.files.elsewhere import find_elsewhere, tell_elsewhere
from perdure.rules.release.files.gather import FILES
from perdure.rules.release.files.registry import format_named
from perdure.rules.release.results import find_value, require_space, require_value

WRITE_VERSIONS = "release.write_versions"

_PROPOSE = "release.propose"


def write_versions(arguments: JsonDict, context: RuleContext) -> RuleResult:
    """Write ``version`` into the version files that were gathered; every other byte stays.

    After a first release a file that says ``0.0.0`` is a placeholder and stays as it is; so does a second manifest with
    a version of its own. Files that still say the old
    version afterwards are named, with the lines, in ``elsewhere`` and as a finding.
    """
    space, version = require_space(context), str(arguments["version"])
    gathered = require_value(context, "gather", FILES)
    release = find_value(context.results.get("analyze"), _PROPOSE) or {}
    last_version = str(release.get("last_version") or "")
    written, findings = write_files(space, gathered, version, last_version)
    old_version = last_version or gathered["version"]
    left = find_elsewhere(space.root, gathered["path"], old_version) if old_version != version else []
    value: JsonDict = {"rule": WRITE_VERSIONS, "files": written, "elsewhere": left}
    paths = ", ".join(dict.fromkeys(file["path"] for file in written))
    summary = f"{version} in {paths}" if written else "no version file to change"
    return RuleResult(value, summary, findings=[*findings, *tell_elsewhere(left, old_version)])


def write_files(
    space: DraftSpace, gathered: JsonDict, version: str, last_version: str
) -> tuple[list[JsonDict], list[str]]:
    """Write ``version`` into what was gathered; return (what was written, findings)."""
    written, findings = [], []
    for file in _settle(gathered["files"], last_version):
        old = [place["version"] for place in file["places"]]
        note = _explain_left(file, old, gathered["version"], last_version) if old else ""
        if note:
            findings.append(note)
        elif old and _write_file(space, file, version):
            written.append({"path": file["path"], "places": file["places"], "version": version})
    return written, findings


def _settle(files: Sequence[JsonDict], last_version: str) -> Iterator[JsonDict]:
    """The files with those places that are this release's: of several members, those of the last release's version."""
    for file in files:
        places = [place for place in file["places"] if place["version"] == last_version or not file.get("only_last")]
        yield {**file, "places": places}


def _explain_left(file: JsonDict, old: list[str], current: str, last_version: str) -> str:
    """Say why a file is left: it holds a placeholder, or has a version of its own that is neither of ours."""
    if last_version and all(map(is_placeholder, old)):
        return f"{file['path']} says {old[0]}, a placeholder: it is left as it is."
    is_own = format_named(file["format"]).names_own_package and not any(said in (current, last_version) for said in old)
    return f"{file['path']} says {old[0]}, not {last_version or current}: it is left as it is." if is_own else ""


def _write_file(space: DraftSpace, file: JsonDict, version: str) -> bool:
    """Write the gathered places of one file; return whether that changed it."""
    form, path = format_named(file["format"]), file["path"]
    data = space.read(path)
    if data is None:
        raise StageFailed(f"{path} was gathered but is not in the workspace. Run the job again.")
    wheres = {place["where"] for place in file["places"]}
    found = {place.where: place.version for place in find_places(form, data, path).places}
    if any(found.get(place["where"]) not in (place["version"], version) for place in file["places"]):
        raise StageFailed(f"{path} in the workspace is not what was gathered. Run the job again.")
    replaced = replace_version(form, data, version, path, wheres=wheres)
    if replaced != data:
        space.write(path, replaced)
    return replaced != data


def check_file(space: DraftSpace, file: JsonDict, version: str) -> str:
    """Say what is wrong with a drafted version file: it must say ``version`` or what it said. Empty: nothing."""
    data, path = space.read(file["path"]), file["path"]
    if data is None:
        return f"{path} is gone from the draft."
    before = {place["where"]: place["version"] for place in file["places"]}
    places = {place.where: place.version for place in find_places(format_named(file["format"]), data, path).places}
    if not set(before) <= set(places):
        return f"{path} says its version in other places than before."
    wrong = [where for where in before if places[where] not in (version, before[where])]
    return f"{path} says {places[wrong[0]]} ({wrong[0]}); expected {version}." if wrong else ""


VERSIONS_RULE = Rule(
    name=WRITE_VERSIONS,
    rule_class="draft",
    run=write_versions,
    needs=frozenset({"version"}),
    about="Writes the version into the gathered version files.",
)
