"""Which version follows: a suggestion with its reasons, and the rules that no version may break."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date

from perdure.errors import UserError
from perdure.rules.release.calver import DEFAULT_PATTERN, next_calver
from perdure.rules.release.entries import Entry
from perdure.rules.release.tags import TagForm, find_release_tags
from perdure.rules.release.versions import BUMPS, Bump, VersionScheme, is_zero_major

FIRST_VERSION = "0.1.0"
"""Of a project that has neither a tag nor a version in a file."""

_MOST_REASONS = 3


@dataclass(frozen=True)
class Last:
    """Where the numbering stands."""

    version: str
    """Of the last final release, or the highest pre-release when there is none; empty before the first release."""
    candidate: str = ""
    """A pre-release above ``version``, which the next release must not fall behind; empty when there is none."""
    manifest: str = ""
    """What the version files say; it counts only before the first release."""
    pattern: str = ""
    """Of calendar versions: what the project's releases show; empty when they show none."""
    today: date | None = None
    """The day that a calendar version is made of."""
    held: frozenset[str] = frozenset()
    """Short ids of the commits that the first pre-release of ``candidate``'s line holds: there the line was chosen."""


@dataclass(frozen=True)
class Suggestion:
    """A proposed version and why."""

    version: str
    bump: str
    """``major``, ``minor``, ``patch``, ``first`` or ``calendar``."""
    reasons: list[str]


def suggest_version(entries: Sequence[Entry], last: Last, scheme: VersionScheme) -> Suggestion:
    """Return the version that ``entries`` call for after ``last``; reasons strongest first."""
    if scheme.name == "calver" and last.today:
        return _suggest_day(last, last.today, scheme)
    if not last.version:
        return _suggest_first(last, scheme)
    bump: Bump = max((entry.bump for entry in entries), key=BUMPS.index, default=BUMPS[0])
    reasons = _name_evidence(entries, bump)
    step = soften_bump(bump, last.version, scheme)
    if step != bump:
        told = f"{last.version} is initial development (0.x): a breaking change is a {step} step there."
        reasons.insert(0, f"{told} {ask_to_leave(scheme.bump(scheme.final(last.version), bump))}")
    if scheme.is_final(last.version):
        version = scheme.bump(last.version, step)
        return _respect_candidate(Suggestion(version, step, reasons), entries, last, scheme)
    return _leave_pre_release(Suggestion(last.version, step, reasons), last.version, scheme)


def suggest_pre_release(entries: Sequence[Entry], last: Last, scheme: VersionScheme, label: str) -> Suggestion:
    """Return the pre-release that ``entries`` call for: the first of its line, or the next after the last one of it.

    A line goes on while its final version is as high as what the entries call for; else a higher line begins.

    Raises:
        UserError: the scheme has no such label, or pre-releases with it come before those that exist.
    """
    newest = last.candidate or (last.version if last.version and not scheme.is_final(last.version) else "")
    wanted = suggest_version(entries, replace(last, candidate=""), scheme)
    is_high = bool(newest) and scheme.key(scheme.final(newest)) >= scheme.key(wanted.version)
    goes_on = is_high or _holds_enough(entries, last, scheme)
    final = scheme.final(newest) if goes_on else wanted.version
    try:
        version = scheme.pre_release(final, label, newest if goes_on else "")
    except ValueError as error:
        raise UserError(f"pre={label!r} cannot be used: {error}.") from None
    if newest and not scheme.key(version) > scheme.key(newest):
        raise UserError(f"pre={label!r} gives {version}, which is not above {newest}. Go on from there.")
    said = f"{newest} goes on" if goes_on else f"{final} is what follows, and this is its first {label}"
    return Suggestion(version, wanted.bump, [f"{version}: {said}.", *wanted.reasons])


def soften_bump(bump: Bump, last: str, scheme: VersionScheme) -> Bump:
    """Return the step under the 0.x policy: a breaking change is minor there (1.0.0 is a decision, no accident)."""
    return "minor" if bump == "major" and is_zero_major(scheme, last) else bump


def leaves_initial_development(version: str, last: str, scheme: VersionScheme) -> bool:
    """Whether ``version`` would end 0.x. That is a person's decision: nothing that was read leads there by itself."""
    known = bool(last) and scheme.is_legal(last) and scheme.is_legal(version)
    return known and is_zero_major(scheme, last) and not is_zero_major(scheme, version)


def ask_to_leave(version: str) -> str:
    """The question that a person answers, with the command."""
    return f"To end 0.x is a person's decision: `perdure edit JOB --version {version}` makes it."


def find_illegal(version: str, last: Last, taken: Sequence[str], form: TagForm, scheme: VersionScheme) -> str:
    """Return which rule ``version`` breaks, as one sentence with what to do; empty when it is legal.

    ``taken`` are the names of tags here and on the remote.
    """
    if not scheme.is_legal(version):
        return f"{version!r} is no version of scheme={scheme.name!r}. Give one like {FIRST_VERSION}."
    if last.version and not scheme.key(version) > scheme.key(last.version):
        return f"Version {version} is not above the last release {last.version}. Give a higher one."
    if form.write(version) in taken:
        return f"The tag {form.write(version)} exists already, here or on the remote. Give a version that was not used."
    same = [tag.name for tag in find_release_tags(taken, form, scheme) if _is_same(tag.version, version, scheme)]
    if same:
        return f"Version {version} equals that of the tag {same[0]}. Give a version that was not used."
    return ""


def _is_same(one: str, other: str, scheme: VersionScheme) -> bool:
    return bool(scheme.key(one) == scheme.key(other))


def _suggest_day(last: Last, today: date, scheme: VersionScheme) -> Suggestion:
    """The version of a day. Without a pattern of the project's own a common one is taken, and said so."""
    pattern = last.pattern or DEFAULT_PATTERN
    shown = f"the releases so far follow {pattern}" if last.pattern else f"no release shows a pattern, so {pattern}"
    version = next_calver(pattern, last.version and scheme.final(last.version), today)
    return Suggestion(version, "calendar", [f"{version}: the day is {today.isoformat()}, {shown}."])


def _suggest_first(last: Last, scheme: VersionScheme) -> Suggestion:
    reason = f"No release yet: the version files say {last.manifest}."
    if not last.manifest or not scheme.is_legal(last.manifest):
        said = (
            f"the version files say {last.manifest!r}, which is no {scheme.name} version"
            if last.manifest
            else "no file says a version"
        )
        return Suggestion(FIRST_VERSION, "first", [f"No release yet and {said}: {FIRST_VERSION} to begin with."])
    version = scheme.final(last.manifest)
    if scheme.key(version) <= scheme.key(scheme.final("0.0.0")):
        return Suggestion(FIRST_VERSION, "first", [f"{reason} That is a placeholder: {FIRST_VERSION} to begin with."])
    return Suggestion(version, "first", [reason])


def _name_evidence(entries: Sequence[Entry], bump: Bump) -> list[str]:
    """The entries that decide the step, as they were written; entries are in order of time, the newest first."""
    deciding = [entry for entry in entries if entry.bump == bump]
    reasons = [
        f'{bump}: "{_say(entry)}" ({"; ".join(filter(None, (entry.sources[0], entry.rule)))})' for entry in deciding
    ]
    rest = len(reasons) - _MOST_REASONS
    return reasons[:_MOST_REASONS] + ([f"{bump}: and {rest} more"] if rest > 0 else [])


def _say(entry: Entry) -> str:
    return entry.reason or entry.text.splitlines()[0]


def _respect_candidate(
    suggestion: Suggestion, entries: Sequence[Entry], last: Last, scheme: VersionScheme
) -> Suggestion:
    if not last.candidate:
        return suggestion
    reason = f"{last.candidate} is tagged: leaving the pre-release drops its suffix."
    if scheme.key(suggestion.version) > scheme.key(last.candidate):
        if not _holds_enough(entries, last, scheme):
            return suggestion
        reason += f" By its changes it would be {suggestion.version}; what it holds was decided with it."
    return Suggestion(scheme.final(last.candidate), suggestion.bump, [reason, *suggestion.reasons])


def _holds_enough(entries: Sequence[Entry], last: Last, scheme: VersionScheme) -> bool:
    """Whether somebody tagged a pre-release knowing its changes, and nothing since calls for a higher line."""
    if not last.candidate or not last.held or not scheme.is_final(last.version):
        return False
    since = [entry.bump for entry in entries if not set(entry.sources) <= last.held]
    if not since:
        return True
    step = soften_bump(max(since, key=BUMPS.index), last.version, scheme)
    return bool(scheme.key(scheme.final(last.candidate)) >= scheme.key(scheme.bump(last.version, step)))


def _leave_pre_release(suggestion: Suggestion, last: str, scheme: VersionScheme) -> Suggestion:
    """After a pre-release without a final one before it: its final version."""
    reason = f"{last} is a pre-release: leaving it drops its suffix."
    return Suggestion(scheme.final(last), suggestion.bump, [reason, *suggestion.reasons])
