"""What goes over the API about standing approvals."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from perdure.contracts.base import Contract, Digest, UtcTime


class StandingRequest(Contract):
    """Let calls like the one of a plan go by themselves from now on. Without patterns: exactly that call."""

    decision_id: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$")
    digest: Digest
    """The plan of a call, whole; it may wait or have been decided."""
    target: str = Field(default="", max_length=500)
    """Glob over what calls touch, "command:make *"."""
    arguments: dict[str, str] = {}
    """Argument name to a glob over its text."""
    lasts_seconds: int = Field(gt=0, le=366 * 24 * 3600)
    uses: int = Field(default=0, ge=0)
    """So many calls; 0: any number."""
    comment: str = Field(default="", max_length=1000)
    passphrase: str = ""


class RevokeRequest(Contract):
    """Take a standing approval back."""

    decision_id: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$")
    comment: str = Field(default="", max_length=1000)
    passphrase: str = ""


class StandingView(Contract):
    """One standing approval: what it lets go, until when, and how often it did."""

    id: str
    state: Literal["stands", "ended", "used up", "revoked"]
    by: str
    thread: str
    tool: str
    target: str
    """Glob; empty where it is for exactly one call's arguments."""
    arguments: dict[str, str] = {}
    exactly: str = ""
    """Where it is for exactly one call's arguments: its plan's summary."""
    digest: Digest
    """The plan from which it was made."""
    until: UtcTime
    uses: int = 0
    """The most calls; 0: any number."""
    used: int
    since: UtcTime
    revoked_by: str = ""
    comment: str = ""
