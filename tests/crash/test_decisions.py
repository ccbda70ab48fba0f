"""People who decide twice, late, against each other, or on something else: each is told what it came to."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from perdure.contracts.decisions import Decision
from perdure.contracts.http import DecideAnswer, JobView
from perdure.contracts.job import JobPhase
from perdure.store.signing import DecisionKey
from tests.support.holding import Hold, held
from tests.support.installation import Installation, wait_until
from tests.support.people import Person, owner, person, refusal
from tests.support.small import Small, make_small
from tests.support.waits import asked_again, ended

FEW_OR_MANY = [3, pytest.param(10, marks=pytest.mark.torture)]
"""Rounds of a race."""

People = dict[str, Person]


@pytest.fixture(scope="module")
def people(module_home: Installation) -> Iterator[People]:
    """Mara submits and decides, Otto and Ada decide, Sam only submits, Gast decides and is in no group."""
    made = [
        person(module_home, "mara", "submit", "decide"),
        person(module_home, "otto", "decide"),
        person(module_home, "ada", "decide"),
        person(module_home, "sam", "submit"),
        person(module_home, "gast", "decide", groups=()),
    ]
    with ExitStack() as doors:
        yield {one.name: one for one in map(doors.enter_context, made)}


def answer_of(answer: httpx.Response) -> DecideAnswer:
    """Read what a decision came to."""
    assert answer.status_code == 200, answer.text
    return DecideAnswer.model_validate(answer.json())


def test_the_same_decision_twice_is_one_decision(working: Installation, small: Small) -> None:
    """A decision sent again under its id, at once or after the end, is answered as the first time and counts once."""
    job = working.waiting(small.start(working))
    with owner(working) as one:
        first = answer_of(one.decide(job.digest, "approve", decision_id="twice-1"))
        again = answer_of(one.decide(job.digest, "approve", decision_id="twice-1"))
        working.done(job)
        late = answer_of(one.decide(job.digest, "approve", decision_id="twice-1"))
        other = refusal(one.decide(job.digest, "reject", decision_id="twice-1"))
    assert {said.weighing.outcome for said in (first, again, late)} == {"satisfied"}
    assert "recorded before with other content" in other.message
    with working.ledger() as ledger:
        assert [signed.decision.id for signed in ledger.decisions(digest=job.digest)] == ["twice-1"]
    small.assert_applied_once()


@pytest.mark.parametrize("first", ["approve", "reject"])
def test_late_decision_is_told_how_it_ended(working: Installation, small: Small, first: str) -> None:
    """Whoever decides after the end is refused, is told how the gate ended, and changes nothing."""
    job = working.waiting(small.start(working))
    with owner(working) as one:
        answer_of(one.decide(job.digest, first))
        end = ended(working, job)
        late = [refusal(one.decide(job.digest, kind)) for kind in ("approve", "reject")]
        late.append(refusal(one.decide(job.digest, "request_changes", comment="rather not")))
    outcome = {"approve": "it is approved already", "reject": "it was rejected"}[first]
    assert all(problem.kind == "Conflict" and outcome in problem.message for problem in late), late
    assert working.job(job) == end
    if first == "approve":
        small.assert_applied_once()
    else:
        small.assert_untouched()


@pytest.mark.parametrize("second", ["otto", "ada"])
def test_rejection_denies_beside_an_approval(working: Installation, small: Small, people: People, second: str) -> None:
    """Approved and then rejected, by the same person or another one: denied, and nothing is applied."""
    job = working.waiting(people["mara"].start(small, "pair"))
    assert answer_of(people["otto"].decide(job.digest, "approve")).weighing.outcome == "pending"
    assert answer_of(people[second].decide(job.digest, "reject", comment="no")).weighing.outcome == "denied"
    assert ended(working, job).phase is JobPhase.rejected
    assert "it was rejected" in refusal(people["ada"].decide(job.digest, "approve")).message
    small.assert_untouched()


def test_requester_and_strangers_do_not_count(working: Installation, small: Small, people: People) -> None:
    """Under a rule that wants two others, the requester's yes and a stranger's no count for nothing."""
    job = working.waiting(people["mara"].start(small, "pair"))
    own = answer_of(people["mara"].decide(job.digest, "approve")).weighing
    assert (own.outcome, own.missing) == ("pending", ["2 from maintainers"])
    assert "wants somebody else to approve" in own.ignored[0].why
    stranger = answer_of(people["gast"].decide(job.digest, "reject")).weighing
    assert "in none of the groups" in stranger.ignored[-1].why
    assert answer_of(people["otto"].decide(job.digest, "approve")).weighing.missing == ["1 from maintainers"]
    assert answer_of(people["otto"].decide(job.digest, "approve")).weighing.missing == ["1 from maintainers"]
    small.assert_untouched()
    assert answer_of(people["ada"].decide(job.digest, "approve")).weighing.outcome == "satisfied"
    working.done(job)
    assert small.note.read_text() == small.name


def test_a_token_opens_only_what_it_was_made_for(working: Installation, small: Small, people: People) -> None:
    """A token to submit decides nothing, and a token to decide submits nothing."""
    job = working.waiting(people["sam"].start(small, "small"))
    assert refusal(people["sam"].decide(job.digest, "approve")).kind == "Refused"
    assert refusal(people["otto"].submit(small, "small")).kind == "Refused"
    assert working.job(job).phase is JobPhase.waiting
    answer_of(people["otto"].decide(job.digest, "approve"))
    working.done(job)
    small.assert_applied_once()


def test_decision_on_an_older_plan_counts_for_nothing(working: Installation, small: Small) -> None:
    """After changes were requested, the old digest can no longer be approved; the new one waits on its own."""
    job = working.waiting(small.start(working))
    with owner(working) as one:
        answer_of(one.decide(job.digest, "request_changes", comment="say it louder"))
        new = asked_again(working, job, job.digest)
        old = refusal(one.decide(job.digest, "approve"))
        assert (old.kind, "changes were requested" in old.message) == ("Conflict", True)
        assert working.job(job).digest == new.digest
        small.assert_untouched()
        answer_of(one.decide(new.digest, "approve"))
    working.done(job)
    small.assert_applied_once()


def test_decision_that_counted_unheard_is_not_late(working: Installation, small: Small, people: People) -> None:
    """One that an API recorded and died before telling counts; sent again after the end, it is not told it was late."""
    job = working.waiting(people["mara"].start(small, "pair"))
    with working.ledger() as ledger:
        said = {"id": "unheard", "kind": "approve", "job_id": job.job_id, "digest": job.digest, "by": "ada"}
        decision = Decision.model_validate(
            {**said, "groups": ["maintainers"], "at": datetime.now(UTC), "head": ledger.head()}
        )
        ledger.record_decision(
            DecisionKey.load(working.settings.keys).sign(decision), thread=job.thread, at=decision.at
        )
    assert answer_of(people["otto"].decide(job.digest, "approve")).weighing.outcome == "satisfied"
    working.done(job)
    again = answer_of(people["ada"].decide(job.digest, "approve", decision_id="unheard"))
    assert again.weighing.outcome == "satisfied"


def test_unknown_digest_is_nobodys_plan(working: Installation, small: Small) -> None:
    """A digest that names no plan is not found; a part of one is refused, and "latest" is not known at all."""
    job = working.waiting(small.start(working))
    with owner(working) as one:
        unknown = refusal(one.decide("f" * 64, "approve"))
        shortened = refusal(one.decide(job.digest[:12], "approve"))
        latest = refusal(one.decide("latest", "approve"))
    assert (unknown.kind, shortened.kind, latest.kind) == ("NotFound", "UserError", "UserError")
    with working.ledger() as ledger:
        assert ledger.decisions(job_id=job.job_id) == []
    small.assert_untouched()


@pytest.mark.parametrize("rounds", FEW_OR_MANY)
def test_approve_and_reject_at_once(working: Installation, people: People, tmp_path: Path, rounds: int) -> None:
    """Decided both ways in the same instant, one word stands, and whoever is not heard is told."""
    for small in [make_small(tmp_path / str(number)) for number in range(rounds)]:
        job = working.waiting(small.start(working))
        yes, no = decide_both_ways(people, job.digest)
        end = ended(working, job)
        if no.status_code == 200:
            assert end.phase is JobPhase.rejected
            small.assert_untouched()
        else:
            assert refusal(no).kind == "Conflict"
            assert answer_of(yes).weighing.outcome == "satisfied"
            assert end.phase is JobPhase.done
            small.assert_applied_once()


def decide_both_ways(people: People, digest: str) -> tuple[httpx.Response, httpx.Response]:
    """Otto approves and Ada rejects at once; return the answers in this order."""
    at_once = threading.Barrier(2)

    def decide(name: str, kind: str) -> httpx.Response:
        at_once.wait()
        return people[name].decide(digest, kind)

    with ThreadPoolExecutor(2) as pool:
        yes, no = pool.submit(decide, "otto", "approve"), pool.submit(decide, "ada", "reject")
        return yes.result(), no.result()


def test_withdrawn_before_the_first_effect(working: Installation, small: Small) -> None:
    """An approval withdrawn before the first effect applies nothing: people are asked again and told why."""
    job = working.waiting(small.start(working))
    with owner(working) as one, held(working, "ledger.begin_effect[files.write]:before") as hold:
        answer_of(one.decide(job.digest, "approve"))
        hold.wait()
        answer_of(one.decide(job.digest, "withdraw"))
    new = asked_again(working, job, job.digest)
    small.assert_untouched()
    assert any("was withdrawn" in finding for finding in working.review(job).findings)
    working.decide(new.digest, "approve")
    working.done(job)
    small.assert_applied_once()


def test_withdrawn_while_the_gate_closes(working: Installation, small: Small) -> None:
    """An approval withdrawn while its gate closes leaves it open: no moment lies between its end and its permit."""
    job = working.waiting(small.start(working))
    with owner(working) as one, owner(working) as other, held(working, "ledger.close_gate:before") as hold:
        with ThreadPoolExecutor(2) as pool, working.ledger() as ledger:
            yes = pool.submit(one.decide, job.digest, "approve")
            hold.wait()
            back = pool.submit(other.decide, job.digest, "withdraw")
            wait_until(lambda: len(ledger.decisions(digest=job.digest)) == 2, "the withdrawal to be recorded")
            hold.release()
        assert [yes.result().status_code, back.result().status_code] == [200, 200]
    assert working.job(job).phase is JobPhase.waiting
    small.assert_untouched()
    working.decide(job.digest, "approve")
    working.done(job)
    small.assert_applied_once()


def test_withdrawn_after_the_first_effect_began(working: Installation, small: Small) -> None:
    """Once the first effect has begun, a withdrawal is refused as too late and the job ends applied."""
    job = working.waiting(small.start(working))
    with owner(working) as one, held(working, "ledger.begin_effect[files.write]:after") as hold:
        answer_of(one.decide(job.digest, "approve"))
        hold.wait()
        assert "too late to withdraw" in refusal(one.decide(job.digest, "withdraw")).message
    working.done(job)
    small.assert_applied_once()


@pytest.mark.parametrize("rounds", FEW_OR_MANY)
def test_withdrawal_races_the_first_effect(working: Installation, tmp_path: Path, rounds: int) -> None:
    """Withdrawals against first effects: each one wins and nothing is applied, or it is told it is too late."""
    worlds = [make_small(tmp_path / str(number)) for number in range(rounds)]
    with ThreadPoolExecutor(rounds) as pool:
        jobs = list(pool.map(lambda small: working.waiting(small.start(working)), worlds))
        with held(working, "ledger.begin_effect[files.write]:before") as hold:
            list(pool.map(lambda job: working.decide(job.digest, "approve"), jobs))
            hold.wait(rounds)
            answers = withdraw_all(working, jobs, hold)
    withdrawn = [answer.status_code == 200 for answer in answers]
    for job, small, answer in zip(jobs, worlds, answers, strict=True):
        if answer.status_code == 200:
            asked_again(working, job, job.digest)
            small.assert_untouched()
        else:
            assert "too late to withdraw" in refusal(answer).message
            working.done(job)
            small.assert_applied_once()
    print(f"{sum(withdrawn)} of {rounds} withdrawals came before the effect")


def withdraw_all(working: Installation, jobs: list[JobView], hold: Hold) -> list[httpx.Response]:
    """Withdraw every approval: half of them while the effects are about to start, half in the moment they may."""
    go = threading.Event()

    def withdraw(number: int) -> httpx.Response:
        with owner(working) as one:
            one.door.get("/v1/jobs", params={"limit": 1})  # the connection is there when it starts
            if number % 2:
                go.wait()
            return one.decide(jobs[number].digest, "withdraw")

    with ThreadPoolExecutor(len(jobs)) as pool, working.ledger() as ledger:
        answers = [pool.submit(withdraw, number) for number in range(len(jobs))]
        wait_until(lambda: any(len(ledger.decisions(digest=job.digest)) > 1 for job in jobs), "a withdrawal")
        go.set()
        hold.release()
        return [answer.result() for answer in answers]
