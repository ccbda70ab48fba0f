"""The project's own type map: proposed with its evidence, confirmed by an approval, changed only by people."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from perdure.contracts.decisions import Edits
from perdure.contracts.memory import Confirmed, Memory, RememberedEdit
from perdure.contracts.plan import Settled
from perdure.rules.release.concerns import Place
from perdure.rules.release.habits import Habit, Habits
from perdure.rules.release.results import PROPOSE
from perdure.rules.release.type_map import TypeMap, find_map, find_map_problems, plain_step
from perdure.rules.release.versions import Bump

DAY = datetime(2026, 11, 29, 9, 0, tzinfo=UTC)


def learnt(**steps: Bump) -> Habits:
    """Habits that four of four releases show."""
    return Habits({key: Habit(step, 4, 4) for key, step in steps.items()})


def confirmed(step: str, *, key: str = "feat", about: str = "release.map", hour: int = 0) -> Confirmed:
    """An approval of a plan that showed this line."""
    line = Settled(about=about, name=key, value=step, because="so it was")
    return Confirmed(by="ann", at=DAY + timedelta(hours=hour), what=[line])


def edited(hour: int = 0, path: str = "", **changes: Any) -> RememberedEdit:
    """An edit of an earlier plan."""
    seen = {"release": {"rule": PROPOSE, "path": path}}
    return RememberedEdit(by="ben", at=DAY + timedelta(hours=hour), why="an API", changes=changes, seen=seen)


def new_lines(types: TypeMap) -> dict[str, str]:
    """What an approval would confirm."""
    return {line.name: line.value for line in types.settles}


def test_what_differs_from_the_convention_is_proposed_with_its_evidence() -> None:
    """A habit that is the convention is no line; one that differs counts, and an approval confirms it."""
    types = find_map(learnt(feat="patch", fix="patch", breaking="minor"), Memory(), [], Place(""))
    assert new_lines(types) == dict(types.lines) == {"feat": "patch", "breaking": "minor"}
    assert types.settles[0].because == "so it was in 4 of the last 4 releases that such changes decided"
    assert types.habits.steps["feat"].step == "patch"


def test_a_confirmed_line_counts_without_being_asked_again() -> None:
    """It says who confirmed it and when; also once the tags no longer show it."""
    memory = Memory(confirmed=[confirmed("patch"), confirmed("patch", hour=9)])
    for habits in (learnt(feat="patch"), learnt()):
        types = find_map(habits, memory, [], Place(""))
        assert (types.habits.steps["feat"].told, types.settles) == ("confirmed by ann on 2026-11-29", [])
        assert (dict(types.lines), types.settled, types.authors) == ({"feat": "patch"}, ["feat"], [])


def test_what_is_learnt_anew_is_new_again() -> None:
    """A confirmed line that the tags contradict by now is proposed again, with what was confirmed beside it."""
    types = find_map(learnt(feat="minor"), Memory(confirmed=[confirmed("patch")]), [], Place(""))
    assert new_lines(types) == {"feat": "minor"}
    assert types.settles[0].because.endswith("; patch was confirmed by ann on 2026-11-29")
    both = Memory(confirmed=[confirmed("patch"), confirmed("minor", hour=1)])
    assert new_lines(find_map(learnt(feat="minor"), both, [], Place(""))) == {}


def test_a_persons_line_stands_before_tags_and_confirmations() -> None:
    """Set in a review it counts from there on, names its maker as an author, and says what the tags show instead."""
    memory = Memory(confirmed=[confirmed("patch")], edits=[edited(1, map={"feat": "minor", "nonsense": "x"})])
    types = find_map(learnt(feat="patch"), memory, [], Place(""))
    assert (types.habits.steps["feat"].step, dict(types.lines), types.authors) == ("minor", {}, ["ben"])
    (told,) = types.findings
    assert told.startswith("feat counts as minor: set by ben on 2026-11-29: an API. The tags show patch: so it was")
    mine = find_map(learnt(feat="patch"), memory, [Edits(by="rhea", changes={"map": {"feat": "major"}})], Place(""))
    assert mine.habits.steps["feat"].told == "set by rhea in this review"


def test_a_forgotten_line_is_learnt_again() -> None:
    """Forgetting takes back what people said of a line, not what the tags show."""
    forget = {"entries": [{"op": "forget", "id": "feat"}]}
    memory = Memory(edits=[edited(0, map={"feat": "minor"}), edited(1, **forget)])
    assert new_lines(find_map(learnt(feat="patch"), memory, [], Place(""))) == {"feat": "patch"}
    now = Memory(edits=[edited(0, map={"feat": "minor"})])
    assert new_lines(find_map(learnt(feat="patch"), now, [Edits(by="a", changes=forget)], Place(""))) == {
        "feat": "patch"
    }


def test_each_package_has_its_own_map() -> None:
    """What was said of one folder of the repository says nothing of another."""
    memory = Memory(
        confirmed=[confirmed("patch", about="release.map a")], edits=[edited(path="a", map={"fix": "minor"})]
    )
    assert dict(find_map(learnt(), memory, [], Place("a")).lines) == {"feat": "patch", "fix": "minor"}
    assert dict(find_map(learnt(), memory, [], Place("")).lines) == {}


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ({"docs": "patch"}, "'docs' is no line of a type map; expected a type (feat, "),
        ({"feat()": "patch"}, "no line of a type map"),
        ({"feat": "huge"}, "feat=huge names no step; expected one of patch, minor, major."),
        (["feat"], "is no map"),
    ],
)
def test_a_line_that_cannot_be_set_is_named(lines: object, said: str) -> None:
    """Types that are not listed and steps that are none are refused with those that there are."""
    (problem,) = find_map_problems(lines)
    assert said in problem
    assert find_map_problems({"feat(words)": "patch", "breaking": "minor"}) == []
    assert (plain_step("feat(words)"), plain_step("breaking"), plain_step("docs")) == ("minor", "major", None)
