"""What a thread remembers of the people who decided on its plans: only what they signed."""

from __future__ import annotations

from perdure.contracts.base import Contract, JsonDict, UtcTime
from perdure.contracts.plan import Settled


class RememberedEdit(Contract):
    """One person's edit of an earlier job's plan, as it took effect."""

    by: str
    at: UtcTime
    why: str = ""
    """The decision's comment."""
    changes: JsonDict
    """As in ``decisions.Edits``."""
    seen: JsonDict
    """What was edited: the analysis of that plan, value by step."""


class Confirmed(Contract):
    """What an approval settled for the thread's later jobs."""

    by: str
    """Everybody whose approval made it: "ann, ben"."""
    at: UtcTime
    """Of the last approval."""
    what: list[Settled]


class Memory(Contract):
    """What earlier decisions of a thread say to a rule; each list oldest first."""

    edits: list[RememberedEdit] = []
    confirmed: list[Confirmed] = []
