"""Templates: seen, checked, trusted by the digest of their text, never run before."""

import os
import time
from pathlib import Path

import httpx
import pytest
from pydantic import TypeAdapter

from perdure.contracts.http import Problem, TemplateView
from tests.api.installed import Installed
from tests.support.repositories import make_project

TEMPLATE = """\
perdure: 1
name: {name}
summary: Says something.
inputs:
  word: {{type: string, default: hello}}
review: {{approvals: [{{from: maintainers, count: 1}}]}}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository that brings a template of its own."""
    path = make_project(tmp_path, remote=False).path
    jobs = path / ".perdure" / "jobs"
    jobs.mkdir(parents=True)
    (jobs / "say.yaml").write_text(TEMPLATE.format(name="say") + f"# {os.urandom(8).hex()}\n")
    return path


def submit(client: httpx.Client, folder: Path, **more: object) -> httpx.Response:
    body = {"template": "say", "request_id": f"r-{time.monotonic_ns()}", "folder": str(folder), **more}
    return client.post("/v1/jobs", json=body)


def view_of(owner: httpx.Client, folder: Path) -> TemplateView:
    answer = owner.get("/v1/template", params={"name": "say", "folder": str(folder)})
    return TemplateView.model_validate_json(answer.content)


def test_templates_are_listed_with_where_they_come_from(owner: httpx.Client, project: Path) -> None:
    """Shipped ones are trusted; a repository's is not until somebody has read it."""
    answer = owner.get("/v1/templates", params={"folder": str(project)})
    listed = {view.name: view for view in TypeAdapter(list[TemplateView]).validate_json(answer.content)}
    assert (listed["release"].source, listed["release"].trusted) == ("shipped", True)
    assert (listed["say"].source, listed["say"].trusted) == ("repository", False)
    assert listed["say"].inputs[0]["name"] == "word"


def test_an_untrusted_template_never_runs(world: Installed, owner: httpx.Client, project: Path) -> None:
    """The refusal names the file and both commands; nothing is admitted or stored."""
    before = world.ledger.jobs()
    answer = submit(owner, project)
    problem = Problem.model_validate_json(answer.content)
    assert (answer.status_code, problem.kind) == (403, "Refused")
    assert str(project / ".perdure" / "jobs" / "say.yaml") in problem.message
    assert "perdure templates trust say" in problem.message and "not trusted yet" in problem.message
    assert world.ledger.jobs() == before


def test_trust_is_given_to_a_text_and_to_no_other(world: Installed, owner: httpx.Client, project: Path) -> None:
    """Once trusted it is let through to admission; one changed byte later it is refused again."""
    view = view_of(owner, project)
    request = {"name": "say", "digest": view.digest, "folder": str(project), "decision_id": f"t-{view.digest[:8]}"}
    answer = owner.post("/v1/templates/trust", json=request)
    assert answer.status_code == 200
    assert view_of(owner, project).trusted
    assert submit(owner, project).status_code == 503  # past the trust: nobody is behind Temporal's address here
    path = Path(view.path)
    path.write_text(path.read_text() + "# more\n")
    assert not view_of(owner, project).trusted and view_of(owner, project).edited
    refused = submit(owner, project)
    assert refused.status_code == 403
    assert "its text has changed since it was trusted" in Problem.model_validate_json(refused.content).message


def test_trust_in_a_text_that_changed_meanwhile_is_refused(owner: httpx.Client, project: Path) -> None:
    """What was read is what is trusted: another digest by now is a conflict."""
    view = view_of(owner, project)
    path = Path(view.path)
    path.write_text(path.read_text() + "# swapped\n")
    request = {"name": "say", "digest": view.digest, "folder": str(project), "decision_id": "t-swapped"}
    answer = owner.post("/v1/templates/trust", json=request)
    assert (answer.status_code, Problem.model_validate_json(answer.content).kind) == (409, "Conflict")
    assert not view_of(owner, project).trusted


def test_a_text_is_checked_with_its_lines(owner: httpx.Client) -> None:
    """Validation answers with every problem, its line and the nearest name."""
    text = TEMPLATE.format(name="say").replace("word:", "word: {type: strnig}\n  other:")
    view = owner.post("/v1/templates/validate", json={"path": "say.yaml", "text": text}).json()
    assert "say.yaml:5" in view["problem"]
    assert (
        owner.post("/v1/templates/validate", json={"path": "say.yaml", "text": TEMPLATE.format(name="say")}).json()[
            "problem"
        ]
        == ""
    )


def test_the_schema_is_for_editors(owner: httpx.Client) -> None:
    """The JSON schema is served as it is."""
    assert owner.get("/v1/templates/schema").json()["$schema"].startswith("https://json-schema.org/")


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ({"template": "relaese", "folder": "/"}, 404, "release"),
        ({"template": "release", "folder": "relative/path"}, 422, "absolute"),
        ({"template": "release", "folder": "/", "request_id": "Not Allowed"}, 422, "request_id"),
    ],
)
def test_a_request_that_cannot_be_a_job_says_why(
    owner: httpx.Client, body: dict[str, str], status: int, said: str
) -> None:
    """Unknown template with the nearest name, a relative folder, a malformed id."""
    answer = owner.post("/v1/jobs", json={"request_id": "r1", **body})
    assert answer.status_code == status
    assert said in Problem.model_validate_json(answer.content).message


def test_wrong_inputs_are_all_said_at_once(world: Installed, owner: httpx.Client, project: Path) -> None:
    """Unknown inputs come with the nearest name."""
    view = view_of(owner, project)
    trust = {"name": "say", "digest": view.digest, "folder": str(project), "decision_id": f"t-{view.digest[:9]}"}
    owner.post("/v1/templates/trust", json=trust)
    answer = submit(owner, project, inputs={"wrod": "x"})
    assert answer.status_code == 422
    assert "'word'" in Problem.model_validate_json(answer.content).message
