"""Entries out of commit messages: what is listed, where, and how far it moves the version."""

import time

import pytest

from perdure.rules.git_commits import Commit
from perdure.rules.release.commit_entries import is_release_commit, read_commit_entries


def commit(subject: str, body: str = "", *, name: str = "", parents: tuple[str, ...] = ()) -> Commit:
    """A commit with an id made from its subject."""
    whole = (name or subject.encode().hex() + "0" * 40)[:40]
    return Commit(whole, whole[:7], subject, body, "M", "", parents)


@pytest.mark.parametrize(
    ("subject", "section", "bump"),
    [
        ("feat: x", "Added", "minor"),
        ("Feature(a): x", "Added", "minor"),
        ("fix: x", "Fixed", "patch"),
        ("perf: x", "Changed", "patch"),
        ("security: x", "Security", "patch"),
        ("deprecate: x", "Deprecated", "minor"),
        ("chore!: x", "Changed", "major"),
        ("server!: x", "Changed", "major"),
        ("fix!: x", "Fixed", "major"),
    ],
)
def test_types_have_a_section_and_a_step(subject: str, section: str, bump: str) -> None:
    """Each listed type has its section and step; a breaking change of any type is listed and is major."""
    (entry,), _ = read_commit_entries([commit(subject)])
    assert (entry.text, entry.section, entry.bump, entry.breaking) == ("x", section, bump, bump == "major")
    assert entry.sources == (entry.id,) and entry.reason == subject


@pytest.mark.parametrize(
    "subject", ["docs: x", "chore(deps): x", "ci: x", "test: x", "refactor: x", "wip: x", "style: x"]
)
def test_other_known_types_are_not_listed(subject: str) -> None:
    """What users do not notice is no entry, and no finding either."""
    assert read_commit_entries([commit(subject)]) == ([], [])


def test_what_breaks_stands_in_the_entry() -> None:
    """The footer's note follows the description."""
    (entry,), _ = read_commit_entries([commit("feat(api): drop v1", "BREAKING CHANGE: clients move\nto v2")])
    assert (entry.text, entry.scope, entry.breaking) == ("drop v1: clients move to v2", "api", True)


def test_merges_release_commits_and_unfinished_ones_add_nothing() -> None:
    """A merge adds nothing of its own, an announced version and a fixup neither."""
    silent = [
        commit("feat: a merge that speaks", parents=("a", "b")),
        commit("chore(release): 1.2.0"),
        commit("Release v1.2.0"),
        commit("fixup! feat: x"),
        commit(""),
    ]
    assert read_commit_entries(silent) == ([], [])


def test_prose_is_listed_where_no_convention_is_followed() -> None:
    """In a project without a convention each commit is an entry under Other, and the release a patch."""
    entries, findings = read_commit_entries([commit("Add import"), commit("server: close the pool"), commit("feat: x")])
    assert [(entry.section, entry.text) for entry in entries] == [
        ("Other", "Add import"),
        ("Other", "server: close the pool"),
        ("Added", "x"),
    ]
    assert findings == []


def test_prose_is_named_where_a_convention_is_followed() -> None:
    """Among conventional commits a stray one is no entry, but the reviewer is told."""
    entries, findings = read_commit_entries([commit("feat: x"), commit("Add import", name="ab" * 20)])
    assert [entry.text for entry in entries] == ["x"]
    assert findings == ["Not listed, because they follow no convention: abababa Add import."]


def test_the_same_change_twice_is_one_entry_with_both_sources() -> None:
    """A fix that was picked to several branches and met in a merge is listed once, and names both commits."""
    (entry,), _ = read_commit_entries([commit("fix: x", name="a" * 40), commit("fix: x", name="b" * 40)])
    assert entry.sources == ("aaaaaaa", "bbbbbbb")


def test_control_characters_do_not_reach_an_entry() -> None:
    """An escape sequence in a subject becomes a blank: a changelog steers no terminal."""
    (entry,), _ = read_commit_entries([commit("feat: a\x1b[2Jb\x9bc")])
    assert entry.text == "a [2Jb c"


@pytest.mark.parametrize(
    ("subject", "is_one"),
    [
        ("chore(release): 1.2.0", True),
        ("bump: version 1.1.0 → 1.2.0", True),
        ("Bump version from 1.1.0 to 1.2.0", True),
        ("Bump version: 1.1.0 -> 1.2.0", True),
        ("v1.2.0", True),
        ("1.2", True),
        ("pkg@1.2.0", True),
        ("Release app-1.2.0.", True),
        ("Prepare for release 2.0.0rc1", True),
        ("chore(deps): bump lodash from 4.17.20 to 4.17.21", False),
        ("Bump lodash from 4.17 to 4.18", False),
        ("fix: 1.2.0 crashes", False),
        ("feat: 1.2.0", False),
        ("Release notes", False),
        ("Support version 2.0 of the API", False),
    ],
)
def test_release_commits_are_known_by_their_subject(subject: str, is_one: bool) -> None:
    """A subject that only announces a version is a release commit; one that says more is not."""
    assert is_release_commit(subject) is is_one


@pytest.mark.parametrize(
    "subject", ["1" * 97_000, "a-" * 50_000, "release " * 10_000, "feat(" * 20_000, "x" + " " * 97_000]
)
def test_a_crafted_subject_costs_no_time(subject: str) -> None:
    """A subject of 97 kB, made to be slow to match, is read at once."""
    started = time.process_time()
    read_commit_entries([commit(subject, "\n" * 90_000 + "revert", name="a" * 40)])
    assert time.process_time() - started < 2
