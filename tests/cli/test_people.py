"""`perdure people`, `break-glass`, `tokens --agent-of` and `audit log`: who decides, and who decided."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from perdure.contracts.http import TokenView
from perdure.contracts.http_account import AccountEntry, AccountPage
from perdure.contracts.http_people import DelegationView, PeopleView, PersonView
from perdure.contracts.plan import ApprovalRule, ReviewRule
from tests.cli.conftest import Ended
from tests.cli.world import DIGEST, World

Call = Callable[..., Ended]
AT = datetime(2026, 11, 30, 10, 12, tzinfo=UTC)
GIVEN = DelegationView(
    id="4f0c81d2aa", by="anna", to="cy", groups=["dba"], since=AT, until=AT, comment="on leave", stands=True
)
PEOPLE = PeopleView(
    named=True,
    people=[PersonView(name="anna", groups=["dba"]), PersonView(name="helper", groups=[], acts_for="anna")],
    policies=[ReviewRule(approvals=[ApprovalRule(group="dba", count=2)], policy="production")],
    delegations=[GIVEN],
)


def test_people_policies_and_delegations_are_listed(call: Call, world: World) -> None:
    """One line each; an agent stands with its person; where nobody is named, that is said."""
    world.routes["GET /v1/people"] = lambda query, body: PEOPLE
    out = call("people").out
    for text in ("anna", "agent of anna", "production", "2 from dba", "4f0c81d2", "on leave"):
        assert text in out
    assert call("people", "list", "--json").json["people"][0]["name"] == "anna"
    world.routes["GET /v1/people"] = lambda query, body: PeopleView(named=False, people=[], policies=[], delegations=[])
    assert "you stand for every group" in call("people").out


def test_a_delegation_is_asked_for_with_its_end_and_its_words(call: Call, world: World) -> None:
    """Whom, for which groups, how long and why goes to the API; how to end it is said."""
    asked: list[Any] = []
    world.routes["POST /v1/delegations"] = lambda query, body: asked.append(body) or GIVEN
    ended = call("people", "delegate", "cy", "--group", "dba", "--lasts", "7d", "-m", "on leave")
    assert ended.code == 0
    assert (asked[-1]["to"], asked[-1]["groups"], asked[-1]["lasts_seconds"]) == ("cy", ["dba"], 7 * 86400)
    assert "cy decides for dba in your place" in ended.out
    assert "perdure people end 4f0c81d2" in ended.err
    assert call("people", "delegate", "cy", "--group", "dba", "--lasts", "soon").code == 64


def test_the_glass_is_broken_with_a_reason_only(call: Call, world: World) -> None:
    """Without -m nothing is sent; with it the decision goes to exactly that plan, and is loud."""
    world.freeze()
    assert call("break-glass", DIGEST[:8]).code == 64
    sent = [one for one in world.asked if one[0] == "POST"]
    assert sent == []
    ended = call("break-glass", DIGEST[:8], "-m", "site down", "--detach")
    [body] = [one[3] for one in world.asked if one[0] == "POST"]
    assert (body["kind"], body["comment"]) == ("break_glass", "site down")
    assert "GLASS BROKEN" in ended.err + ended.out


def test_a_broken_glass_is_the_first_remark_of_a_review(call: Call, world: World) -> None:
    """Nobody who looks at the plan afterwards can miss it; nor that a policy is stricter today."""
    weighing = world.weighing.model_copy(update={"broken_glass": "cy: site down", "notes": ["Policy x is stricter."]})
    world.freeze(weighing=weighing)
    out = call("review", DIGEST[:8]).out
    assert "!! GLASS BROKEN by cy: site down" in out
    assert "! Policy x is stricter." in out


def test_an_agents_token_names_its_person(call: Call, world: World) -> None:
    """``--agent-of`` goes to the API, and the list says whose agent it is."""
    made = TokenView(id="t1", principal="helper", acts_for="anna", groups=[], may=["submit"], created_at=AT, text="x")
    asked: list[Any] = []
    world.routes["POST /v1/tokens"] = lambda query, body: asked.append(body) or made
    world.routes["GET /v1/tokens"] = lambda query, body: [made]
    assert call("tokens", "add", "helper", "--agent-of", "anna", "--may", "submit").code == 0
    assert (asked[0]["acts_for"], asked[0]["may"]) == ("anna", ["submit"])
    assert "helper (agent of anna)" in call("tokens", "list").out


def test_an_account_is_read_page_by_page_and_written_as_csv(call: Call, world: World) -> None:
    """What is asked goes to the API; pages are followed; every field is there, and no cell is a formula."""
    asked: list[dict[str, str]] = []
    about = {"at": AT, "thread": "ops", "who": "anna", "what": "approve", "digest": DIGEST, "door": "unix socket"}

    def answer(query: dict[str, str], body: Any) -> AccountPage:
        asked.append(query)
        first = query.get("after") == "0"
        entry = AccountEntry(position=1 if first else 9, detail="fine" if first else "=1+1", **about)
        return AccountPage(entries=[entry], next=5 if first else 0)

    world.routes["GET /v1/audit/account"] = answer
    out = call("audit", "log", "--person", "anna", "--since", "2026-11-01", "--csv").out
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [(row["position"], row["detail"], row["digest"]) for row in rows] == [
        ("1", "fine", DIGEST),
        ("9", "'=1+1", DIGEST),
    ]
    assert [query["after"] for query in asked] == ["0", "5"]
    assert (asked[0]["person"], asked[0]["since"]) == ("anna", "2026-11-01T00:00:00+00:00")
    assert "7f3a91c2" in call("audit", "log").out
