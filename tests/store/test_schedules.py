"""Schedules and threads in the ledger, over SQLite and PostgreSQL: words, fires, superseding, failures, spending."""

from __future__ import annotations

import hashlib
from datetime import timedelta

import pytest
from sqlalchemy import update

from perdure.contracts.agent import Spent
from perdure.contracts.canonical import canonical_bytes
from perdure.contracts.decisions import Decision
from perdure.contracts.job import AdmitInput, JobPhase
from perdure.contracts.schedules import ScheduleAsk, ScheduleDefinition, ScheduleWord
from perdure.errors import Conflict, NotFound
from perdure.policy.cron import read_times
from perdure.store import schema
from perdure.store.agents import Agents
from perdure.store.fires import FireTake
from perdure.store.schedule_ledger import Schedules
from perdure.store.threads import Threads
from tests.store.ledger_kit import AT
from tests.store.test_agents import line, spec_of

DAY = timedelta(days=1)


class Clockwork:
    """One schedule of a scene, and its steps."""

    def __init__(self, scene, name="nightly"):
        self.scene, self.name = scene, name
        self.schedules = Schedules(scene.ledger.database)
        self.count = 0

    def definition(self, **more):
        """A schedule of the thread ``releases``."""
        about = {
            "name": self.name,
            "asked": ScheduleAsk(template="release", folder="/srv", zone="UTC", cron=["0 9 * * *"]),
            "thread": "releases",
            "template": "release",
            "template_source": "",
            "template_digest": hashlib.sha256(b"").hexdigest(),
            "inputs": {},
            "requester": "ada",
            "times": read_times(zone="UTC", cron=["0 9 * * *"]),
        }
        return ScheduleDefinition.model_validate({**about, **more})

    def say(self, kind, *, id=None, at=AT, skipped="", **more):
        """Sign and record a word."""
        self.count += 1
        defined = self.definition(**more) if kind in ("add", "edit") else None
        note = more.get("note", "")
        word = ScheduleWord(kind=kind, name=self.name, by="ada", at=at, definition=defined, note=note)
        ref = self.scene.blobs.put(canonical_bytes(word.model_dump(mode="json")))
        decision = Decision(
            id=id or f"word-{self.name}-{self.count}",
            kind="schedule",
            job_id="",
            digest=ref.sha256,
            by="ada",
            at=AT,
            head=self.scene.ledger.head(),
        )
        return self.schedules.record(self.scene.key.sign(decision), word, ref, at=at, skipped=skipped)

    def fire(self, key, *, due_at=AT, kind="timed", expected=None, gives_up=False):
        """Take one fire; returns its job's id."""
        job_id = f"job/releases/{self.name}.{key}"
        spec = self.scene.blobs.put(job_id.encode())
        job = AdmitInput(job_id=job_id, spec=spec, template="release", requester="ada")
        take = FireTake(
            schedule=self.name,
            expected=expected or self.schedules.find(self.name).handled_until,
            handled_until=due_at,
            key=key,
            kind=kind,
            due_at=due_at,
            job=None if gives_up else job,
            notes=(("skipped" if gives_up else "fired", {"key": key}),),
        )
        self.schedules.take(take, at=AT)
        return job_id

    def standing(self, **more):
        """How its fires stand."""
        return self.schedules.standing(self.name, **{"at": AT + DAY, "cost_days": 30, "with_taken": True, **more})

    def waiting(self, key, due_at):
        """A fire whose job waits at its gate; returns (job id, plan)."""
        job_id = self.fire(key, due_at=due_at)
        plan = self.scene.freeze(job_id, title=key)
        self.scene.open_gate(job_id, plan)
        self.scene.note(job_id, 0, "waiting", workflow_id=f"gate/{key}")
        return job_id, plan


@pytest.fixture
def clockwork(scene):
    """A schedule that was just added."""
    made = Clockwork(scene)
    made.say("add")
    return made


def test_words_are_written_once_and_in_order(clockwork):
    """A word again is no new one; a taken name, a second pause and a resume of what runs are conflicts."""
    assert clockwork.say("pause", id="pause-1", note="freeze")
    row = clockwork.schedules.find("nightly")
    assert (row.state, row.note) == ("paused", "freeze")
    with pytest.raises(Conflict, match="paused already"):
        clockwork.say("pause")
    with pytest.raises(Conflict, match="already, of template release"):
        clockwork.say("add")
    clockwork.say("resume", at=AT + DAY, skipped="1 fire is given up")
    assert clockwork.schedules.find("nightly").handled_until == AT + DAY
    assert [event.body.get("detail") for event in clockwork.schedules.events("nightly", 5)] == ["1 fire is given up"]
    with pytest.raises(Conflict, match="not paused"):
        clockwork.say("resume")
    with pytest.raises(Conflict, match="Make another schedule"):
        clockwork.say("edit", thread="elsewhere")
    with pytest.raises(NotFound, match="Nearest: nightly"):
        clockwork.schedules.find("nightli")


def test_word_of_somebody_else_is_refused(clockwork):
    """What is signed is exactly this word: another one behind the same signature is not recorded."""
    word = ScheduleWord(kind="delete", name="nightly", by="ada", at=AT)
    ref = clockwork.scene.blobs.put(canonical_bytes(word.model_dump(mode="json")))
    decision = Decision(id="d", kind="schedule", job_id="", digest="0" * 64, by="ada", at=AT, head="")
    with pytest.raises(Conflict, match="is no word about"):
        clockwork.schedules.record(clockwork.scene.key.sign(decision), word, ref, at=AT)


def test_deleted_name_is_free_and_its_fires_stay(clockwork):
    """A schedule of a deleted one's name is new; a fire that ran under it does not run again."""
    clockwork.fire("one")
    clockwork.say("delete")
    with pytest.raises(Conflict, match="was deleted"):
        clockwork.say("pause")
    clockwork.say("add", at=AT + DAY)
    with pytest.raises(Conflict, match="is the same run"):
        clockwork.fire("one", due_at=AT + DAY)


def test_second_fire_of_a_key_is_the_same_run(clockwork):
    """A fire is taken once, and only on what was so when it was chosen."""
    clockwork.fire("one", due_at=AT + DAY)
    with pytest.raises(Conflict, match="is the same run"):
        clockwork.fire("one", due_at=AT + DAY)
    with pytest.raises(Conflict, match="changed meanwhile"):
        clockwork.fire("two", due_at=AT + 2 * DAY, expected=AT)
    assert clockwork.standing().taken == {"one"}
    assert len(clockwork.scene.ledger.jobs()) == 1


def test_job_that_waits_for_a_person_does_not_hold(clockwork):
    """A job is busy until it waits; one that was admitted and has not begun is given again."""
    job_id = clockwork.fire("one", due_at=AT + DAY)
    assert clockwork.standing().busy == "releases/1"
    assert [job.job_id for job in clockwork.standing().queued] == [job_id]
    clockwork.scene.note(job_id, 1, "gathering")
    assert (clockwork.standing().busy, clockwork.standing().queued) == ("releases/1", ())
    clockwork.scene.note(job_id, 2, "waiting")
    assert clockwork.standing().busy == ""


def test_parked_agent_does_not_hold(clockwork):
    """A job whose agent waits for a person is not at work, whatever its phase says."""
    job_id = clockwork.fire("one", due_at=AT + DAY)
    clockwork.scene.note(job_id, 1, "drafting")
    agents, ref = Agents(clockwork.scene.ledger.database), clockwork.scene.blobs.put(b"spec")
    spec = spec_of(job_id, ref)
    agents.open(spec, ref, [line(0, "charter", "c")], at=AT)
    assert clockwork.standing().busy == "releases/1"
    agents.park(spec.agent_id, JobPhase.paused, "asked", 5, at=AT)
    clockwork.scene.note(job_id, 2, "drafting")  # another step of it goes on
    assert clockwork.standing().busy == ""


def test_newer_plan_supersedes_only_what_nobody_touched(clockwork):
    """An untouched open plan of an earlier fire is closed with the newer one's gate; the gate is told each time."""
    scene = clockwork.scene
    first, plan = clockwork.waiting("one", AT + DAY)
    touched, other = clockwork.waiting("two", AT + 2 * DAY)
    assert scene.ledger.plan(plan.digest).state == "superseded"
    scene.decide("approve", touched, other)
    late, newest = clockwork.waiting("three", AT + 3 * DAY)
    assert scene.ledger.plan(other.digest).state == "open"
    assert scene.ledger.plan(newest.digest).state == "open"
    with pytest.raises(Conflict, match="a newer plan took its place"):
        scene.decide("approve", first, plan)
    closed = [event for event in scene.ledger.events(job_id=first) if event.kind == "gate.closed"]
    assert [event.body["outcome"] for event in closed] == ["superseded"]
    state = scene.ledger.job_state(first)  # its workflow was lost: it is started at that plan again, not anew
    assert state is not None and state.plan is not None and state.plan.digest == plan.digest
    assert late.endswith("nightly.three")


def test_waiting_plans_stay_where_the_template_says_so(scene):
    """`newer_plan: waits` keeps both."""
    made = Clockwork(scene, "careful")
    made.say("add", newer_plan="waits")
    _, plan = made.waiting("one", AT + DAY)
    made.waiting("two", AT + 2 * DAY)
    assert scene.ledger.plan(plan.digest).state == "open"


def test_span_starts_where_the_last_good_job_ended(clockwork):
    """A failed or open job has delivered nothing; a backfilled piece of the past does not move the mark."""
    assert clockwork.standing().delivered_until == AT
    job_id = clockwork.fire("one", due_at=AT + DAY)
    assert clockwork.standing().delivered_until == AT
    clockwork.scene.note(job_id, 1, "nothing_to_do")
    assert clockwork.standing().delivered_until == AT + DAY
    old = clockwork.fire("old", due_at=AT + 2 * DAY, kind="backfill")
    clockwork.scene.note(old, 1, "nothing_to_do")
    assert clockwork.standing().delivered_until == AT + DAY


def test_failures_in_a_row_are_said_once(clockwork):
    """The third failure is one alarm, the fourth none, a good end one recovery; a rejection counts as neither."""
    for count, phase in enumerate(("failed", "rejected", "failed", "stuck", "failed", "nothing_to_do", "failed")):
        job_id = clockwork.fire(f"f{count}", due_at=AT + (count + 1) * DAY)
        clockwork.scene.note(job_id, 1, phase, "no disk")
        clockwork.scene.note(job_id, 1, phase, "no disk")  # said again: counted once
    told = [event.kind for event in clockwork.schedules.events("nightly", 50) if event.kind != "schedule.fired"]
    assert told == ["schedule.recovered", "schedule.alert"]
    row = clockwork.schedules.find("nightly")
    assert (row.failures, row.alerted, row.trouble) == (1, False, "failed 1 times in a row: no disk")


def test_spending_of_a_schedule_is_its_jobs_models(clockwork):
    """What agents of its jobs cost within the span is counted; an unknown part makes the whole unknown."""
    job_id = clockwork.fire("one", due_at=AT + DAY)
    agents, ref = Agents(clockwork.scene.ledger.database), clockwork.scene.blobs.put(b"spec")
    spec = spec_of(job_id, ref)
    agents.open(spec, ref, [line(0, "charter", "c")], at=AT)
    assert clockwork.schedules.spending("nightly", AT) == (0, False)
    assert clockwork.schedules.spending("nightly", AT + DAY) == (0, False)
    set_cost(clockwork, Spent(cost_microdollars=1_500_000))
    assert clockwork.schedules.spending("nightly", AT) == (1_500_000, False)
    assert clockwork.schedules.spending("nightly", AT + DAY) == (0, False)
    set_cost(clockwork, Spent(cost_microdollars=1_500_000, unknown_cost=True))
    assert clockwork.standing().spent_unknown


def set_cost(clockwork, spent):
    """What the only agent has spent."""
    values = {"cost_microdollars": spent.cost_microdollars, "unknown_cost": spent.unknown_cost}
    with clockwork.scene.ledger.database.write() as connection:
        connection.execute(update(schema.agents).values(**values))


def test_resting_thread_starts_nothing(clockwork):
    """A paused thread refuses new jobs with its note and keeps its fires; an archived one must have ended its work."""
    threads = Threads(clockwork.scene.ledger.database)
    job_id = clockwork.fire("one", due_at=AT + DAY)
    threads.set_state("releases", "paused", "freeze", by="ada", at=AT)
    spec = clockwork.scene.blobs.put(b"another")
    job = AdmitInput(job_id="job/releases/new", spec=spec, template="release", requester="ada")
    with pytest.raises(Conflict, match="releases is paused: freeze"):
        clockwork.scene.ledger.request_job(job, at=AT)
    assert clockwork.standing().rests
    with pytest.raises(Conflict, match="1 open jobs and 1 schedules"):
        threads.set_state("releases", "archived", "", by="ada", at=AT)
    threads.set_state("releases", "active", "", by="ada", at=AT)
    clockwork.scene.ledger.request_job(job, at=AT)
    clockwork.scene.note(job_id, 1, "nothing_to_do")
    clockwork.say("delete")
    threads.set_state("releases", "archived", "", by="ada", at=AT)
    assert threads.find("releases").state == "archived"
    assert "thread.paused" in clockwork.scene.kinds()


def test_threads_are_listed_with_what_they_did(scene):
    """Each thread tells its templates, jobs, open ones, and its newest job."""
    scene.admit("one", "alpha")
    last = scene.admit("two", "alpha")
    scene.note(last, 1, "failed")
    scene.admit("one", "beta")
    alpha, beta = Threads(scene.ledger.database).every()
    assert (alpha.thread, alpha.jobs, alpha.open, alpha.templates) == ("alpha", 2, 1, ["release"])
    assert (alpha.last_job, alpha.last_phase) == ("alpha/2", "failed")
    assert beta.last_job == "beta/1"
    with pytest.raises(NotFound, match="Nearest: alpha"):
        Threads(scene.ledger.database).find("alpah")
