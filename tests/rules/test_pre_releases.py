"""Pre-releases: entered by a label, counted while their line lasts, left by asking for none."""

from dataclasses import replace
from pathlib import Path

import pytest

from perdure.errors import UserError
from perdure.rules.release.bump import Last, suggest_pre_release, suggest_version
from perdure.rules.release.entries import Entry
from perdure.rules.release.versions import SCHEMES, Bump
from tests.rules.kit import ReleaseRun, make_repository, save, tag
from tests.support.repositories import git


def entry(bump: Bump) -> Entry:
    """An entry that moves the version so far."""
    return Entry("a1b2c3d", "Added", "x", ("a1b2c3d",), bump, breaking=bump == "major", reason="feat: x")


@pytest.mark.parametrize(
    ("scheme", "last", "candidate", "step", "label", "version"),
    [
        ("semver", "1.2.0", "", "minor", "rc", "1.3.0-rc.1"),
        ("semver", "1.2.0", "1.3.0-rc.1", "minor", "rc", "1.3.0-rc.2"),
        ("semver", "1.2.0", "1.3.0-rc8", "patch", "rc", "1.3.0-rc9"),
        ("semver", "1.2.0", "1.3.0-rc.0", "minor", "rc", "1.3.0-rc.1"),
        ("semver", "1.2.0", "1.3.0-beta.4", "minor", "rc", "1.3.0-rc.1"),
        ("semver", "1.2.0", "1.3.0-rc.4", "major", "rc", "2.0.0-rc.1"),
        ("semver", "2.0.0-alpha.1", "", "patch", "alpha", "2.0.0-alpha.2"),
        ("pep440", "1.2.0", "", "major", "beta", "2.0.0b1"),
        ("pep440", "1.2", "1.3rc1", "minor", "rc", "1.3rc2"),
        ("pep440", "1.2.0", "2.0.0a3", "major", "b", "2.0.0b1"),
    ],
)
def test_a_line_is_entered_and_counted(
    scheme: str, last: str, candidate: str, step: Bump, label: str, version: str
) -> None:
    """The first of a line, the next of it, a later label, and a higher line when the changes call for one."""
    found = suggest_pre_release([entry(step)], Last(last, candidate), SCHEMES[scheme], label)
    assert found.version == version
    assert SCHEMES[scheme].key(version) > SCHEMES[scheme].key(candidate or last)


def test_leaving_drops_the_suffix() -> None:
    """Without a label the line's final version follows, whatever the smaller step would have been."""
    assert suggest_version([entry("patch")], Last("1.2.0", "1.3.0-rc.2"), SCHEMES["semver"]).version == "1.3.0"


@pytest.mark.parametrize(
    ("last", "candidate", "step", "version"),
    [
        ("1.2.2", "1.2.3-4", "patch", "1.2.3"),
        ("1.1.7", "1.2.0-0", "minor", "1.2.0"),
        ("1.1.7", "1.2.0-0", "patch", "1.2.0"),
        ("1.2.0", "1.2.1-0", "minor", "1.3.0"),
        ("1.9.0", "2.0.0-rc.1", "major", "2.0.0"),
        ("1.1.0", "1.2.0-1", "major", "2.0.0"),
        ("", "", "minor", "1.0.0"),
    ],
)
def test_a_pre_release_is_left_to_the_lowest_version_that_its_changes_allow(
    last: str, candidate: str, step: Bump, version: str
) -> None:
    """Its own final version where the step reaches no higher, else the step from the last final one."""
    where = Last(last, candidate) if last else Last("1.0.0-alpha.1")
    assert suggest_version([entry(step)], where, SCHEMES["semver"]).version == version


@pytest.mark.parametrize(
    ("scheme", "label", "said"),
    [
        ("semver", "beta", r"gives 1\.3\.0-beta\.1, which is not above 1\.3\.0-rc\.1"),
        ("semver", "1", "no label of a semantic version"),
        ("pep440", "gamma", "no label of a PEP 440 pre-release: a, alpha"),
    ],
)
def test_a_label_that_would_go_back_is_refused(scheme: str, label: str, said: str) -> None:
    """A beta after a release candidate, and a label that the scheme does not have, are refused by name."""
    candidate = "1.3.0-rc.1" if scheme == "semver" else "1.3.0rc1"
    with pytest.raises(UserError, match=said):
        suggest_pre_release([entry("minor")], Last("1.2.0", candidate), SCHEMES[scheme], label)


def test_a_counter_that_would_sort_below_is_refused() -> None:
    """Semantic Versioning orders rc10 before rc9: such a version would not be above the last one."""
    with pytest.raises(UserError, match=r"1\.3\.0-rc10, which is not above 1\.3\.0-rc9"):
        suggest_pre_release([entry("patch")], Last("1.2.0", "1.3.0-rc9"), SCHEMES["semver"], "rc")


def test_a_pre_release_job_from_entering_to_leaving(tmp_path: Path) -> None:
    """Each round tells all that is new since the last final version; the final one takes the suffix off."""
    path = make_repository(tmp_path)
    save(path, "feat: begin")
    tag(path, "v1.2.0")
    save(path, "feat: import")
    assert ReleaseRun(path, tmp_path, {"pre": "rc"}).propose()["version"] == "1.3.0-rc.1"
    tag(path, "v1.3.0-rc.1")
    save(path, "fix: import of nothing")
    second = ReleaseRun(path, tmp_path, {"pre": "rc"}).propose()
    assert (second["version"], second["last_version"], len(second["entries"])) == ("1.3.0-rc.2", "1.2.0", 2)
    assert second["reasons"][0] == "1.3.0-rc.2: 1.3.0-rc.1 goes on."
    assert ReleaseRun(path, tmp_path).propose()["version"] == "1.3.0"


def test_a_fix_on_a_maintenance_branch_stays_on_its_line(tmp_path: Path) -> None:
    """Higher versions that the branch does not reach do not count, and what they took is refused by name."""
    path = make_repository(tmp_path)
    save(path, "feat: begin")
    tag(path, "v1.2.0")
    git(path, "switch", "-q", "-c", "1.2.x")
    git(path, "switch", "-q", "main")
    save(path, "feat: more")
    tag(path, "v1.3.0")
    save(path, "feat!: other")
    tag(path, "v2.0.0")
    git(path, "switch", "-q", "1.2.x")
    save(path, "fix: on the old line")
    assert ReleaseRun(path, tmp_path).propose()["version"] == "1.2.1"
    save(path, "feat: too much for it")
    with pytest.raises(UserError, match=r"The tag v1\.3\.0 exists already"):
        ReleaseRun(path, tmp_path).propose()


@pytest.mark.parametrize(
    ("held", "since", "version", "pre"),
    [
        ("major", "patch", "1.2.1", "1.2.1-rc.3"),
        ("minor", "", "1.2.1", "1.2.1-rc.3"),
        ("patch", "minor", "1.3.0", "1.3.0-rc.1"),
        ("major", "minor", "2.0.0", "2.0.0-rc.1"),
    ],
)
def test_what_a_tagged_pre_release_holds_was_decided_with_it(held: Bump, since: str, version: str, pre: str) -> None:
    """Its line stands, unless what came after it calls for a higher one; what the changes alone would give is told."""
    steps: dict[str, Bump] = {"patch": "patch", "minor": "minor"}
    later = [replace(entry(steps[since]), sources=("f00ba12",))] if since else []
    last = Last("1.2.0", "1.2.1-rc.2", held=frozenset({"a1b2c3d"}))
    found = suggest_version([*later, entry(held)], last, SCHEMES["semver"])
    assert found.version == version
    assert ("what it holds was decided with it" in found.reasons[0]) == (version == "1.2.1")
    assert suggest_pre_release([*later, entry(held)], last, SCHEMES["semver"], "rc").version == pre


def test_a_candidate_s_line_is_released_with_the_features_that_it_holds(tmp_path: Path) -> None:
    """As a job reads it: a feature before v1.2.1-rc.1 was decided to be a patch; one after it was not."""
    path = make_repository(tmp_path)
    save(path, "feat: begin")
    tag(path, "v1.2.0")
    save(path, "feat: a small thing")
    tag(path, "v1.2.1-rc.1")
    save(path, "fix: y")
    assert ReleaseRun(path, tmp_path).propose()["version"] == "1.2.1"
    save(path, "feat: another")
    assert ReleaseRun(path, tmp_path).propose()["version"] == "1.3.0"
    tag(path, "v1.2.1-rc.2")
    assert ReleaseRun(path, tmp_path).propose()["version"] == "1.3.0", "the line was chosen with its first pre-release"


def test_python_s_way_to_write_a_pre_release_is_read_among_semantic_versions(tmp_path: Path) -> None:
    """Their line counts as any other, also out of 0.x: somebody tagged it. How it was read is said."""
    path = make_repository(tmp_path)
    save(path, "feat: begin")
    tag(path, "v0.9.0")
    save(path, "feat: another")
    tag(path, "v1.0.0b1", "v1.0.0.dev4", "v1.0.0b2")
    save(path, "fix: y")
    run = ReleaseRun(path, tmp_path)
    assert run.propose()["version"] == "1.0.0"
    assert any(told.startswith("v1.0.0b2 is read as the pre-release 1.0.0-b.2") for told in run.findings)
