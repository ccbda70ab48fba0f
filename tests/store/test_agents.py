"""Agents in the ledger's database: each message once, in its place; a call's end once; a person is not passed over."""

from __future__ import annotations

from datetime import timedelta

import pytest

from perdure.contracts.agent import AgentEnd, Usage
from perdure.contracts.agent_run import AgentSpec, CallRecord, TurnRecord, TurnResult
from perdure.contracts.job import JobPhase, StepInput
from perdure.contracts.messages import TextPart
from perdure.errors import Conflict, NotFound, Refused
from perdure.store.agents import Agents
from perdure.store.transcripts import Line, make_message
from tests.store.ledger_kit import AT, RULE

AGENT = "agent/releases/one/1.0.0"


def line(number, key, text):
    """A message of the loop's."""
    message = make_message(f"{AGENT}#{key}", TextPart(text=text), role="user", source="perdure")
    return Line(number, key, message)


def spec_of(job_id, ref, **more):
    """What an agent is made from."""
    step = StepInput(job_id=job_id, spec=ref, round=1, at=AT)
    about = {"agent_id": AGENT, "job_id": job_id, "step": step, "draft_step": 0, "charter": "c", "goal": "g"}
    rest = {"tools": (), "done_when": ("fine",), "requester": "ada", "template": "t", "template_digest": "0" * 64}
    return AgentSpec(**about, **rest, review=RULE, **more)


@pytest.fixture
def job_id(scene):
    return scene.admit()


@pytest.fixture
def agents(scene, job_id):
    """The store with one agent that has begun."""
    found = Agents(scene.ledger.database)
    ref = scene.blobs.put(b"spec")
    found.open(spec_of(job_id, ref), ref, [line(0, "charter", "c"), line(1, "goal", "g")], at=AT)
    return found


def turn(number, at_number):
    """An answered turn that asks for nothing."""
    about = {"turn": number, "number": at_number, "sent": at_number, "model": "m", "finish": "stop"}
    usage = Usage(input_tokens=10, output_tokens=5)
    return TurnRecord(**about, usage=usage, cost_microdollars=7, result=TurnResult(number=at_number + 1))


def test_a_message_is_written_once(agents):
    """The same message again is no second one; another one under its number or key is refused."""
    agents.add_lines(AGENT, [line(2, "say/a", "hello")], at=AT)
    agents.add_lines(AGENT, [line(2, "say/a", "hello")], at=AT)
    assert agents.transcripts.length(AGENT) == 3
    with pytest.raises(Conflict):
        agents.add_lines(AGENT, [line(2, "say/b", "other")], at=AT)
    with pytest.raises(Conflict):
        agents.add_lines(AGENT, [line(3, "say/a", "hello")], at=AT)


def test_messages_are_the_same_objects_from_turn_to_turn(agents):
    """What was read once is kept: whoever converts messages converts only what is new."""
    first = agents.transcripts.read(AGENT, 2)
    agents.add_lines(AGENT, [line(2, "say/a", "hello")], at=AT)
    second = agents.transcripts.read(AGENT, 3)
    assert all(one is other for one, other in zip(first, second, strict=False))
    assert [message.text for message in second] == ["c", "g", "hello"]


def test_a_transcript_with_a_gap_is_not_read(agents):
    """A result that is still missing is an error, never a shorter conversation."""
    agents.add_lines(AGENT, [line(3, "say/late", "after the gap")], at=AT)
    with pytest.raises(NotFound):
        agents.transcripts.read(AGENT, 4)


def test_the_first_answer_of_a_turn_stands(agents):
    """A second attempt's answer is dropped, and costs nothing in the books."""
    first = agents.end_turn(AGENT, turn(1, 2), line(2, "turn/1", "first"), [], at=AT)
    again = agents.end_turn(AGENT, turn(1, 2).model_copy(update={"model": "other"}), line(2, "turn/1", "x"), [], at=AT)
    assert again == first
    row = agents.get(AGENT)
    assert (row.spent.turns, row.spent.tokens, row.spent.cost_microdollars) == (1, 15, 7)
    assert agents.transcripts.read(AGENT, 3)[-1].text == "first"


def test_unknown_cost_is_remembered(agents):
    """An answer whose price is unknown marks the agent, which counts as a stop."""
    record = turn(1, 2).model_copy(update={"cost_microdollars": None})
    agents.end_turn(AGENT, record, line(2, "turn/1", "x"), [], at=AT)
    assert agents.get(AGENT).spent.unknown_cost


def test_attempts_of_a_call_are_counted_until_it_ends(agents):
    """A second attempt sees that a first one began; the first end of a call stands."""
    record = CallRecord(key=f"{AGENT}/1/0", turn=1, position=0, tool="shell.run")
    assert agents.begin_call(AGENT, record, at=AT).attempts == 1
    begun = agents.begin_call(AGENT, record, at=AT)
    assert begun.attempts == 2
    ended = agents.end_call(AGENT, begun.model_copy(update={"status": "unknown"}), line(2, "call/1/0", "?"), at=AT)
    again = agents.end_call(AGENT, begun.model_copy(update={"status": "ok"}), line(2, "call/1/0", "!"), at=AT)
    assert (ended.status, again.status) == ("unknown", "unknown")
    assert agents.begin_call(AGENT, record, at=AT).status == "unknown"
    assert agents.get(AGENT).spent.calls == 1


def test_an_agent_that_is_done_is_not_closed_over_an_unheard_message(scene, agents, job_id):
    """A word that came at the last moment keeps the agent at work; a limit ends it all the same, and says so."""
    scene.decide("say", job_id, comment="wait", id="word")
    done = AgentEnd(reason="done", sentence="Done.")
    assert agents.close(AGENT, done, None, at=AT) is None
    agents.deliver(AGENT, 1, [line(2, "say/word", "wait")], ["word"], at=AT)
    assert agents.close(AGENT, done, None, at=AT) == done
    assert agents.close(AGENT, AgentEnd(reason="turns", sentence="x"), None, at=AT) == done
    assert agents.deliveries(job_id) == {"word": (AGENT, 1)}
    assert scene.kinds(job_id)[-2:] == ["message.delivered", "agent.ended"]


def test_nobody_is_heard_where_no_agent_works(scene, agents, job_id):
    """A word after the agent's end is refused in the transaction that would have recorded it."""
    agents.close(AGENT, AgentEnd(reason="done", sentence="Done."), None, at=AT)
    with pytest.raises(Conflict, match="No agent works"):
        scene.decide("say", job_id, comment="too late")


def test_nothing_irreversible_starts_while_a_message_is_undelivered(scene):
    """The arbiter refuses what cannot be taken back while a person's word has not reached the agent at work."""
    job_id, plan, _ = scene.approved()
    found = Agents(scene.ledger.database)
    ref = scene.blobs.put(b"spec")
    found.open(spec_of(job_id, ref), ref, [line(0, "charter", "c"), line(1, "goal", "g")], at=AT)
    scene.decide("say", job_id, comment="stop", id="word")
    with pytest.raises(Refused, match="message has not reached"):
        scene.begin(job_id, plan, irreversible=True)
    found.deliver(AGENT, 1, [line(2, "say/word", "stop")], ["word"], at=AT)
    scene.begin(job_id, plan, irreversible=True)


def test_time_parked_for_a_person_is_not_counted(scene, agents, job_id):
    """The clock stands while somebody is waited for, and the list of jobs says for what."""
    agents.park(AGENT, JobPhase.paused, "asks: which one?", 1, at=AT + timedelta(seconds=10))
    assert scene.ledger.job(job_id).summary == "asks: which one?"
    assert agents.get(AGENT).wall_seconds(AT + timedelta(seconds=500)) == 10
    agents.unpark(AGENT, 2, at=AT + timedelta(seconds=500))
    assert agents.get(AGENT).wall_seconds(AT + timedelta(seconds=520)) == 30
