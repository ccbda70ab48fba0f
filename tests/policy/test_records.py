"""What stands beside a summary word for word: people's words, decisions on calls, open questions, notes."""

from __future__ import annotations

from perdure.contracts.agent import CallVerdict
from perdure.contracts.agent_run import CallRecord
from perdure.contracts.messages import Message, ResultPart, TextPart
from perdure.policy.records import LONGEST_NOTE, find_notes, find_records


def say(text: str, person: str = "") -> Message:
    """A message, of a person or of the model."""
    about = {"role": "user", "source": "person"} if person else {"role": "assistant", "source": "model"}
    return Message.model_validate({"id": text, "parts": [TextPart(text=text)], "person": person, **about})


def question(text: str) -> Message:
    """The result of a call that asks a person."""
    result = ResultPart(call_id="c", name="ask.person", status="asks", text=text)
    return Message(id=text, role="tool", source="tool", parts=(result,))


def call(status: str, **more: object) -> CallRecord:
    """A call of a tool on a target."""
    about = {"key": "a/1/0", "turn": 1, "position": 0, "tool": "shell.run", "target": "command:make publish"}
    return CallRecord.model_validate({**about, "status": status, **more})


def test_what_people_said_is_kept_word_for_word() -> None:
    """Each word of a person, whole and with its name; nothing of the model's."""
    found = find_records([say("I look."), say("never touch the README", "ana"), say("x" * 5000, "bo")], [])
    assert found == ("ana said: never touch the README", "bo said: " + "x" * 5000)


def test_an_open_question_is_kept_until_a_person_has_spoken() -> None:
    """A question with no word of a person after it is open."""
    assert find_records([question("Which one?")], []) == ("Asked and not answered yet: Which one?",)
    assert find_records([question("Which one?"), say("the first", "ana")], []) == ("ana said: the first",)


def test_decisions_on_calls_are_kept() -> None:
    """What a person denied, with the reason, and what was allowed once; calls that nobody decided on are not listed."""
    denied = call("denied", verdict=CallVerdict(decision="deny", rule="person", reason="not today"))
    allowed, free = call("ok", digest="ab" * 32), call("ok")
    assert find_records([], [denied, allowed, free]) == (
        "Denied by a person: shell.run on command:make publish: not today",
        "Allowed by a person, once: shell.run on command:make publish (ended: ok)",
    )


def test_notes_are_kept_short() -> None:
    """One line a note; of a long one its beginning."""
    short, long = find_notes({"a": "b", "c": "d" * 2000})
    assert short == "Note 'a': b"
    assert len(long) < LONGEST_NOTE + 20
