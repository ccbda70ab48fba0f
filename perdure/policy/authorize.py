"""Who may ask for what: one function for every door. Deny by default; an agent decides nothing, whatever it has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from perdure.errors import Refused
from perdure.policy.people import EVERY_GROUP

Right = Literal["read", "submit", "decide", "break_glass", "own"]
"""break_glass: let a plan go alone, where its rule lets one's group. own: make tokens, export evidence. Only whoever
owns the installation has that; no token carries it."""

TOKEN_RIGHTS: frozenset[str] = frozenset({"read", "submit", "decide", "break_glass"})
AGENT_RIGHTS: frozenset[str] = frozenset({"read", "submit"})
"""All that an agent can ever have."""


@dataclass(frozen=True)
class Principal:
    """Who is asking, as a door has proven it."""

    name: str
    groups: tuple[str, ...] = ()
    may: frozenset[str] = frozenset()
    """Rights by name; a name that is no :data:`Right` counts for nothing."""
    acts_for: str = ""
    """Set: an agent, and this is the person behind it."""
    door: str = ""
    """Through which door, as decisions and requests record it: "unix socket", "token 4f2a81c0"."""

    @property
    def person(self) -> str:
        """Who stands behind what is asked for: the person, for an agent the one it acts for."""
        return self.acts_for or self.name

    @property
    def rights(self) -> frozenset[str]:
        """The rights that count."""
        known = self.may & set(get_args(Right))
        return known & AGENT_RIGHTS if self.acts_for else known


def local_owner(name: str) -> Principal:
    """The person whose uid owns the installation: every right, and stands for every group."""
    return Principal(name, (EVERY_GROUP,), frozenset(get_args(Right)), door="unix socket")


def authorize(principal: Principal, right: Right) -> None:
    """Return when ``principal`` has ``right``.

    To submit, to decide and to break glass do not include each other; each includes reading.

    Raises:
        Refused: it has not, or there is no such right.
    """
    if right not in get_args(Right):
        raise Refused(f"There is no right {right!r}; known: {', '.join(get_args(Right))}. Nothing was done.")
    allowed = principal.rights
    if right in allowed or (right == "read" and allowed):
        return
    refuse_agent(principal, right)
    held = ", ".join(sorted(allowed)) or "none"
    raise Refused(
        f"{principal.name} may not {_DOING[right]} (rights: {held}). "
        "Ask the owner for a token that may: `perdure tokens add`."
    )


def refuse_agent(principal: Principal, right: Right = "decide") -> None:
    """Raise ``Refused`` for an agent: whatever it may, it signs no decision."""
    if principal.acts_for:
        raise Refused(
            f"{principal.name} may not {_DOING[right]}: it is an agent of {principal.acts_for}, and agents may only "
            "read and submit. A person decides."
        )


_DOING = {
    "read": "read jobs and plans",
    "submit": "submit jobs",
    "decide": "decide",
    "break_glass": "break the glass",
    "own": "do what only the owner of the installation may",
}
