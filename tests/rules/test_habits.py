"""A project's own type map: only what its earlier releases show changes how far a commit moves a version."""

from pathlib import Path

import pytest

from perdure.rules.git_commits import Commit
from perdure.rules.release.commit_entries import read_commit_entries
from perdure.rules.release.habits import Habit, Habits, PastRelease, habits_from_json, learn_habits
from perdure.rules.release.versions import Bump
from tests.rules.kit import ReleaseRun, make_repository, save, tag
from tests.support.repositories import git


def commit(subject: str) -> Commit:
    """A commit with an id made from its subject."""
    whole = (subject.encode().hex() + "0" * 40)[:40]
    return Commit(whole, whole[:7], subject, "", "M", "", ())


def released(*subjects: str, step: Bump = "patch", is_alike: bool = True) -> PastRelease:
    """An earlier release of such commits."""
    return PastRelease([commit(subject) for subject in subjects], step, is_alike)


def test_two_releases_alike_make_a_habit() -> None:
    """What two releases in a row made of a kind of change is what the next makes of it, and a finding says so."""
    past = [released(f"feat(words): word {number}", "docs: x") for number in range(2)]
    assert learn_habits(past[:1]).steps == {}
    habits = learn_habits(past)
    (entry,), findings = read_commit_entries([commit("feat(words): another")], habits)
    assert (entry.section, entry.bump) == ("Added", "patch")
    assert findings == [
        "feat(words) counts as patch, not minor: so it was in 2 of the last 2 releases that such changes decided."
    ]


def test_a_habit_of_a_scope_is_not_one_of_its_type() -> None:
    """Where features of one scope are patches, features of another stay minor."""
    past = [released("feat(words): x"), released("feat(cli): y", step="minor")] * 4
    habits = learn_habits(past)
    entries, _ = read_commit_entries([commit("feat(words): a"), commit("feat(cli): b"), commit("feat: c")], habits)
    assert [entry.bump for entry in entries] == ["patch", "minor", "minor"]


def test_a_habit_that_is_broken_waits_until_three_of_four_agree() -> None:
    """One release that differs takes the habit back; more that agree bring it again."""
    features, other = [released("feat: x")] * 2, released("feat: x", step="minor")
    assert learn_habits([*features, other]).steps == {}
    assert learn_habits([*features, other, features[0]]).steps["feat"].step == "patch"


def test_only_a_change_that_decided_alone_tells() -> None:
    """A breaking change beside a feature decided; the feature says nothing, and three of four must agree."""
    assert learn_habits([released("feat: x", "fix!: y", step="major")] * 4).steps.keys() == {"breaking"}
    assert learn_habits([released("feat: x", step="minor"), released("feat: x")] * 4).steps == {}


def test_releases_of_initial_development_do_not_tell_of_later_ones() -> None:
    """What 0.x releases made of a change is no habit after 1.0.0."""
    assert learn_habits([released("feat: x", is_alike=False)] * 4).steps == {}


def test_a_breaking_change_stays_breaking_in_the_changelog() -> None:
    """A project that releases them as minor still tells its users."""
    habits = learn_habits([released("feat!: x", step="minor")] * 4)
    (entry,), _ = read_commit_entries([commit("fix!: z")], habits)
    assert (entry.bump, entry.breaking) == ("minor", True)


def test_quiet_releases_are_made_where_they_were_made_before() -> None:
    """Documentation alone is a release only in a project that has released documentation alone."""
    quiet = [commit("docs: words"), commit("ci: cache")]
    assert read_commit_entries(quiet, Habits()) == ([], [])
    habits = learn_habits([released("docs: earlier words")])
    entries, _ = read_commit_entries(quiet, habits)
    assert [(entry.section, entry.bump) for entry in entries] == [("Other", "patch")] * 2


def test_a_feature_of_the_pipeline_is_a_patch() -> None:
    """One whose scope says CI or delivery moves no minor version, and a finding says why; settings may differ."""
    habits = learn_habits([released("feat: x", step="minor")] * 4)
    entries, findings = read_commit_entries([commit("feat(cd): publish there"), commit("chore: z")], habits)
    assert [entry.bump for entry in entries] == ["patch"]
    assert findings[0].startswith("Counts as a patch, because its scope names what builds and delivers the project")
    (entry,), _ = read_commit_entries([commit("feat(ci)!: z")], habits)
    assert entry.bump == "major"
    told = Habits({"feat": Habit("minor", 0, 0, "tool.toml", is_rule=True)})
    (entry,), findings = read_commit_entries([commit("feat(cd): publish there")], told)
    assert (entry.bump, findings) == ("minor", ["feat counts as minor, not patch: tool.toml."])


def test_a_feature_of_the_pipeline_teaches_nothing_about_features() -> None:
    """Releases of the pipeline's features are a habit of that scope alone."""
    assert learn_habits([released("feat(cd): x"), released("feat(cd): y")]).steps.keys() == {"feat(cd)"}


def test_releases_of_pipeline_repairs_alone_are_quiet_ones() -> None:
    """Whoever releases for the pipeline's sake does so again for a chore; a release tool's own rule tells nothing."""
    past = [released("fix(cd): use cp")]
    assert learn_habits(past).quiet == 1
    assert learn_habits(past, types={"fix"}).quiet == 0
    assert learn_habits([released("fix(cd): x", "fix(app): y")]).quiet == 0


def test_what_a_project_lists_itself_is_listed() -> None:
    """Where its own changelog has refactorings but no chores, the next section has them too; each is a patch."""
    past = [
        PastRelease(
            [commit(f"refactor: part {number} (#{number})"), commit(f"chore: tool {number}")], "patch", version="1"
        )
        for number in range(4)
    ]
    habits = learn_habits(past, {"1": [f"**Part {number}** ([#{number}](there))" for number in range(4)] + ["words"]})
    assert habits.listed == {"refactor": True, "chore": False}
    entries, _ = read_commit_entries([commit("fix: x"), commit("refactor: y"), commit("chore: z")], habits)
    assert [(entry.section, entry.text, entry.bump) for entry in entries] == [
        ("Fixed", "x", "patch"),
        ("Changed", "y", "patch"),
    ]
    assert learn_habits(past, {"2": ["part 1"]}).listed == {} and learn_habits(past[:3], {"1": ["Part 1"]}).listed == {}


def test_a_proposal_lists_what_the_changelog_lists(tmp_path: Path) -> None:
    """The changelog of the planned commit tells it."""
    path = make_repository(tmp_path)
    save(path, "feat: begin")
    tag(path, "v1.0.0")
    save(path, "fix: a")
    for part in ("one", "two", "three", "four"):
        save(path, f"docs: words on {part}")
    save(path, "chore(release): 1.0.1", {"CHANGELOG.md": LISTED})
    tag(path, "v1.0.1")
    save(path, "docs: words on five")
    save(path, "fix: b")
    assert [entry["text"] for entry in ReleaseRun(path, tmp_path).propose()["entries"]] == ["b", "words on five"]


LISTED = """# Changelog

## 1.0.1

- a
- words on one
- words on two
- words on three
- words on four

## 1.0.0

- begin
"""


def test_habits_travel_as_json() -> None:
    """A gathered value gives back the habits that were learnt."""
    past = [released("feat(words): x")] * 4 + [PastRelease([commit("docs: x")] * 4, "patch", version="1")]
    habits = learn_habits(past, {"1": ["x"]})
    assert habits.listed == {"docs": True}
    assert habits_from_json(habits.to_json()) == habits and habits.quiet == 1


def test_a_proposal_follows_the_tags_of_the_repository(tmp_path: Path) -> None:
    """The map comes from the repository's own tags; a project without such a past gets the common one."""
    path = make_repository(tmp_path)
    save(path, "feat: begin", {"VERSION": "1.0.0\n"})
    tag(path, "v1.0.0")
    for number in range(1, 3):
        save(path, f"feat(words): word {number}")
        save(path, f"chore(release): 1.0.{number}")
        tag(path, f"v1.0.{number}")
    save(path, "feat(words): another")
    run = ReleaseRun(path, tmp_path)
    assert run.propose()["version"] == "1.0.3"
    assert any("feat(words) counts as patch" in finding for finding in run.findings)
    git(path, "tag", "-d", "v1.0.2")
    assert ReleaseRun(path, tmp_path).propose()["version"] == "1.1.0"


@pytest.mark.parametrize("subject", ["bump: version 1.2.0 → 1.3.0", "chore(release): v1.3.0"])
def test_a_release_whose_tag_stands_beside_the_branch_is_the_last_one(tmp_path: Path, subject: str) -> None:
    """A rebased release leaves its tag elsewhere; the commit that announces it is where the range begins."""
    path = make_repository(tmp_path)
    save(path, "feat: begin")
    tag(path, "v1.2.0")
    save(path, "feat: in 1.3.0")
    announced = save(path, subject)
    tag(path, "v1.3.0")
    git(path, "tag", "-f", "v1.3.0", git(path, "commit-tree", "-p", "v1.2.0^{commit}", "-m", subject, "HEAD^{tree}"))
    save(path, "fix: after it")
    run = ReleaseRun(path, tmp_path)
    release = run.propose()
    assert (release["version"], release["last_tag"]) == ("1.3.1", "v1.3.0")
    assert [entry["text"] for entry in release["entries"]] == ["after it"]
    assert run.findings[0].startswith(f"v1.3.0 is not reachable from this branch, but {announced[:7]} announces 1.3.0")


def test_an_announced_release_without_a_tag_counts_when_work_went_on(tmp_path: Path) -> None:
    """Numbering goes on after a release that nobody tagged, unless it is the one that is being made."""
    path = make_repository(tmp_path)
    save(path, "feat: begin")
    tag(path, "v1.2.0")
    save(path, "feat: more")
    save(path, "chore: release 1.3.0 (#7)")
    assert ReleaseRun(path, tmp_path).propose()["version"] == "1.3.0"
    save(path, "fix: after it")
    run = ReleaseRun(path, tmp_path)
    release = run.propose()
    assert (release["version"], release["last_version"], release["last_tag"]) == ("1.3.1", "1.3.0", "v1.2.0")
    assert run.findings[0].startswith("No tag names it, but")


@pytest.mark.parametrize("subject", ["chore(release): 7.0.0", "chore(release): other@1.3.0", "docs: release 1.3.0"])
def test_only_the_next_step_is_believed_without_a_tag(tmp_path: Path, subject: str) -> None:
    """A far version, another package's version and words about a version announce nothing here."""
    path = make_repository(tmp_path)
    save(path, "feat: begin")
    tag(path, "v1.2.0")
    save(path, subject)
    save(path, "fix: after it")
    assert ReleaseRun(path, tmp_path).propose()["version"] == "1.2.1"


def test_a_reverted_announcement_announces_nothing(tmp_path: Path) -> None:
    """A release that was taken back in the range has not happened."""
    path = make_repository(tmp_path)
    save(path, "feat: begin")
    tag(path, "v1.2.0")
    name = save(path, "chore(release): 1.3.0")
    save(path, f'Revert "chore(release): 1.3.0"\n\nThis reverts commit {name}.')
    save(path, "fix: after it")
    assert ReleaseRun(path, tmp_path).propose()["version"] == "1.2.1"


def test_a_commit_may_ask_for_a_version(tmp_path: Path) -> None:
    """A Release-As footer is taken when it is legal, named as the reason, and yields to the reviewer's input."""
    path = make_repository(tmp_path)
    save(path, "feat: begin")
    tag(path, "v1.2.0")
    name = save(path, "fix: x\n\nRelease-As: 2.0.0")
    release = ReleaseRun(path, tmp_path).propose()
    assert (release["version"], release["reasons"]) == ("2.0.0", [f"2.0.0 is asked for by {name[:7]} (Release-As)."])
    assert ReleaseRun(path, tmp_path, {"version": "1.5.0"}).propose()["version"] == "1.5.0"
    save(path, "fix: y\n\nRelease-As: 1.0.0")
    run = ReleaseRun(path, tmp_path)
    assert run.propose()["version"] == "1.2.1"
    assert any("was not taken: Version 1.0.0 is not above" in finding for finding in run.findings)
