"""What a thread remembers is what people signed, and what took effect."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from activities.ledger import Decisions
from activities.memory import ThreadMemory
from perdure.contracts.decisions import CloseGateInput, Decision, Edits
from perdure.contracts.memory import Memory
from perdure.contracts.names import JobId, gate_id
from perdure.contracts.plan import Settled
from perdure.store.signing import DecisionKey, public_keys
from tests.api.installed import Installed, installed

LINE = Settled(about="release.map", name="feat", value="patch", because="so it was")
CHANGES = {"version": "2.0.0"}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Installed]:
    """An installation with nobody behind Temporal's address."""
    with installed(tmp_path) as world:
        yield world


def recall(world: Installed, keys: Mapping[str, bytes] | None = None, **moved: Any) -> Memory:
    """What a new job of the thread would be told."""
    known = public_keys(world.settings.keys) if keys is None else keys
    memory = ThreadMemory(world.ledger, world.blobs, Decisions(world.ledger, lambda: known))
    now = datetime.now(UTC) + timedelta(**moved)
    return memory.recall(str(JobId("releases", "next")), now)


def decide(world: Installed, job_id: str, digest: str, kind: str, **more: Any) -> None:
    """Ann decides, and the gate ends so."""
    said = {"id": f"d-{kind}-{job_id[-1]}", "kind": kind, "job_id": job_id, "digest": digest, "by": "ann"}
    facts = {"groups": ["maintainers"], "at": datetime.now(UTC), "head": world.ledger.head(), "comment": "new API"}
    decision = Decision.model_validate({**said, **facts, **more})
    key = DecisionKey.load(world.settings.keys)
    world.ledger.record_decision(key.sign(decision), thread="releases", at=decision.at)
    outcome = {"approve": "satisfied", "request_changes": "changes_requested"}[kind]
    ending = {"gate_id": gate_id(job_id, 1), "job_id": job_id, "digest": digest, "outcome": outcome}
    world.ledger.close_gate(CloseGateInput.model_validate(ending), at=decision.at)


def edit(world: Installed, request: str = "1") -> str:
    """A job whose plan Ann edits."""
    job_id = world.admit(request)
    value = {"release": {"rule": "release.propose", "version": "1.3.0"}}
    world.keep_result(job_id, "analyze", "", json.dumps({"value": value, "findings": []}).encode())
    digest = world.freeze(job_id)
    edits = world.blobs.put_json(Edits(by="ann", changes=CHANGES).model_dump(mode="json"))
    decide(world, job_id, digest, "request_changes", edits=edits)
    return job_id


def approve(world: Installed, request: str = "1") -> None:
    """A job whose plan Ann approves, with a line that this settles."""
    job_id = world.admit(request)
    decide(world, job_id, world.freeze(job_id, settles=[LINE]), "approve")


def test_an_edit_is_remembered_with_what_was_seen(world: Installed) -> None:
    """Who, when, why, what was changed, and the analysis that it was made on; the job itself carries its own."""
    job_id = edit(world)
    (found,) = recall(world).edits
    assert (found.by, found.why, found.changes) == ("ann", "new API", CHANGES)
    assert found.seen["release"]["version"] == "1.3.0"
    memory = ThreadMemory(world.ledger, world.blobs, Decisions(world.ledger, lambda: public_keys(world.settings.keys)))
    assert memory.recall(job_id, datetime.now(UTC)) == Memory()


def test_an_approval_confirms_what_the_plan_settles(world: Installed) -> None:
    """The approved bytes say what was settled; nothing else does."""
    approve(world)
    (found,) = recall(world).confirmed
    assert (found.by, found.what) == ("ann", [LINE])
    world.freeze(world.admit("2"), settles=[LINE])
    assert len(recall(world).confirmed) == 1


def test_only_what_was_signed_is_remembered(world: Installed) -> None:
    """Once the key that signed is no longer known, neither the edit nor the approval was ever there."""
    edit(world, "1")
    approve(world, "2")
    assert recall(world) != Memory()
    assert recall(world, keys={}) == Memory()


def test_memory_is_the_same_on_every_attempt(world: Installed) -> None:
    """What was decided after a job's round began is for the next round."""
    edit(world)
    assert recall(world, hours=-1) == Memory()
