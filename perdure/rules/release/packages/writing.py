"""The draft step ``release.write_packages``: versions, ranges, lock files and changelogs of every released package."""

from __future__ import annotations

from collections.abc import Iterator

from perdure.contracts.base import JsonDict
from perdure.rules.base import DraftSpace, Rule, RuleContext, RuleResult
from perdure.rules.release.drafting import write_changelog
from perdure.rules.release.files.base import find_places
from perdure.rules.release.files.elsewhere import find_elsewhere, tell_elsewhere
from perdure.rules.release.files.writing import write_files
from perdure.rules.release.packages.gather import PACKAGES
from perdure.rules.release.packages.range_files import FORMS, replace_ranges
from perdure.rules.release.results import require_space, require_value

WRITE_PACKAGES = "release.write_packages"


def write_packages(arguments: JsonDict, context: RuleContext) -> RuleResult:
    """Write what ``release`` (a ``release.propose_packages`` value) says; every other byte stays.

    Raises:
        StageFailed: a file of the workspace is not what was gathered.
    """
    space, release = require_space(context), arguments["release"]
    gathered = require_value(context, "gather", PACKAGES)
    findings = [finding for package in release["packages"] for finding in _write_package(space, gathered, package)]
    findings += _write_groups(space, gathered, release)
    findings += write_ranges(space, gathered, release)
    for changelog in release["changelogs"]:
        findings += write_changelog({"release": changelog}, context).findings
    removed = [path for path in release["consumed"] if _remove(space, path)]
    count = len(release["packages"])
    summary = f"{count} package{'s' * (count != 1)}, {len(release['ranges'])} ranges"
    told = f"{summary}, {len(removed)} change files removed" if removed else summary
    return RuleResult({"rule": WRITE_PACKAGES, "removed": removed}, told, findings=findings)


def files_of(gathered: JsonDict, package: JsonDict) -> JsonDict:
    """Return the version files that were gathered for a released package."""
    found: JsonDict = next(one for one in gathered["packages"] if one["path"] == package["path"])["files"]
    return found


def _write_package(space: DraftSpace, gathered: JsonDict, package: JsonDict) -> list[str]:
    files, version = files_of(gathered, package), package["version"]
    _, findings = write_files(space, files, version, package["last_version"])
    old = package["last_version"] or files["version"]
    # The root's folder holds all the others: its old version is no sign there.
    left = find_elsewhere(space.root, package["path"], old) if package["path"] and old != version else []
    return [*findings, *tell_elsewhere(left, old)]


def _write_groups(space: DraftSpace, gathered: JsonDict, release: JsonDict) -> list[str]:
    versions = {one["group"]: (one["version"], one["last_version"]) for one in release["packages"] if one["group"]}
    findings: list[str] = []
    for group, (version, last) in versions.items():
        findings += write_files(space, gathered["groups"][group], version, last)[1]
    return findings


def write_ranges(space: DraftSpace, gathered: JsonDict, release: JsonDict) -> list[str]:
    """Rewrite ranges in manifests and in lock files that repeat them; return findings."""
    by_file: dict[tuple[str, str], dict[str, tuple[str, str]]] = {}
    for one in release["ranges"]:
        by_file.setdefault((one["path"], one["form"]), {})[one["where"]] = (one["old"], one["new"])
    for (path, form), ranges in by_file.items():
        data = space.read(path) or b""
        space.write(path, replace_ranges(FORMS[form], data, ranges, path))
    npm = [one for one in release["ranges"] if one["form"] == "npm"]
    for path, form in gathered["locks"]["repeating"].items() if npm else ():
        _write_lock(space, path, form, npm)
    renew = gathered["locks"]["resolved"] if npm else []
    return [f"{path} repeats ranges in a form that is not written: renew it with its own tool." for path in renew]


def _write_lock(space: DraftSpace, path: str, form: str, ranges: list[JsonDict]) -> None:
    data = space.read(path) or b""
    there = {place.where: place.version for place in find_places(FORMS[form], data, path).places}
    wanted = {where: (old, new) for where, old, new in _lock_places(form, ranges) if there.get(where) == old}
    if wanted:
        space.write(path, replace_ranges(FORMS[form], data, wanted, path))


def _lock_places(form: str, ranges: list[JsonDict]) -> Iterator[tuple[str, str, str]]:
    for one in ranges:
        folder = one["path"].rpartition("/")[0]
        start = f"packages.{folder}" if form == "npm-lock" else folder or "."
        yield f"{start}.{one['where']}", one["old"], one["new"]


def _remove(space: DraftSpace, path: str) -> bool:
    """Remove a regular file of the workspace; return whether it was there. ``read`` refuses links and ways out."""
    if space.read(path) is None:
        return False
    (space.root / path).unlink(missing_ok=True)
    return True


RULE = Rule(
    name=WRITE_PACKAGES,
    rule_class="draft",
    run=write_packages,
    needs=frozenset({"release"}),
    about="Writes versions, ranges, lock files and changelogs of several packages.",
)
