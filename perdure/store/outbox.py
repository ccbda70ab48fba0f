"""The outbox: the ledger's records are what is to be told; here stands how far that went. One transaction a call."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Row, func, insert, select, update

from perdure.contracts.http import EventView
from perdure.contracts.notify import About, MessageState, MessageView
from perdure.errors import NotFound
from perdure.store import schema
from perdure.store.chain import time_of, time_text
from perdure.store.database import Database
from perdure.store.events import events_with_contents, view_of

_LEDGER = "ledger"
_RECORDS_AT_ONCE = 200


@dataclass(frozen=True)
class NewMessage:
    """A message that a record asks for."""

    key: str
    channel: str
    about: About
    position: int
    job_id: str
    digest: str
    due_at: datetime


class Outbox:
    """All that is asked of the ledger about messages."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def untold(self, kinds: Collection[str]) -> tuple[int, list[EventView]]:
        """Return (position up to which is looked, records of these kinds up to there) that have no messages yet.

        The position is 0 when there is no new record at all.
        """
        events = schema.events
        with self._database.read() as connection:
            after = connection.execute(_TOLD).scalar_one()
            head = connection.execute(select(func.max(events.c.position))).scalar_one() or 0
            if head <= after:
                return 0, []
            upto = min(head, after + _RECORDS_AT_ONCE)
            query = events_with_contents().where(events.c.position > after, events.c.position <= upto)
            rows = connection.execute(query.where(events.c.kind.in_(kinds)).order_by(events.c.position))
            return upto, [view_of(row) for row in rows]

    def add(self, upto: int, messages: Sequence[NewMessage]) -> bool:
        """Write the messages of all records up to a position; ``False`` where somebody else was first."""
        told, rows = schema.told, schema.messages
        with self._database.write() as connection:
            if connection.execute(_TOLD).scalar_one() >= upto:
                return False
            connection.execute(update(told).where(told.c.name == _LEDGER).values(position=upto))
            for message in messages:
                values = vars(message) | {"due_at": time_text(message.due_at)}
                connection.execute(insert(rows).values(**values, **_NEW))
        return True

    def release(self, is_dead: Callable[[str], bool], at: datetime) -> None:
        """Let messages that dead processes were sending be taken at once."""
        rows = schema.messages
        query = select(rows.c.key, rows.c.sender).where(rows.c.state == "waiting", rows.c.sender != "")
        with self._database.write() as connection:
            keys = [row.key for row in connection.execute(query) if is_dead(row.sender)]
            connection.execute(update(rows).where(rows.c.key.in_(keys)).values(due_at=time_text(at)))

    def take(self, sender: str, at: datetime, patience: timedelta) -> MessageView | None:
        """Take the message that has been due longest: nobody else does within ``patience``, unless it is settled first.

        One that was taken and never settled is given out again as doubtful: whoever sent it died over it.
        """
        rows = schema.messages
        due = (rows.c.state == "waiting", rows.c.due_at <= time_text(at))
        with self._database.write() as connection:
            row = connection.execute(select(rows).where(*due).order_by(rows.c.due_at).limit(1)).one_or_none()
            if row is None:
                return None
            doubt, until = row.is_doubtful or bool(row.sender), time_text(at + patience)
            values = {"attempts": row.attempts + 1, "sender": sender, "due_at": until, "is_doubtful": doubt}
            connection.execute(update(rows).where(rows.c.key == row.key).values(**values))
            return _view(connection.execute(select(rows).where(rows.c.key == row.key)).one())

    def is_any_due(self, at: datetime) -> bool:
        """Whether there is something to take; costs no writer's turn."""
        rows = schema.messages
        due = select(rows.c.key).where(rows.c.state == "waiting", rows.c.due_at <= time_text(at)).limit(1)
        with self._database.read() as connection:
            return connection.execute(due).first() is not None

    def settle(
        self, key: str, state: MessageState, *, at: datetime, error: str = "", again_at: datetime | None = None
    ) -> None:
        """Write how sending one went; ``again_at`` with the state "waiting"."""
        rows = schema.messages
        values: dict[str, Any] = {"state": state, "error": error[:500], "sender": ""}
        if state == "sent":
            values["sent_at"] = time_text(at)
        if again_at is not None:
            values["due_at"] = time_text(again_at)
        with self._database.write() as connection:
            connection.execute(update(rows).where(rows.c.key == key).values(**values))

    def send_again(self, key: str, *, at: datetime) -> MessageView:
        """Let a message that was given up, or waits for its next attempt, be sent now.

        Raises:
            NotFound: there is none of that key.
        """
        rows = schema.messages
        with self._database.write() as connection:
            mine = update(rows).where(rows.c.key == key, rows.c.state.in_(("failed", "waiting")))
            connection.execute(mine.values(state="waiting", attempts=0, due_at=time_text(at)))
            row = connection.execute(select(rows).where(rows.c.key == key)).one_or_none()
        if row is None:
            raise NotFound(f"There is no message {key!r}; `perdure messages list` names them.")
        return _view(row)

    def list(self, *, states: Collection[str] = (), job_id: str = "", limit: int = 100) -> list[MessageView]:
        """Return messages, the newest record's first."""
        rows = schema.messages
        query = select(rows).order_by(rows.c.position.desc(), rows.c.key).limit(limit)
        query = query.where(rows.c.state.in_(states)) if states else query
        query = query.where(rows.c.job_id == job_id) if job_id else query
        with self._database.read() as connection:
            return [_view(row) for row in connection.execute(query)]


_TOLD = select(schema.told.c.position).where(schema.told.c.name == _LEDGER)
_NEW = {
    "state": "waiting",
    "attempts": 0,
    "sender": "",
    "is_doubtful": False,
    "error": "",
    "sent_at": "",
}


def _view(row: Row[Any]) -> MessageView:
    return MessageView(
        key=row.key,
        channel=row.channel,
        about=row.about,
        position=row.position,
        job_id=row.job_id,
        digest=row.digest,
        state=row.state,
        attempts=row.attempts,
        error=row.error,
        is_doubtful=row.is_doubtful,
        due_at=time_of(row.due_at),
        sent_at=time_of(row.sent_at) if row.sent_at else None,
    )
