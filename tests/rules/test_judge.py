"""The judge of the release rules: a plan made without the release it is judged by, counted against what happened."""

from pathlib import Path

import pytest

from bench.release.deciding import Telling, find_deciding, tell
from bench.release.hiding import open_past
from bench.release.judge import judge_series
from bench.release.series import Pair, Series, find_pairs, open_series, read_series
from bench.release.truth import read_truth
from perdure.errors import UserError
from perdure.rules.git_commits import Commit
from perdure.rules.release.tags import ReleaseTag
from perdure.rules.release.versions import find_scheme
from perdure.workspace.git import open_repository
from tests.rules.kit import make_repository, save, tag
from tests.support.repositories import git


def make_history(tmp_path: Path) -> Path:
    """Three releases: a feature, then documentation alone, each with a commit that announces it."""
    path = make_repository(tmp_path)
    save(path, "feat: begin", {"CHANGELOG.md": "# Changelog\n\n## 1.0.0\n\n- Begin.\n"})
    tag(path, "v1.0.0")
    save(path, "feat: import orders")
    changelog = "# Changelog\n\n## 1.1.0\n\n- Import orders.\n- A thing that no commit tells.\n\n## 1.0.0\n\n- Begin.\n"
    save(path, "chore(release): 1.1.0", {"CHANGELOG.md": changelog, "VERSION": "1.1.0\n"})
    tag(path, "v1.1.0")
    save(path, "docs: words")
    save(path, "chore(release): 1.1.1")
    tag(path, "v1.1.1")
    return path


def test_each_release_is_judged_by_what_really_followed(tmp_path: Path) -> None:
    """Agreement, recall and rivals are counted, and a plan that abstains is wrong with its reason."""
    feature, quiet = judge_series(Series(make_history(tmp_path), "v{version}"))
    assert (feature.pair.target.version, feature.proposed, feature.agrees) == ("1.1.0", "1.1.0", True)
    assert (feature.recall.found, feature.recall.items) == (1, 2)
    assert feature.rivals == {"always patch": False, "plain Conventional Commits": True}
    assert (quiet.proposed, quiet.agrees, quiet.reasons) == ("", False, ["nothing to release"])


def test_what_is_no_entry_is_not_asked_for(tmp_path: Path) -> None:
    """Paragraphs beneath bullets, footers and thanks tell of no change; paragraphs alone do."""
    path = make_repository(tmp_path)
    body = "- Import orders.\n\nIt took long.\n\n- Closes: #7\n- Ann made their first contribution\n"
    text = f"# Changelog\n\n## 1.1.0\n\n{body}"
    name = save(path, "feat: import", {"CHANGELOG.md": f"{text}\n## 1.0.0\n\nBegin here.\n"})
    repository = open_repository(path)
    assert read_truth(repository, name, "", "1.1.0") == ["Import orders."]
    assert read_truth(repository, name, "", "1.0.0") == ["Begin here."]


def test_the_past_knows_nothing_of_the_release(tmp_path: Path) -> None:
    """Neither the target's tag nor a later one, nor the commit that announces it, is there to be asked."""
    path = make_history(tmp_path)
    repository, form, scheme = open_series(Series(path))
    pair = find_pairs(Series(path), repository, form, scheme)[0]
    past = open_past(repository, pair, tmp_path / "past.git", form, scheme)
    assert git(past.path, "tag") == "v1.0.0"
    assert git(past.path, "log", "-1", "--format=%s", "main") == "feat: import orders"


def tell_pair(last: str, target: str, *subjects: str) -> Telling:
    """What a release with such commits tells."""
    commits = [
        Commit(f"{place:040x}", f"{place:07x}", subject, "", "M", "", ()) for place, subject in enumerate(subjects)
    ]
    pair = Pair(ReleaseTag(f"v{target}", target), "c" * 40, ReleaseTag(f"v{last}", last))
    return tell(pair, commits, find_scheme("semver"))


def test_a_release_tells_whether_its_version_follows_its_commits() -> None:
    """The next number, typed commits, and the step that they call for; within 0.x the one below it too."""
    assert tell_pair("1.0.0", "1.1.0", "feat: x", "fix: y") == Telling(is_next=True, is_typed=True, is_kept=True)
    assert tell_pair("1.0.0", "1.0.1", "feat: x") == Telling(is_next=True, is_typed=True, is_kept=False)
    assert tell_pair("0.4.0", "0.4.1", "feat: x").is_kept and tell_pair("0.4.0", "0.5.0", "feat!: x").is_kept
    assert not tell_pair("1.0.0", "1.0.2", "fix: x").is_next
    assert not tell_pair("1.0.0", "1.0.1", "fix: x", "words").is_typed
    assert tell_pair("1.0.0", "1.0.1", "fix: x", "Release 1.0.1").is_typed


def test_earlier_releases_alone_say_whether_a_project_decides_by_its_commits() -> None:
    """Three that kept to it make the next one count, kept or not; a project that leaves it is left out in time."""
    kept, left = Telling(True, True, True), Telling(True, True, False)
    assert find_deciding([kept] * 3 + [left]) == [False] * 3 + [True]
    assert find_deciding([Telling()] * 8 + [kept]) == [False] * 9
    assert find_deciding([kept] * 8 + [left] * 4)[-2:] == [True, False]
    assert find_deciding([kept] * 3 + [Telling(True, False, True), kept])[-2:] == [False, True]


def test_a_file_of_series_is_read_line_by_line(tmp_path: Path) -> None:
    """A line names a repository, and may give a form, options and the tags that are judged."""
    make_repository(tmp_path)
    file = tmp_path / "series"
    file.write_text("# some\napp v{version} scheme=pep440 path=lib v1.* v2.0.0\n\n")
    (series,) = read_series(file)
    assert (series.repository, series.form, series.scheme) == (tmp_path / "app", "v{version}", "pep440")
    assert (series.path, series.tags) == ("lib", ("v1.*", "v2.0.0"))
    file.write_text("gone\n")
    with pytest.raises(UserError, match=r"series:1: there is no folder .*gone"):
        read_series(file)
