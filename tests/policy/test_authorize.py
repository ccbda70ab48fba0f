"""Rights are denied unless given, and are different things."""

from typing import Any, get_args

import pytest

from perdure.errors import Refused
from perdure.policy.authorize import Principal, Right, authorize, local_owner


@pytest.mark.parametrize("right", get_args(Right))
def test_the_owner_may_everything(right: Right) -> None:
    """The person whose uid owns the installation has every right, in every group."""
    authorize(local_owner("ada"), right)
    assert local_owner("ada").groups == ("*",)


@pytest.mark.parametrize(
    ("held", "allowed"),
    [
        (set(), set()),
        ({"read"}, {"read"}),
        ({"submit"}, {"read", "submit"}),
        ({"decide"}, {"read", "decide"}),
        ({"approve-everything"}, set()),
    ],
)
def test_a_right_is_had_only_when_given(held: set[str], allowed: set[str]) -> None:
    """Submitting does not include deciding nor the other way round; an unknown right counts for nothing."""
    principal = Principal("bot", may=frozenset(held))
    for right in get_args(Right):
        if right in allowed:
            authorize(principal, right)
        else:
            with pytest.raises(Refused, match="bot may not"):
                authorize(principal, right)


def test_an_unknown_right_is_a_refusal_not_a_pass() -> None:
    """A question for a right that does not exist is refused, also to the owner."""
    unknown: Any = "everything"
    with pytest.raises(Refused, match="no right 'everything'"):
        authorize(local_owner("ada"), unknown)


@pytest.mark.parametrize("right", get_args(Right))
def test_an_agent_never_has_a_right_to_decide(right: Right) -> None:
    """Whatever rights an agent was given, it reads and submits, and that is all."""
    agent = Principal("helper", ("*",), frozenset(get_args(Right)), acts_for="ada")
    if right in {"read", "submit"}:
        authorize(agent, right)
        return
    with pytest.raises(Refused, match=r"helper may not .* an agent of ada"):
        authorize(agent, right)


def test_what_an_agent_asks_for_its_person_asks_for() -> None:
    """The requester is the person behind it."""
    assert Principal("helper", acts_for="ada").person == "ada"
    assert Principal("ada").person == "ada"
