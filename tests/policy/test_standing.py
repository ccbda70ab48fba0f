"""Standing approvals: as far as their scope, as often as they say, and never against somebody's own word."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from perdure.contracts.decisions import Decision, Revocation, StandingScope
from perdure.contracts.names import CALL_ROUNDS
from perdure.contracts.plan import ApprovalRule, Envelope, Inverse, Plan, PlannedEffect, ReviewRule
from perdure.policy.standing import weigh_call
from perdure.policy.targets import hash_arguments

NOW = datetime(2026, 12, 1, 10, tzinfo=UTC)
JOB = "job/notes/one"
DIGEST, TOOL, TEMPLATE = "d" * 64, "a" * 64, "b" * 64
WORDS = {"command": "make test"}


def plan(*, count: int = 1, round_number: int = CALL_ROUNDS + 3, arguments: dict[str, Any] = WORDS) -> Plan:
    """A call of ``make test`` that so many maintainers must approve."""
    envelope = Envelope(
        job_id=JOB,
        thread="notes",
        round=round_number,
        requester="ada",
        template="note",
        template_digest=TEMPLATE,
        rule=ReviewRule(approvals=[ApprovalRule(group="maintainers", count=count)]),
        created_at=NOW,
        expires_at=NOW + timedelta(days=1),
    )
    body = {
        "tool": "shell.run",
        "tool_digest": TOOL,
        "arguments": json.dumps(arguments),
        "targets": ["command:make test"],
    }
    inverse = Inverse(none_needed="It stays in the workspace.")
    effect = PlannedEffect(id="call", kind="agent.call", version=1, summary="", body=body, target="t", inverse=inverse)
    return Plan(content="c" * 64, envelope=envelope, effects=[effect])


def word(kind: str, comment: str = "", *, by: str = "bo", id: str = "s1", digest: str = "") -> Decision:
    """A maintainer's word."""
    about = {"id": id, "kind": kind, "job_id": JOB, "digest": digest, "by": by, "groups": ["maintainers"]}
    return Decision.model_validate({**about, "at": NOW - timedelta(hours=1), "head": "", "comment": comment})


def standing(*, by: str = "bo", id: str = "s1", **scope: Any) -> Decision:
    """A standing approval of exactly that call, or as ``scope`` says."""
    known = {"thread": "notes", "template_digest": TEMPLATE, "tool": "shell.run", "tool_digest": TOOL}
    said = {**known, "until": NOW + timedelta(hours=1), **scope}
    return word("standing", StandingScope.model_validate(said).model_dump_json(), by=by, id=id)


def outcome(*words: Decision, on_plan: tuple[Decision, ...] = (), uses: int = 0, **about: Any) -> str:
    """What it amounts to."""
    return weigh_call(plan(**about), DIGEST, on_plan, words, {"s1": uses}, now=NOW).outcome


@pytest.mark.parametrize(
    "scope",
    [
        {},
        {"arguments_hash": hash_arguments(WORDS)},
        {"target": "command:make *"},
        {"arguments": {"command": "make *"}},
        {"uses": 3},
    ],
)
def test_what_stands_lets_the_call_go(scope: dict[str, Any]) -> None:
    """A scope that covers the call is an approval of it, and is named for being counted."""
    found = weigh_call(plan(), DIGEST, [], [standing(**scope)], {"s1": 2}, now=NOW)
    assert (found.outcome, found.standing, found.by) == ("satisfied", ["s1"], ["bo"])


@pytest.mark.parametrize(
    "scope",
    [
        {"thread": "other"},
        {"template_digest": "e" * 64},
        {"tool": "files.write"},
        {"tool_digest": "e" * 64},
        {"arguments_hash": hash_arguments({"command": "make all"})},
        {"target": "command:make"},
        {"target": "command:m*/x"},
        {"arguments": {"command": "make"}},
        {"arguments": {"argv": "make*"}},
        {"until": NOW},
        {"uses": 2},
    ],
)
def test_what_stands_reaches_no_further_than_its_scope(scope: dict[str, Any]) -> None:
    """Another thread, template, tool, definition, argument or target, a later time, one use more: it asks."""
    assert outcome(standing(**scope), uses=2) == "pending"


def test_what_was_revoked_lets_nothing_go() -> None:
    """From the revocation on."""
    assert outcome(standing(), word("revoke", Revocation(approval="s1").model_dump_json(), id="r1")) == "pending"


def test_words_on_the_plan_go_before_what_stands() -> None:
    """A "no" denies, also by whoever let it stand; an approval taken back is not made up for; enough need no other."""
    assert outcome(standing(), on_plan=(word("reject", digest=DIGEST, id="n"),)) == "denied"
    taken_back = (word("approve", digest=DIGEST, id="y"), word("withdraw", digest=DIGEST, id="w"))
    assert outcome(standing(), on_plan=taken_back) == "withdrawn"
    found = weigh_call(plan(), DIGEST, [word("approve", digest=DIGEST, id="y", by="cy")], [standing()], {}, now=NOW)
    assert (found.outcome, found.standing) == ("satisfied", [])


def test_two_approvals_need_two_people() -> None:
    """Of a rule that wants two, one person's standing approvals are one; another person's, or their own word, adds."""
    assert outcome(standing(), standing(id="s2"), count=2) == "pending"
    assert outcome(standing(), standing(id="s2", by="cy"), count=2) == "satisfied"
    assert outcome(standing(), on_plan=(word("approve", digest=DIGEST, id="y", by="cy"),), count=2) == "satisfied"


def test_nothing_stands_for_a_draft() -> None:
    """A job's plan is decided for itself, whatever stands."""
    assert outcome(standing(), round_number=1) == "pending"
