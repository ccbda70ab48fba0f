"""What people say about schedules, and what comes of it, in a real installation."""

from __future__ import annotations

from collections.abc import Callable

from perdure.contracts.job import JobPhase
from tests.schedules.kit import Scheduled, days_ago, new_id
from tests.support.installation import wait_until

Make = Callable[..., Scheduled]


def test_a_newer_plan_takes_the_place_of_one_that_nobody_touched(scheduled: Make) -> None:
    """A fire while a gate is open makes a job at once; its plan supersedes the open one, which nobody can approve."""
    daily = scheduled()
    daily.add()
    daily.say("trigger")
    (first,) = daily.wait_jobs(JobPhase.waiting)
    daily.say("trigger")
    _, second = daily.wait_jobs(JobPhase.superseded, JobPhase.waiting)
    late = daily.home.door.post(
        f"/v1/plans/{first.digest}/decisions", json={"kind": "approve", "decision_id": "too-late-1"}
    )
    assert late.status_code == 409
    assert "a newer plan took its place" in late.text
    daily.home.approve(second)
    daily.wait_jobs(JobPhase.superseded, JobPhase.done)
    assert (daily.folder / "NOTE").read_text().startswith(daily.keys()[1])


def test_plan_that_a_person_has_touched_stays(scheduled: Make) -> None:
    """Whoever asked for changes works with that plan: the next fire's plan waits beside it."""
    daily = scheduled()
    daily.add()
    daily.say("trigger")
    (first,) = daily.wait_jobs(JobPhase.waiting)
    daily.home.decide(first.digest, "request_changes", comment="tell me more")
    wait_until(lambda: daily.jobs()[0].round == 2 and daily.jobs()[0].phase is JobPhase.waiting, "the next round")
    daily.say("trigger")
    daily.wait_jobs(JobPhase.waiting, JobPhase.waiting)


def test_resume_is_not_run_now(scheduled: Make) -> None:
    """What fell into a pause is given up and shown so; the note was shown meanwhile; nothing runs at the resume."""
    daily = scheduled()
    daily.add()
    assert daily.say("pause", note="freeze week").note == "freeze week"
    daily.set_back(days_ago(3))
    after = daily.say("resume")
    assert (after.state, after.note) == ("active", "")
    (skipped,) = daily.records("skipped")
    assert "3 fires" in skipped and "given up while paused (freeze week)" in skipped
    daily.say("trigger")  # handled behind anything that the resume could have started
    daily.wait_jobs(JobPhase.waiting)
    assert daily.keys()[0].endswith(".asked")


def test_edit_counts_from_the_next_fire(scheduled: Make) -> None:
    """An edit replaces the times, keeps the other inputs, and gives up what was due before."""
    daily = scheduled("unattended")
    daily.add()
    daily.set_back(days_ago(2))
    body = {"changes": {"cron": ["0 5 * * *"], "zone": "UTC"}, "decision_id": new_id()}
    daily.home.post(f"/v1/schedules/{daily.name}/edit", body)
    view = daily.view()
    assert view.said == ["cron 0 5 * * *"]
    assert view.next[0].local.endswith("05:00 +00:00")
    assert view.inputs["folder"] == str(daily.folder)
    assert "given up by the new definition" in daily.records("skipped")[0]
    assert daily.jobs() == []


def test_deleted_schedule_starts_nothing_and_frees_its_name(scheduled: Make) -> None:
    """A deleted schedule refuses words, is in no list, and its name can be used again."""
    daily = scheduled("unattended")
    daily.add()
    daily.say("delete", note="not needed")
    refused = daily.home.door.post(
        f"/v1/schedules/{daily.name}/words", json={"kind": "trigger", "decision_id": new_id()}
    )
    assert refused.status_code == 409 and "was deleted" in refused.text
    assert daily.name not in [one["name"] for one in daily.home.get("/v1/schedules")]
    assert daily.add().state == "active"


def test_template_that_says_nothing_about_absence_is_refused(scheduled: Make) -> None:
    """A gate without a word about absent people makes no schedule; with one, the approvals of a fire are listed."""
    silent = scheduled("silent")
    refused = silent.home.door.post("/v1/schedules", json=silent.request())
    assert refused.status_code == 403
    assert "nobody_answers" in refused.json()["message"]
    daily = scheduled()
    checked = daily.home.post("/v1/schedules", {**daily.request(), "only_check": True})
    assert checked["approvals"] == [
        "review: 1 from maintainers; nobody answers: park; the plan of a later fire takes its place"
    ]
    assert daily.home.door.get(f"/v1/schedules/{daily.name}").status_code == 404


def test_same_word_twice_is_one_word(scheduled: Make) -> None:
    """A word sent again with its id says nothing new; a second schedule of that name is refused."""
    daily = scheduled()
    request = daily.request()
    daily.home.post("/v1/schedules", request)
    daily.home.post("/v1/schedules", request)
    other = daily.home.door.post("/v1/schedules", json={**request, "decision_id": new_id()})
    assert other.status_code == 409 and "already" in other.text


def test_failures_in_a_row_are_said_once(scheduled: Make) -> None:
    """Two failures where two are allowed: one alert, then quiet; after a job that went well one recovery."""
    failing = scheduled("failing")
    failing.add(alert_after=2)
    for count in (1, 2, 3):
        failing.say("trigger")
        failing.wait_jobs(*[JobPhase.failed] * count)
        assert failing.view().alerted == (count >= 2)
    assert failing.view().failures == 3
    (alert,) = failing.records("alert")
    assert alert.startswith("failed 2 times in a row")
    failing.home.post(
        f"/v1/schedules/{failing.name}/edit", {"changes": {"inputs": {"good": "true"}}, "decision_id": new_id()}
    )
    failing.say("trigger")
    failing.wait_jobs(*[JobPhase.failed] * 3, JobPhase.done)
    assert (failing.view().failures, failing.view().alerted, failing.view().trouble) == (0, False, "")
    assert len(failing.records("recovered")) == len(failing.records("alert")) == 1


def test_fires_while_a_job_is_at_work_become_one(scheduled: Make) -> None:
    """Fires that come while the last job works are held; one job for all of them starts when it ends."""
    slow = scheduled("slow")
    slow.add()
    slow.say("trigger")
    slow.wait_jobs(JobPhase.applying)
    slow.set_back(days_ago(4))
    slow.nudge()
    wait_until(lambda: slow.is_held(), "the thread to hold the fire")
    assert len(slow.jobs()) == 1
    (slow.folder / "go").touch()
    slow.wait_jobs(JobPhase.done, JobPhase.done)
    (missed,) = slow.records("missed")
    assert missed.startswith("4 fires from ")
