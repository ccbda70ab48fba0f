"""Going round in circles: seen from the traces of an agent's calls, told to the model first and then to a person."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from perdure.contracts.agent import CallTrace, LoopFinding

REPEATS = 3
"""So often the same call with the same answer, or the same rounds of calls, is a circle."""
FAILURES = 4
"""So often the same call fails, whatever else was tried between, it is a circle."""
LONGEST_ROUND = 4
"""Calls in one round of an alternation."""
IDLE_TURNS = 6
"""Turns in a row that change nothing and bring nothing new."""
PATIENCE_TURNS = 3
"""Turns that a model has after it was told, before a person is."""
MOST_TOLD = 3
"""So often a model is told of circles; of the next one a person is."""


def find_loop(traces: Sequence[CallTrace]) -> LoopFinding | None:
    """Return the circle that the last call stands in, the plainest kind first; ``None`` when it stands in none.

    ``traces``: finished calls, oldest first. A circle ends with the first call that does something else; change in the
    workspace ends all but repeated failures: editing and running the same failing check is work, but not for ever.
    """
    finders = (_find_same_call, _find_alternation, _find_same_failure, _find_no_change)
    return next((found for finder in finders if (found := finder(traces)) is not None), None)


def next_step(
    found: LoopFinding | None, told: Sequence[int], *, turn: int
) -> Literal["go_on", "tell_model", "tell_person"]:
    """Return what to do about a circle: told to the model first, to a person when it goes on or comes again.

    ``told``: turns at which the model was told of one, oldest first.
    """
    if found is None:
        return "go_on"
    if not told or (found.since_turn > told[-1] and len(told) < MOST_TOLD):
        return "tell_model"
    is_patient = turn - told[-1] < PATIENCE_TURNS and found.since_turn <= told[-1]
    return "go_on" if is_patient else "tell_person"


def _find_same_call(traces: Sequence[CallTrace]) -> LoopFinding | None:
    count = 0
    for trace in reversed(traces):
        if trace.changed or _key(trace) != _key(traces[-1]):
            break
        count += 1
    if count < REPEATS:
        return None
    first = traces[-count]
    sentence = f"{first.tool} was called {count} times in a row with the same arguments and gave the same answer."
    return LoopFinding(kind="same_call", sentence=sentence, since_turn=first.turn)


def _find_alternation(traces: Sequence[CallTrace]) -> LoopFinding | None:
    """Rounds of two or more different calls, each the same as the one before."""
    for length in range(2, LONGEST_ROUND + 1):
        needed = length * REPEATS
        last = traces[-needed:]
        if len(last) < needed or any(trace.changed for trace in last):
            continue
        keys = [_key(trace) for trace in last]
        if keys == keys[:length] * REPEATS and len(set(keys)) > 1:
            names = ", ".join(trace.tool for trace in last[:length])
            sentence = f"The same {length} calls ({names}) were made {REPEATS} times over and gave the same answers."
            return LoopFinding(kind="alternation", sentence=sentence, since_turn=last[0].turn)
    return None


def _find_same_failure(traces: Sequence[CallTrace]) -> LoopFinding | None:
    """The same call failing again and again since it last went well; its answers may differ (times, addresses)."""
    if not traces or traces[-1].status != "error":
        return None
    last, failed = traces[-1], []
    for trace in reversed(traces):
        if (trace.tool, trace.arguments_hash) == (last.tool, last.arguments_hash):
            if trace.status != "error":
                break
            failed.append(trace)
    if len(failed) < FAILURES:
        return None
    sentence = f"{last.tool} failed {len(failed)} times with the same arguments and never went well between."
    return LoopFinding(kind="same_failure", sentence=sentence, since_turn=failed[-1].turn)


def _find_no_change(traces: Sequence[CallTrace]) -> LoopFinding | None:
    """Turns that change nothing and in which every answer was seen before."""
    if not traces:
        return None
    seen: set[tuple[str, str, str]] = set()
    news: int = traces[0].turn
    for trace in traces:
        if trace.changed or _key(trace) not in seen:
            news = trace.turn
        seen.add(_key(trace))
    turns = sorted({trace.turn for trace in traces if trace.turn > news})
    if len(turns) < IDLE_TURNS:
        return None
    sentence = f"In {len(turns)} turns nothing was changed and no answer was new."
    return LoopFinding(kind="no_change", sentence=sentence, since_turn=turns[0])


def _key(trace: CallTrace) -> tuple[str, str, str]:
    return trace.tool, trace.arguments_hash, trace.answer_hash
