"""The checks ``release.check_version`` and ``release.check_entries``: the draft says what the analysis decided."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from perdure.contracts.base import JsonDict
from perdure.rules.base import Rule, RuleContext, RuleResult
from perdure.rules.git_history import NAME as HISTORY
from perdure.rules.release.bump import Last, find_illegal
from perdure.rules.release.changelog_files import decode_changelog
from perdure.rules.release.changelog_markup import WRITTEN_FORMATS
from perdure.rules.release.changelog_write import section_items
from perdure.rules.release.entries import Entry, read_entries
from perdure.rules.release.files.writing import check_file
from perdure.rules.release.markdown import commit_sources
from perdure.rules.release.propose import NAME as PROPOSE
from perdure.rules.release.results import find_value, require_space, require_value
from perdure.rules.release.sources import FILES
from perdure.rules.release.tags import parse_tag_form
from perdure.rules.release.versions import find_scheme

CHECK_VERSION = "release.check_version"
CHECK_ENTRIES = "release.check_entries"

_TOLD = 3
_COMMIT = re.compile(r"\b[0-9a-f]{7,64}\b")


def check_version(arguments: JsonDict, context: RuleContext) -> RuleResult:
    """Red when the version breaks a rule, or when a drafted version file says neither the new one nor what it said."""
    release, history = require_value(context, "analyze", PROPOSE), require_value(context, "gather", HISTORY)
    scheme, form = find_scheme(release["scheme"]), parse_tag_form(history["tag_form"])
    taken = [*history["tags"], *(ref.removeprefix("refs/tags/") for ref in history["remote_refs"])]
    last = Last(history["last_version"])
    problems = [find_illegal(release["version"], last, taken, form, scheme)]
    if form.write(release["version"]) != release["tag"]:
        problems.append(f"The tag {release['tag']} does not name version {release['version']}.")
    files = find_value(context.results.get("gather"), FILES) or {"files": []}
    problems += [check_file(require_space(context), file, release["version"]) for file in files["files"]]
    return _verdict(CHECK_VERSION, problems, f"{release['version']} is legal and written")


def check_entries(arguments: JsonDict, context: RuleContext) -> RuleResult:
    """Red when the drafted changelog lost, invented or moved an entry, or no longer marks a breaking change.

    Wording may differ: an entry is known by the commits that its line names. Those that name none are counted.
    """
    release, space = require_value(context, "analyze", PROPOSE), require_space(context)
    changelog = release["changelog"] or {}
    if changelog.get("format") not in WRITTEN_FORMATS:
        return RuleResult({"rule": CHECK_ENTRIES}, "no changelog to check")
    path = changelog["path"]
    text = decode_changelog(space.read(path) or b"")
    items = section_items(text, release["version"], changelog["format"])
    if items is None:
        return _verdict(CHECK_ENTRIES, [f"{path} has no section for {release['version']}."], "")
    entries = read_entries(release)
    return _verdict(CHECK_ENTRIES, compare_entries(entries, items), f"all {len(entries)} entries are kept")


def compare_entries(entries: Sequence[Entry], items: Sequence[tuple[str, str]]) -> list[str]:
    """Return what differs between entries and the (section, text) items of a changelog, one sentence each."""
    wanted, written = Counter(entry.section for entry in entries), Counter(section for section, _ in items)
    problems = [
        f"Section {section!r} has {written[section]} items; expected {wanted[section]}."
        for section in sorted(wanted | written)
        if wanted[section] != written[section]
    ]
    named = _index_items(items)
    problems += [_compare_entry(entry, commits, named) for entry in entries if (commits := commit_sources(entry))]
    return [problem for problem in problems if problem]


def _index_items(items: Sequence[tuple[str, str]]) -> Mapping[tuple[str, str], list[str]]:
    """Texts by (section, commit that they name)."""
    named: dict[tuple[str, str], list[str]] = {}
    for section, text in items:
        for name in set(_COMMIT.findall(text)):
            named.setdefault((section, name), []).append(text)
    return named


def _compare_entry(entry: Entry, commits: Sequence[str], named: Mapping[tuple[str, str], Sequence[str]]) -> str:
    found = [text for text in named.get((entry.section, commits[0]), ()) if all(name in text for name in commits)]
    if not found:
        return f"No item of {entry.section!r} names {', '.join(commits)} ({entry.text.splitlines()[0]!r})."
    if entry.breaking and not any("breaking" in text.lower() for text in found):
        return f"The item that names {', '.join(commits)} no longer says that it is breaking."
    return ""


def _verdict(rule: str, problems: Sequence[str], kept: str) -> RuleResult:
    found = [problem for problem in problems if problem]
    value: JsonDict = {"rule": rule, "problems": found}
    told = " ".join(found[:_TOLD]) + (f" And {len(found) - _TOLD} more." if len(found) > _TOLD else "")
    return RuleResult(value, told or kept, "failed" if found else "ok")


VERSION_RULE = Rule(
    name=CHECK_VERSION, rule_class="check", run=check_version, about="The version is legal and every file says it."
)
ENTRIES_RULE = Rule(
    name=CHECK_ENTRIES, rule_class="check", run=check_entries, about="The changelog keeps every entry and its sources."
)
