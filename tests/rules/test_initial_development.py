"""On 0.x nothing that was read leads to 1.0.0 by itself: the plan stays below it and says who decides, and how."""

from pathlib import Path

import pytest

from perdure.contracts.decisions import Edits
from tests.rules.kit import ReleaseRun, make_repository, save, tag

ANSWER = "To end 0.x is a person's decision: `perdure edit JOB --version 1.0.0` makes it."
SOFTENED = "0.9.0 is initial development (0.x): a breaking change is a minor step there."


def young(tmp_path: Path, message: str, files: dict[str, str] | None = None) -> Path:
    """A project at 0.9.0 with one commit since."""
    path = make_repository(tmp_path)
    save(path, "feat: begin", {"package.json": '{"name": "app", "version": "0.9.0"}'})
    tag(path, "v0.9.0")
    save(path, message, files)
    return path


def said(run: ReleaseRun) -> list[str]:
    """All that the plan would say."""
    return [*run.results["analyze"]["release"]["reasons"], *run.findings]


@pytest.mark.parametrize(
    ("message", "files", "version", "rule"),
    [
        (
            "feat!: drop v1",
            {},
            "0.10.0",
            SOFTENED,
        ),
        (
            "chore: x",
            {".changeset/a.md": '---\n"app": major\n---\nDrops v1.\n'},
            "0.10.0",
            SOFTENED,
        ),
        ("fix: x\n\nRelease-As: 1.0.0", {}, "0.9.1", "asked for was not taken: 0.9.0 is initial development (0.x)."),
        ("fix: x", {"package.json": '{"name": "app", "version": "1.0.0"}'}, "0.9.1", "package.json says 1.0.0"),
        ("fix: x", {"CHANGELOG.md": "# C\n\n## [Unreleased]\n\n### Removed\n\n- v1\n"}, "0.10.0", "breaking change is"),
    ],
)
def test_evidence_does_not_end_initial_development(
    tmp_path: Path, message: str, files: dict[str, str], version: str, rule: str
) -> None:
    """Breaking commits, major change files, removals, Release-As and version files stay below 1.0.0, and ask."""
    run = ReleaseRun(young(tmp_path, message, files), tmp_path)
    assert run.propose()["version"] == version
    assert any(rule in text and text.endswith(ANSWER) for text in said(run)), said(run)


@pytest.mark.parametrize("later", [True, False])
def test_an_announcement_does_not_end_initial_development(tmp_path: Path, later: bool) -> None:
    """A release commit for 1.0.0 that nobody tagged is named and asked about; with its tag 1.0.0 is released."""
    path = young(tmp_path, "fix: x")
    save(path, "chore(release): 1.0.0")
    if later:
        save(path, "fix: y")
    run = ReleaseRun(path, tmp_path)
    assert run.propose()["version"] == "0.9.1"
    assert any("announces 1.0.0 and no tag names it" in text and text.endswith(ANSWER) for text in run.findings)
    tag(path, "v1.0.0")
    save(path, "fix: z")
    run = ReleaseRun(path, tmp_path)
    assert run.propose()["version"] == "1.0.1"
    assert run.findings[-1] == "package.json says 0.9.0, although the last release is 1.0.0."


def test_a_person_ends_it_and_the_plan_says_so(tmp_path: Path) -> None:
    """A reviewer's 1.0.0 and one given with the job are taken, and shown as what they are."""
    path = young(tmp_path, "fix: x")
    reviewed = ReleaseRun(path, tmp_path, edits=[Edits(by="rhea", changes={"version": "1.0.0"})]).propose()
    ended = ", and that ends initial development (0.x)."
    assert (reviewed["version"], reviewed["reasons"]) == ("1.0.0", [f"1.0.0 was chosen by rhea{ended}"])
    given = ReleaseRun(path, tmp_path, {"version": "1.0.0"}).propose()
    assert (given["version"], given["reasons"]) == ("1.0.0", [f"1.0.0 was given with the job{ended}"])


def test_a_later_project_is_not_asked(tmp_path: Path) -> None:
    """After 1.0.0 a breaking change is a major step, Release-As is followed, and nobody is asked."""
    path = young(tmp_path, "fix: x")
    tag(path, "v1.2.0")
    save(path, "feat!: y")
    run = ReleaseRun(path, tmp_path)
    assert run.propose()["version"] == "2.0.0"
    save(path, "fix: z\n\nRelease-As: 3.0.0")
    again = ReleaseRun(path, tmp_path)
    assert again.propose()["version"] == "3.0.0"
    assert not any("0.x" in text for text in [*said(run), *said(again)])
