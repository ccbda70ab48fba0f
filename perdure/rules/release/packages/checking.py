"""The check ``release.check_packages``: of every package the version is legal and written, and no entry is lost."""

from __future__ import annotations

from perdure.contracts.base import JsonDict
from perdure.rules.base import DraftSpace, Rule, RuleContext, RuleResult
from perdure.rules.release.bump import Last, find_illegal
from perdure.rules.release.changelog_files import decode_changelog
from perdure.rules.release.changelog_markup import WRITTEN_FORMATS
from perdure.rules.release.changelog_write import section_items
from perdure.rules.release.checks import compare_entries
from perdure.rules.release.entries import read_entries
from perdure.rules.release.files.base import find_places
from perdure.rules.release.files.writing import check_file
from perdure.rules.release.packages.gather import PACKAGES
from perdure.rules.release.packages.propose import NAME as PROPOSE
from perdure.rules.release.packages.range_files import FORMS
from perdure.rules.release.packages.writing import files_of
from perdure.rules.release.results import require_space, require_value
from perdure.rules.release.tags import parse_tag_form
from perdure.rules.release.versions import find_scheme

CHECK_PACKAGES = "release.check_packages"
_TOLD = 3


def check_packages(arguments: JsonDict, context: RuleContext) -> RuleResult:
    """Red when a version breaks a rule, or a drafted file, range or changelog does not say what was decided."""
    release, gathered = require_value(context, "analyze", PROPOSE), require_value(context, "gather", PACKAGES)
    space = require_space(context)
    problems: list[str] = []
    for package in release["packages"]:
        found = [_check_version(gathered, package)]
        found += [check_file(space, file, package["version"]) for file in files_of(gathered, package)["files"]]
        if package["group"]:
            shared = gathered["groups"][package["group"]]["files"]
            found += [check_file(space, file, package["version"]) for file in shared]
        problems += [f"{package['name']}: {problem}" for problem in found if problem]
    for changelog in release["changelogs"]:
        problems += [f"{changelog['name']}: {problem}" for problem in _check_entries(space, changelog)]
    problems += [problem for one in release["ranges"] if (problem := _check_range(space, one))]
    told = " ".join(problems[:_TOLD]) + (f" And {len(problems) - _TOLD} more." if len(problems) > _TOLD else "")
    kept = f"{len(release['packages'])} packages are legal and written"
    value: JsonDict = {"rule": CHECK_PACKAGES, "problems": problems}
    return RuleResult(value, told or kept, "failed" if problems else "ok")


def _check_version(gathered: JsonDict, package: JsonDict) -> str:
    facts = next(one for one in gathered["packages"] if one["path"] == package["path"])
    form, scheme = parse_tag_form(facts["tag_form"]), find_scheme(package["scheme"])
    taken = [*gathered["tags"], *(ref.removeprefix("refs/tags/") for ref in gathered["remote_refs"])]
    if form.write(package["version"]) != package["tag"]:
        return f"The tag {package['tag']} does not name version {package['version']}."
    return find_illegal(package["version"], Last(package["last_version"]), taken, form, scheme)


def _check_entries(space: DraftSpace, changelog: JsonDict) -> list[str]:
    facts = changelog["changelog"]
    if facts.get("format") not in WRITTEN_FORMATS:
        return []
    text = decode_changelog(space.read(facts["path"]) or b"")
    items = section_items(text, changelog["version"], facts["format"])
    if items is None:
        return [f"{facts['path']} has no section for {changelog['version']}."]
    return compare_entries(read_entries(changelog), items)


def _check_range(space: DraftSpace, one: JsonDict) -> str:
    data = space.read(one["path"])
    places = find_places(FORMS[one["form"]], data, one["path"]).places if data is not None else ()
    said = next((place.version for place in places if place.where == one["where"]), "nothing")
    return "" if said == one["new"] else f"{one['path']} asks for {said} ({one['where']}); expected {one['new']}."


RULE = Rule(
    name=CHECK_PACKAGES,
    rule_class="check",
    run=check_packages,
    about="Of several packages every version is legal and written, every range follows, every entry is kept.",
)
