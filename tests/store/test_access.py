"""Bearer tokens in the ledger."""

from __future__ import annotations

import sqlite3

import pytest

from perdure.errors import NotFound, UserError
from tests.store.ledger_kit import AT


def test_a_token_is_found_by_its_text_and_shown_once(ledger):
    """Only the answer to making it holds the text; later views do not."""
    token = ledger.add_token("ci", ["maintainers"], ["submit", "read"], at=AT)
    found = ledger.token(token.text)
    assert found == token.model_copy(update={"text": ""})
    assert [one.text for one in ledger.tokens()] == [""]
    assert ledger.token("perdure_guess") is None
    assert ledger.token("") is None
    assert ledger.token("\udcff") is None


def test_a_revoked_token_is_gone_at_once(ledger):
    """A revoked token opens nothing; its name stays in the list. Twice is a no-op."""
    token = ledger.add_token("ci", [], ["read"], at=AT)
    ledger.revoke_token(token.id, at=AT)
    ledger.revoke_token(token.id, at=AT)
    assert ledger.token(token.text) is None
    assert [one.revoked_at for one in ledger.tokens()] == [AT]
    assert [event.kind for event in ledger.events()] == ["token.added", "token.revoked"]
    with pytest.raises(NotFound):
        ledger.revoke_token("nothing", at=AT)


@pytest.mark.parametrize(("principal", "may"), [("", ["read"]), ("ci", []), ("ci", ["own"]), ("c\0", ["read"])])
def test_a_token_without_a_name_or_right_is_refused(ledger, principal, may):
    """A token belongs to somebody and allows something that exists."""
    with pytest.raises(UserError):
        ledger.add_token(principal, [], may, at=AT)
    assert ledger.tokens() == []


def test_the_text_of_a_token_is_nowhere_in_the_ledger(sqlite_ledger):
    """Who copies the file learns no token: rows and records hold its hash and name only."""
    token = sqlite_ledger.add_token("ci", [], ["decide"], at=AT)
    raw = sqlite3.connect(sqlite_ledger.database.engine.url.database)
    dump = "\n".join(raw.iterdump())
    raw.close()
    assert "ci" in dump
    assert token.text not in dump
    assert token.text.removeprefix("perdure_") not in dump


def test_a_token_of_an_agent_names_the_person_behind_it(ledger):
    """It may read and submit in that person's name; the record of it says whose it is."""
    token = ledger.add_token("assistant", [], ["read", "submit"], at=AT, acts_for="anna")
    assert ledger.token(token.text).acts_for == "anna"
    assert ledger.events()[-1].body["acts_for"] == "anna"


@pytest.mark.parametrize(
    ("may", "groups", "acts_for"),
    [(["decide"], [], "anna"), (["break_glass"], [], "anna"), (["read"], ["dba"], "anna"), (["read"], [], "assistant")],
)
def test_no_token_lets_an_agent_decide(ledger, may, groups, acts_for):
    """A right to decide, a group, or an agent that would act for itself: no such token is made."""
    with pytest.raises(UserError, match=r"decide nothing|act for itself"):
        ledger.add_token("assistant", groups, may, at=AT, acts_for=acts_for)
    assert ledger.tokens() == []
