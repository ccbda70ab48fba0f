"""A job that goes by a policy of the settings, on a real server with the real worker; the settings change meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from perdure.contracts.http import AuditReport, JobView
from perdure.contracts.http_account import AccountPage
from perdure.contracts.job import JobPhase
from perdure.testing.server import temporal_server
from tests.api.installed import OWNER, Installed, installed
from tests.api.working import decide, follow, review, submit, working

DROP = """\
perdure: 1
name: drop
review: {policy: production}
inputs:
  root: {type: path}
apply:
  - {id: one, effect: files.write, with: {root: "{{ inputs.root }}", path: one.txt, content: x}}
"""
POLICY = """\
[policies.production]
approvals = [{{from = "dba", count = {count}}}]
requester_may_approve = false
break_glass = ["oncall"]
"""
PEOPLE = """\
[people.anna]
groups = ["dba"]
[people.cy]
groups = ["dba", "oncall"]
[people.helper]
for = "anna"
"""

pytestmark = pytest.mark.xdist_group("api-live")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    folder = tmp_path_factory.mktemp("policies")
    (folder / "templates").mkdir()
    (folder / "templates" / "drop.yaml").write_text(DROP)
    with temporal_server(folder / "temporal") as server, installed(folder, address=server.address) as world:
        settings_say(world, count=1)
        with working(world):
            yield world


def settings_say(world: Installed, *, count: int, people: str = PEOPLE) -> None:
    world.settings.config.write_text(POLICY.format(count=count) + people)


@pytest.fixture
def root(tmp_path: Path, world: Installed) -> Path:
    settings_say(world, count=1)
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


def waiting(client: httpx.Client, root: Path) -> JobView:
    return follow(client, submit(client, "drop", str(root), inputs={"root": str(root)}), {JobPhase.waiting})


def outcome(answer: httpx.Response) -> str:
    return str(answer.raise_for_status().json()["weighing"]["outcome"])


def test_the_stricter_of_then_and_now_decides(world: Installed, owner: httpx.Client, root: Path) -> None:
    """A policy that is tightened while a plan waits is asked at once; with one more approval the plan is applied."""
    job = waiting(owner, root)
    settings_say(world, count=2)
    digest = review(owner, job).digest
    with world.http.unix(world.token("anna", "decide")) as anna, world.http.unix(world.token("cy", "decide")) as cy:
        assert outcome(decide(anna, digest, "approve")) == "pending"
        assert "stricter today" in review(owner, job).weighing.notes[0]
        assert not list(root.iterdir())
        assert outcome(decide(cy, digest, "approve")) == "satisfied"
    assert follow(owner, job, {JobPhase.done}).phase is JobPhase.done
    assert (root / "one.txt").read_text() == "x"


def test_what_an_agent_asks_for_is_asked_for_by_its_person(world: Installed, owner: httpx.Client, root: Path) -> None:
    """So that person cannot approve it where the requester may not; somebody else can."""
    with world.http.unix(world.token("helper", "submit")) as helper:
        job = waiting(helper, root)
    assert job.requester == "anna"
    digest = review(owner, job).digest
    with world.http.unix(world.token("anna", "decide")) as anna, world.http.unix(world.token("cy", "decide")) as cy:
        assert outcome(decide(anna, digest, "approve")) == "pending"
        assert outcome(decide(cy, digest, "approve")) == "satisfied"
    assert follow(owner, job, {JobPhase.done}).phase is JobPhase.done


def test_a_broken_glass_lets_it_go_and_is_told_for_good(world: Installed, owner: httpx.Client, root: Path) -> None:
    """One person, with a right of their own and a reason; review, audit and account say so."""
    job = waiting(owner, root)
    digest = review(owner, job).digest
    with world.http.unix(world.token("cy", "break_glass")) as cy:
        assert outcome(decide(cy, digest, "break_glass", comment="site down")) == "satisfied"
    follow(owner, job, {JobPhase.done})
    assert review(owner, job).weighing.broken_glass == "cy: site down"
    report = AuditReport.model_validate_json(owner.get("/v1/audit", params={"ref": job.job_id}, timeout=60).content)
    assert report.ok
    assert [one.detail for one in report.findings if one.severity == "notice"] == [
        "the glass was broken by cy: site down"
    ]
    page = AccountPage.model_validate_json(owner.get("/v1/audit/account", params={"thread": job.thread}).content)
    [broken] = [entry for entry in page.entries if entry.what == "break_glass" and entry.digest == digest]
    assert (broken.who, broken.detail, broken.door.startswith("unix socket, token")) == ("cy", "site down", True)
    assert "did" in [entry.what for entry in page.entries if entry.digest == digest]


def test_the_way_back_goes_by_the_same_policy(world: Installed, owner: httpx.Client, root: Path) -> None:
    """Who decides about a production change decides about taking it back; the owner alone does not."""
    job = waiting(owner, root)
    with world.http.unix(world.token("cy", "decide")) as cy:
        decide(cy, review(owner, job).digest, "approve").raise_for_status()
        follow(owner, job, {JobPhase.done})
        asked = owner.post("/v1/undo", params={"ref": job.job_id}, json={"request_id": f"u-{job.number}"}, timeout=60)
        undoing = follow(owner, JobView.model_validate_json(asked.content), {JobPhase.waiting})
        plan = review(owner, undoing)
        assert (plan.rule.policy, plan.rule.requester_may_approve) == ("production", False)
        assert outcome(decide(owner, plan.digest, "approve")) == "pending"
        assert outcome(decide(cy, plan.digest, "approve")) == "satisfied"
    assert follow(owner, undoing, {JobPhase.done}).requester == OWNER
    assert not (root / "one.txt").exists()
