"""The analysis ``release.propose``: entries with their sources, and the version that follows, with reasons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from perdure.contracts.base import JsonDict
from perdure.errors import StageFailed, UserError
from perdure.rules.base import Rule, RuleContext, RuleResult
from perdure.rules.git_commits import commit_from_json
from perdure.rules.git_history import NAME as HISTORY
from perdure.rules.release.bump import Last, Suggestion, ask_to_leave, leaves_initial_development
from perdure.rules.release.choice import Numbering, choose_version, find_announced
from perdure.rules.release.concerns import Place
from perdure.rules.release.edit_checks import find_edit_problems
from perdure.rules.release.edits import Edited, apply_edits
from perdure.rules.release.entries import Entry
from perdure.rules.release.evidence import Gathered, collect_entries, find_consumed
from perdure.rules.release.habits import habits_from_json
from perdure.rules.release.markdown import write_notes
from perdure.rules.release.overrides import find_standing, suggest_repeated
from perdure.rules.release.recalled import Situation, apply_remembered, tell_forgetting
from perdure.rules.release.released_items import leave_out_released
from perdure.rules.release.results import PROPOSE, find_value
from perdure.rules.release.settings.model import settings_from_json
from perdure.rules.release.sources import CHANGES, FILES
from perdure.rules.release.tags import parse_tag_form
from perdure.rules.release.type_map import find_map
from perdure.rules.release.versions import VersionScheme, find_scheme, is_zero_major
from perdure.rules.release.wording import WORDING

NAME = PROPOSE


@dataclass(frozen=True)
class _Sources:
    history: JsonDict
    files: JsonDict
    changes: JsonDict


def propose_release(arguments: JsonDict, context: RuleContext) -> RuleResult:
    """Propose a release from what was gathered.

    ``with``: ``from`` (all gathered values by source name), ``scheme``, ``version`` instead of the proposed one, and
    ``pre``, the label of a pre-release (``rc``), without which the version is final.
    Without any change the value has no entries and nothing else to apply. A reviewer's version that breaks a rule is a
    finding, and the proposed one stands; the same in ``version`` is an error.

    Raises:
        UserError: a version breaks a rule (named), or the scheme is not known.
        StageFailed: the sources read different commits.
    """
    sources = _open_sources(arguments["from"])
    scheme = find_scheme(str(arguments.get("scheme") or "semver"))
    last = _read_last(sources, context.now.date())
    commits = [commit_from_json(value) for value in sources.history["commits"]]
    place, memory = Place(sources.history["path"]), context.remembered
    is_zero = bool(last.version) and is_zero_major(scheme, last.version)
    rules = settings_from_json(sources.history.get("settings", {})).lines_at(is_zero=is_zero)
    types = find_map(habits_from_json(sources.history["habits"]), memory, context.edits, place, rules)
    changes, package = sources.changes, str(sources.files.get("package", ""))
    waiting = leave_out_released(sources.history, changes.get("changelog", {}), scheme.name)
    gathered = Gathered(commits, waiting.changelog, changes.get("files", []), package, types.habits)
    collected = collect_entries(gathered)
    standing, situation = find_standing(memory, place, context.edits), _describe_situation(sources, collected.entries)
    recalled = apply_remembered(standing, situation)
    edited = apply_edits(recalled.entries, context.edits)
    form, pre = parse_tag_form(sources.history["tag_form"]), str(arguments.get("pre") or "")
    numbers = Numbering(last, _list_taken(sources.history), form, scheme, pre)
    given, wishes = str(arguments.get("version") or ""), [recalled.version.wish] if recalled.version else []
    announced = find_announced(commits, numbers, edited.entries)
    suggestion, refused = choose_version(edited, given, commits, numbers, wishes, announced)
    value = _write_value(sources, scheme, last, edited, suggestion, context.now.date().isoformat())
    value |= {"consumed": find_consumed(gathered), "left": waiting.left, "evidence": situation.evidence}
    value |= {"map": dict(types.lines), "settles": [one.model_dump() for one in types.settles]}
    value |= {"remembered": [override.to_json() for override in recalled.used], "settled": list(types.settled)}
    value["authors"] = sorted({*types.authors, *(override.by for override in recalled.used)})
    findings = [*waiting.findings, *types.findings, *collected.findings, *recalled.findings, *edited.findings]
    findings += [
        *tell_forgetting(recalled.used),
        *refused,
        *suggest_repeated(standing, edited.entries),
        *_compare_manifest(sources.files, last, scheme),
    ]
    how = f" ({suggestion.bump})" if last.version else ""  # the title of a first release says so itself
    summary = f"{value['title']}{how}" if edited.entries else "nothing to release"
    return RuleResult(value, summary, findings=findings)


def _describe_situation(sources: _Sources, found: Sequence[Entry]) -> Situation:
    history = sources.history
    commits = [history["head"], *(commit["id"] for commit in history["commits"])]
    return Situation(history["head"], history["last_tag"], history["last_version"], commits, found)


def _open_sources(gathered: JsonDict) -> _Sources:
    history = find_value(gathered, HISTORY)
    if history is None:
        raise UserError(f"release.propose needs a gather source that uses {HISTORY!r}; 'from' holds none.")
    files, changes = find_value(gathered, FILES) or {}, find_value(gathered, CHANGES) or {}
    for source in (files, changes):
        if source and source["commit"] != history["head"]:
            raise StageFailed(
                f"The branch moved while it was read ({source['commit'][:7]} and {history['head'][:7]}). Run it again."
            )
    return _Sources(history, files, changes)


def _read_last(sources: _Sources, today: date) -> Last:
    history, manifest = sources.history, str(sources.files.get("version", ""))
    held = frozenset(history.get("candidate_holds", []))
    return Last(history["last_version"], history["last_candidate"], manifest, history["calendar"], today, held)


def _list_taken(history: JsonDict) -> list[str]:
    return [*history["tags"], *(ref.removeprefix("refs/tags/") for ref in history["remote_refs"])]


def _write_value(
    sources: _Sources, scheme: VersionScheme, last: Last, edited: Edited, suggestion: Suggestion, date: str
) -> JsonDict:
    history, version = sources.history, suggestion.version
    package = str(sources.files.get("package", ""))
    title = f"{last.version} → {version}" if last.version else f"{version} (first release)"
    return {
        "rule": NAME,
        "version": version,
        "tag": parse_tag_form(history["tag_form"]).write(version),
        "scheme": scheme.name,
        "last_version": last.version,
        "last_tag": history["last_tag"],
        "base": history["head"],
        "bump": suggestion.bump,
        "entries": [entry.to_json() for entry in edited.entries],
        "reasons": suggestion.reasons,
        "notes": write_notes(f"{package} {version}".strip(), edited.entries),
        "title": title,
        "date": date,
        "package": package,
        "path": history["path"],
        "changelog": sources.changes.get("changelog", {}),
    }


def _compare_manifest(files: JsonDict, last: Last, scheme: VersionScheme) -> Sequence[str]:
    """Say when the version files do not stand where the last release does; they end no 0.x by themselves."""
    if not last.version or not last.manifest or last.manifest == last.version:
        return []
    told = f"{files['files'][0]['path']} says {last.manifest}, although the last release is {last.version}."
    version = scheme.final(last.manifest) if scheme.is_legal(last.manifest) else ""
    ends = leaves_initial_development(version, last.version, scheme)
    return [f"{told} {ask_to_leave(version)}" if ends else told]


RULE = Rule(
    name=NAME,
    rule_class="analysis",
    run=propose_release,
    needs=frozenset({"from"}),
    takes=frozenset({"scheme", "version", "pre"}),
    about="Entries with sources, and the next version with reasons.",
    check_edits=find_edit_problems,
    refinement=WORDING,
)
