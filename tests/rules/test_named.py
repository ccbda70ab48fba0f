"""A version that people announced before its release is the one that is proposed."""

from pathlib import Path

import pytest

from perdure.rules.git_commits import Commit
from perdure.rules.release.bump import Last
from perdure.rules.release.named import find_named
from perdure.rules.release.versions import find_scheme
from tests.rules.kit import ReleaseRun, make_repository, save, tag

SEMVER = find_scheme("semver")


def commit(subject: str, body: str = "", parents: tuple[str, ...] = ()) -> Commit:
    """A commit with an id made from its subject."""
    whole = (subject.encode().hex() + "0" * 40)[:40]
    return Commit(whole, whole[:7], subject, body, "M", "", parents)


def named(*commits: Commit, last: str = "1.1.2") -> str:
    """The announced version; empty when there is none."""
    found = find_named(commits, Last(last), SEMVER)
    return found[0] if found else ""


@pytest.mark.parametrize(
    ("subject", "version"),
    [
        ("docs(blog): what's new in 1.2.0", "1.2.0"),
        ("docs(website): add highlights for v2.0.0 (#504)", "2.0.0"),
        ("Update the changelog for app@1.1.3.", "1.1.3"),
        ("docs: announce 1.2.0", "1.2.0"),
        ("docs: changelog of 1.1.1", ""),  # not a next version
        ("docs: highlights for 1.4.0", ""),
        ("docs: migrate to 2.0.0", ""),  # may be written years before
        ("docs: highlights for 1.2.0-rc.1", ""),
        ("docs: highlights for 11.2.0.4", ""),
        ("chore(deps): update news-reader to v2.0.0, see its release notes", ""),
        ("chore: release 1.2.0", ""),  # a release commit tells where the range begins
    ],
)
def test_one_next_version_in_words_for_readers_is_announced(subject: str, version: str) -> None:
    """It counts when it is exactly one step above the last release, in a text about a release of this project."""
    assert named(commit(subject), commit("fix: x")) == version


def test_what_is_undone_merged_or_unclear_announces_nothing() -> None:
    """Two versions, a revert of the announcement, a merge, a calendar version, no release yet: nothing is announced."""
    post = commit("docs: highlights for 1.2.0")
    assert named(post) == "1.2.0"
    assert named(commit("docs: changelog for 1.1.3"), post) == ""
    assert named(commit(f'Revert "{post.subject}"', f"This reverts commit {post.id}."), post) == ""
    assert named(commit(post.subject, parents=("a" * 40, "b" * 40))) == ""
    assert named(post, last="") == ""
    assert find_named([commit("docs: highlights for 26.1.3")], Last("26.1.2"), find_scheme("calver")) is None


def test_an_announced_version_is_proposed_and_says_what_the_changes_call_for(tmp_path: Path) -> None:
    """The plan names the commit; what was given with the job goes before; 0.x is not left so."""
    path = make_repository(tmp_path)
    save(path, "feat: begin")
    tag(path, "v1.1.2")
    save(path, "fix!: read environments first")
    post = save(path, "docs(blog): what's new in 1.2.0")
    release = ReleaseRun(path, tmp_path).propose()
    told = (
        f"""1.2.0 is announced by {post[:7]} ("docs(blog): what's new in 1.2.0"); by its changes it would be 2.0.0."""
    )
    assert (release["version"], release["reasons"]) == ("1.2.0", [told])
    assert release["entries"][0]["breaking"]
    assert ReleaseRun(path, tmp_path, {"version": "2.0.0"}).propose()["version"] == "2.0.0"


def test_announced_words_do_not_end_initial_development(tmp_path: Path) -> None:
    """An announcement of 1.0.0 is named with the question, and the plan stays below it."""
    path = make_repository(tmp_path)
    save(path, "feat: begin")
    tag(path, "v0.9.0")
    save(path, "feat: x")
    save(path, "docs: highlights for 1.0.0")
    run = ReleaseRun(path, tmp_path)
    assert run.propose()["version"] == "0.10.0"
    assert any("0.9.0 is initial development (0.x)" in finding for finding in run.findings), run.findings
