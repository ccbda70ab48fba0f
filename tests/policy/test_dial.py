"""What each position of the dial lets an agent do alone, and who may turn it."""

from __future__ import annotations

import pytest

from perdure.contracts.agent import CallQuestion, Dial, Permission, ToolSpec
from perdure.policy.dial import effective, lower_by_itself, turn_dial
from perdure.policy.permissions import decide_call

CALLS = {
    "read": {"effect_class": "read"},
    "workspace": {"effect_class": "workspace"},
    "reversible": {"effect_class": "external", "reversible": True},
    "over budget": {"effect_class": "external", "reversible": True, "budget_left": False},
    "irreversible": {"effect_class": "external", "reversible": False},
}

TABLE = {
    Dial.observe: ("allow", "ask", "ask", "ask", "ask"),
    Dial.confirm: ("allow", "ask", "ask", "ask", "ask"),
    Dial.propose: ("allow", "allow", "ask", "ask", "ask"),
    Dial.delegate: ("allow", "allow", "allow", "ask", "ask"),
}


def decide(dial: Dial, effect_class: str, said: str = "allow", **fields: object) -> tuple[str, str]:
    """The decision and its rule where a permission says ``said`` about everything."""
    spec = ToolSpec.model_validate({"name": "t", "description": "", "parameters": {}, "effect_class": effect_class})
    permission = Permission.model_validate({"id": "p", "decision": said})
    given = {"tool": spec, "arguments": {}, "target": "x", "permissions": (permission,), "has_sandbox": True}
    verdict = decide_call(CallQuestion.model_validate({**given, "dial": dial, **fields}))
    return verdict.decision, verdict.rule


@pytest.mark.parametrize("dial", TABLE)
def test_each_position_answers_as_the_table_says(dial: Dial) -> None:
    """observe and confirm ask about every change, propose about all outside, delegate lets the reversible go."""
    assert tuple(decide(dial, **call)[0] for call in CALLS.values()) == TABLE[dial]  # type: ignore[arg-type]


def test_the_ceiling_and_the_sandbox_bound_the_dial() -> None:
    """No position counts above the thread's ceiling, and without a sandbox nothing is delegated."""
    assert effective(Dial.delegate, Dial.confirm, has_sandbox=True) is Dial.confirm
    assert effective(Dial.delegate, Dial.delegate, has_sandbox=False) is Dial.propose
    assert decide(Dial.delegate, "workspace", ceiling=Dial.confirm) == ("ask", "dial.confirm")
    assert decide(Dial.delegate, "external", reversible=True, has_sandbox=False) == ("ask", "dial.propose")


@pytest.mark.parametrize("dial", Dial)
def test_the_dial_never_loosens_a_permission(dial: Dial) -> None:
    """A denied call stays denied on every position, and one to ask about is not allowed by delegating."""
    for said in ("deny", "ask"):
        assert decide(dial, "workspace", said) == (said, "p")


def test_anyone_turns_the_dial_down() -> None:
    """Down and staying need no decision."""
    for wanted in (Dial.observe, Dial.propose):
        turned = turn_dial(Dial.propose, wanted, Dial.delegate, has_sandbox=True, decided=False)
        assert (turned.dial, turned.done) == (wanted, True)


def test_turning_up_needs_a_decision_a_ceiling_and_a_sandbox() -> None:
    """Up goes only by a decision, not above the charter's ceiling, and to delegate only where a sandbox works."""

    def turn(wanted: Dial, ceiling: Dial = Dial.delegate, *, has_sandbox: bool = True, decided: bool = True) -> str:
        turned = turn_dial(Dial.confirm, wanted, ceiling, has_sandbox=has_sandbox, decided=decided)
        assert turned.dial is (wanted if turned.done else Dial.confirm)
        return turned.why

    assert "needs a decision" in turn(Dial.propose, decided=False)
    assert turn(Dial.propose) == "The dial stands on propose."
    assert "ceiling is propose" in turn(Dial.delegate, Dial.propose)
    assert "perdure doctor" in turn(Dial.delegate, has_sandbox=False)


def test_the_dial_goes_down_by_itself_one_position_and_not_below_confirm() -> None:
    """After a denial worked around, a failed verification or a changed tool there is less that an agent does alone."""
    assert [lower_by_itself(dial) for dial in Dial] == [Dial.observe, Dial.confirm, Dial.confirm, Dial.propose]
