"""Schedules from the front doors: checked, signed, written to the ledger, then told to Temporal's clock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta

from pydantic import TypeAdapter, ValidationError

from perdure.contracts.canonical import canonical_bytes
from perdure.contracts.http import SubmitRequest
from perdure.contracts.schedules import (
    FireNotice,
    NextFire,
    ScheduleAsk,
    ScheduleDefinition,
    ScheduleEdit,
    ScheduleRequest,
    ScheduleView,
    ScheduleWord,
    ScheduleWordRequest,
)
from perdure.contracts.values import Money
from perdure.deciding import Decider
from perdure.errors import PerdureError, Refused, SetupError, UserError
from perdure.intake import Intake
from perdure.policy.authorize import Principal
from perdure.policy.cron import read_seconds, read_times, read_when
from perdure.policy.firing import fires_between, next_fires
from perdure.policy.preflight import find_silent_gates, list_approvals
from perdure.policy.templates import parse_template
from perdure.runtime.messenger import Messenger
from perdure.runtime.schedules import ScheduleKeeper
from perdure.schedule_views import ScheduleReader
from perdure.store.blobs import BlobStore
from perdure.store.ledger import Ledger
from perdure.store.schedule_ledger import Schedules

_MONEY = TypeAdapter(Money)
_DAYS = 86_400

MOST_FIRES = 1000
"""A backfill asks for no more: each is a job."""


class Scheduler:
    """Words about schedules, of principals who were authorized before. A word counts once it is in the ledger."""

    def __init__(
        self,
        ledger: Ledger,
        blobs: BlobStore,
        intake: Intake,
        decider: Decider,
        messenger: Messenger,
        now: Callable[[], datetime],
    ) -> None:
        self._ledger = ledger
        self._schedules = Schedules(ledger.database)
        self._blobs = blobs
        self._intake = intake
        self._decider = decider
        self._keeper = ScheduleKeeper(messenger)
        self._messenger = messenger
        self._now = now
        self.reader = ScheduleReader(ledger, self._schedules, blobs, intake, now)

    async def add(self, principal: Principal, request: ScheduleRequest) -> ScheduleView:
        """Make a schedule; with ``only_check`` return how it would look, and make nothing.

        Raises:
            UserError: template, inputs or times are wrong.
            Refused: a gate does not say what happens when nobody is there; the template is not trusted.
            Conflict: the name is taken.
            SetupError: recorded, but Temporal could not be told yet; it is told again.
        """
        definition = await asyncio.to_thread(self._define, principal.name, request.name, request.asked)
        if request.only_check:
            return self.reader.preview(definition)
        word = ScheduleWord(kind="add", name=request.name, by=principal.name, at=self._now(), definition=definition)
        return await self._say(principal, word, request.decision_id, request.passphrase)

    async def edit(self, principal: Principal, name: str, request: ScheduleEdit) -> ScheduleView:
        """Give a schedule another definition. The next fire comes from it alone; what was due before is given up."""
        old = await asyncio.to_thread(self.reader.definition, name)
        definition = await asyncio.to_thread(self._define, principal.name, name, _changed(old.asked, request))
        word = ScheduleWord(kind="edit", name=name, by=principal.name, at=self._now(), definition=definition)
        return await self._say(principal, word, request.decision_id, request.passphrase)

    async def say(self, principal: Principal, name: str, request: ScheduleWordRequest) -> ScheduleView:
        """Pause, resume, trigger, backfill or delete a schedule."""
        definition = await asyncio.to_thread(self.reader.definition, name)
        start = end = None
        if request.kind == "backfill":
            start, end = (read_when(text, definition.times.zone) for text in (request.start, request.end))
            self._check_span(definition, start, end)
        about = {"kind": request.kind, "name": name, "note": request.note, "start": start, "end": end}
        word = ScheduleWord.model_validate({**about, "by": principal.name, "at": self._now()})
        return await self._say(principal, word, request.decision_id, request.passphrase)

    def next(self, name: str, *, count: int, after: str) -> list[NextFire]:
        """Return the next fires of a schedule, seen from ``after`` (empty: from now)."""
        times = self.reader.definition(name).times
        return next_fires(times, read_when(after, times.zone) if after else self._now(), count)

    async def retell(self) -> int:
        """Tell Temporal of words that it may not have heard of; return of how many."""
        told = 0
        for decision_id, name, _ in await asyncio.to_thread(self._schedules.untold):
            try:
                await self._tell(name, decision_id)
            except PerdureError:
                continue  # it stays untold in the ledger
            told += 1
        return told

    async def recover(self) -> int:
        """Make Temporal's schedules again that it has lost, and look at those of which something is due."""
        listed = await self._keeper.names()
        mended = 0
        for row in await asyncio.to_thread(self._schedules.every):
            try:
                definition = await asyncio.to_thread(self.reader.definition, row.name)
            except PerdureError:
                continue  # its word was erased or damaged: the audit names it
            if row.name not in listed:
                paused = row.state == "paused"
                await self._keeper.put(definition, paused=paused, note=row.note, now=self._now())
                mended += 1
            if row.state == "active" and fires_between(definition.times, row.handled_until, self._now()):
                await self._messenger.fire(FireNotice(thread=row.thread, schedule=row.name))
        return mended

    def _define(self, requester: str, name: str, asked: ScheduleAsk) -> ScheduleDefinition:
        request = SubmitRequest(
            template=asked.template, inputs=asked.inputs, request_id="schedule", folder=asked.folder
        )
        prepared = self._intake.prepare(request, requester)
        spec = prepared.spec
        template = parse_template(spec.template_source, path=spec.template)
        if silent := find_silent_gates(template):
            raise Refused(
                f"Template {spec.template!r} says nothing about what happens when nobody is there: "
                f"{'; '.join(silent)}. A schedule of it would wait for people who do not know. Nothing was made."
            )
        each, (together, days) = _money(asked.cost_each), _read_cap(asked.cost_all)
        return ScheduleDefinition(
            name=name,
            asked=asked,
            thread=prepared.thread,
            template=spec.template,
            template_source=spec.template_source,
            template_digest=spec.template_digest,
            inputs=spec.inputs,
            requester=requester,
            times=read_times(
                zone=asked.zone, cron=asked.cron, calendars=asked.calendars, every=asked.every, jitter=asked.jitter
            ),
            overlap=asked.overlap,
            newer_plan=template.review.when_scheduled.newer_plan,
            approvals=list_approvals(template),
            cost_each_microdollars=each,
            cost_all_microdollars=together,
            cost_days=days,
            alert_after=asked.alert_after,
        )

    def _check_span(self, definition: ScheduleDefinition, start: datetime, end: datetime) -> None:
        if not start <= end <= self._now():
            raise UserError("A backfill goes from an earlier time to a later one, and not beyond now.")
        found = fires_between(definition.times, start - timedelta(seconds=1), end)
        if not found:
            raise UserError(f"Schedule {definition.name!r} has no fire between these times; `perdure schedule next`.")
        if len(found) > MOST_FIRES:
            raise UserError(f"That are {len(found)} fires, and each is a job; at most {MOST_FIRES}. Take a part of it.")

    async def _say(self, principal: Principal, word: ScheduleWord, decision_id: str, passphrase: str) -> ScheduleView:
        await asyncio.to_thread(self._record, principal, word, decision_id, passphrase)
        try:
            await self._tell(word.name, decision_id)
        except SetupError as error:
            raise SetupError(
                f"Your word is recorded and counts, but {error.message} It is passed on as soon as that works."
            ) from error
        return await asyncio.to_thread(self.reader.view, word.name)

    def _record(self, principal: Principal, word: ScheduleWord, decision_id: str, passphrase: str) -> None:
        if self._ledger.decision(decision_id) is not None:
            return  # the same word again
        ref = self._blobs.put(canonical_bytes(word.model_dump(mode="json")))
        said = {"id": decision_id, "kind": "schedule", "job_id": "", "digest": ref.sha256}
        about = f"{word.kind} {word.name}" + (f": {word.note}" if word.note else "")
        signed = self._decider.sign(principal, passphrase, **said, comment=about)
        self._schedules.record(signed, word, ref, at=word.at, skipped=self._given_up(word))

    def _given_up(self, word: ScheduleWord) -> str:
        """What a resume or an edit leaves undone: a missed span is not handled because somebody un-paused."""
        if word.kind not in ("resume", "edit"):
            return ""
        row = self._schedules.find(word.name)
        times = self.reader.definition(word.name).times
        missed = fires_between(times, row.handled_until, word.at)
        if not missed:
            return ""
        why = f"while paused ({row.note})" if row.state == "paused" else "by the new definition"
        return f"{len(missed)} fires from {missed[0].key} to {missed[-1].key} are given up {why}"

    async def _tell(self, name: str, decision_id: str) -> None:
        """Make Temporal's schedule what the ledger says now, and have the thread look."""
        row = await asyncio.to_thread(self._schedules.find, name)
        if row.state == "deleted":
            await self._keeper.remove(name)
        else:
            definition = await asyncio.to_thread(self.reader.definition, name)
            await self._keeper.put(definition, paused=row.state == "paused", note=row.note, now=self._now())
            if await asyncio.to_thread(self._schedules.asked_for, name):
                await self._messenger.fire(FireNotice(thread=row.thread, schedule=name))
        await asyncio.to_thread(self._ledger.mark_told, decision_id)


def _changed(asked: ScheduleAsk, request: ScheduleEdit) -> ScheduleAsk:
    changes = dict(request.changes)
    changes["inputs"] = {**asked.inputs, **changes.get("inputs", {})}
    try:
        return ScheduleAsk.model_validate({**asked.model_dump(), **changes})
    except ValidationError as error:
        first = error.errors()[0]
        raise UserError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}. Nothing was changed.") from error


def _read_cap(text: str) -> tuple[int | None, int]:
    """Return (microdollars, days) of "20 USD/30d"; (None, 30) of nothing."""
    money, slash, span = text.partition("/")
    days = read_seconds(span) // _DAYS if slash else 30
    if not 1 <= days <= 366:
        raise UserError(f"{text!r} is no cap; expected a sum and 1 to 366 days, as '20 USD/30d'.")
    return _money(money), days


def _money(text: str) -> int | None:
    if not text.strip():
        return None
    try:
        return _MONEY.validate_python(text.strip())
    except ValidationError as error:
        raise UserError(f"{text!r} is no sum of money; expected for example '0.50 USD'.") from error
