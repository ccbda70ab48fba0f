"""A decision counts from the moment it is recorded, signed, whether or not a workflow can be told."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from perdure.contracts.application import Receipt
from perdure.contracts.decisions import CloseGateInput, SignedDecision
from perdure.contracts.http import Problem
from perdure.contracts.job import JobPhase
from perdure.contracts.names import application_id, gate_id
from perdure.store.ledger import BeginEffect
from perdure.store.signing import public_keys, verify
from tests.api.installed import Installed, installed, now
from tests.api.working import decide, new_id, review
from tests.support.files import read_files


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    """An installation whose decision key has a passphrase."""
    with installed(tmp_path_factory.mktemp("locked"), passphrase="open sesame") as world:
        yield world


def plan_at_its_gate(world: Installed) -> tuple[str, str]:
    job_id = world.admit(new_id("r"))
    return job_id, world.freeze(job_id)


def recorded(world: Installed, digest: str) -> list[SignedDecision]:
    return world.ledger.decisions(digest=digest)


def test_a_decision_names_the_head_it_saw_and_is_signed(world: Installed, owner: httpx.Client) -> None:
    """What is in the ledger is signed by the installation's key over exactly this person, digest, time and head."""
    _, digest = plan_at_its_gate(world)
    head = world.ledger.head()
    answer = decide(owner, digest, "approve", comment="fine")
    assert (answer.status_code, "recorded and counts" in answer.json()["message"]) == (503, True)
    [signed] = recorded(world, digest)
    assert verify(signed, public_keys(world.settings.keys))
    decision = signed.decision
    assert (decision.by, decision.groups, decision.digest, decision.head) == ("ada", ["*"], digest, head)
    assert decision.comment == "fine"


def test_said_again_it_is_the_same_decision(world: Installed, owner: httpx.Client) -> None:
    """After a lost answer the same id is not signed anew; with other words it is a conflict."""
    _, digest = plan_at_its_gate(world)
    decision_id = new_id("d")
    for _ in range(2):
        assert decide(owner, digest, "reject", decision_id, comment="no").status_code == 503
    assert decide(owner, digest, "reject", decision_id, comment="never").status_code == 409
    assert [signed.decision.comment for signed in recorded(world, digest)] == ["no"]


def test_one_cannot_repeat_anothers_decision(world: Installed, owner: httpx.Client) -> None:
    """An id that somebody else used is no way to speak in that person's name."""
    _, digest = plan_at_its_gate(world)
    decision_id = new_id("d")
    decide(owner, digest, "approve", decision_id)
    with world.http.tcp(world.token("mallory", "decide")) as mallory:
        answer = decide(mallory, digest, "approve", decision_id)
    assert answer.status_code == 409
    assert [signed.decision.by for signed in recorded(world, digest)] == ["ada"]


def test_a_token_decides_in_its_own_name_and_groups(world: Installed) -> None:
    """The principal comes from the door, never from the request."""
    _, digest = plan_at_its_gate(world)
    with world.http.tcp(world.token("mia", "decide", groups=("maintainers",))) as mia:
        decide(mia, digest, "approve")
        forged = mia.post(f"/v1/plans/{digest}/decisions", json={"kind": "approve", "decision_id": "x", "by": "ada"})
    assert forged.status_code == 422
    assert [(one.decision.by, one.decision.groups) for one in recorded(world, digest)] == [("mia", ["maintainers"])]


@pytest.mark.parametrize("passphrase", ["", "wrong"])
def test_without_the_passphrase_nothing_is_decided(locked: Installed, passphrase: str) -> None:
    """A key with a passphrase signs nothing for another process of the same uid."""
    job_id, digest = plan_at_its_gate(locked)
    with locked.http.unix() as owner:
        answers = [
            decide(owner, digest, "approve", passphrase=passphrase),
            owner.post(
                "/v1/cancel", params={"ref": job_id}, json={"decision_id": new_id("c"), "passphrase": passphrase}
            ),
        ]
    for answer in answers:
        problem = Problem.model_validate_json(answer.content)
        assert (answer.status_code, problem.kind, "passphrase" in problem.message) == (403, "Refused", True)
    assert locked.ledger.decisions(job_id=job_id) == []


def test_with_the_passphrase_it_is_decided_and_forgotten(locked: Installed) -> None:
    """The right passphrase signs once; the next decision needs it again, and it is stored nowhere."""
    _, digest = plan_at_its_gate(locked)
    with locked.http.unix() as owner:
        assert decide(owner, digest, "approve", passphrase="open sesame").status_code == 503
        assert decide(owner, digest, "reject").status_code == 403
    assert len(recorded(locked, digest)) == 1
    stored = b"".join(read_files(locked.settings.data).values())
    assert b"open sesame" not in stored


def test_a_passphrase_is_given_changed_and_taken_away(tmp_path: Path) -> None:
    """Only who knows the present one changes it; the key, and what it signed, stays the same throughout."""
    with installed(tmp_path) as world, world.http.unix() as owner:
        digest = plan_at_its_gate(world)[1]
        decide(owner, digest, "approve")
        before = owner.get("/v1/key").json()
        assert before["has_passphrase"] is False

        def change(old: str, new: str) -> httpx.Response:
            return owner.post("/v1/key/passphrase", json={"passphrase": old, "new_passphrase": new})

        assert change("", "first").json() == {**before, "has_passphrase": True}
        assert decide(owner, digest, "reject").status_code == 403
        assert [change(wrong, "x").status_code for wrong in ("", "x")] == [403, 403]
        assert change("first", "second").status_code == 200
        assert decide(owner, digest, "reject", passphrase="first").status_code == 403
        assert decide(owner, digest, "withdraw", passphrase="second").status_code == 503
        assert change("second", "").json() == before
        keys = public_keys(world.settings.keys)
        assert [verify(signed, keys) for signed in recorded(world, digest)] == [True, True]
        assert (world.settings.keys / "decision.pem").stat().st_mode & 0o777 == 0o600


def effect_in_doubt(world: Installed) -> tuple[str, str]:
    """A job whose first effect ended unknown, as its application would have written it."""
    job_id, digest = plan_at_its_gate(world)
    gate, application = gate_id(job_id, 1), application_id(job_id, 1)
    world.ledger.close_gate(CloseGateInput(gate_id=gate, job_id=job_id, digest=digest, outcome="satisfied"), at=now())
    world.ledger.grant_permit(digest=digest, job_id=job_id, application_id=application, at=now())
    where = {"application_id": application, "index": 0, "direction": "do", "kind": "git.tag"}
    begin = {**where, "job_id": job_id, "thread": "releases", "digest": digest, "effect_id": "commit"}
    world.ledger.begin_effect(BeginEffect(**begin, target=new_id("t"), irreversible=False), at=now())
    receipt = Receipt.model_validate({**where, "state": "unknown", "body": {}, "detail": "no answer"})
    ref = world.blobs.put_json(receipt.model_dump(mode="json"))
    world.ledger.finish_effect(receipt, ref, at=now())
    world.note(job_id, 200, JobPhase.unknown)
    return job_id, digest


def test_what_is_in_doubt_is_shown_and_resolved(world: Installed, owner: httpx.Client) -> None:
    """The review names the effect in doubt; the person's word on it is recorded; what is not in doubt takes none."""
    job_id, digest = effect_in_doubt(world)
    job = world.ledger.job(job_id)
    assert [(view.state, view.detail) for view in review(owner, job).effects] == [("unknown", "no answer"), ("", "")]
    body = {"decision_id": new_id("x"), "digest": digest, "effect": 0, "answer": "not_done"}
    answer = owner.post("/v1/resolve", params={"ref": job_id}, json=body)
    assert (answer.status_code, "recorded and counts" in answer.json()["message"]) == (503, True)
    found = world.ledger.resolution(application_id(job_id, 1), 0, "do")
    assert found is not None
    assert (found.decision.answer, found.decision.effect) == ("not_done", 0)
    other = owner.post("/v1/resolve", params={"ref": job_id}, json={**body, "decision_id": new_id("x"), "effect": 1})
    assert other.status_code == 404


def test_a_resolution_for_another_jobs_plan_is_refused(world: Installed, owner: httpx.Client) -> None:
    """Job and digest must belong together."""
    _, digest = effect_in_doubt(world)
    stranger = world.admit(new_id("r"))
    body = {"decision_id": new_id("x"), "digest": digest, "effect": 0, "answer": "done"}
    assert owner.post("/v1/resolve", params={"ref": stranger}, json=body).status_code == 409
