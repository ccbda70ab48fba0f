"""Escapes from public write-ups: each works unboxed, as root and as a plain user, and none works in the sandbox."""

from __future__ import annotations

from functools import cache

import pytest

from tests.hostile.escapes.base import ESCAPED, Escape
from tests.hostile.escapes.files import FILES
from tests.hostile.escapes.hosts import attempt_all
from tests.hostile.escapes.kernel import KERNEL
from tests.hostile.escapes.network import NETWORK
from tests.hostile.escapes.processes import PROCESSES
from tests.hostile.escapes.users import USERS

ESCAPES = (*FILES, *PROCESSES, *NETWORK, *KERNEL)


@cache
def said(uid: int, *, boxed: bool) -> dict[str, str]:
    """What all scripts said, by name."""
    return attempt_all(ESCAPES, uid, boxed=boxed)


def is_possible(escape: Escape, uid: int) -> bool:
    """Whether this user can surely do it unboxed."""
    return not escape.is_optional and (uid == 0 or not escape.needs_root)


@pytest.mark.xdist_group("escapes")
@pytest.mark.parametrize("uid", USERS)
@pytest.mark.parametrize("escape", ESCAPES, ids=lambda escape: escape.name)
def test_escape_works_unboxed_and_not_inside(escape: Escape, uid: int) -> None:
    """What gets out of a plain process is refused in the sandbox, and the command says what refused it."""
    if is_possible(escape, uid):
        assert ESCAPED in said(uid, boxed=False)[escape.name]
    inside = said(uid, boxed=True)[escape.name]
    assert ESCAPED not in inside


@pytest.mark.parametrize("uid", USERS)
def test_there_are_forty(uid: int) -> None:
    """The table proves something: so many escapes are real on this machine for this user."""
    real = [escape.name for escape in ESCAPES if ESCAPED in said(uid, boxed=False)[escape.name]]
    assert len(real) >= 40
