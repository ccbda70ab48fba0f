"""A job through the API on a real Temporal server with the real worker: asked for, decided, applied, taken back."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from perdure.contracts.http import AuditReport, DecideAnswer, JobView, Problem
from perdure.contracts.job import JobPhase
from perdure.testing.server import temporal_server
from tests.api.installed import Installed, installed
from tests.api.pages import said_in, visiting
from tests.api.working import WorkerProcess, decide, follow, new_id, review, submit, working

DROP = """\
perdure: 1
name: drop
summary: Writes two files.
inputs:
  root: {type: path}
  text: {type: string, default: hello}
review: {approvals: [{from: maintainers, count: 1}, {from: security, count: 1}], editable: [version]}
apply:
  - {id: one, effect: files.write, with: {root: "{{ inputs.root }}", path: one.txt, content: "{{ inputs.text }}"}}
  - {id: two, effect: files.write, with: {root: "{{ inputs.root }}", path: two.txt, content: "{{ inputs.text }}"}}
"""

pytestmark = pytest.mark.xdist_group("api-live")


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Installed, WorkerProcess]]:
    folder = tmp_path_factory.mktemp("live")
    (folder / "templates").mkdir()
    (folder / "templates" / "drop.yaml").write_text(DROP)
    with (
        temporal_server(folder / "temporal") as server,
        installed(folder, address=server.address) as world,
        working(world) as worker,
    ):
        yield world, worker


@pytest.fixture
def world(live: tuple[Installed, WorkerProcess]) -> Installed:
    return live[0]


@pytest.fixture
def worker(live: tuple[Installed, WorkerProcess]) -> WorkerProcess:
    return live[1]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The folder that a test's job writes to."""
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


def start(client: httpx.Client, root: Path, **more: object) -> JobView:
    return submit(client, "drop", str(root), inputs={"root": str(root), "text": "hello"}, **more)


def waiting(client: httpx.Client, root: Path) -> JobView:
    return follow(client, start(client, root), {JobPhase.waiting})


def cancel(client: httpx.Client, job: JobView) -> httpx.Response:
    return client.post("/v1/cancel", params={"ref": job.job_id}, json={"decision_id": new_id("c")}, timeout=60)


def problem(answer: httpx.Response) -> Problem:
    return Problem.model_validate_json(answer.content)


def test_what_was_approved_is_applied_and_can_be_taken_back(owner: httpx.Client, root: Path) -> None:
    """Submitted, reviewed, approved by its whole digest, applied; undone as a plan of its own; no gap in the audit."""
    job = waiting(owner, root)
    shown = review(owner, job)
    assert [view.effect.id for view in shown.effects] == ["one", "two"]
    assert shown.weighing.missing == ["1 from maintainers", "1 from security"]
    assert not list(root.iterdir())
    answer = DecideAnswer.model_validate_json(decide(owner, shown.digest, "approve").content)
    assert (answer.weighing.outcome, answer.weighing.self_approved) == ("satisfied", True)
    done = follow(owner, job, {JobPhase.done})
    assert {path.name: path.read_text() for path in root.iterdir()} == {"one.txt": "hello", "two.txt": "hello"}
    assert [view.state for view in review(owner, done).effects] == ["done", "done"]

    def take_back(_: int) -> httpx.Response:
        return owner.post("/v1/undo", params={"ref": str(job.number)}, json={"request_id": new_id("u")}, timeout=60)

    with ThreadPoolExecutor() as threads:  # at once: when the second one asks, the first one has no plan yet
        begun, refused = sorted(threads.map(take_back, range(2)), key=lambda answer: answer.status_code)
    assert (begun.status_code, refused.status_code, problem(refused).kind) == (200, 409, "Conflict")
    undoing = follow(owner, JobView.model_validate_json(begun.content), {JobPhase.waiting})
    twice = owner.post("/v1/undo", params={"ref": job.job_id}, json={"request_id": new_id("u")})
    assert (twice.status_code, f"perdure show {undoing.number}" in problem(twice).message) == (409, True)
    decide(owner, undoing.digest, "approve").raise_for_status()
    follow(owner, undoing, {JobPhase.done})
    assert not list(root.iterdir())
    assert owner.get("/v1/job", params={"ref": job.job_id}).json()["undone_by"] == undoing.name
    again = owner.post("/v1/undo", params={"ref": job.job_id}, json={"request_id": new_id("u")})
    assert (again.status_code, problem(again).kind) == (409, "Conflict")

    report = AuditReport.model_validate_json(owner.get("/v1/audit", params={"ref": job.job_id}, timeout=60).content)
    assert report.ok, report.findings


def test_the_same_request_is_the_same_job(owner: httpx.Client, root: Path) -> None:
    """A request sent again after a lost answer starts nothing new; another one under its id is refused."""
    request_id = new_id("r")
    first, second = start(owner, root, request_id=request_id), start(owner, root, request_id=request_id)
    assert first.job_id == second.job_id
    body = {"template": "drop", "folder": str(root), "request_id": request_id, "inputs": {"root": str(root / "x")}}
    other = owner.post("/v1/jobs", json=body, timeout=60)
    assert (other.status_code, problem(other).kind) == (409, "Conflict")


def test_a_plan_alone_opens_no_gate(owner: httpx.Client, root: Path) -> None:
    """With plan_only the job ends when its plan is frozen; nobody can decide on it."""
    job = follow(owner, start(owner, root, plan_only=True), {JobPhase.done})
    shown = review(owner, job)
    assert shown.state == "not_opened"
    answer = decide(owner, shown.digest, "approve")
    assert (answer.status_code, "never opened" in problem(answer).message) == (409, True)
    assert not list(root.iterdir())


def test_a_decision_is_made_once(world: Installed, owner: httpx.Client, root: Path) -> None:
    """The same decision id again gives the same answer and no second record, also after the gate has closed."""
    job = waiting(owner, root)
    decision_id = new_id("d")
    for _ in range(2):
        assert decide(owner, job.digest, "reject", decision_id, comment="no").status_code == 200
        follow(owner, job, {JobPhase.rejected})
    assert len(world.ledger.decisions(digest=job.digest)) == 1
    other = decide(owner, job.digest, "approve", decision_id)
    assert (other.status_code, problem(other).kind) == (409, "Conflict")


def test_a_late_decision_hears_how_it_ended(owner: httpx.Client, root: Path) -> None:
    """After a rejection an approval is a conflict that says so; nothing is applied."""
    job = waiting(owner, root)
    decide(owner, job.digest, "reject").raise_for_status()
    follow(owner, job, {JobPhase.rejected})
    late = decide(owner, job.digest, "approve")
    assert (late.status_code, "rejected" in problem(late).message or "denied" in problem(late).message) == (409, True)
    assert not list(root.iterdir())


@pytest.mark.parametrize("digest", ["latest", "@last", "{short}", "{upper}"])
def test_only_the_whole_digest_decides(owner: httpx.Client, root: Path, digest: str) -> None:
    """A beginning, another spelling or "latest" is no plan's name, and decides nothing."""
    job = waiting(owner, root)
    name = digest.format(short=job.digest[:16], upper=job.digest.upper())
    assert decide(owner, name, "approve").status_code == 422
    assert review(owner, job).weighing.outcome == "pending"


def test_groups_decide_and_it_is_said_who_is_missing(world: Installed, owner: httpx.Client, root: Path) -> None:
    """Each group must approve; a stranger's approval is ignored and told why; a withdrawn one does not count."""
    job = waiting(owner, root)
    with (
        world.http.tcp(world.token("mia", "decide", groups=("maintainers",))) as mia,
        world.http.tcp(world.token("sam", "decide", groups=("security",))) as sam,
        world.http.tcp(world.token("eve", "decide", groups=("guests",))) as eve,
    ):
        stranger = DecideAnswer.model_validate_json(decide(eve, job.digest, "approve").content).weighing
        assert (stranger.outcome, [item.by for item in stranger.ignored]) == ("pending", ["eve"])
        half = DecideAnswer.model_validate_json(decide(mia, job.digest, "approve").content)
        assert half.weighing.missing == half.job.missing == ["1 from security"]
        back = DecideAnswer.model_validate_json(decide(mia, job.digest, "withdraw").content).weighing
        assert back.missing == ["1 from maintainers", "1 from security"]
        decide(sam, job.digest, "approve").raise_for_status()
        assert not list(root.iterdir())
        last = DecideAnswer.model_validate_json(decide(mia, job.digest, "approve").content).weighing
    assert (last.outcome, last.self_approved) == ("satisfied", False)
    follow(owner, job, {JobPhase.done})


def test_changes_come_back_as_another_plan(owner: httpx.Client, root: Path) -> None:
    """A request for changes needs words or an allowed edit; the next round is another digest, the old one is closed."""
    job = waiting(owner, root)
    assert decide(owner, job.digest, "request_changes").status_code == 422
    forbidden = decide(owner, job.digest, "request_changes", changes={"entries": []})
    assert (forbidden.status_code, "version" in problem(forbidden).message) == (422, True)
    misplaced = decide(owner, job.digest, "approve", changes={"version": "2"})
    assert misplaced.status_code == 422
    decide(owner, job.digest, "request_changes", comment="another text").raise_for_status()
    second = follow(owner, job, {JobPhase.waiting})
    while second.digest == job.digest:
        second = follow(owner, job, {JobPhase.waiting})
    shown = review(owner, second)
    assert (shown.round, bool(shown.since_previous)) == (2, True)
    assert decide(owner, job.digest, "approve").status_code == 409


def test_a_waiting_job_can_be_cancelled(owner: httpx.Client, root: Path) -> None:
    """Cancelling works while it waits; cancelling what has ended is a conflict."""
    job = waiting(owner, root)
    owner.post(
        "/v1/cancel", params={"ref": job.job_id}, json={"decision_id": new_id("c")}, timeout=60
    ).raise_for_status()
    follow(owner, job, {JobPhase.cancelled})
    late = owner.post("/v1/cancel", params={"ref": job.job_id}, json={"decision_id": new_id("c")})
    assert late.status_code == 409
    assert not list(root.iterdir())


def test_only_what_has_ended_and_left_something_is_undone(owner: httpx.Client, root: Path) -> None:
    """An open job, and one that changed nothing, cannot be taken back; the message says why."""
    job = waiting(owner, root)
    early = owner.post("/v1/undo", params={"ref": job.job_id}, json={"request_id": new_id("u")})
    assert (early.status_code, "has not ended" in problem(early).message) == (409, True)
    decide(owner, job.digest, "reject").raise_for_status()
    follow(owner, job, {JobPhase.rejected})
    nothing = owner.post("/v1/undo", params={"ref": job.job_id}, json={"request_id": new_id("u")})
    assert (nothing.status_code, "left nothing" in problem(nothing).message) == (409, True)


def test_nothing_in_doubt_is_nothing_to_resolve(owner: httpx.Client, root: Path) -> None:
    """Resolving an effect that was never begun is refused."""
    job = waiting(owner, root)
    body = {"decision_id": new_id("x"), "digest": job.digest, "effect": 0, "answer": "done"}
    answer = owner.post("/v1/resolve", params={"ref": job.job_id}, json=body)
    assert answer.status_code == 404


def test_a_decision_made_while_nobody_works_is_passed_on_later(
    world: Installed, worker: WorkerProcess, owner: httpx.Client, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a worker the decision is recorded and said to be; when one is back it is passed on and applied."""
    job = waiting(owner, root)
    worker.kill()
    monkeypatch.setattr(world.client.messenger, "limit", timedelta(seconds=1))
    answer = decide(owner, job.digest, "approve")
    assert (answer.status_code, "recorded and counts" in problem(answer).message) == (503, True)
    assert [signed.decision.kind for signed in world.ledger.untold_decisions()] == ["approve"]
    monkeypatch.undo()
    worker.start()
    follow(owner, job, {JobPhase.done})
    assert sorted(path.name for path in root.iterdir()) == ["one.txt", "two.txt"]


def test_health_sees_server_and_worker(owner: httpx.Client) -> None:
    """With both there, health is well and names the address."""
    health = owner.get("/v1/health").json()
    assert (health["ok"], health["worker"], health["detail"]) == (True, True, "")
    assert health["temporal"].startswith("127.0.0.1:")


def test_what_is_approved_on_the_page_is_applied(world: Installed, owner: httpx.Client, root: Path) -> None:
    """Two people sign in and approve by the form; each is told what is still needed; then it happens, once."""
    job = waiting(owner, root)
    for group, said in (("maintainers", "Approved. Still needed: 1 from security."), ("security", "Approved.")):
        with visiting(world, world.token(f"{group}-page", "decide", groups=(group,))) as visitor:
            answer = visitor.decide(job.digest, "approve")
            assert (answer.status_code, answer.headers["location"]) == (303, f"/plans/{job.digest}")
            assert said in said_in(visitor.get(answer.headers["location"]))
    follow(owner, job, {JobPhase.done})
    assert sorted(path.name for path in root.iterdir()) == ["one.txt", "two.txt"]
