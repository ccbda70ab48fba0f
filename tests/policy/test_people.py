"""Who counts today: people who were removed, agents, and those who decide in somebody's place for a while."""

from __future__ import annotations

from perdure.policy.people import Today
from tests.policy.deciding_kit import AT, delegate, hours, outcome, people, rule, say, undelegate

DBA = rule({"group": "dba"})
TWO = rule({"group": "dba", "count": 2})
ALONE = rule({"group": "dba"}, requester_may_approve=False)


def why(weighing):
    return [ignored.why for ignored in weighing.ignored]


def test_where_nobody_is_named_a_decisions_own_groups_count():
    """Without people in the settings, what a token or the owner says of its groups is what counts."""
    assert outcome(DBA, say("approve", "bo", "dba")).outcome == "satisfied"


def test_a_principal_that_was_removed_counts_no_more():
    """An approval counts only as long as its person is among the people, and the gate says so."""
    word = say("approve", "bo", "dba")
    assert outcome(DBA, word, today=Today(people=people(bo=["dba"]))).outcome == "satisfied"
    weighing = outcome(DBA, word, today=Today(people=people(cy=["dba"])))
    assert (weighing.outcome, weighing.missing) == ("pending", ["1 from dba"])
    assert "not among the people" in why(weighing)[0]


def test_a_group_that_was_taken_away_counts_no_more_and_a_new_one_not_yet():
    """Of the groups of then those count that are left today; what was given since counts for the next decision."""
    today = Today(people=people(bo=["sre"]))
    assert outcome(DBA, say("approve", "bo", "dba"), today=today).outcome == "pending"
    assert outcome(rule({"group": "sre"}), say("approve", "bo", "dba"), today=today).outcome == "pending"


def test_whoever_stood_for_every_group_stands_for_those_of_today():
    """The owner's ``*`` of before people were named is worth what the settings give the owner now."""
    word = say("approve", "bo", "*")
    assert outcome(DBA, word, today=Today(people=people(bo=["sre"]))).outcome == "pending"
    assert outcome(DBA, word, today=Today(people=people(bo=["dba"]))).outcome == "satisfied"


def test_an_agent_of_the_settings_decides_nothing():
    """An agent's decision counts for nothing, whatever groups it says that it has."""
    weighing = outcome(DBA, say("approve", "helper", "dba", "*"), today=Today(people=people(helper="bo")))
    assert weighing.outcome == "pending"
    assert "agents decide nothing" in why(weighing)[0]


def test_somebody_decides_in_anothers_place_until_the_end():
    """A delegation counts from when it was given until its end, and not before or after."""
    given = delegate("bo", "cy", "dba", at=hours(1), until=hours(5))
    today = Today(delegations=[given])
    found = [outcome(DBA, say("approve", "cy", at=hours(at)), today=today).outcome for at in (0.5, 1, 4, 5)]
    assert found == ["pending", "satisfied", "satisfied", "pending"]


def test_a_delegation_that_was_taken_back_counts_for_what_was_decided_before():
    """Its end reaches what is decided from then on; only the one who gave it can end it."""
    given = delegate("bo", "cy", "dba")
    today = Today(delegations=[given, undelegate(given, hours(3))])
    found = [outcome(DBA, say("approve", "cy", at=hours(at)), today=today).outcome for at in (2, 3)]
    assert found == ["satisfied", "pending"]
    foreign = undelegate(given, hours(3)).model_copy(update={"by": "eve"})
    today = Today(delegations=[given, foreign])
    assert outcome(DBA, say("approve", "cy", at=hours(4)), today=today).outcome == "satisfied"


def test_nobody_delegates_what_they_have_not():
    """Groups that whoever delegates was not in then, or is not in today, are not handed on; nor are delegated ones."""
    stranger = delegate("bo", "cy", "dba", own=("sre",))
    assert outcome(DBA, say("approve", "cy"), today=Today(delegations=[stranger])).outcome == "pending"
    removed = Today(people=people(bo=["sre"], cy=["sre"]), delegations=[delegate("bo", "cy", "dba")])
    assert outcome(DBA, say("approve", "cy"), today=removed).outcome == "pending"
    chain = [delegate("bo", "cy", "dba"), delegate("cy", "di", "dba", own=("sre",))]
    assert outcome(DBA, say("approve", "di"), today=Today(delegations=chain)).outcome == "pending"


def test_an_authority_counts_once_whoever_speaks_with_it():
    """Somebody and the one who decides in their place are one approval, and so are two who do."""
    today = Today(delegations=[delegate("bo", "cy", "dba"), delegate("bo", "di", "dba")])
    for words in ([say("approve", "bo", "dba"), say("approve", "cy")], [say("approve", "cy"), say("approve", "di")]):
        weighing = outcome(TWO, *words, today=today)
        assert (weighing.outcome, weighing.missing) == ("pending", ["1 from dba"])
        assert "rests on the same authority" in why(weighing)[-1]
    own = [say("approve", "bo", "dba"), say("approve", "cy", "dba")]
    assert outcome(TWO, *own, today=today).outcome == "satisfied"


def test_every_authority_finds_a_voice_where_one_can():
    """Who may speak for two is counted for the one whom nobody else speaks for."""
    given = [delegate("bo", "cy", "dba"), delegate("eve", "cy", "dba"), delegate("bo", "di", "dba")]
    words = [say("approve", "cy"), say("approve", "di")]
    assert outcome(TWO, *words, today=Today(delegations=given)).outcome == "satisfied"


def test_what_somebody_may_not_approve_nobody_approves_in_their_place():
    """Where the requester may not approve, neither does whoever decides in the requester's place; nor for an author."""
    given = Today(delegations=[delegate("ada", "cy", "dba")])
    assert outcome(ALONE, say("approve", "cy"), today=given).outcome == "pending"
    assert outcome(DBA, say("approve", "cy"), today=given).outcome == "satisfied"
    given = Today(delegations=[delegate("bo", "ada", "dba")])
    assert outcome(ALONE, say("approve", "ada"), today=given).outcome == "pending"
    given = Today(delegations=[delegate("bo", "cy", "dba")])
    assert outcome(ALONE, say("approve", "cy"), today=given, authors=["bo"]).outcome == "pending"


def test_an_author_may_be_kept_from_approving_alone():
    """Where authors may not approve, the requester still may, and an author's other words still count."""
    wanted = rule({"group": "dba"}, authors_may_approve=False)
    assert outcome(wanted, say("approve", "bo", "dba"), authors=["bo"]).outcome == "pending"
    assert outcome(wanted, say("approve", "ada", "dba"), authors=["bo"]).outcome == "satisfied"
    assert outcome(wanted, say("reject", "bo", "dba"), authors=["bo"]).outcome == "denied"


def test_a_decision_at_the_end_of_a_delegation_is_too_late():
    """The end itself belongs to the time after it."""
    today = Today(delegations=[delegate("bo", "cy", "dba", until=hours(2))])
    assert outcome(DBA, say("approve", "cy", at=hours(2)), today=today).outcome == "pending"
    assert outcome(DBA, say("approve", "cy", at=AT), today=today).outcome == "satisfied"
