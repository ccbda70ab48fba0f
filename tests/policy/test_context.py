"""What goes into a request: what is always there, what is shortened first, when a summary is wanted."""

from __future__ import annotations

import pytest

from perdure.contracts.agent import Assembled, ContextInput
from perdure.contracts.base import BlobRef
from perdure.contracts.messages import CallPart, Message, ResultPart, TextPart, estimate_tokens
from perdure.errors import StageFailed
from perdure.policy.context import (
    SHORTENED,
    Laid,
    assemble,
    find_summary_end,
    next_scale,
    shorten,
    summary_end,
)


def say(id: str, text: str, role: str = "user", source: str = "perdure") -> Message:
    """A message of text."""
    parts = (TextPart(text=text),)
    return Message.model_validate(
        {"id": id, "role": role, "source": source, "parts": parts, "tokens": estimate_tokens(parts)}
    )


def call(turn: int, size: int = 4000, blob: BlobRef | None = None) -> tuple[Message, Message]:
    """A turn: one call and its result of ``size`` bytes."""
    asks = (CallPart(id=f"c{turn}", name="files.read", arguments={"path": "a"}),)
    gives = (ResultPart(call_id=f"c{turn}", name="files.read", text=f"{turn}" + "x" * size, blob=blob),)
    return (
        Message(id=f"a{turn}", role="assistant", source="model", parts=asks, tokens=estimate_tokens(asks)),
        Message(id=f"r{turn}", role="tool", source="tool", parts=gives, tokens=estimate_tokens(gives)),
    )


CHARTER = (say("charter", "You release things.", "system", "charter"), say("never", "Never push.", "system", "charter"))
GOAL = say("goal", "Release it.", source="goal")


def ids(assembled: Assembled) -> list[str]:
    return [message.id for message in assembled.messages]


def request(*messages: Message, window: int = 10_000, **fields: object) -> ContextInput:
    given = {"charter": CHARTER, "goal": GOAL, "messages": messages, "window_tokens": window, "reserved_tokens": 500}
    return ContextInput.model_validate({**given, **fields})


def turns(count: int, **fields: int) -> list[Message]:
    return [message for turn in range(count) for message in call(turn, **fields)]


def test_what_fits_goes_in_whole_and_in_order() -> None:
    """Charter, goal, then the transcript as it is."""
    found = assemble(request(*turns(3)))
    assert ids(found) == ["charter", "never", "goal", "a0", "r0", "a1", "r1", "a2", "r2"]
    assert (found.shortened, found.left_out, found.wants_summary) == (0, 0, False)


def test_results_are_shortened_before_anything_is_left_out() -> None:
    """Old results become a head, a tail and a reference; the newest stay whole; the stored message is untouched."""
    messages = turns(14)
    found = assemble(request(*messages))
    assert found.left_out == 0
    assert "r0" + SHORTENED in ids(found)
    assert ids(found)[-1] == "r13"
    assert len(messages[1].results[0].text) > 4000
    assert found.tokens <= 9_500


def test_a_shortened_result_says_how_to_read_the_rest() -> None:
    """With a blob behind it the reference can be read; without one the tool is called again."""
    ref = BlobRef(sha256="ab" * 32, size_bytes=9000)
    with_blob = shorten(call(1, blob=ref)[1]).results[0].text
    assert f"output={'ab' * 32}/9000" in with_blob
    assert "call again" in shorten(call(1)[1]).results[0].text
    short = call(1, size=100)[1]
    assert shorten(short) is short


def test_prohibitions_are_there_however_long_the_transcript() -> None:
    """Charter, prohibitions, decisions and open questions survive every shortening and every summary."""
    summary = say("summary", "Did a lot.", source="summary")
    found = assemble(request(*turns(500), window=3000, summary=summary, summarized=100))
    assert ids(found)[:4] == ["charter", "never", "goal", "summary"]
    assert found.left_out > 0 and found.wants_summary
    assert f"[{found.left_out} earlier messages" in found.messages[4].text


def test_what_a_summary_covers_is_not_sent_again() -> None:
    """The summary stands for the messages before it."""
    found = assemble(request(*turns(4), summary=say("summary", "…", source="summary"), summarized=4))
    assert ids(found) == ["charter", "never", "goal", "summary", "a2", "r2", "a3", "r3"]


def test_a_persons_words_are_left_out_last() -> None:
    """A message of a person outlasts calls and results around it."""
    word = say("word", "Not on Friday.", source="person")
    found = assemble(request(*turns(2), word, *turns(60), window=3000))
    assert found.left_out > 10
    assert "word" in ids(found)


def test_a_summary_is_wanted_before_the_window_is_full() -> None:
    """Once shortening alone would leave more than two thirds, compaction begins beside the loop."""
    shortened = assemble(request(*turns(10)))
    assert (shortened.shortened > 0, shortened.wants_summary) == (True, False)
    chatter = [say(f"t{n}", "y" * 4000, "assistant", "model") for n in range(7)]
    found = assemble(request(*chatter))
    assert (found.left_out, found.wants_summary) == (0, True)


def test_the_providers_count_goes_before_the_estimate() -> None:
    """When the provider counts twice as many tokens, half as much goes in."""
    messages = turns(8)
    found = assemble(request(*messages))
    assert found.shortened == 0
    assert found.estimate == sum(message.tokens for message in (*CHARTER, GOAL, *messages))
    scale = next_scale(8, found.estimate, 2 * found.estimate)
    assert assemble(request(*messages, scale=scale)).shortened > 0


def test_a_scale_that_wavers_stays() -> None:
    """It rises at once, falls only by a quarter, stays where nothing was counted, and is never absurd."""
    assert next_scale(8, 1000, 1126) == 10
    assert next_scale(10, 1000, 1124) == 10
    assert next_scale(10, 1000, 1000) == 8
    assert next_scale(10, 1000, None) == 10
    assert next_scale(8, 1000, 900_000) == 32


def test_what_is_kept_from_turn_to_turn_changes_nothing() -> None:
    """A window that was laid down before gives what a new one gives, also after a summary and another scale."""
    messages, laid = turns(60), Laid()
    for end in range(2, len(messages) + 1, 2):
        covered = 40 if end > 80 else 0
        summary = {"summary": say("summary", "…", source="summary"), "summarized": covered} if covered else {}
        given = request(*messages[:end], **summary, scale=10 if end > 100 else 8)
        assert assemble(given, laid) == assemble(given)


def test_what_people_said_stands_beside_the_summary() -> None:
    """Records are in every request, before the summary."""
    records = (say("records", "ana said: never on Friday"),)
    found = assemble(request(*turns(4), records=records, summary=say("summary", "…", source="summary"), summarized=4))
    assert ids(found)[:5] == ["charter", "never", "goal", "records", "summary"]


def test_a_summary_is_made_only_where_it_is_worth_it() -> None:
    """Less than an eighth of the window is not worth a model call."""
    assert find_summary_end(request(*turns(12))) == 0
    chatter = [say(f"t{n}", "y" * 4000, "assistant", "model") for n in range(7)]
    end = find_summary_end(request(*chatter))
    assert end == summary_end(request(*chatter)) > 0


def test_a_window_too_small_for_what_must_be_there_is_said() -> None:
    """Nothing that must be there is silently dropped."""
    with pytest.raises(StageFailed, match="window of 600 tokens is too small"):
        assemble(request(say("x", "y" * 4000, "assistant", "model"), window=600))


def test_the_next_summary_leaves_the_newest_third() -> None:
    """It covers whole rounds, never less than the last one covered."""
    messages = turns(60, size=1000)
    end = summary_end(request(*messages))
    assert 0 < end < len(messages)
    assert messages[end].role == "assistant"
    kept = sum(message.tokens for message in messages[end:])
    assert kept <= 9_500 // 3
    assert summary_end(request(*messages[:2])) == 0
    assert summary_end(request(*messages, summary=GOAL, summarized=end)) >= end
