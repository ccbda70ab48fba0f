"""A review in words that a terminal and a page say alike; what is invisible in them is still to be made visible."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from perdure.contracts.http import EffectView, Review
from perdure.contracts.plan import After, Inverse, PlannedEffect

ON_FAILURE = {"pause": "a person says how it goes on", "report": "it is said at the end, and nothing is undone"}

LONG_VALUE = 200
"""A value in an effect's body from this length on is set on lines of its own."""


def repositories_of(review: Review) -> list[str]:
    """The repositories that the plan's effects change: clones of one origin share a thread, and its name."""
    found = [view.effect.body.get("repository") for view in review.effects]
    return sorted({place for place in found if isinstance(place, str)})


def way_back(inverse: Inverse) -> str:
    """How an effect is undone, or why not."""
    if inverse.irreversible:
        return f"no undo: {inverse.irreversible}"
    if inverse.none_needed:
        return f"nothing to undo: {inverse.none_needed}"
    return f"undo: {inverse.summary}"


def on_worker(review: Review) -> Iterator[str]:
    """What runs outside of the sandbox."""
    for view in review.effects:
        after = view.effect.after
        if runs_on_worker(view.effect):
            yield f"{view.effect.id} runs"
        elif after is not None and after.on_worker and (after.settle or after.run):
            yield f"{view.effect.id} runs what comes after it"


def runs_on_worker(effect: PlannedEffect) -> bool:
    """Whether an effect is a command that runs on the worker itself."""
    return effect.kind == "shell.run" and effect.runs_on == "worker"


def is_unknown(view: EffectView) -> bool:
    """Whether nobody can tell what an effect that has not begun would change."""
    return view.would == "unknown" and not view.state


def after_words(after: After | None) -> Iterator[str]:
    """What comes after an effect, in words."""
    if after is None:
        return
    where = " on the worker itself" if after.on_worker else " in the sandbox"
    if after.settle:
        yield f"runs `{' '.join(after.settle)}`{where}, also when it was taken back"
    within = f" within {after.within_seconds} s" if after.within_seconds else ""
    if after.run:
        yield f"looks: `{' '.join(after.run)}`{where} ends with 0{within}"
    if after.http:
        yield f"looks: {after.http} answers {after.status}{within}"


def body_lines(body: dict[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """Exactly what will be done: (key, lines). One short line, or a text of several as it is set."""
    for key, value in body.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        lines = text.splitlines() or [""]
        # A short one keeps the line's end, which is shown too.
        yield key, [text] if len(lines) == 1 and len(text) < LONG_VALUE else lines


def is_short(lines: list[str]) -> bool:
    """Whether a value of :func:`body_lines` stands beside its key."""
    return len(lines) == 1 and len(lines[0]) < LONG_VALUE


def needs_words(review: Review) -> str:
    """Whose approval a plan needs."""
    wanted = wanted_groups(review) or "nobody's approval: all of it can be undone"
    own = "" if review.rule.requester_may_approve else ", not whoever asked for it"
    return wanted + own + (f" (policy {review.rule.policy})" if review.rule.policy else "")


def wanted_groups(review: Review) -> str:
    """ "1 from maintainers, 2 from dba"."""
    return ", ".join(f"{rule.count} from {rule.group}" for rule in review.rule.approvals)


def state_words(review: Review) -> str:
    """How a plan that is no longer open stands, and by whom."""
    by = f" by {', '.join(review.weighing.by)}" if review.weighing.by else ""
    return review.state.replace("_", " ") + by + (", self-approved" if review.weighing.self_approved else "")
