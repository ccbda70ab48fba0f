"""An account of what happened, from the ledger's records: who decided what on which plan, what ran, what was undone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Any

from sqlalchemy import Connection, select, tuple_

from perdure.contracts.base import JsonDict
from perdure.contracts.http import EventView
from perdure.contracts.http_account import AccountEntry, AccountPage
from perdure.store import schema
from perdure.store.chain import time_text
from perdure.store.database import Database
from perdure.store.events import INSTALLATION, events_with_contents, view_of

PAGE = 1000
"""Records that are read at once."""

_DID = {"do": ("began", "did"), "undo": ("began to undo", "undid")}

Targets = Mapping[tuple[str, int, str], str]
"""What an effect changes, by (application, index, direction)."""


@dataclass(frozen=True)
class Question:
    """What is asked about; what is empty is not asked."""

    thread: str = ""
    person: str = ""
    target: str = ""
    """A part of it, or a pattern with ``*``."""
    since: datetime | None = None
    until: datetime | None = None


class Accounts:
    """Reads accounts. Writes nothing, and believes nothing that ``audit`` would not check."""

    def __init__(self, database: Database, page: int = PAGE) -> None:
        self._database = database
        self._page = page

    def read(self, question: Question, *, after: int = 0) -> AccountPage:
        """Return the entries of the next records after a position; a page may be empty and yet have a next one."""
        with self._database.read() as connection:
            rows = connection.execute(_records(question, after).limit(self._page)).all()
            views = [view_of(row) for row in rows]
            digests = _digests_on(connection, question.target) if question.target else frozenset()
            targets = _targets_of(connection, views)
        found = [entry for view in views if (entry := _entry(view, targets)) is not None]
        kept = [entry for entry in found if _is_asked(entry, question, digests)]
        return AccountPage(entries=kept, next=views[-1].position if len(views) == self._page else 0)


def _records(question: Question, after: int) -> Any:
    events = schema.events
    query = events_with_contents().where(events.c.position > after)
    if question.thread:
        query = query.where(events.c.thread == question.thread)
    if question.since is not None:
        query = query.where(events.c.at >= time_text(question.since))
    if question.until is not None:
        query = query.where(events.c.at < time_text(question.until))
    return query.order_by(events.c.position)


def _digests_on(connection: Connection, target: str) -> frozenset[str]:
    """Plans that began to change a target: their decisions belong to its account."""
    intents = schema.intents
    rows = connection.execute(select(intents.c.digest, intents.c.target).distinct()).all()
    return frozenset(row.digest for row in rows if _touches(row.target, target))


def _targets_of(connection: Connection, views: Sequence[EventView]) -> Targets:
    keys = [_key(view.body) for view in views if view.kind.startswith("effect.") and view.body]
    if not keys:
        return {}
    intents = schema.intents
    columns = (intents.c.application_id, intents.c.effect_index, intents.c.direction)
    query = select(*columns, intents.c.target).where(tuple_(*columns).in_(keys))
    return {(row[0], row[1], row[2]): row.target for row in connection.execute(query)}


def _key(body: JsonDict) -> tuple[str, int, str]:
    return str(body.get("application_id")), int(body.get("index", -1)), str(body.get("direction"))


def _entry(view: EventView, targets: Targets) -> AccountEntry | None:
    """What a record says in an account; ``None`` when it says nothing there."""
    told = _tell(view, targets)
    if told is None:
        return None
    thread = "" if view.thread == INSTALLATION else view.thread
    about = {"position": view.position, "at": view.at, "thread": thread, "job": view.job_id, "who": view.actor}
    return AccountEntry.model_validate({**about, **told})


def _tell(view: EventView, targets: Targets) -> JsonDict | None:
    kind, body = view.kind, view.body
    if kind == "job.requested":
        return {"what": "asked", "detail": str(body.get("template", ""))}
    if kind.startswith("decision."):
        return _tell_decision(kind.removeprefix("decision."), body.get("decision", {}))
    if kind == "gate.closed":
        detail = str(body.get("detail", ""))
        return {"what": f"gate {body.get('outcome', '')}", "digest": str(body.get("digest", "")), "detail": detail}
    if kind in ("effect.intent", "effect.receipt"):
        return _tell_effect(kind, body, targets)
    if kind in ("token.added", "token.revoked"):
        named = [str(body.get("principal", "")), *map(str, body.get("may", []))]
        return {"what": kind.replace(".", " "), "detail": " ".join(named)}
    return {"what": "thread erased", "detail": str(body.get("thread", ""))} if kind == "thread.erased" else None


def _tell_decision(kind: str, said: JsonDict) -> JsonDict:
    names = {"digest": "digest", "door": "door", "comment": "detail"}
    told = {name: str(said.get(field) or "") for field, name in names.items()}
    if said.get("since"):
        told["detail"] = f"{told['detail']} (seen as the difference from {said['since'][:8]})".strip()
    return {"what": kind, **told}


def _tell_effect(kind: str, body: JsonDict, targets: Targets) -> JsonDict:
    began, ended = _DID.get(str(body.get("direction")), ("began", "did"))
    about = {"effect": str(body.get("kind", "")), "digest": str(body.get("digest", ""))}
    about["target"] = targets.get(_key(body), str(body.get("target", "")))
    if kind == "effect.intent":
        return {"what": began, **about}
    state, detail = str(body.get("state", "")), str(body.get("detail", ""))
    return {"what": ended, **about, "detail": f"{state}: {detail}".removesuffix(": ")}


def _is_asked(entry: AccountEntry, question: Question, digests: frozenset[str]) -> bool:
    if question.person and entry.who != question.person:
        return False
    return not question.target or entry.digest in digests or _touches(entry.target, question.target)


def _touches(target: str, wanted: str) -> bool:
    return fnmatchcase(target, wanted) if "*" in wanted else bool(target) and wanted in target
