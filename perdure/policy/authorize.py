"""Who may ask for what: one function for every door. Deny by default."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from perdure.errors import Refused
from perdure.policy.gates import EVERY_GROUP

Right = Literal["read", "submit", "decide", "own"]
"""own: make tokens, export evidence. Only whoever owns the installation has it; no token carries it."""

TOKEN_RIGHTS: frozenset[str] = frozenset({"read", "submit", "decide"})


@dataclass(frozen=True)
class Principal:
    """Who is asking, as a door has proven it."""

    name: str
    groups: tuple[str, ...] = ()
    may: frozenset[str] = frozenset()
    """Rights by name; a name that is no :data:`Right` counts for nothing."""


def local_owner(name: str) -> Principal:
    """The person whose uid owns the installation: every right, and stands for every group."""
    return Principal(name, (EVERY_GROUP,), frozenset(get_args(Right)))


def authorize(principal: Principal, right: Right) -> None:
    """Return when ``principal`` has ``right``.

    To submit or to decide does not include each other; both include reading.

    Raises:
        Refused: it has not, or there is no such right.
    """
    if right not in get_args(Right):
        raise Refused(f"There is no right {right!r}; known: {', '.join(get_args(Right))}. Nothing was done.")
    allowed = principal.may & set(get_args(Right))
    if right in allowed or (right == "read" and allowed):
        return
    held = ", ".join(sorted(allowed)) or "none"
    raise Refused(
        f"{principal.name} may not {_DOING[right]} (rights: {held}). "
        "Ask the owner for a token that may: `perdure tokens add`."
    )


_DOING = {
    "read": "read jobs and plans",
    "submit": "submit jobs",
    "decide": "decide",
    "own": "do what only the owner of the installation may",
}
