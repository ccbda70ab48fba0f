"""Requests assembled from any transcript: within the window, whole pairs, pinned messages, stable from turn to turn."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perdure.contracts.agent import ContextInput
from perdure.contracts.messages import CallPart, Message, ResultPart, TextPart, estimate_tokens
from perdure.errors import StageFailed
from perdure.policy.context import SHORTENED, assemble, summary_end

calm = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def message(id, role, source, *parts):
    return Message(id=id, role=role, source=source, parts=parts, tokens=estimate_tokens(parts))


@st.composite
def transcripts(draw):
    """Turns with calls beside each other, people's words, long and short results."""
    found = []
    for turn in range(draw(st.integers(0, 25))):
        kind = draw(st.sampled_from(("calls", "calls", "calls", "person", "talk")))
        if kind == "person":
            found.append(message(f"p{turn}", "user", "person", TextPart(text="w" * draw(st.integers(1, 200)))))
        elif kind == "talk":
            found.append(message(f"t{turn}", "assistant", "model", TextPart(text="t" * draw(st.integers(0, 2000)))))
        else:
            count = draw(st.integers(1, 3))
            calls = [CallPart(id=f"c{turn}-{n}", name="x") for n in range(count)]
            found.append(message(f"a{turn}", "assistant", "model", *calls))
            for part in calls:
                text = "r" * draw(st.sampled_from((0, 50, 1500, 6000)))
                result = ResultPart(call_id=part.id, name="x", text=text)
                found.append(message(f"r{part.id}", "tool", "tool", result))
    return tuple(found)


CHARTER = (message("charter", "system", "charter", TextPart(text="Never push.")),)
GOAL = message("goal", "user", "goal", TextPart(text="Go."))


def request(messages, window):
    return ContextInput(charter=CHARTER, goal=GOAL, messages=messages, window_tokens=window, reserved_tokens=100)


def try_assemble(messages, window):
    try:
        return assemble(request(messages, window))
    except StageFailed:
        return None


@calm
@given(transcripts(), st.integers(200, 9000))
def test_every_request_fits_and_keeps_what_must_be_there(messages, window):
    """Within the window, charter and goal first, the rest in its order, the newest message there, same input same."""
    found = try_assemble(messages, window)
    if found is None:
        return
    assert found == assemble(request(messages, window))
    assert sum(one.tokens for one in found.messages) <= window - 100
    assert [one.id for one in found.messages[:2]] == ["charter", "goal"]
    shown = [one.id.removesuffix(SHORTENED) for one in found.messages[2:] if not one.id.startswith("left-out")]
    order = [one.id for one in messages]
    assert [name for name in order if name in set(shown)] == shown
    assert len(order) - len(shown) == found.left_out
    assert not order or shown[-1] == order[-1]


@calm
@given(transcripts(), st.integers(200, 9000))
def test_every_call_has_its_result_and_no_result_stands_alone(messages, window):
    """A provider refuses a request in which one of the two is missing."""
    found = try_assemble(messages, window)
    if found is not None:
        calls = {call.id for one in found.messages for call in one.calls}
        results = {result.call_id for one in found.messages for result in one.results}
        assert calls == results


@calm
@given(transcripts(), st.integers(200, 9000))
def test_what_was_shortened_or_left_out_stays_so(messages, window):
    """From turn to turn only more is shortened or left out: nothing comes back and goes again."""
    earlier: dict[str, int] = {}
    for end, last in enumerate(messages, 1):
        if end < len(messages) and messages[end].role == "tool":
            continue
        found = try_assemble(messages[:end], window)
        if found is None:
            return
        state = {one.id: 2 for one in messages[:end]}
        for one in found.messages:
            state[one.id.removesuffix(SHORTENED)] = 1 if one.id.endswith(SHORTENED) else 0
        assert last.id in state
        assert all(state[name] >= how for name, how in earlier.items())
        earlier = {one.id: state[one.id] for one in messages[:end]}


@calm
@given(transcripts(), st.integers(200, 9000))
def test_a_summary_ends_where_a_round_begins(messages, window):
    """No summary parts a call from its result."""
    end = summary_end(request(messages, window))
    assert 0 <= end <= len(messages)
    assert end == len(messages) or messages[end].role != "tool"
