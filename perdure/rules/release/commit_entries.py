"""Entries out of commit messages: by type, by the project's own habits, or plain prose where there is no convention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from perdure.rules.git_commits import Commit
from perdure.rules.release.commit_signals import Reading, Signal, follows_convention, read_signals
from perdure.rules.release.commit_types import LISTED, UNSEEN, is_shipped
from perdure.rules.release.entries import Entry, clean_text
from perdure.rules.release.habits import Habit, Habits
from perdure.rules.release.versions import BUMPS, Bump

_SHOWN = 5
_NO_HABITS = Habits()


def read_commit_entries(
    commits: Sequence[Commit], habits: Habits = _NO_HABITS, reading: Reading | None = None
) -> tuple[list[Entry], list[str]]:
    """Return (entries, findings) of ``commits`` (newest first): merges, release commits and undone changes left out.

    Prose is listed under "Other" only where most commits follow no convention; elsewhere it is named as a finding.
    Where nothing is to be listed so, what reaches users unseen is: prose, ``refactor``, ``build``, dependencies; and
    the rest as well when the project has made such releases before. ``reading`` remembers commits of other packages.
    """
    signals, cancelled = read_signals(commits, habits.types, reading)
    left, signals = _leave_out(signals, habits)
    speaks = follows_convention(signals)
    entries = [entry for signal in signals if (entry := _write(signal, habits, lists_prose=not speaks))]
    prose = [signal for signal in signals if signal.typed is None] if speaks else []
    if not entries:
        return merge_same(_list_quiet(signals, habits)), cancelled.uncertain + left
    return merge_same(entries), cancelled.uncertain + left + _tell(signals, habits) + _name_prose(prose)


def merge_same(entries: Sequence[Entry]) -> list[Entry]:
    """Make one entry of those that say the same (a fix picked to several branches), with the sources of all."""
    merged: dict[tuple[str, str, str], Entry] = {}
    for entry in entries:
        key = (entry.section, entry.scope, entry.text)
        first = merged.get(key)
        if first is None:
            merged[key] = entry
            continue
        stronger = max(first, entry, key=lambda one: BUMPS.index(one.bump))
        breaking = first.breaking or entry.breaking
        merged[key] = replace(first, sources=first.sources + entry.sources, bump=stronger.bump, breaking=breaking)
    return list(merged.values())


def _write(signal: Signal, habits: Habits, *, lists_prose: bool) -> Entry | None:
    typed, step = signal.typed, habits.step(signal)
    if typed is None:
        return _make(signal, "Other", signal.commit.subject, "patch") if lists_prose else None
    if step is None:
        return _make_quiet(signal) if habits.lists(signal) else None
    text = f"{typed.description}: {typed.breaking_note}" if typed.breaking_note else typed.description
    found = habits.find(signal)
    rule = found[1].told if found and found[1].is_rule else ""
    entry = _make(signal, _find_section(signal, step), text, step)
    return replace(entry, rule=rule, breaking=entry.breaking or step == "major") if rule else entry


def _find_section(signal: Signal, step: Bump) -> str:
    """Where a change is listed that has a step: types that only the project's settings know by their step."""
    kind = signal.typed.type if signal.typed else ""
    if kind in LISTED:
        return LISTED[kind][0]
    if signal.typed and signal.typed.breaking:
        return "Changed"
    if kind in UNSEEN and not _is_shipped(signal):
        return "Other"
    return "Added" if step == "minor" else "Changed"


def _leave_out(signals: Sequence[Signal], habits: Habits) -> tuple[list[str], list[Signal]]:
    """Return (what to tell of it, the rest): changes that the project's settings make no release of."""
    silent = [(signal, where) for signal in signals if (where := habits.find_silent(signal))]
    left = {signal.commit.id for signal, _ in silent}
    told = {signal.commit.short: where for signal, where in silent if signal.step is not None}
    findings = [f"{short} is left out: {where} makes no release of it." for short, where in told.items()]
    return findings, [signal for signal in signals if signal.commit.id not in left]


def _list_quiet(signals: Sequence[Signal], habits: Habits) -> list[Entry]:
    """Entries of a range that lists nothing by itself: each is a patch."""
    typed = [signal for signal in signals if signal.typed is not None]
    shipped = [signal for signal in typed if _is_shipped(signal)]
    listed = typed if habits.quiet and not shipped else shipped
    chosen = [signal for signal in signals if signal.typed is None or signal in listed]
    return [_make_quiet(signal) for signal in chosen]


def _make_quiet(signal: Signal) -> Entry:
    return _make(signal, "Changed" if _is_shipped(signal) else "Other", _describe(signal), "patch")


def _is_shipped(signal: Signal) -> bool:
    typed = signal.typed
    return typed is not None and is_shipped(typed.type, typed.scope, typed.description)


def _describe(signal: Signal) -> str:
    return signal.typed.description if signal.typed else signal.commit.subject


def _make(signal: Signal, section: str, text: str, bump: Bump) -> Entry:
    typed, short = signal.typed, signal.commit.short
    return Entry(
        id=f"{short}.{signal.part}" if signal.part else short,
        section=section,
        text=clean_text(text),
        sources=(short,),
        bump=bump,
        scope=clean_text(typed.scope) if typed else "",
        breaking=bool(typed and typed.breaking),
        reason=clean_text(signal.commit.subject),
    )


def _tell(signals: Sequence[Signal], habits: Habits) -> list[str]:
    """Say what gave another step than the type alone would have."""
    pipeline = [one for one in signals if one.is_pipeline and not habits.find(one) and one.plain_step != one.step]
    return _name_habits(signals, habits) + _name_pipeline(pipeline)


def _name_pipeline(signals: Sequence[Signal]) -> list[str]:
    why = "Counts as a patch, because its scope names what builds and delivers the project, not the project"
    return [f"{why}: {_show(signals)}."] if signals else []


def _name_habits(signals: Sequence[Signal], habits: Habits) -> list[str]:
    """Say which habits gave another step than the type alone would have."""
    used: dict[str, tuple[Habit, Bump | None]] = {}
    for signal in signals:
        found, plain = habits.find(signal), signal.step
        if found and found[1].step != plain:
            used[found[0]] = (found[1], plain)
    return [
        f"{key} counts as {habit.step}, not {plain or 'nothing'}: {habit.told}." for key, (habit, plain) in used.items()
    ]


def _name_prose(prose: Sequence[Signal]) -> list[str]:
    return [f"Not listed, because they follow no convention: {_show(prose)}."] if prose else []


def _show(signals: Sequence[Signal]) -> str:
    shown = "; ".join(f"{one.commit.short} {clean_text(one.commit.subject)}" for one in signals[:_SHOWN])
    return shown + (f" and {len(signals) - _SHOWN} more" if len(signals) > _SHOWN else "")
