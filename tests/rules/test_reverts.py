"""Nothing undone is listed; what was undone after its release is an entry."""

import pytest

from perdure.rules.git_commits import Commit
from perdure.rules.release.commit_entries import read_commit_entries
from perdure.rules.release.reverts import cancel_reverts


def commit(name: str, subject: str, body: str = "", *parents: str) -> Commit:
    """A commit whose id is ``name`` repeated; parents are names too."""
    whole = (name * 40)[:40]
    return Commit(whole, whole[:7], subject, body, "M", "", tuple((parent * 40)[:40] for parent in parents))


def listed(*commits: Commit) -> list[str]:
    """Texts of the entries of ``commits`` (newest first)."""
    return [entry.text for entry in read_commit_entries(commits)[0]]


FEATURE = commit("ab12", "feat: bulk import")
FULL, SHORT = ("ab12" * 10), "ab12ab1"


@pytest.mark.parametrize(
    "revert",
    [
        commit("c", 'Revert "feat: bulk import"', f"This reverts commit {FULL}."),
        commit("c", 'Revert "feat: bulk import" (#12)', f"This reverts commit {FULL}."),
        commit("c", "revert: feat: bulk import", f"Refs: {SHORT}"),
        commit("c", "revert: no more bulk import", f"This reverts commit {SHORT}, it was too slow."),
        commit("c", "fix: take bulk import out", f"Too slow.\n\nThis reverts commit {FULL}."),
        commit("c", "Take it out", f"This reverts commits {'d' * 40} and\n{SHORT}"),
    ],
)
def test_a_revert_by_hash_cancels_both(revert: Commit) -> None:
    """A revert in the range takes what it reverts out of the release, and itself: by whole or short hash."""
    assert listed(revert, FEATURE) == []
    assert cancel_reverts([revert, FEATURE]).uncertain == []


def test_a_revert_by_subject_is_marked_uncertain() -> None:
    """Without a known hash the subject decides, and the reviewer is told."""
    revert = commit("c", 'Revert "feat: bulk import"')
    entries, findings = read_commit_entries([revert, FEATURE])
    assert entries == []
    assert findings == [f"ccccccc reverts {SHORT} by its subject alone ('feat: bulk import'): both are left out."]


def test_a_revert_of_something_released_is_an_entry() -> None:
    """What was released before and is reverted now is listed, at least as a patch."""
    revert = commit("c", 'Revert "feat: old thing"', f"This reverts commit {'d' * 40}.")
    entries, _ = read_commit_entries([revert, FEATURE])
    assert [(entry.text, entry.section, entry.bump) for entry in entries] == [
        ('Revert "feat: old thing"', "Changed", "patch"),
        ("bulk import", "Added", "minor"),
    ]


def test_an_unlisted_type_that_reverts_something_released_is_an_entry() -> None:
    """A chore that takes back something released is listed although chores are not."""
    assert listed(commit("c", "chore: take the old thing out", f"This reverts commit {'d' * 40}.")) == [
        "chore: take the old thing out"
    ]


def test_a_reverted_revert_undoes_nothing() -> None:
    """A revert that was itself reverted leaves what it had reverted in place, in git's old wording and its new one."""
    revert = commit("c", 'Revert "feat: bulk import"', f"This reverts commit {FULL}.")
    again = commit("d", 'Revert "Revert "feat: bulk import""', f"This reverts commit {'c' * 40}.")
    reapply = commit("d", 'Reapply "feat: bulk import"', f"This reverts commit {'c' * 40}.")
    by_subject = commit("d", 'Reapply "feat: bulk import"')
    for undo in (again, reapply, by_subject):
        assert listed(undo, revert, FEATURE) == ["bulk import"]


def test_a_reverted_merge_takes_its_branch_with_it() -> None:
    """Reverting a merge undoes all that the merge brought, and nothing that was there before."""
    base = commit("1", "feat: base")
    side = [commit("3", "fix: side", "", "2"), commit("2", "feat: side", "", "1")]
    main = commit("4", "feat: main", "", "1")
    merge = commit("5", "Merge branch side", "", "4", "3")
    body = f"This reverts commit {'5' * 40}, reversing\nchanges made to {'4' * 40}."
    revert = commit("6", 'Revert "Merge branch side"', body, "5")
    assert listed(revert, merge, *side, main, base) == ["main", "base"]


def test_a_revert_never_cancels_something_newer() -> None:
    """What came again after its revert is listed."""
    revert = commit("c", 'Revert "feat: bulk import"', "")
    assert listed(commit("e", "feat: bulk import"), revert, FEATURE) == ["bulk import"]
    assert listed(commit("e", "feat: bulk import"), revert) == ["bulk import", 'Revert "feat: bulk import"']


def test_talking_about_a_revert_is_none() -> None:
    """A body that mentions reverting in the middle of a sentence takes nothing out."""
    talk = commit("c", "fix: x", f"Unlike before, this reverts commit {FULL} only where needed.")
    assert listed(talk, FEATURE) == ["x", "bulk import"]
