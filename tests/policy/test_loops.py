"""Going round in circles, and who is told of it."""

from __future__ import annotations

from perdure.contracts.agent import CallTrace, LoopFinding
from perdure.policy.loops import FAILURES, IDLE_TURNS, PATIENCE_TURNS, REPEATS, find_loop, next_step


def trace(turn: int, call: str, answer: str = "same", status: str = "ok", *, changed: bool = False) -> CallTrace:
    """One finished call: ``tool arguments``."""
    tool, _, arguments = call.partition(" ")
    fields = {"turn": turn, "tool": tool, "arguments_hash": arguments, "answer_hash": answer, "status": status}
    return CallTrace.model_validate({**fields, "changed": changed})


def found(*traces: CallTrace) -> str:
    """The kind of circle; empty when there is none."""
    finding = find_loop(traces)
    return finding.kind if finding else ""


def calls(*names: str) -> list[CallTrace]:
    """One call a turn, each answer the same for the same call."""
    return [trace(turn, name, answer=name) for turn, name in enumerate(names, 1)]


def test_the_same_call_with_the_same_answer_is_a_circle() -> None:
    """Three times in a row is one; two are not, another answer or a change between is none."""
    assert found(*calls("read a", "read a")) == ""
    assert found(*calls("read b", "read a", "read a", "read a")) == "same_call"
    assert found(*(trace(turn, "read a", answer=str(turn)) for turn in range(5))) == ""
    assert found(*(trace(turn, "write a", changed=True) for turn in range(5))) == ""


def test_the_finding_says_what_was_repeated_since_when() -> None:
    """Model and person read which call it was and how often."""
    finding = find_loop(calls("read b", "read a", "read a", "read a"))
    assert finding is not None
    assert finding.since_turn == 2
    assert finding.sentence == "read was called 3 times in a row with the same arguments and gave the same answer."


def test_alternating_calls_are_a_circle() -> None:
    """The same round three times is one, whether of two calls or of four; a round with a change in it is none."""
    assert found(*calls(*["read a", "read b"] * REPEATS)) == "alternation"
    assert found(*calls(*["a 1", "b 2", "c 3", "d 4"] * REPEATS)) == "alternation"
    assert found(*calls(*["read a", "read b"] * (REPEATS - 1))) == ""
    edited = [trace(n, name, changed=name == "write a") for n, name in enumerate(["write a", "test x"] * 3)]
    assert found(*edited) == ""


def test_a_command_that_keeps_failing_is_a_circle() -> None:
    """Whatever was tried between and however its answer differs; one success ends it."""
    tries = []
    for n in range(FAILURES):
        tries += [trace(n, "write a", changed=True, answer=str(n)), trace(n, "test x", str(n), "error")]
    assert found(*tries[:-2]) == ""
    assert found(*tries) == "same_failure"
    assert found(*tries[:4], trace(9, "test x", "fine"), *tries[4:]) == ""


def test_turns_that_change_nothing_and_bring_nothing_new_are_a_circle() -> None:
    """Reading what was read before in any order is one; reading what is new is work."""
    known = [trace(1, f"read {name}", answer=name) for name in "abcdefgh"]
    again = [trace(turn, f"read {name}", answer=name) for turn, name in enumerate("cgahbe", 2)]
    assert len(again) == IDLE_TURNS
    assert found(*known, *again[:-1]) == ""
    assert found(*known, *again) == "no_change"
    assert found(*known, *again[:-1], trace(8, "read z", answer="z")) == ""
    assert found(*known, *again[:-1], trace(8, "write z", changed=True)) == ""


def test_the_model_is_told_first_and_then_a_person() -> None:
    """A circle is told to the model once; when it goes on after some turns, a person is asked."""
    circle = LoopFinding(kind="same_failure", sentence="…", since_turn=3)
    assert next_step(None, [], turn=5) == "go_on"
    assert next_step(circle, [], turn=5) == "tell_model"
    assert next_step(circle, [5], turn=5 + PATIENCE_TURNS - 1) == "go_on"
    assert next_step(circle, [5], turn=5 + PATIENCE_TURNS) == "tell_person"


def test_a_model_that_finds_ever_new_circles_is_not_told_for_ever() -> None:
    """A new circle is told to the model again, but of the fourth a person is told."""
    circle = LoopFinding(kind="same_call", sentence="…", since_turn=50)
    assert next_step(circle, [10], turn=52) == "tell_model"
    assert next_step(circle, [10, 20, 30], turn=52) == "tell_person"
