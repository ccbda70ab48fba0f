"""Every promise with the lines that keep it: see ``kept.py`` for how one is written down."""

from __future__ import annotations

from tests.promises import (
    agents,
    approved,
    asked,
    authority,
    doors,
    evidence,
    forges,
    heard,
    inverse,
    messages,
    once,
    pages,
    people,
    remembered,
    scheduled,
    told,
)
from tests.promises.kept import Kept

PROMISES: tuple[Kept, ...] = (
    *approved.KEPT,
    *once.KEPT,
    *inverse.KEPT,
    *heard.KEPT,
    *messages.KEPT,
    *authority.KEPT,
    *people.KEPT,
    *pages.KEPT,
    *agents.KEPT,
    *told.KEPT,
    *remembered.KEPT,
    *scheduled.KEPT,
    *doors.KEPT,
    *asked.KEPT,
    *forges.KEPT,
    *evidence.KEPT,
)
