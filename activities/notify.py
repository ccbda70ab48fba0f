"""Tells people: goes through the ledger's new records, makes messages of them, and sends what is due.

No workflow: what is told changes nothing, and a job must not wait for a mail server. The ledger remembers how far it
went, so a killed worker's successor goes on there; what was just being sent then may come twice, and says so.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from activities.ledger import Decisions
from perdure.contracts.http import EventView
from perdure.contracts.job import JobPhase
from perdure.contracts.notify import Channel, MessageView
from perdure.contracts.people import Person
from perdure.contracts.plan import Plan, read_plan
from perdure.effects.base import Blobs
from perdure.errors import PerdureError, SetupError
from perdure.notify.sending import Send, carrying
from perdure.notify.wording import write_message
from perdure.policy.notify import NOTICE, TOLD_KINDS, goes_to, news_of
from perdure.store.ledger import Ledger
from perdure.store.outbox import NewMessage, Outbox
from perdure.store.plans import OPEN

LOOK_SECONDS = 1.0
"""How often new records and due messages are looked for."""

_PATIENCE = timedelta(minutes=2)
"""For one attempt; after that somebody else may take the message."""
_FIRST_PAUSE, _LONGEST_PAUSE = timedelta(seconds=10), timedelta(hours=1)
_MOST_ATTEMPTS = 20
"""Some thirteen hours."""

log = logging.getLogger("perdure.notify")


@dataclass(frozen=True)
class Channels:
    """The channels of today, with who is who and where the page is."""

    by_name: Mapping[str, Channel]
    people: Mapping[str, Person] | None = None
    page: str = ""
    """Address of the small page, "https://perdure.internal"; empty: messages name the command."""


class Courier:
    """One goes in each worker; the ledger gives each message to one of them."""

    def __init__(
        self,
        ledger: Ledger,
        blobs: Blobs,
        decisions: Decisions,
        channels: Callable[[], Channels],
        address_of: Callable[[str], str | None],
        words: Path,
        sender: str,
        is_dead: Callable[[str], bool],
        carry: Callable[[], AbstractContextManager[Send]] = carrying,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._ledger = ledger
        self._outbox = Outbox(ledger.database)
        self._blobs = blobs
        self._decisions = decisions
        self._channels = channels
        self._address_of = address_of
        self._words = words
        self._sender = sender
        self._is_dead = is_dead
        self._carry = carry
        self._now = now

    async def run(self, stop: asyncio.Event) -> None:
        """Go on until ``stop``; what cannot be done now is tried with the next look."""
        said, is_new = "", True
        while not stop.is_set():
            try:
                if is_new:
                    await asyncio.to_thread(self.take_over)
                await asyncio.to_thread(self.work, stop.is_set)
                said, is_new = "", False
            except PerdureError as error:
                if error.message != said:
                    log.warning("people cannot be told: %s", error.message)
                said = error.message
            except Exception:
                log.exception("people cannot be told")  # what is wrong with one must not end the worker for all
            try:
                await asyncio.wait_for(stop.wait(), LOOK_SECONDS)
            except TimeoutError:
                continue

    def take_over(self) -> None:
        """What dead workers were sending is sent again at once, as something that may have arrived."""
        self._outbox.release(self._is_dead, self._now())

    def work(self, is_stopped: Callable[[], bool] = lambda: False) -> int:
        """Make the messages of all new records and send what is due, one by one; return how many were settled.

        Raises:
            SetupError: the settings or the ledger cannot be read now; nothing is lost.
        """
        while True:
            upto, records = self._outbox.untold(TOLD_KINDS)
            if not upto:
                break
            channels = self._channels() if records else Channels({})
            self._outbox.add(upto, [new for record in records for new in self._messages(record, channels)])
        if not self._outbox.is_any_due(self._now()):
            return 0
        channels, count = self._channels(), 0
        with self._carry() as send:
            while not is_stopped() and (message := self._outbox.take(self._sender, self._now(), _PATIENCE)):
                self._deliver(message, channels, send)
                count += 1
        return count

    def _messages(self, record: EventView, channels: Channels) -> list[NewMessage]:
        if record.kind == "effect.receipt":
            return self._notices(record)
        if not channels.by_name:
            return []
        digest = _digest_of(record)
        plan = self._plan(digest) if record.kind == "gate.opened" else None
        requester = self._ledger.job(record.job_id).requester if record.job_id else ""
        return [
            NewMessage(
                key=f"{record.position}.{news.about}.{news.number}/{name}",
                channel=name,
                about=news.about,
                position=record.position,
                job_id=record.job_id,
                digest=digest,
                due_at=news.due_at,
            )
            for news in news_of(record, plan.envelope if plan else None, requester)
            for name, channel in channels.by_name.items()
            if goes_to(channel, news, channels.people)
        ]

    def _notices(self, record: EventView) -> list[NewMessage]:
        """What a plan says itself, to the channel that it names."""
        if (record.body.get("kind"), record.body.get("state")) != (NOTICE, "done") or record.body["direction"] != "do":
            return []
        channel = self._notice(record)["to"]
        key, digest = f"{record.position}.notice.0/{channel}", _digest_of(record)
        return [NewMessage(key, channel, "notice", record.position, record.job_id, digest, record.at)]

    def _notice(self, record: EventView) -> dict[str, Any]:
        return self._plan(record.body["digest"]).effects[record.body["index"]].body

    def _deliver(self, message: MessageView, channels: Channels, send: Send) -> None:
        words = self._write(message, channels)
        if words is None:
            self._outbox.settle(message.key, "dropped", at=self._now(), error="nobody has to be told any more")
            return
        try:
            address = self._address_of(message.channel)
            if not address:
                raise SetupError(
                    f"Channel {message.channel!r} has no address. Write one of apprise's into "
                    f"secrets/{message.channel} of the data folder, mode 0600."
                )
            send(message.channel, address, *words, message.key)
        except PerdureError as error:
            self._note_failure(message, error.message)
        else:
            self._outbox.settle(message.key, "sent", at=self._now())

    def _note_failure(self, message: MessageView, why: str) -> None:
        log.warning("message %s was not delivered: %s", message.key, why)
        if message.attempts >= _MOST_ATTEMPTS:
            self._outbox.settle(message.key, "failed", at=self._now(), error=why)
            return
        pause = min(_FIRST_PAUSE * 2 ** min(message.attempts - 1, 16), _LONGEST_PAUSE)
        self._outbox.settle(message.key, "waiting", at=self._now(), error=why, again_at=self._now() + pause)

    def _write(self, message: MessageView, channels: Channels) -> tuple[str, str] | None:
        """Title and body; ``None`` when nobody has to be told any more, or its words were erased."""
        [record] = self._ledger.events(after=message.position - 1, limit=1)
        if not record.body:
            return None
        if message.about == "notice":
            notice = self._notice(record)
            return notice["title"], notice["text"]
        facts = self._facts(message, record, channels)
        return write_message(self._words, message.about, facts) if facts is not None else None

    def _facts(self, message: MessageView, record: EventView, channels: Channels) -> dict[str, Any] | None:
        job = self._ledger.job(record.job_id)
        facts: dict[str, Any] = {
            "job": job.name,
            "template": job.template,
            "thread": job.thread,
            "requester": job.requester,
            "digest": message.digest,
            "plan_title": "",
            "missing": [],
            "until": "",
            "actor": record.actor,
            "again": message.is_doubtful,
            "link": f"{channels.page}/plans/{message.digest}" if channels.page and message.digest else "",
            "command": f"perdure review {message.digest[:8]}" if message.digest else f"perdure show {job.number}",
            "phase": str(record.body.get("phase", "")).replace("_", " "),
            "outcome": str(record.body.get("outcome", "")).replace("_", " "),
            "schedule": str(record.body.get("schedule", "")),
            "said": _said(record),
        }
        if message.about not in ("waits", "reminder", "escalation"):
            return facts | {"plan_title": self._title(message.digest)}
        return self._while_open(message, job.phase, facts)

    def _while_open(self, message: MessageView, phase: JobPhase, facts: dict[str, Any]) -> dict[str, Any] | None:
        if not message.digest:
            return facts if phase is JobPhase.paused else None
        row = self._ledger.plan(message.digest)
        if row.state != OPEN:
            return None
        now = self._now()
        missing = self._decisions.weigh(self._plan(message.digest), message.digest, now).missing
        return facts | {"missing": missing, "until": f"{row.expires_at:%Y-%m-%d %H:%M} UTC", "plan_title": row.title}

    def _plan(self, digest: str) -> Plan:
        return read_plan(digest, self._blobs.get(self._ledger.plan(digest).ref))

    def _title(self, digest: str) -> str:
        return self._ledger.plan(digest).title if digest else ""


def _digest_of(record: EventView) -> str:
    found = record.body.get("digest") or record.body.get("decision", {}).get("digest")
    return str(found or "")


def _said(record: EventView) -> str:
    body = record.body
    found = body.get("detail") or body.get("summary") or body.get("decision", {}).get("comment")
    return str(found or "")[:500]
