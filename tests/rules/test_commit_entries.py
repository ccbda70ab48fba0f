"""Entries out of commit messages: what is listed, where, and how far it moves the version."""

import time

import pytest

from perdure.rules.git_commits import Commit
from perdure.rules.release.commit_entries import read_commit_entries
from perdure.rules.release.release_commits import is_release_commit


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


@pytest.mark.parametrize("subject", ["docs: x", "chore: x", "ci: x", "test: x", "wip: x", "style: x"])
def test_what_does_not_reach_users_is_not_listed(subject: str) -> None:
    """What users do not get is no entry, and no finding either."""
    assert read_commit_entries([commit(subject)]) == ([], [])


@pytest.mark.parametrize("subject", ["refactor: x", "build: x", "chore(deps): x", "build(deps): x", "deps: x"])
def test_what_reaches_users_unseen_is_listed_only_where_it_is_all(subject: str) -> None:
    """A release of refactoring or new dependencies alone is a patch; beside a fix they are no entries."""
    (entry,), _ = read_commit_entries([commit("docs: y"), commit(subject)])
    assert (entry.section, entry.text, entry.bump) == ("Changed", "x", "patch")
    beside, _ = read_commit_entries([commit("fix: z"), commit(subject)])
    assert [entry.text for entry in beside] == ["z"]


@pytest.mark.parametrize(
    "text",
    [
        "bump parser from 1.2.0 to 1.3.0",
        "upgrade parser",
        "update dependencies",
        "update parser to v2",
        "update parser to version 2.1.0 (#7)",
        "update parser-core",
        "update @scope/parser",
        "pin deps",
    ],
)
def test_a_chore_that_moves_a_dependency_reaches_users(text: str) -> None:
    """A release of new dependencies alone is a patch, by whatever words they are told."""
    (entry,), _ = read_commit_entries([commit(f"chore: {text}"), commit("docs: y")])
    assert (entry.section, entry.text, entry.bump) == ("Changed", text, "patch")


@pytest.mark.parametrize("text", ["update contributors", "update the words", "updates for 0.12", "pin the thread"])
def test_a_chore_that_updates_something_else_reaches_nobody(text: str) -> None:
    """Not everything that is updated is a dependency."""
    assert read_commit_entries([commit(f"chore: {text}")]) == ([], [])


def test_prose_alone_is_never_nothing() -> None:
    """Where documentation is all that follows the convention, the prose beside it is the release."""
    entries, findings = read_commit_entries([commit("docs: x"), commit("Close the pool"), commit("test: y")])
    assert [(entry.section, entry.text, entry.bump) for entry in entries] == [("Other", "Close the pool", "patch")]
    assert findings == []


@pytest.mark.parametrize(
    ("subject", "section", "bump"),
    [
        (":sparkles: Add import", "Added", "minor"),
        ("✨ Add import", "Added", "minor"),
        ("🐛 Close the pool", "Fixed", "patch"),
        ("⚡️ Read faster", "Changed", "patch"),
        ("💥 Drop v1", "Changed", "major"),
        (":sparkles: feat(api): add import", "Added", "minor"),
    ],
)
def test_an_emoji_says_the_type(subject: str, section: str, bump: str) -> None:
    """A leading gitmoji is a type like any other, and is not repeated in the entry."""
    (entry,), _ = read_commit_entries([commit(subject, name="a" * 40)])
    assert (entry.section, entry.bump) == (section, bump)
    assert entry.text.lower().startswith(("add", "close", "read", "drop"))


def test_an_unknown_emoji_is_prose() -> None:
    """An emoji that no list names decides nothing."""
    (entry,), _ = read_commit_entries([commit("🦄 Ride", name="a" * 40)])
    assert (entry.section, entry.text) == ("Other", "🦄 Ride")


def test_a_squashed_body_tells_each_change() -> None:
    """Typed bullets beneath a subject in prose are entries of their own, all from the one commit."""
    body = "* feat(api): bulk import\n* wip\n\n* fix: an empty order is refused\n- docs: words"
    entries, _ = read_commit_entries([commit("Orders (#12)", body, name="ab" * 20)])
    assert [(entry.id, entry.section, entry.text) for entry in entries] == [
        ("abababa", "Added", "bulk import"),
        ("abababa.2", "Fixed", "an empty order is refused"),
    ]
    assert {entry.sources for entry in entries} == {("abababa",)}


def test_bullets_of_a_squashed_body_move_the_version_by_a_patch() -> None:
    """ "feat" there was a step of the work; what breaks breaks all the same."""
    body = "* feat(load): use another loader\n\n* fix(load): wait for it"
    entries, _ = read_commit_entries([commit("Fix/3768: loaders (#12)", body), commit("fix: a")])
    assert [entry.bump for entry in entries] == ["patch"] * 3
    entries, _ = read_commit_entries([commit("Loaders (#12)", "* feat!: drop the old loader\n* fix: wait")])
    assert [(entry.bump, entry.breaking) for entry in entries] == [("major", True), ("patch", False)]


def test_a_squashed_body_beneath_a_typed_subject_is_its_detail() -> None:
    """A subject that says its type speaks for the whole commit."""
    (entry,), _ = read_commit_entries([commit("fix: orders", "* feat: a\n* feat: b", name="ab" * 20)])
    assert (entry.text, entry.bump) == ("orders", "patch")


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
        ("chore(main): release 17.0.0 (#2404)", True),
        ("chore: release yargs 17.0.0", True),
        ("chore(release): prepare for v1.0.0-rc.1", True),
        ("🔖 Bump version", True),
        ("[Release] v1.2.3 (#33)", True),
        ("chore: Release", True),
        ("chore: v1.2.0 release", True),
        ("Python to 3.12", False),
        ("docs: release 1.2.0", False),
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
