"""What goes over the API when somebody asks what has happened, and who decided it."""

from __future__ import annotations

from perdure.contracts.base import Contract, UtcTime


class AccountEntry(Contract):
    """One line of an account: who did what to what, when, on which plan, through which door."""

    position: int
    """Of the ledger's record that says so; ask for what comes after the last one."""
    at: UtcTime
    thread: str
    """Empty for what belongs to the installation."""
    job: str = ""
    """Id of the job."""
    who: str
    """A person, an agent's person, or ``perdure``."""
    what: str
    """ "asked", "approve", "break_glass", "gate satisfied", "began", "did", "undid", "token added", …"""
    digest: str = ""
    """Of the plan."""
    door: str = ""
    """Through which a decision came."""
    effect: str = ""
    """Kind of the effect."""
    target: str = ""
    """What the effect changes."""
    detail: str = ""
    """Comment of a decision, how an effect ended, what a token may."""


class AccountPage(Contract):
    """A part of an account, oldest first."""

    entries: list[AccountEntry]
    next: int = 0
    """Ask again with ``after`` set to this; 0: there is no more."""
