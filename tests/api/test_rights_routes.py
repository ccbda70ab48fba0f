"""Every route asks for its right, at both doors, before it does or tells anything."""

from collections.abc import Callable, Iterator

import httpx
import pytest

from perdure.contracts.http import Problem
from tests.api.installed import Installed

Ask = Callable[[httpx.Client, str], httpx.Response]

DIGEST = "a" * 64
DECISION = {"kind": "approve", "decision_id": "d1"}
STANDING = {"decision_id": "d1", "digest": DIGEST, "lasts_seconds": 60}
GLASS = {"kind": "break_glass", "decision_id": "d1", "comment": "now"}
DELEGATION = {"decision_id": "d1", "to": "cy", "groups": ["nobodys"], "lasts_seconds": 60}
RESOLUTION = {"decision_id": "d1", "digest": DIGEST, "effect": 0, "answer": "done"}
STEERING = {"decision_id": "d1", "kind": "say", "text": "x"}
WORD = {"kind": "resume", "decision_id": "decision-1"}
ASKED = {"template": "release", "folder": "/", "zone": "UTC", "cron": ["0 3 * * *"]}
SCHEDULE = {"name": "nightly", "asked": ASKED, "decision_id": "decision-1"}
EDIT = {"changes": {}, "decision_id": "decision-1"}
TRUST = {"name": "release", "digest": DIGEST, "folder": "/", "decision_id": "d1"}

ROUTES: dict[str, tuple[str, Ask]] = {
    "submit": ("submit", lambda c, job: c.post("/v1/jobs", json={"template": "x", "request_id": "r", "folder": "/"})),
    "undo": ("submit", lambda c, job: c.post("/v1/undo", params={"ref": job}, json={"request_id": "r"})),
    "decide": ("decide", lambda c, job: c.post(f"/v1/plans/{DIGEST}/decisions", json=DECISION)),
    "resolve": ("decide", lambda c, job: c.post("/v1/resolve", params={"ref": job}, json=RESOLUTION)),
    "cancel": ("decide", lambda c, job: c.post("/v1/cancel", params={"ref": job}, json={"decision_id": "d1"})),
    "break glass": ("break_glass", lambda c, job: c.post(f"/v1/plans/{DIGEST}/decisions", json=GLASS)),
    "people": ("read", lambda c, job: c.get("/v1/people")),
    "delegate": ("decide", lambda c, job: c.post("/v1/delegations", json=DELEGATION)),
    "end delegation": ("decide", lambda c, job: c.post("/v1/delegations/x/end", json={"decision_id": "d1"})),
    "trust": ("decide", lambda c, job: c.post("/v1/templates/trust", json=TRUST)),
    "list jobs": ("read", lambda c, job: c.get("/v1/jobs")),
    "show job": ("read", lambda c, job: c.get("/v1/job", params={"ref": job})),
    "events": ("read", lambda c, job: c.get("/v1/events", params={"ref": job})),
    "review": ("read", lambda c, job: c.get("/v1/review", params={"ref": job})),
    "diff": ("read", lambda c, job: c.get("/v1/diff", params={"digest": DIGEST})),
    "look": ("read", lambda c, job: c.post("/v1/look", params={"ref": job}, json={})),
    "agents": ("read", lambda c, job: c.get("/v1/agents", params={"ref": job})),
    "steer": ("decide", lambda c, job: c.post("/v1/steer", params={"ref": job}, json=STEERING)),
    "turns": ("read", lambda c, job: c.get("/v1/turns", params={"ref": job})),
    "transcript": ("read", lambda c, job: c.get("/v1/transcript", params={"ref": job})),
    "checkpoints": ("read", lambda c, job: c.get("/v1/checkpoints", params={"ref": job})),
    "checkpoint": ("read", lambda c, job: c.get("/v1/checkpoints/diff", params={"ref": job})),
    "live": ("read", lambda c, job: c.get("/v1/live", params={"ref": "none"})),
    "approvals": ("read", lambda c, job: c.get("/v1/approvals")),
    "stand approved": ("decide", lambda c, job: c.post("/v1/approvals", json=STANDING)),
    "revoke": ("decide", lambda c, job: c.post("/v1/approvals/x/revoke", json={"decision_id": "d1"})),
    "schedules": ("read", lambda c, job: c.get("/v1/schedules")),
    "schedule": ("read", lambda c, job: c.get("/v1/schedules/none")),
    "fires": ("read", lambda c, job: c.get("/v1/schedules/none/next")),
    "add schedule": ("decide", lambda c, job: c.post("/v1/schedules", json=SCHEDULE)),
    "edit schedule": ("decide", lambda c, job: c.post("/v1/schedules/none/edit", json=EDIT)),
    "resume schedule": ("decide", lambda c, job: c.post("/v1/schedules/none/words", json=WORD)),
    "threads": ("read", lambda c, job: c.get("/v1/threads")),
    "thread": ("read", lambda c, job: c.get("/v1/threads/none")),
    "resume thread": ("decide", lambda c, job: c.post("/v1/threads/none/words", json={"kind": "resume"})),
    "messages": ("read", lambda c, job: c.get("/v1/messages")),
    "message again": ("submit", lambda c, job: c.post("/v1/messages/again", json={"key": "none"})),
    "try channel": ("own", lambda c, job: c.post("/v1/channels/none/test")),
    "erase thread": ("own", lambda c, job: c.delete("/v1/threads/none")),
    "tools": ("read", lambda c, job: c.get("/v1/tools")),
    "effects": ("read", lambda c, job: c.get("/v1/effects")),
    "artifacts": ("read", lambda c, job: c.get("/v1/artifacts", params={"ref": job})),
    "blob": ("read", lambda c, job: c.get(f"/v1/blobs/{DIGEST}", params={"size": 1, "ref": job})),
    "templates": ("read", lambda c, job: c.get("/v1/templates", params={"folder": "/"})),
    "template": ("read", lambda c, job: c.get("/v1/template", params={"name": "release", "folder": "/"})),
    "validate": ("read", lambda c, job: c.post("/v1/templates/validate", json={"path": "x.yaml", "text": ""})),
    "schema": ("read", lambda c, job: c.get("/v1/templates/schema")),
    "account": ("read", lambda c, job: c.get("/v1/audit/account")),
    "audit": ("read", lambda c, job: c.get("/v1/audit")),
    "health": ("read", lambda c, job: c.get("/v1/health")),
    "key": ("read", lambda c, job: c.get("/v1/key")),
    "passphrase": ("own", lambda c, job: c.post("/v1/key/passphrase", json={"new_passphrase": "x"})),
    "tokens": ("own", lambda c, job: c.get("/v1/tokens")),
    "add token": ("own", lambda c, job: c.post("/v1/tokens", json={"principal": "x", "may": ["decide"]})),
    "revoke token": ("own", lambda c, job: c.request("DELETE", "/v1/tokens", params={"id": "x"})),
    "export": ("own", lambda c, job: c.post("/v1/audit/export", json={"path": "/nonexistent/x.zip"})),
}
HELD = {"read": {"read"}, "submit": {"submit", "read"}, "decide": {"decide", "read"}}


@pytest.fixture(scope="module")
def job(world: Installed) -> str:
    return world.admit("rights", requester="somebody else")


@pytest.fixture(scope="module", params=sorted(HELD))
def held(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module", params=["unix", "tcp"])
def client(request: pytest.FixtureRequest, world: Installed, held: str) -> Iterator[httpx.Client]:
    token = world.token(f"{held}-{request.param}", held)
    with world.http.unix(token) if request.param == "unix" else world.http.tcp(token) as client:
        yield client


@pytest.mark.parametrize("name", ROUTES)
def test_a_token_opens_exactly_its_routes(client: httpx.Client, held: str, job: str, name: str) -> None:
    """A route without the right is refused with 403 whatever else is wrong with the request; one with it is not."""
    right, ask = ROUTES[name]
    answer = ask(client, job)
    if right in HELD[held]:
        assert answer.status_code != 403
    else:
        assert answer.status_code == 403
        problem = Problem.model_validate_json(answer.content)
        assert (problem.kind, problem.exit_code) == ("Refused", 77)
        assert "may not" in problem.message


def test_every_route_is_in_this_table(owner: httpx.Client) -> None:
    """A route that is added is added here too."""
    paths = owner.get("/v1/openapi.json").json()["paths"]
    assert sum(len(methods) for methods in paths.values()) == len(ROUTES) - 1  # two kinds of decisions on a plan


def test_whoever_asked_for_a_job_may_cancel_it(world: Installed) -> None:
    """Stopping one's own job needs no right to decide; another's does."""
    token = world.token("ci", "submit")
    own, other = world.admit("own", requester="ci"), world.admit("another", requester="ada")
    with world.http.tcp(token) as client:
        asked = [
            client.post("/v1/cancel", params={"ref": ref}, json={"decision_id": f"c-{n}"})
            for n, ref in ((1, own), (2, other))
        ]
    assert [answer.status_code == 403 for answer in asked] == [False, True]
    assert [signed.decision.by for signed in world.ledger.decisions(job_id=own)] == ["ci"]
    assert world.ledger.decisions(job_id=other) == []


def test_tokens_are_made_shown_once_and_ended(world: Installed, owner: httpx.Client) -> None:
    """The text is in one answer; the list has none; a revoked one is marked and opens nothing."""
    made = owner.post("/v1/tokens", json={"principal": "anna", "groups": ["maintainers"], "may": ["decide"]}).json()
    listed = owner.get("/v1/tokens").json()
    assert made["text"]
    assert [token["text"] for token in listed] == [""] * len(listed)
    with world.http.tcp(made["text"]) as client:
        assert client.get("/v1/jobs").status_code == 200
        gone = owner.request("DELETE", "/v1/tokens", params={"id": made["id"]}).json()
        assert gone["revoked_at"]
        assert client.get("/v1/jobs").status_code == 401
    assert owner.request("DELETE", "/v1/tokens", params={"id": "none"}).status_code == 404


def test_no_token_makes_another(owner: httpx.Client) -> None:
    """A token for the owner's own right cannot even be asked for."""
    answer = owner.post("/v1/tokens", json={"principal": "x", "may": ["own"]})
    assert answer.status_code == 422
