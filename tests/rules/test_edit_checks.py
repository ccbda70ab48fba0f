"""A reviewer's mistake is named before anything is recorded, in the words of the rule that it breaks."""

from typing import Any

import pytest

from perdure.rules.release.edit_checks import find_edit_problems
from tests.rules.kit import ReleaseRun, make_repository, save, tag

_CHANGELOG = "# Changelog\n\n## [Unreleased]\n\n## [1.2.0] - 2026-10-01\n\n### Speed\n\n- Quicker orders.\n"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> ReleaseRun:
    """A proposed release with one entry; the tag v1.9.0 is taken elsewhere."""
    folder = tmp_path_factory.mktemp("checks")
    path = make_repository(folder)
    save(path, "feat: begin", {"CHANGELOG.md": _CHANGELOG})
    tag(path, "v1.2.0")
    save(path, "feat: bulk import")
    run = ReleaseRun(path, folder)
    run.propose()
    run.results["gather"]["history"]["tags"].append("v1.9.0")
    return run


def problems(run: ReleaseRun, **changes: Any) -> list[str]:
    """What is wrong with these edits of the proposed release."""
    return find_edit_problems(changes, run.results["analyze"]["release"], run.results)


def one(run: ReleaseRun, **change: str) -> list[str]:
    """What is wrong with one change of the one entry, unless another id is given."""
    (entry,) = run.results["analyze"]["release"]["entries"]
    return problems(run, entries=[{"id": entry["id"], **change}])


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ("next", "'next' is no version of scheme='semver'"),
        ("1.2.0", "not above the last release 1.2.0"),
        ("1.1.9", "not above the last release 1.2.0"),
        ("1.9.0", "The tag v1.9.0 exists already"),
        ("", "'' is no version"),
    ],
)
def test_a_version_that_breaks_a_rule_is_named(run: ReleaseRun, version: str, said: str) -> None:
    """The same rules as for a proposed version, in the same words."""
    (problem,) = problems(run, version=version)
    assert said in problem


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"op": "move", "section": "Nonsense"}, "'Nonsense' is no section of this changelog; expected one of Added, "),
        ({"op": "add", "section": "Nonsense", "text": "x"}, "expected one of Added, "),
        ({"op": "add", "section": "Fixed", "text": "\x1b "}, "gives no text"),
        ({"op": "reword", "text": " "}, "gives no text"),
        ({"op": "drop", "id": "fffffff"}, "No entry has the id 'fffffff'; expected one of "),
        ({"op": "shout"}, "expected one of reword, move, drop, add"),
    ],
)
def test_an_edit_of_an_entry_that_cannot_be_made_is_named(run: ReleaseRun, change: dict[str, str], said: str) -> None:
    """Sections and ids that are not there are refused with those that are."""
    (problem,) = one(run, **change)
    assert said in problem


@pytest.mark.parametrize(
    "change",
    [
        {"op": "move", "section": "fixed"},
        {"op": "move", "section": "Speed"},
        {"op": "add", "section": "Security", "text": "Names are escaped."},
        {"op": "drop"},
        {"op": "reword", "text": "In bulk."},
    ],
)
def test_what_can_be_made_is_let_through(run: ReleaseRun, change: dict[str, str]) -> None:
    """Sections in any case, and those that the project's own changelog has, are legal; all problems are told."""
    assert one(run, **change) == []
    assert problems(run, version="1.4.0") == []
    assert len(problems(run, version="1.0.0", entries=["drop it", {"op": "drop", "id": "zzzz"}])) == 3


def test_edits_of_another_shape_are_told(run: ReleaseRun) -> None:
    """Whoever speaks to the API by hand is told what a change looks like."""
    (problem,) = problems(run, entries="drop")
    assert "op: drop" in problem
