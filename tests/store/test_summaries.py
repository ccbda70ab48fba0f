"""Summaries in the ledger's database, live text beside it, turns as people read them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from perdure.contracts.agent import Spent, Usage
from perdure.contracts.agent_run import CallHeader, CallRecord, SummaryRecord, TurnRecord, TurnResult
from perdure.contracts.base import BlobRef
from perdure.contracts.messages import CallPart, ResultPart, TextPart
from perdure.store.agents import Agents
from perdure.store.live import LiveReader, LiveTexts
from perdure.store.transcripts import Line, make_message
from perdure.store.turns import TurnReader
from tests.store.ledger_kit import AT
from tests.store.test_agents import AGENT, line, spec_of

RESERVED = Spent(tokens=500, cost_microdollars=900)


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


def summary(until, text="short", **more):
    """A summary that took 15 tokens."""
    about = {"until": until, "text": text, "usage": Usage(input_tokens=10, output_tokens=5), "cost_microdollars": 7}
    return SummaryRecord(**{**about, **more})


def spent(agents):
    """Tokens and cost of the agent."""
    found = agents.get(AGENT).spent
    return found.tokens, found.cost_microdollars


def test_what_a_summary_may_cost_is_counted_before_it_is_made(agents):
    """Reserved once however often it is begun; what it cost stands in its place when it was made."""
    agents.summaries.begin(AGENT, 8, RESERVED, at=AT)
    agents.summaries.begin(AGENT, 8, RESERVED, at=AT)
    assert spent(agents) == (500, 900)
    assert agents.summaries.newest(AGENT) is None
    agents.summaries.end(AGENT, summary(8), at=AT)
    assert spent(agents) == (15, 7)
    assert not agents.get(AGENT).spent.unknown_cost


def test_a_summary_is_written_once(agents):
    """A second one of the same messages is not taken; a later one is the newest."""
    for until in (8, 12):
        agents.summaries.begin(AGENT, until, RESERVED, at=AT)
    assert agents.summaries.end(AGENT, summary(8), at=AT).text == "short"
    assert agents.summaries.end(AGENT, summary(8, "another"), at=AT).text == "short"
    assert agents.summaries.newest(AGENT).until == 8
    agents.summaries.end(AGENT, summary(12, "later"), at=AT)
    assert agents.look(AGENT, 1, last=5).summary.text == "later"
    assert spent(agents) == (30, 14)


def test_what_was_reserved_for_no_summary_is_given_back(agents):
    """Giving up frees the amount, once; a summary that was made stays and is paid."""
    agents.summaries.begin(AGENT, 8, RESERVED, at=AT)
    agents.summaries.give_up(AGENT, 8)
    agents.summaries.give_up(AGENT, 8)
    assert spent(agents) == (0, 0)
    agents.summaries.begin(AGENT, 8, RESERVED, at=AT)
    agents.summaries.end(AGENT, summary(8), at=AT)
    agents.summaries.give_up(AGENT, 8)
    assert spent(agents) == (15, 7)


def test_a_summary_of_unknown_cost_is_unknown(agents):
    """No price: from then on nobody can tell what is left."""
    agents.summaries.begin(AGENT, 8, RESERVED, at=AT)
    agents.summaries.end(AGENT, summary(8, cost_microdollars=None), at=AT)
    assert agents.get(AGENT).spent.unknown_cost


def test_turns_are_told_with_their_calls_and_whole_outputs(agents, job_id):
    """What was said, each call and how it ended, and the blob where the model saw a part; only a call's own blob."""
    ref = BlobRef(sha256="ab" * 32, size_bytes=9)
    header = CallHeader(turn=1, position=0, number=3, answer=2)
    calls = (CallPart(id="c", name="shell.run", arguments={"command": '"blob":{"sha256"'}),)
    answer = make_message("a", TextPart(text="I look."), *calls, role="assistant", source="model")
    about = {"turn": 1, "number": 2, "sent": 2, "model": "m", "finish": "calls", "usage": Usage()}
    record = TurnRecord(**about, cost_microdollars=7, result=TurnResult(number=4, calls=(header,)))
    agents.end_turn(AGENT, record, Line(2, "turn/1", answer), [], at=AT)
    reader = TurnReader(agents.summaries._database)
    [view] = reader.views(job_id)
    assert (view.text, view.is_over) == ("I look.", False)
    result = ResultPart(call_id="c", name="shell.run", text="part", blob=ref)
    call = CallRecord(key=f"{AGENT}/1/0", turn=1, position=0, tool="shell.run", status="ok", summary="ran")
    line_of_call = Line(3, "call/1/0", make_message("r", result, role="tool", source="tool"))
    agents.end_call(AGENT, call, line_of_call, at=AT)
    [view] = reader.views(job_id)
    assert view.is_over
    assert [(one.tool, one.status, one.summary, one.output) for one in view.calls] == [("shell.run", "ok", "ran", ref)]
    assert reader.outputs(job_id) == [("agent.1.turn.1.0", ref)]
    assert reader.views(job_id, since=AT + timedelta(seconds=1)) == []
    assert [one.number for one in reader.transcript(job_id, 1, start=1, limit=2)] == [1, 2]


def test_live_text_is_written_only_while_somebody_watches(tmp_path):
    """Each piece is read once; another attempt of the same turn is told; nobody watching means no file."""
    texts = LiveTexts(tmp_path / "live")
    assert texts.begin(AGENT, 1) is None
    texts.watch(AGENT)
    reader = LiveReader(texts, AGENT)
    say = texts.begin(AGENT, 1)
    assert list(reader.read()) == []
    say("ééé")
    assert list(reader.read()) == []
    assert list(reader.read()) == [("text", 1, "ééé")]
    say("two")
    assert list(reader.read()) == [("text", 1, "two")]
    again = texts.begin(AGENT, 1)
    again("new")
    assert ("again", 1, "") in list(reader.read())
    assert list(reader.read()) == [("text", 1, "new")]
    nxt = texts.begin(AGENT, 2)
    nxt("next")
    assert list(reader.read()) == []
    assert list(reader.read()) == [("text", 2, "next")]
    reader.close()
