"""An account of what happened: who decided what on which plan, what ran, what was undone; by whatever is asked."""

from __future__ import annotations

from datetime import timedelta

import pytest

from perdure.store.account import Accounts, Question
from tests.store.ledger_kit import AT, TARGET


@pytest.fixture
def accounts(scene):
    return Accounts(scene.ledger.database)


@pytest.fixture
def told(scene):
    """Two jobs in two threads, on two targets; the first is applied and its first effect undone."""
    job_id, plan, _ = scene.approved("one", thread="releases")
    scene.begin(job_id, plan, 0)
    scene.finish(job_id, plan, 0)
    scene.begin(job_id, plan, 0, direction="undo")
    scene.finish(job_id, plan, 0, direction="undo")
    other_id = scene.admit("two", thread="ops")
    other = scene.freeze(other_id, target="files:/etc/app")
    scene.open_gate(other_id, other)
    scene.decide(
        "reject", other_id, other, by="eve", comment="not today", door="tcp, token 1", at=AT + timedelta(hours=2)
    )
    return plan, other


def lines(accounts, **asked):
    return [(entry.who, entry.what, entry.target) for entry in accounts.read(Question(**asked)).entries]


def test_an_account_says_who_decided_what_ran_and_what_was_undone(accounts, told):
    """Oldest first: the decision, the gate, each effect's beginning and end in both directions."""
    assert lines(accounts, thread="releases") == [
        ("bo", "approve", ""),
        ("perdure", "gate satisfied", ""),
        ("perdure", "began", TARGET),
        ("perdure", "did", TARGET),
        ("perdure", "began to undo", TARGET),
        ("perdure", "undid", TARGET),
    ]


def test_a_decision_stands_with_its_plan_its_door_and_its_words(accounts, told):
    """Enough to look it up elsewhere: the whole digest, the door, the comment, the job and the thread."""
    [entry] = accounts.read(Question(person="eve")).entries
    assert (entry.digest, entry.door, entry.detail) == (told[1].digest, "tcp, token 1", "not today")
    assert (entry.thread, entry.job, entry.at) == ("ops", "job/ops/two", AT)


def test_an_account_of_a_target_has_those_who_let_it_be_changed(accounts, told):
    """Decisions on a plan that changed the target belong to it; what other plans did does not."""
    for asked in (TARGET, "orders", "git:*"):
        found = lines(accounts, target=asked)
        assert found[0] == ("bo", "approve", "")
        assert found[-1] == ("perdure", "undid", TARGET)
    assert lines(accounts, target="files:/etc/app") == []


def test_an_account_has_a_beginning_and_an_end(accounts, told):
    """``since`` is in it, ``until`` is not."""
    assert lines(accounts, since=AT, until=AT) == []
    assert lines(accounts, since=AT + timedelta(seconds=1)) == []
    assert len(lines(accounts, since=AT)) == 7


def test_a_long_account_comes_in_pages(scene):
    """Each page says where the next one begins, also one in which nothing was asked for."""
    accounts = Accounts(scene.ledger.database, page=4)
    for number in range(3):
        token = scene.ledger.add_token(f"t{number}", [], ["read"], at=AT)
        scene.ledger.revoke_token(token.id, at=AT)
    first = accounts.read(Question(person="nobody"))
    assert (first.entries, first.next) == ([], 4)
    last = accounts.read(Question(), after=first.next)
    assert ([entry.what for entry in last.entries], last.next) == (["token added", "token revoked"], 0)
