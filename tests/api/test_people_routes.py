"""People, agents and policies of the settings at the API: read at each question, asked by one function."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from perdure.contracts.http import Problem, Review
from perdure.contracts.http_people import PeopleView
from perdure.contracts.plan import ApprovalRule, ReviewRule
from tests.api.installed import OWNER, Installed, installed
from tests.api.working import decide, new_id

DBA = ReviewRule(approvals=[ApprovalRule(group="dba")], break_glass=["oncall"])


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Installed]:
    """An installation of its own: its settings change."""
    with installed(tmp_path) as world:
        yield world


@pytest.fixture
def owner(world: Installed) -> Iterator[httpx.Client]:
    with world.http.unix() as client:
        yield client


def settings_say(world: Installed, text: str) -> None:
    world.settings.config.write_text(text)


def waiting(world: Installed, **more: object) -> str:
    job_id = world.admit(new_id("r"))
    return world.freeze(job_id, **{"rule": DBA, **more})


def shown(client: httpx.Client, digest: str) -> Review:
    return Review.model_validate_json(client.get("/v1/review", params={"digest": digest}).content)


def said(answer: httpx.Response) -> Problem:
    return Problem.model_validate_json(answer.content)


def test_without_people_the_owner_stands_for_every_group(world: Installed, owner: httpx.Client) -> None:
    """One person alone needs no set-up."""
    digest = waiting(world)
    decide(owner, digest, "approve")
    assert shown(owner, digest).weighing.outcome == "satisfied"
    assert PeopleView.model_validate_json(owner.get("/v1/people").content).named is False


def test_people_of_the_settings_have_the_groups_that_stand_there(world: Installed, owner: httpx.Client) -> None:
    """Once people are named, a token's groups and the owner's ``*`` count for nothing: the file says who is who."""
    settings_say(world, '[people.anna]\ngroups = ["dba"]\n')
    digest = waiting(world)
    decide(owner, digest, "approve")
    assert "not among the people" in shown(owner, digest).weighing.ignored[0].why
    with world.http.unix(world.token("anna", "decide", groups=("nobody",))) as anna:
        decide(anna, digest, "approve")
    assert shown(owner, digest).weighing.by == ["anna"]


def test_who_is_removed_while_the_plan_waits_counts_no_more(world: Installed, owner: httpx.Client) -> None:
    """The review says that the approval does not count any more, and who is missing."""
    settings_say(world, '[people.anna]\ngroups = ["dba"]\n')
    digest = waiting(world)
    with world.http.unix(world.token("anna", "decide")) as anna:
        decide(anna, digest, "approve")
    assert shown(owner, digest).weighing.outcome == "satisfied"
    settings_say(world, '[people.bo]\ngroups = ["dba"]\n')
    weighing = shown(owner, digest).weighing
    assert (weighing.outcome, weighing.missing) == ("pending", ["1 from dba"])


def test_settings_that_cannot_be_read_decide_nothing(world: Installed, owner: httpx.Client) -> None:
    """A mistake in the file is said with its place, and no decision is taken on a guess."""
    digest = waiting(world)
    settings_say(world, '[people.anna]\ngroup = ["dba"]\n')
    answer = decide(owner, digest, "approve")
    assert (said(answer).kind, "[people.anna]" in said(answer).message) == ("SetupError", True)
    assert world.ledger.decisions(digest=digest) == []


@pytest.mark.parametrize("by_settings", [False, True])
def test_an_agent_signs_nothing_through_any_door(world: Installed, owner: httpx.Client, by_settings: bool) -> None:
    """Neither a token of an agent nor an agent of the settings decides, cancels, resolves, delegates or steers."""
    if by_settings:
        settings_say(world, f'[people.{OWNER}]\ngroups = ["dba"]\n[people.helper]\nfor = "{OWNER}"\n')
        text = world.token("helper", "read", "submit", "decide", "break_glass", groups=("dba", "oncall"))
    else:
        made = {"principal": "helper", "may": ["read", "submit"], "acts_for": OWNER}
        text = owner.post("/v1/tokens", json=made).json()["text"]
    digest = waiting(world)
    job_id = world.ledger.plan(digest).job_id
    head = world.ledger.head()
    delegation = {"decision_id": new_id("d"), "to": "eve", "groups": ["dba"], "lasts_seconds": 60}
    word = {"decision_id": new_id("d")}
    resolution = {**word, "digest": digest, "effect": 0, "answer": "done"}
    with world.http.unix(text) as helper:
        answers = [
            *(
                decide(helper, digest, kind, comment="x")
                for kind in ("approve", "reject", "request_changes", "withdraw", "break_glass")
            ),
            helper.post("/v1/cancel", params={"ref": job_id}, json=word),
            helper.post("/v1/resolve", params={"ref": job_id}, json=resolution),
            helper.post("/v1/steer", params={"ref": job_id}, json={**word, "kind": "say", "text": "x"}),
            helper.post("/v1/delegations", json=delegation),
        ]
    refused = [answer.status_code for answer in answers]
    assert all(status in (400, 403, 409) for status in refused), refused
    assert world.ledger.head() == head


def test_breaking_the_glass_is_a_right_of_its_own_with_a_reason(world: Installed, owner: httpx.Client) -> None:
    """A right to decide is none to break the glass; without a reason nothing is recorded; with one it is shouted."""
    digest = waiting(world)
    with world.http.unix(world.token("anna", "decide", groups=("oncall",))) as anna:
        assert decide(anna, digest, "break_glass", comment="now").status_code == 403
    with world.http.unix(world.token("bo", "break_glass", groups=("oncall",))) as bo:
        assert decide(bo, digest, "approve").status_code == 403
        assert "needs a reason" in said(decide(bo, digest, "break_glass")).message
        assert world.ledger.decisions(digest=digest) == []
        decide(bo, digest, "break_glass", comment="the site is down")
    review = shown(owner, digest)
    assert review.weighing.broken_glass == "bo: the site is down"
    assert review.weighing.outcome == "satisfied"


def test_somebody_decides_in_anothers_place(world: Installed, owner: httpx.Client) -> None:
    """A delegation is signed, listed with its end, counts, and ends when its giver says so."""
    settings_say(world, '[people.anna]\ngroups = ["dba"]\n[people.cy]\ngroups = []\n[people.bot]\nfor = "anna"\n')
    anna_text, cy_text = world.token("anna", "decide"), world.token("cy", "decide")
    asked = {"decision_id": new_id("d"), "to": "cy", "groups": ["dba"], "lasts_seconds": 3600, "comment": "leave"}
    with world.http.unix(anna_text) as anna, world.http.unix(cy_text) as cy:
        for wrong, why in (({"to": "bot"}, "nobody who could"), ({"groups": ["sre"]}, "is not in sre")):
            answer = anna.post("/v1/delegations", json={**asked, "decision_id": new_id("d"), **wrong})
            assert why in said(answer).message
        made = [anna.post("/v1/delegations", json=asked).json() for _ in range(2)]
        assert made[0] == made[1]
        digest, other = waiting(world), waiting(world)
        decide(cy, digest, "approve")
        assert shown(owner, digest).weighing.by == ["cy"]
        ended = anna.post(f"/v1/delegations/{made[0]['id'][:10]}/end", json={"decision_id": new_id("d")})
        assert ended.json()["stands"] is False
        decide(cy, other, "approve")
        assert shown(owner, other).weighing.outcome == "pending"
    listed = PeopleView.model_validate_json(owner.get("/v1/people").content)
    assert [(one.by, one.to, one.stands, one.comment) for one in listed.delegations] == [("anna", "cy", False, "leave")]


def test_a_decision_says_through_which_door_it_came(world: Installed, owner: httpx.Client) -> None:
    """The owner's comes from the socket, everybody else's from a token that can be found again."""
    digest = waiting(world)
    decide(owner, digest, "approve")
    made = owner.post("/v1/tokens", json={"principal": "anna", "groups": ["dba"], "may": ["decide"]}).json()
    with world.http.tcp(made["text"]) as anna:
        decide(anna, digest, "approve")
    doors = [signed.decision.door for signed in world.ledger.decisions(digest=digest)]
    assert doors == ["unix socket", f"tcp, token {made['id']}"]


def test_a_changed_plan_is_shown_against_the_last_one_that_this_reviewer_decided(
    world: Installed, owner: httpx.Client
) -> None:
    """Who decided an earlier plan sees what differs from that one; who comes for the first time sees all of it anew."""
    job_id = world.admit(new_id("r"))
    first = world.freeze(job_id, title="1.2.0 → 1.3.0")
    decide(owner, first, "request_changes", comment="major")
    second = world.freeze(job_id, round_number=2, title="1.2.0 → 2.0.0", previous=first)
    mine = shown(owner, second)
    assert (mine.since_digest, "title: 1.2.0 → 1.3.0 ⇒ 1.2.0 → 2.0.0" in mine.since_previous) == (first, True)
    with world.http.unix(world.token("anna", "decide", groups=("maintainers",))) as anna:
        theirs = shown(anna, second)
        assert (theirs.since_digest, theirs.since_previous) == ("", "")
        assert "did not decide plan" in said(decide(anna, second, "approve", since=first)).message
    decide(owner, second, "approve", since=first)
    [signed] = world.ledger.decisions(digest=second)
    assert (signed.decision.since, signed.decision.digest) == (first, second)


def test_policies_of_the_settings_are_listed(world: Installed, owner: httpx.Client) -> None:
    """Name, approvals and order, as templates may name them."""
    settings_say(world, '[policies.production]\napprovals = [{from = "dba"}, {from = "sre", after = ["dba"]}]\n')
    [policy] = PeopleView.model_validate_json(owner.get("/v1/people").content).policies
    assert json.loads(policy.model_dump_json())["approvals"][1]["after"] == ["dba"]
    assert policy.policy == "production"


def test_a_policy_that_nobody_wrote_is_refused_when_the_template_is_read(world: Installed, owner: httpx.Client) -> None:
    """The line and the nearest name are said; with the policy there is nothing wrong."""
    template = (
        "perdure: 1\nname: rotate\nreview:\n  policy: prodution\napply:\n"
        "  - {id: note, effect: files.write, with: {root: /tmp, path: x, content: y}}\n"
    )
    asked = {"path": "/srv/rotate.yaml", "text": template}
    settings_say(world, "[policies.production]\n")
    problem = owner.post("/v1/templates/validate", json=asked).json()["problem"]
    assert "rotate.yaml:4" in problem
    assert "There is no policy 'prodution'" in problem
    settings_say(world, "[policies.prodution]\n")
    assert owner.post("/v1/templates/validate", json=asked).json()["problem"] == ""
