"""A schedule's fires: handed to the thread, and made into jobs by the ledger's word alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from temporalio import activity
from temporalio.client import Client
from temporalio.common import (
    SearchAttributeKey,
    SearchAttributePair,
    TypedSearchAttributes,
    WorkflowIDConflictPolicy,
)

from activities.jobs import JsonBlobs
from activities.ledger import Decisions
from activities.running import in_thread
from perdure.contracts import names
from perdure.contracts.base import BlobRef
from perdure.contracts.canonical import canonical_bytes
from perdure.contracts.job import AdmitInput, Done, JobSpec, ThreadState
from perdure.contracts.schedules import (
    FiredJob,
    FireNotice,
    FireTaken,
    JobFire,
    ScheduleDefinition,
    ScheduleWord,
)
from perdure.errors import Conflict, NotFound
from perdure.policy.firing import Fire, fires_between
from perdure.policy.taking import LATE, Choice, Standing, believed_now, choose, is_second_passing
from perdure.store.fires import FireStanding, FireTake
from perdure.store.schedule_ledger import Schedules
from perdure.store.schedules import ScheduleRow

_SECOND = timedelta(seconds=1)
_TASK_LIMIT = timedelta(seconds=2)
_ROUNDS = 5
"""How often a step is chosen anew because somebody changed the schedule meanwhile."""


class FireActivities:
    """``client`` only passes a notice on; whether there is a job for it is decided by signed words in the ledger."""

    def __init__(self, client: Client, schedules: Schedules, blobs: JsonBlobs, decisions: Decisions) -> None:
        self._client = client
        self._schedules = schedules
        self._blobs = blobs
        self._decisions = decisions

    @activity.defn(name=names.HAND_FIRE)
    async def hand_fire(self, notice: FireNotice) -> Done:
        """Tell the thread, starting it when it is not there. Told twice it looks twice, and finds one fire."""
        key = SearchAttributeKey.for_keyword(names.CODE_ATTRIBUTE)
        await self._client.start_workflow(
            names.THREAD_WORKFLOW,
            ThreadState(thread=notice.thread),
            id=names.thread_id(notice.thread),
            task_queue=names.QUEUE,
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            task_timeout=_TASK_LIMIT,
            search_attributes=TypedSearchAttributes([SearchAttributePair(key, names.CODE_GENERATION)]),
            start_signal=names.FIRE_SIGNAL,
            start_signal_args=[notice],
        )
        return Done()

    @activity.defn(name=names.LOOK_AT_SCHEDULE)
    async def look_at_schedule(self, notice: FireNotice) -> FireTaken:
        """Take the next step of a schedule, if there is one. A second run after a crash gives the same jobs again."""
        return await in_thread(lambda: self._look(notice))

    def _look(self, notice: FireNotice) -> FireTaken:
        for _ in range(_ROUNDS):
            try:
                return self._take_step(notice, datetime.now(UTC))
            except Conflict as conflict:
                activity.logger.info("%s is looked at again: %s", notice.schedule, conflict)
        return FireTaken(held=True)

    def _take_step(self, notice: FireNotice, now: datetime) -> FireTaken:
        try:
            row = self._schedules.find(notice.schedule)
        except NotFound:
            activity.logger.warning("nobody asked Perdure for a schedule %r; its fire is none", notice.schedule)
            return FireTaken()
        definition = self._definition(row)
        if definition is None or row.thread != notice.thread or row.state == "deleted":
            return FireTaken()
        words = [word for one in self._schedules.asked_for(row.name) if (word := self._read(one.decision_id, one.word))]
        days = definition.cost_days
        standing = self._schedules.standing(row.name, at=now, cost_days=days, with_taken=bool(words))
        if standing.rests:
            return FireTaken(jobs=list(standing.queued), held=True)
        if notice.due_at is not None:
            self._drop_second(row, definition, notice.due_at, now)
        now = believed_now(notice, now, is_due=lambda at: bool(fires_between(definition.times, at - _SECOND, at)))
        choice = choose(definition, _facts(row, standing), words, now)
        job = self._write(row, definition, standing, choice, now) if choice.fire else None
        jobs = [*standing.queued, *([job] if job else [])]
        return FireTaken(jobs=jobs, again=choice.again and not choice.held, held=choice.held)

    def _definition(self, row: ScheduleRow) -> ScheduleDefinition | None:
        """What was signed, or nothing: a row that no signature vouches for starts no job."""
        word = self._read(row.decision_id, row.word)
        if word is None or word.name != row.name:
            activity.logger.warning("no signature vouches for schedule %r; it starts nothing", row.name)
            return None
        return word.definition

    def _read(self, decision_id: str, ref: BlobRef) -> ScheduleWord | None:
        """A word that a person signed, by the digest of its bytes as they are stored now."""
        decision = self._decisions.one(decision_id)
        if decision is None or decision.kind != "schedule" or decision.digest != ref.sha256:
            return None
        return ScheduleWord.model_validate(self._blobs.get_json(ref))

    def _drop_second(self, row: ScheduleRow, definition: ScheduleDefinition, due_at: datetime, now: datetime) -> None:
        second = is_second_passing(definition.times, due_at)
        if second is None:
            return
        still_due = fires_between(definition.times, row.handled_until, due_at)
        if second.key not in {fire.key for fire in still_due}:  # else its first passing was missed: it runs now
            detail = "this local time passed twice; it ran at its first passing"
            self._schedules.drop(row.name, second.key, detail, at=now)

    def _write(
        self, row: ScheduleRow, definition: ScheduleDefinition, standing: FireStanding, choice: Choice, now: datetime
    ) -> FiredJob | None:
        fire = choice.fire
        assert fire is not None
        job = None if choice.skipped else self._job(definition, standing, choice, fire)
        take = FireTake(
            schedule=row.name,
            expected=standing.handled_until,
            handled_until=fire.due_at if choice.kind == "timed" else standing.handled_until,
            key=fire.key,
            kind=choice.kind,
            due_at=fire.due_at,
            job=job,
            notes=tuple(_notes(choice, fire, now)),
            trouble=f"{fire.key} skipped: {choice.skipped}" if choice.skipped else "",
        )
        self._schedules.take(take, at=now)
        return FiredJob(job_id=job.job_id, spec=job.spec) if job else None

    def _job(self, definition: ScheduleDefinition, standing: FireStanding, choice: Choice, fire: Fire) -> AdmitInput:
        since = standing.delivered_until
        if choice.kind == "backfill":  # a piece of the past: from the fire before it
            before = fires_between(definition.times, fire.due_at - timedelta(days=400), fire.due_at - _SECOND)
            since = before[-1].due_at if before else fire.due_at
        spec = JobSpec(
            template=definition.template,
            template_source=definition.template_source,
            template_digest=definition.template_digest,
            inputs=definition.inputs,
            requester=definition.requester,
            cost_cap_microdollars=definition.cost_each_microdollars,
            fire=JobFire(
                schedule=definition.name,
                key=fire.key,
                due_at=fire.due_at,
                since=min(since, fire.due_at),
                until=fire.due_at,
                merged=choice.merged,
            ),
        )
        ref = self._blobs.put(canonical_bytes(spec.model_dump(mode="json")))
        job_id = str(names.JobId(definition.thread, f"{definition.name}.{fire.key}"))
        return AdmitInput(job_id=job_id, spec=ref, template=spec.template, requester=spec.requester)


def _facts(row: ScheduleRow, standing: FireStanding) -> Standing:
    return Standing(
        state=row.state,
        handled_until=standing.handled_until,
        taken=standing.taken,
        busy=standing.busy,
        spent_microdollars=standing.spent_microdollars,
        spent_unknown=standing.spent_unknown,
    )


def _notes(choice: Choice, fire: Fire, now: datetime) -> list[tuple[str, dict[str, object]]]:
    """What is to be known of this fire: that it ran or why not, and what was missed before it."""
    about = {"key": fire.key, "due_at": fire.due_at.isoformat(), "kind": choice.kind, "merged": choice.merged}
    if choice.skipped:
        return [("skipped", {**about, "first": choice.first, "detail": choice.skipped})]
    notes: list[tuple[str, dict[str, object]]] = []
    if choice.kind == "timed" and (choice.merged > 1 or now - fire.due_at > LATE):
        detail = (
            f"{choice.merged} fires from {choice.first} to {fire.key} did not run at their time; one job stands for all"
        )
        notes.append(("missed", {**about, "first": choice.first, "detail": detail}))
    return [*notes, ("fired", {**about, "detail": fire.what})]
