"""Jobs in the ledger: numbers, names, phases."""

from __future__ import annotations

import pytest

from perdure.contracts.base import BlobRef
from perdure.contracts.job import AdmitInput
from perdure.errors import Conflict, NotFound, StageFailed, UserError
from tests.store.ledger_kit import AT


def test_jobs_are_numbered_over_the_installation_and_in_their_thread(scene):
    """A job's number is unique in the installation, its sequence counts in its thread."""
    scene.admit("one", "releases")
    scene.admit("one", "links")
    scene.admit("two", "releases")
    assert [(job.number, job.name) for job in scene.ledger.jobs()] == [
        (3, "releases/2"),
        (2, "links/1"),
        (1, "releases/1"),
    ]


def test_same_job_twice_is_admitted_once(scene):
    """A request repeated gives the first numbers and says that it had been admitted; nothing is written."""
    job_id = scene.admit()
    spec = scene.blobs.put(job_id.encode())
    again = scene.ledger.admit_job(AdmitInput(job_id=job_id, spec=spec, template="release", requester="ada"), at=AT)
    assert (again.number, again.sequence, again.already) == (1, 1, True)
    assert scene.kinds() == ["job.admitted"]


def test_other_inputs_under_the_same_request_id_are_refused(scene):
    """A request id that was used for a job of other inputs starts nothing and says so."""
    job_id = scene.admit()
    other = AdmitInput(job_id=job_id, spec=BlobRef(sha256="0" * 64, size_bytes=1), template="release", requester="ada")
    with pytest.raises(Conflict, match="new request id"):
        scene.ledger.admit_job(other, at=AT)


@pytest.mark.parametrize("ref", ["job/links/one", "2", "links/1", "@last"])
def test_a_job_is_found_by_each_of_its_names(scene, ref):
    """Whole id, number, thread and sequence, and @last name the same job."""
    scene.admit("one", "releases")
    job_id = scene.admit("one", "links")
    assert scene.ledger.job(ref).job_id == job_id


@pytest.mark.parametrize("ref", ["99", "releases/9", "job/releases/nine", "realeses/1", "", "²", "9" * 30, "%"])
def test_an_unknown_job_names_the_nearest(scene, ref):
    """A name that fits no job is answered with names that do."""
    scene.admit()
    with pytest.raises(NotFound, match="releases/1"):
        scene.ledger.job(ref)


def test_no_job_at_all_says_how_to_start_one(scene):
    """In an empty ledger the answer is the command that makes the first job."""
    with pytest.raises(NotFound, match="perdure run"):
        scene.ledger.job("@last")


def test_an_id_that_is_no_jobs_is_refused(scene):
    """Only job/<thread>/<request> is admitted."""
    wrong = AdmitInput(job_id="gate/x/y/1", spec=BlobRef(sha256="0" * 64, size_bytes=1), template="t", requester="ada")
    with pytest.raises(UserError, match="job/<thread>/<request>"):
        scene.ledger.admit_job(wrong, at=AT)


def test_a_phase_noted_twice_is_written_once(scene):
    """A note is idempotent on workflow id and step: a late retry does not set a job back."""
    job_id = scene.admit()
    scene.note(job_id, 1, "gathering", "14 commits")
    scene.note(job_id, 2, "done")
    scene.note(job_id, 1, "gathering", "14 commits")
    job = scene.ledger.job(job_id)
    assert (job.phase, job.summary) == ("done", "14 commits")
    assert scene.kinds() == ["job.admitted", "job.phase", "job.phase"]


def test_open_jobs_are_those_to_which_something_will_happen(scene):
    """A finished job leaves the list of open ones."""
    done, waiting = scene.admit("one"), scene.admit("two")
    scene.note(done, 1, "nothing_to_do")
    scene.note(waiting, 1, "waiting")
    assert [job.job_id for job in scene.ledger.jobs(open_only=True)] == [waiting]
    assert len(scene.ledger.jobs(limit=1)) == 1
    assert scene.ledger.jobs(thread="links") == []


def test_a_job_shows_its_newest_plan_and_who_took_it_back(scene):
    """A job carries the digest and title of its newest plan, and the name of the finished job that undid it."""
    job_id = scene.admit("one")
    scene.freeze(job_id, title="first")
    newest = scene.freeze(job_id, round_number=2, title="second")
    undo = scene.admit("two")
    scene.freeze(undo, undoes=job_id)
    assert (scene.ledger.job(job_id).digest, scene.ledger.job(job_id).title) == (newest.digest, "second")
    assert scene.ledger.job(job_id).undone_by == ""
    scene.note(undo, 1, "done")
    assert scene.ledger.job(job_id).undone_by == "releases/2"


def test_an_append_repeated_is_a_no_op(scene):
    """The same workflow id and step give the first record's position, whatever the body is by now."""
    first = scene.ledger.append(
        thread="t", kind="stage", actor="perdure", body={"n": 1}, workflow_id="w", step="s", at=AT
    )
    again = scene.ledger.append(
        thread="t", kind="stage", actor="perdure", body={"n": 2}, workflow_id="w", step="s", at=AT
    )
    assert first == again
    assert [event.body for event in scene.ledger.events()] == [{"n": 1}]


def test_a_step_cannot_write_two_kinds_of_record(scene):
    """An idempotency key that two different steps share is a mistake that is named, not hidden."""
    scene.ledger.append(thread="t", kind="stage", actor="perdure", body={}, workflow_id="w", step="s", at=AT)
    with pytest.raises(Conflict, match="name of its own"):
        scene.ledger.append(thread="t", kind="other", actor="perdure", body={}, workflow_id="w", step="s", at=AT)


@pytest.mark.parametrize("value", [1.5, "\ud800", 2**60])
def test_a_body_that_two_programs_may_print_differently_is_refused(scene, value):
    """Floats, lone surrogates and huge integers cannot be hashed reliably: such a record is refused."""
    with pytest.raises(StageFailed, match="Nothing was recorded"):
        scene.ledger.append(thread="t", kind="stage", actor="perdure", body={"value": value}, at=AT)
    assert scene.ledger.events() == []


def test_text_from_hostile_repositories_is_kept_readable(scene):
    """NUL characters and control characters in a body and a title survive; no database refuses them."""
    job_id = scene.admit()
    scene.freeze(job_id, title="v1\0\x1b[31m")
    scene.ledger.append(thread="t\0", kind="stage", actor="a\ud800", body={"text": "\0\x1b‮"}, at=AT)
    assert scene.ledger.job(job_id).title == "v1\ufffd\x1b[31m"
    assert scene.ledger.events()[-1].body == {"text": "\0\x1b‮"}
    assert scene.ledger.events()[-1].actor == "a\ufffd"


def test_events_come_after_a_position_oldest_first(scene):
    """A follower asks for what comes after the last record it has."""
    job_id = scene.admit()
    for step in range(1, 4):
        scene.note(job_id, step, "gathering")
    scene.admit("two")
    positions = [event.position for event in scene.ledger.events(job_id=job_id, after=2)]
    assert positions == [3, 4]
    assert [event.position for event in scene.ledger.events(limit=2)] == [1, 2]
