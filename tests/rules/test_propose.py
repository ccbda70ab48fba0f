"""A whole proposal from a real repository: entries with sources, a version with reasons, a reviewer's hand on both."""

from pathlib import Path
from typing import Any

import pytest

from perdure.contracts.decisions import Edits
from perdure.errors import StageFailed, UserError
from tests.rules.kit import ReleaseRun, make_repository, save, tag
from tests.support.repositories import commit, git, make_project


def entries(release: dict[str, Any]) -> list[tuple[str, str]]:
    """(section, text) of the proposed entries."""
    return [(entry["section"], entry["text"]) for entry in release["entries"]]


def edit(**changes: Any) -> Edits:
    """A reviewer's edits."""
    return Edits(by="rhea", changes=changes)


def with_unreleased(tmp_path: Path, body: str) -> Path:
    """A project at 1.2.0 whose changelog has ``body`` under [Unreleased]."""
    project = make_project(tmp_path)
    text = (project.path / "CHANGELOG.md").read_text().replace("## [Unreleased]\n", f"## [Unreleased]\n\n{body}\n")
    commit(project.path, "docs: changelog", CHANGELOG__md=text)
    return project.path


def test_a_release_is_proposed_with_reasons_and_sources(tmp_path: Path) -> None:
    """Version, tag, title, notes and entries follow from the commits; every entry names its source."""
    path = make_project(tmp_path).path
    feature = git(path, "rev-parse", "--short=7", "HEAD~1")
    release = ReleaseRun(path, tmp_path).propose()
    assert (release["version"], release["tag"], release["bump"]) == ("1.3.0", "v1.3.0", "minor")
    assert (release["title"], release["last_version"], release["date"]) == ("1.2.0 → 1.3.0", "1.2.0", "2026-11-30")
    assert release["reasons"] == [f'minor: "feat: bulk import" ({feature})']
    assert entries(release) == [("Fixed", "an empty order is refused"), ("Added", "bulk import")]
    assert all(entry["sources"] == [entry["id"]] for entry in release["entries"])
    assert release["notes"].startswith(f"orders 1.3.0\n\n### Added\n\n- bulk import ({feature})\n")


def test_nothing_to_release_has_no_entries(tmp_path: Path) -> None:
    """After a release, and after commits that users do not notice, there is nothing to release."""
    path = make_project(tmp_path).path
    tag(path, "v1.3.0")
    save(path, "docs: words")
    assert ReleaseRun(path, tmp_path).propose()["entries"] == []


def test_unreleased_is_the_stronger_evidence(tmp_path: Path) -> None:
    """What somebody wrote under [Unreleased] are the entries; commits left out are named, breaking ones are added."""
    path = with_unreleased(tmp_path, "### Fixed\n\n- Empty orders are refused\n  with a reason.\n")
    save(path, "feat(api)!: drop v1")
    run = ReleaseRun(path, tmp_path)
    release = run.propose()
    assert entries(release) == [("Fixed", "Empty orders are refused\nwith a reason."), ("Added", "drop v1")]
    assert release["entries"][0]["sources"] == ["CHANGELOG.md [Unreleased]"]
    assert release["version"] == "2.0.0"
    assert len(run.findings) == 1 and "feat: bulk import" in run.findings[0] and "by hand" in run.findings[0]


@pytest.mark.parametrize(
    ("body", "version"),
    [
        ("### Fixed\n- x", "1.2.1"),
        ("### Added\n- x", "1.3.0"),
        ("### Removed\n- x", "2.0.0"),
        ("### Changed\n- **Breaking:** x", "2.0.0"),
    ],
)
def test_sections_of_unreleased_say_how_far(tmp_path: Path, body: str, version: str) -> None:
    """A removal is breaking, an addition minor, a fix a patch."""
    assert ReleaseRun(with_unreleased(tmp_path, body), tmp_path).propose()["version"] == version


def test_a_first_release_takes_the_manifests_version(tmp_path: Path) -> None:
    """Without a tag the version in the manifest is the first one, and the title says so."""
    path = make_repository(tmp_path)
    save(path, "feat: a", {"package.json": '{"name": "app", "version": "0.4.0"}'})
    release = ReleaseRun(path, tmp_path).propose()
    assert (release["version"], release["title"], release["bump"]) == ("0.4.0", "0.4.0 (first release)", "first")


def test_a_given_version_is_taken_when_it_is_legal(tmp_path: Path) -> None:
    """version= goes before the proposed one; breaking a rule it is refused by the rule's name."""
    path = make_project(tmp_path).path
    release = ReleaseRun(path, tmp_path, {"version": "4.0.0"}).propose()
    assert (release["version"], release["tag"], release["bump"]) == ("4.0.0", "v4.0.0", "chosen")
    with pytest.raises(UserError, match="not above the last release"):
        ReleaseRun(path, tmp_path, {"version": "1.1.0"}).propose()


def test_a_proposed_version_that_is_taken_is_refused(tmp_path: Path) -> None:
    """A tag of the proposed version elsewhere stops the plan and says how to choose another."""
    path = make_project(tmp_path).path
    git(path, "tag", "v1.3.0", git(path, "commit-tree", "-m", "x", "HEAD^{tree}"))
    with pytest.raises(UserError, match=r"v1\.3\.0 exists already.*version=…"):
        ReleaseRun(path, tmp_path).propose()


def test_a_reviewer_rewords_moves_drops_and_adds(tmp_path: Path) -> None:
    """Edits apply oldest first; the version follows from what is left, unless the reviewer chose one."""
    path = make_project(tmp_path).path
    fix, feature = ReleaseRun(path, tmp_path).propose()["entries"]
    edits = [
        edit(entries=[{"op": "drop", "id": feature["id"]}, {"op": "reword", "id": fix["id"][:5], "text": "First."}]),
        edit(
            entries=[
                {"op": "reword", "id": fix["id"], "text": "Second."},
                {"op": "move", "id": fix["id"] + "aaa", "section": "security"},
                {"op": "add", "section": "changed", "text": "By hand."},
            ]
        ),
    ]
    run = ReleaseRun(path, tmp_path, edits=edits)
    release = run.propose()
    assert entries(release) == [("Security", "Second."), ("Changed", "By hand.")]
    assert [entry["edited_by"] for entry in release["entries"]] == ["rhea", "rhea"]
    assert release["entries"][1]["sources"] == ["review: rhea"]
    assert (release["version"], run.findings) == ("1.2.1", [])
    chosen = ReleaseRun(path, tmp_path, edits=[*edits, edit(version="1.5.0"), edit(version="1.6.0")]).propose()
    assert (chosen["version"], chosen["reasons"]) == ("1.6.0", ["1.6.0 was chosen by rhea."])


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"version": "1.2.0"}, "version that rhea asked for was not taken: Version 1.2.0 is not above"),
        ({"version": "next"}, "'next' is no version of scheme='semver'"),
        ({"entries": [{"op": "drop", "id": "zzzz"}]}, "there is no such entry. Known entries: "),
        ({"entries": [{"op": "drop"}]}, "there is no such entry"),
        ({"entries": [{"op": "shout", "id": "x"}]}, "'shout' is not known"),
        ({"entries": ["drop it"]}, "'' is not known"),
        ({"entries": [{"op": "add", "text": " "}]}, "it has no text"),
    ],
)
def test_an_edit_that_cannot_be_made_is_a_finding(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    """A typing error in a review does not fail the job: the plan comes back as it was and says why."""
    run = ReleaseRun(make_project(tmp_path).path, tmp_path, edits=[Edits(by="rhea", changes=changes)])
    assert run.propose()["version"] == "1.3.0"
    assert len(run.findings) == 1 and said in run.findings[0]


def test_a_branch_that_moved_between_sources_is_not_mixed(tmp_path: Path) -> None:
    """Sources read in parallel must have read the same commit."""
    path = make_project(tmp_path).path
    run = ReleaseRun(path, tmp_path)
    gathered = run.gather()
    gathered["files"]["commit"] = "0" * 40
    with pytest.raises(StageFailed, match="moved while it was read"):
        run.run("release.propose", {"from": gathered})


def test_a_template_without_a_history_is_told(tmp_path: Path) -> None:
    """The analysis names the source that it needs."""
    with pytest.raises(UserError, match=r"git\.history"):
        ReleaseRun(tmp_path, tmp_path).run("release.propose", {"from": {}})


def test_a_manifest_that_is_not_at_the_last_release_is_told(tmp_path: Path) -> None:
    """When the files say another version than the last tag, the reviewer is told."""
    path = make_project(tmp_path).path
    commit(path, "chore: begin 1.3", pyproject__toml='[project]\nname = "orders"\nversion = "1.3.0.dev0"\n')
    run = ReleaseRun(path, tmp_path)
    run.propose()
    assert run.findings == ["pyproject.toml says 1.3.0.dev0, although the last release is 1.2.0."]


@pytest.mark.parametrize("scheme", ["pep440", "always-patch"])
def test_other_schemes(tmp_path: Path, scheme: str) -> None:
    """pep440 and always-patch read the same tags and propose in their own way."""
    release = ReleaseRun(make_project(tmp_path).path, tmp_path, {"scheme": scheme}).propose()
    assert release["version"] == {"pep440": "1.3.0", "always-patch": "1.2.1"}[scheme]
