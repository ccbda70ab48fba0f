"""What can be asked about jobs and plans, and what every error looks like."""

import json
import threading
import time
from collections.abc import Callable

import httpx
import pytest
from pydantic import TypeAdapter

from perdure.contracts.http import ArtifactView, EventPage, Health, JobView, Problem, Review
from perdure.contracts.job import JobPhase
from tests.api.installed import Installed
from tests.api.working import decide


def problem(answer: httpx.Response) -> Problem:
    return Problem.model_validate_json(answer.content)


def test_a_job_is_found_by_each_of_its_names(world: Installed, owner: httpx.Client) -> None:
    """Number, thread and sequence, @last and the whole id name the same job."""
    job_id = world.admit("names", thread="naming")
    job = JobView.model_validate_json(owner.get("/v1/job", params={"ref": "@last"}).content)
    assert job.job_id == job_id
    for ref in (str(job.number), "naming/1", job_id):
        assert owner.get("/v1/job", params={"ref": ref}).json()["job_id"] == job_id


def test_jobs_are_listed_newest_first_and_narrowed(world: Installed, owner: httpx.Client) -> None:
    """By thread, and only open ones when asked."""
    ids = [world.admit(f"list-{number}", thread="listing") for number in range(3)]
    world.note(ids[0], 1, JobPhase.failed)
    listed = TypeAdapter(list[JobView]).validate_json(owner.get("/v1/jobs", params={"thread": "listing"}).content)
    assert [job.job_id for job in listed] == ids[::-1]
    opened = owner.get("/v1/jobs", params={"thread": "listing", "open": "true", "limit": 1}).json()
    assert [job["job_id"] for job in opened] == [ids[2]]


def test_events_come_after_a_position_with_where_the_job_is(world: Installed, owner: httpx.Client) -> None:
    """Whoever has an event asks for what came after it, and gets nothing twice."""
    job_id = world.admit("events")
    world.note(job_id, 1, JobPhase.gathering)
    first = EventPage.model_validate_json(owner.get("/v1/events", params={"ref": job_id}).content)
    assert [event.kind for event in first.events] == ["job.admitted", "job.phase"]
    assert first.job is not None
    assert first.job.phase is JobPhase.gathering
    after = first.events[-1].position
    assert owner.get("/v1/events", params={"ref": job_id, "after": after}).json()["events"] == []


def test_a_long_poll_ends_with_the_next_event(world: Installed, owner: httpx.Client) -> None:
    """The answer waits, and comes as soon as something is written by whatever process."""
    job_id = world.admit("poll")
    after = owner.get("/v1/events", params={"ref": job_id}).json()["events"][-1]["position"]
    asked = threading.Event()

    def write_when_asked() -> None:
        asked.wait(10)
        world.note(job_id, 1, JobPhase.drafting, "two files")

    writer = threading.Thread(target=write_when_asked)
    writer.start()
    asked.set()
    start = time.monotonic()
    page = owner.get("/v1/events", params={"ref": job_id, "after": after, "wait": 20}, timeout=30).json()
    writer.join()
    assert [event["body"]["phase"] for event in page["events"]] == ["drafting"]
    assert time.monotonic() - start < 15


def test_a_long_poll_gives_up_in_time(world: Installed, owner: httpx.Client) -> None:
    """With nothing new the answer is empty after the time that was asked for, and still says where the job is."""
    job_id = world.admit("quiet")
    page = owner.get("/v1/events", params={"ref": job_id, "after": 1_000_000, "wait": 0.3}).json()
    assert page["events"] == []
    assert page["job"]["phase"] == "queued"


def test_a_review_shows_the_plan_and_who_is_missing(world: Installed, owner: httpx.Client) -> None:
    """By job or by digest it is the same review: effects, inverse, whole diff, who is still needed."""
    job_id = world.admit("review")
    digest = world.freeze(job_id)
    by_job = Review.model_validate_json(owner.get("/v1/review", params={"ref": job_id}).content)
    by_digest = Review.model_validate_json(owner.get("/v1/review", params={"digest": digest[:8].upper()}).content)
    assert by_job == by_digest
    assert by_job.digest == digest
    assert "-1.2.0\n+1.3.0\n" in by_job.diff
    streamed = owner.get("/v1/diff", params={"digest": digest})
    assert streamed.text == by_job.diff and streamed.headers["transfer-encoding"] == "chunked"
    assert owner.get("/v1/diff", params={"digest": digest[:8]}).is_client_error
    assert [view.effect.inverse.summary for view in by_job.effects] == ["delete while ours"] * 2
    assert by_job.weighing.missing == by_job.job.missing == ["1 from maintainers"]
    assert by_job.state == "open"


def test_a_redraft_is_shown_with_its_difference(world: Installed, owner: httpx.Client) -> None:
    """The second round names the last plan that whoever looks decided, and what differs from it."""
    job_id = world.admit("redraft")
    first = world.freeze(job_id)
    decide(owner, first, "request_changes", comment="major")
    second = world.freeze(job_id, round_number=2, previous=first, title="1.2.0 → 2.0.0")
    review = Review.model_validate_json(owner.get("/v1/review", params={"ref": job_id}).content)
    assert review.digest == second
    assert "title: 1.2.0 → 1.3.0 ⇒ 1.2.0 → 2.0.0" in review.since_previous


@pytest.mark.parametrize(
    ("params", "status", "said"),
    [
        ({"digest": "7f3a91c"}, 422, "at least 8"),
        ({"digest": "not-hex-at-all"}, 422, "at least 8"),
        ({"digest": "%" * 8}, 422, "at least 8"),
        ({"digest": "f" * 64}, 404, "No plan's digest begins with"),
        ({"ref": "999999"}, 404, "no job"),
        ({}, 422, "exactly one"),
        ({"ref": "1", "digest": "f" * 64}, 422, "exactly one"),
    ],
)
def test_a_plan_that_is_not_named_exactly_is_not_shown(
    world: Installed, owner: httpx.Client, params: dict[str, str], status: int, said: str
) -> None:
    """A short, wrong or unknown name gives an error that says what was expected."""
    world.admit("any")
    answer = owner.get("/v1/review", params=params)
    assert answer.status_code == status
    assert said in problem(answer).message


def test_a_job_without_a_plan_says_where_it_is(world: Installed, owner: httpx.Client) -> None:
    """There is nothing to review yet; the message says so and how to follow."""
    answer = owner.get("/v1/review", params={"ref": world.admit("early")})
    assert (answer.status_code, problem(answer).exit_code) == (404, 66)
    assert "no plan yet (it is queued)" in problem(answer).message


def test_artifacts_and_their_bytes(world: Installed, owner: httpx.Client) -> None:
    """A job's results are listed by stage and name, and given byte for byte as an attachment."""
    job_id = world.admit("artifacts")
    ref = world.keep_result(job_id, "gather", "history", b"\x00<script>")
    world.keep_result(job_id, "draft", "", b"{}")
    world.freeze(job_id)
    listed = TypeAdapter(list[ArtifactView]).validate_json(owner.get("/v1/artifacts", params={"ref": job_id}).content)
    assert [view.name for view in listed] == ["gather.history", "draft", "plan.1"]
    answer = owner.get(f"/v1/blobs/{ref.sha256}", params={"size": ref.size_bytes, "ref": job_id})
    assert answer.content == b"\x00<script>"
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_the_log_of_a_red_check_can_be_read(world: Installed, owner: httpx.Client) -> None:
    """A red check ends its job before any plan: its log is an artifact of the job all the same."""
    job_id = world.admit("red")
    log = world.blobs.put(b"1 failed\n")
    result = json.dumps({"value": {"status": "failed", "log": log.model_dump(mode="json")}})
    world.keep_result(job_id, "verify", "tests", result.encode())
    world.keep_result(job_id, "verify", "entries_kept", b'{"value": {"status": "passed", "log": null}}')
    listed = TypeAdapter(list[ArtifactView]).validate_json(owner.get("/v1/artifacts", params={"ref": job_id}).content)
    assert [view.name for view in listed] == ["verify.tests", "verify.tests.log", "verify.entries_kept"]
    answer = owner.get(f"/v1/blobs/{log.sha256}", params={"size": log.size_bytes, "ref": job_id})
    assert answer.content == b"1 failed\n"


def test_a_plans_own_files_belong_to_its_job(world: Installed, owner: httpx.Client) -> None:
    """Contents that a plan names can be read through its job."""
    job_id = world.admit("files")
    world.freeze(job_id)
    ref = world.blobs.put(b"1.3.0\n")
    answer = owner.get(f"/v1/blobs/{ref.sha256}", params={"size": ref.size_bytes, "ref": job_id})
    assert answer.content == b"1.3.0\n"


def test_a_blob_of_another_job_is_not_given(world: Installed, owner: httpx.Client) -> None:
    """Knowing a hash opens nothing: only what belongs to the named job is read, and the refusal does not tell."""
    mine, other = world.admit("mine"), world.admit("other")
    secret = world.keep_result(other, "gather", "x", b"only the other's")
    for sha256, size in ((secret.sha256, secret.size_bytes), ("0" * 64, 3)):
        answer = owner.get(f"/v1/blobs/{sha256}", params={"size": size, "ref": mine})
        assert answer.status_code == 404
        assert "does not belong" in problem(answer).message


def test_damaged_evidence_is_said_and_not_shown(world: Installed, owner: httpx.Client) -> None:
    """A plan whose bytes were changed gives no review but the reason."""
    job_id = world.admit("damaged")
    digest = world.freeze(job_id, title="to be damaged")
    ref = world.ledger.plan(digest).ref
    place = next(path for path in world.settings.blobs.rglob("*") if path.name == ref.sha256)
    place.chmod(0o600)
    place.write_bytes(place.read_bytes().replace(b"damaged", b"DAMAGED"))
    answer = owner.get("/v1/review", params={"digest": digest})
    assert (answer.status_code, problem(answer).kind) == (500, "Tampered")
    place.write_bytes(place.read_bytes().replace(b"DAMAGED", b"damaged"))


@pytest.mark.parametrize(
    ("ask", "status"),
    [
        (lambda client: client.get("/v1/nothing"), 404),
        (lambda client: client.put("/v1/jobs", json={}), 405),
        (lambda client: client.get("/v1/job"), 422),
        (lambda client: client.get("/v1/events", params={"ref": "1", "wait": 1e9}), 422),
        (lambda client: client.get("/v1/jobs", params={"limit": -1}), 422),
        (lambda client: client.post("/v1/jobs", json={"template": "x"}), 422),
        (lambda client: client.post("/v1/jobs", json={"template": "x", "surprise": 1}), 422),
        (lambda client: client.post("/v1/jobs", content=b"{", headers={"content-type": "application/json"}), 422),
        (lambda client: client.get("/v1/blobs/xyz", params={"size": 1, "ref": "1"}), 422),
        (lambda client: client.get("/v1/artifacts", params={"ref": "\x00\ud7ff"}), 404),
    ],
)
def test_every_error_has_the_same_body(
    world: Installed, owner: httpx.Client, ask: Callable[[httpx.Client], httpx.Response], status: int
) -> None:
    """Wrong paths, methods, parameters and bodies are problems with a kind, a message and an exit code."""
    world.admit("errors")
    answer = ask(owner)
    assert answer.status_code == status
    assert problem(answer).exit_code in {64, 66}


def test_a_body_that_grows_beyond_the_limit_is_cut_off(owner: httpx.Client) -> None:
    """A chunked body that promised nothing is read up to the limit and refused."""
    answer = owner.post(
        "/v1/jobs", content=(b"x" * 65536 for _ in range(40)), headers={"content-type": "application/json"}
    )
    assert 400 <= answer.status_code < 500


def test_health_answers_when_temporal_is_down(owner: httpx.Client) -> None:
    """Health is always said, within a second, and says what is down."""
    start = time.monotonic()
    answer = owner.get("/v1/health")
    assert answer.status_code == 200
    health = Health.model_validate_json(answer.content)
    assert (health.ok, health.worker) == (False, False)
    assert health.detail
    assert time.monotonic() - start < 5


def test_the_schema_names_every_route(owner: httpx.Client) -> None:
    """The OpenAPI document lists the routes with their contracts; the page that loads foreign scripts is not there."""
    schema = owner.get("/v1/openapi.json").json()
    assert {"/v1/jobs", "/v1/plans/{digest}/decisions", "/v1/review", "/v1/audit"} <= set(schema["paths"])
    assert {"SubmitRequest", "Review", "DecideAnswer"} <= set(schema["components"]["schemas"])
    assert owner.get("/docs").status_code == 404
