"""What a reviewer did to an earlier plan is proposed again where it belongs, signed, and forgotten on request.

What was done to a kind of entries again and again is suggested, not done.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from perdure.contracts.decisions import Edits
from perdure.contracts.memory import Memory, RememberedEdit
from tests.rules.kit import ReleaseRun, make_repository, save, tag
from tests.support.repositories import git, make_project

DAY = datetime(2026, 11, 29, 9, 0, tzinfo=UTC)


@dataclass
class Thread:
    """Jobs of one repository: each remembers the edits of those before."""

    path: Path
    folder: Path
    edits: list[RememberedEdit] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)

    def propose(self, *edits: Edits, **inputs: Any) -> dict[str, Any]:
        """A new job's proposal."""
        run = ReleaseRun(self.path, self.folder, inputs, edits=edits, remembered=Memory(edits=self.edits))
        release = run.propose()
        self.findings = run.findings
        return release

    def edit(self, by: str = "ann", why: str = "clearer", **changes: Any) -> None:
        """A job whose first plan is edited so, and that ends without being applied."""
        at = DAY + timedelta(hours=len(self.edits))
        seen = {"release": self.propose()}
        self.edits.append(RememberedEdit(by=by, at=at, why=why, changes=changes, seen=seen))

    def change(self, op: str, entry: dict[str, Any], by: str = "ann", why: str = "clearer", **more: str) -> None:
        """The same for one entry."""
        self.edit(by, why, entries=[{"op": op, "id": entry["id"], **more}])

    def said(self, *words: str) -> list[str]:
        """Findings that hold all of these words."""
        return [finding for finding in self.findings if all(word in finding for word in words)]


@pytest.fixture
def thread(tmp_path: Path) -> Thread:
    """A project at 1.2.0 with a fix and a feature since."""
    return Thread(make_project(tmp_path, remote=False).path, tmp_path)


def listed(release: dict[str, Any]) -> dict[str, str]:
    """Section by text of the proposed entries."""
    return {entry["text"]: entry["section"] for entry in release["entries"]}


def unreleased(body: str) -> dict[str, str]:
    """A changelog with this under [Unreleased]."""
    return {"CHANGELOG.md": f"# Changes\n\n## [Unreleased]\n\n{body}## [1.0.0] - 2026-01-01\n\n- Begun.\n"}


def forget(*ids: str) -> Edits:
    """A reviewer who wants things as they were found."""
    return Edits(by="rhea", changes={"entries": [{"op": "forget", "id": one} for one in ids]})


def test_reworded_moved_and_dropped_entries_are_so_again(thread: Thread) -> None:
    """A new job does to the same commits what was done before, and names who, when and why; they are its authors."""
    fix, feature = thread.propose()["entries"]
    thread.change("reword", fix, text="Empty orders are refused.")
    thread.change("move", fix, by="ben", why="it is a risk\n", section="security")
    thread.change("drop", feature, why="")
    release = thread.propose()
    assert listed(release) == {"Empty orders are refused.": "Security"}
    assert (release["version"], release["authors"]) == ("1.2.1", ["ann", "ben"])
    assert thread.said(
        fix["id"], "was reworded by ann on 2026-11-29: clearer", '(found as "an empty order is refused")'
    )
    assert thread.said(fix["id"], "was moved to Security by ben on 2026-11-29: it is a risk (found as Fixed).")
    assert thread.said(f'"bulk import" ({feature["id"]}) is left out: dropped by ann on 2026-11-29.')
    assert thread.said("--forget ID")


def test_an_added_entry_is_added_again_until_it_is_released(thread: Thread) -> None:
    """It belongs to what came since that release: not to the next one, nor to another line of work."""
    thread.edit(entries=[{"op": "add", "section": "Security", "text": "Names are escaped."}])
    release = thread.propose()
    assert listed(release)["Names are escaped."] == "Security"
    assert release["entries"][-1]["sources"] == ["review: ann"]
    assert thread.said('"Names are escaped."', "was added by ann on 2026-11-29: clearer.")
    git(thread.path, "switch", "-q", "-c", "hotfix", "v1.2.0")
    save(thread.path, "fix: elsewhere")
    assert listed(thread.propose()) == {"elsewhere": "Fixed"}
    git(thread.path, "switch", "-q", "main")
    tag(thread.path, "v1.3.0")
    save(thread.path, "fix: later")
    assert (listed(thread.propose()), thread.said("ann")) == ({"later": "Fixed"}, [])


def test_a_version_is_proposed_again_for_exactly_what_it_was_chosen_for(thread: Thread) -> None:
    """The same base, last release and entries: the version stands, as theirs. Another commit: it is only named."""
    thread.edit(version="2.0.0", why="the API is new")
    release = thread.propose()
    reason = "2.0.0 was chosen by ann on 2026-11-29: the API is new, for these same changes."
    assert (release["version"], release["reasons"], release["authors"]) == ("2.0.0", [reason], ["ann"])
    assert thread.propose(version="1.9.0")["version"] == "1.9.0"
    assert thread.propose(Edits(by="rhea", changes={"version": "1.8.0"}))["version"] == "1.8.0"
    assert thread.propose(forget("version"))["version"] == "1.3.0"
    save(thread.path, "docs: words")
    assert thread.propose()["version"] == "1.3.0"
    assert thread.said("Not proposed again: the version 2.0.0, chosen by ann on 2026-11-29: the API is new.")
    tag(thread.path, "v2.0.0")
    save(thread.path, "fix: later")
    assert (thread.propose()["version"], thread.said("ann")) == ("2.0.1", [])


def test_a_version_that_became_illegal_is_not_taken(thread: Thread) -> None:
    """A remembered version is judged by the rules of today."""
    thread.edit(version="1.9.0")
    git(thread.path, "tag", "v1.9.0", git(thread.path, "commit-tree", "-m", "x", "HEAD^{tree}"))
    assert thread.propose()["version"] == "1.3.0"
    assert thread.said("The version that ann asked for was not taken: The tag v1.9.0 exists already")


def test_what_is_forgotten_is_not_done_and_stays_forgotten(thread: Thread) -> None:
    """A reviewer takes an override back: the entry is as it was found, in this job and in later ones."""
    fix, feature = thread.propose()["entries"]
    thread.change("reword", fix, text="Empty orders are refused.")
    thread.change("drop", feature)
    release = thread.propose(forget(fix["id"][:6], feature["id"]))
    assert listed(release) == {"an empty order is refused": "Fixed", "bulk import": "Added"}
    assert (release["authors"], thread.said("ann")) == ([], [])
    thread.edit("rhea", entries=[{"op": "forget", "id": feature["id"]}])
    assert listed(thread.propose()) == {"Empty orders are refused.": "Fixed", "bulk import": "Added"}
    thread.edit("rhea", entries=[{"op": "add", "section": "Fixed", "text": "X."}])
    added = thread.propose()["entries"][-1]
    thread.change("drop", added, by="rhea")
    assert "X." not in listed(thread.propose()) and not thread.said("X.")


def test_the_newest_word_on_an_entry_stands(thread: Thread) -> None:
    """A later wording takes the place of an earlier one, and this job's of both; only what stands is said."""
    fix = thread.propose()["entries"][0]
    thread.change("reword", fix, text="First.")
    thread.change("reword", thread.propose()["entries"][0], by="ben", text="Second.")
    assert "Second." in listed(thread.propose())
    assert thread.said("ben") and not thread.said("ann")
    mine = Edits(by="rhea", changes={"entries": [{"op": "reword", "id": fix["id"], "text": "Third."}]})
    release = thread.propose(mine)
    assert "Third." in listed(release)
    assert (release["authors"], thread.said("ben")) == ([], [])


def test_an_override_of_an_item_goes_with_its_words(tmp_path: Path) -> None:
    """An item under [Unreleased] that was written anew since is stronger than what was made of the old one."""
    path = make_repository(tmp_path)
    save(path, "feat: begin", unreleased(""))
    tag(path, "v1.0.0")
    save(
        path,
        "docs: c",
        unreleased("### Added\n\n- Bulk.\n\n"),
    )
    thread = Thread(path, tmp_path)
    thread.change("reword", thread.propose()["entries"][0], text="Import in bulk.")
    assert listed(thread.propose()) == {"Import in bulk.": "Added"}
    save(
        path,
        "docs: c",
        unreleased("### Added\n\n- All.\n\n"),
    )
    assert (listed(thread.propose()), thread.said("ann")) == ({"All.": "Added"}, [])


def test_what_is_written_by_hand_is_stronger_than_an_override_of_a_commit(thread: Thread) -> None:
    """Once [Unreleased] says what changed, overrides of commits and added entries are left out, and named."""
    fix = thread.propose()["entries"][0]
    thread.change("drop", fix)
    thread.edit(entries=[{"op": "add", "section": "Fixed", "text": "By hand."}])
    text = (thread.path / "CHANGELOG.md").read_text()
    written = text.replace("## [Unreleased]\n", "## [Unreleased]\n\n### Fixed\n\n- Refuses.\n")
    save(thread.path, "docs: changelog", {"CHANGELOG.md": written})
    assert listed(thread.propose()) == {"Refuses.": "Fixed"}
    assert len(thread.said("Not done again, because what changed is written by hand now")) == 2


def test_the_same_move_made_again_and_again_is_suggested(tmp_path: Path) -> None:
    """Two entries of a type moved, or of a scope dropped, make a suggestion for the next; nothing of it is applied."""
    path = make_repository(tmp_path)
    save(path, "feat: begin")
    tag(path, "v1.0.0")
    thread = Thread(path, tmp_path)
    for number in range(2):
        save(path, f"perf: quicker {number}")
        save(path, f"fix(deps): raise {number}")
        deps, perf = thread.propose()["entries"]
        thread.edit(entries=[{"op": "move", "id": perf["id"], "section": "Fixed"}, {"op": "drop", "id": deps["id"]}])
        assert not thread.said("in earlier reviews")
        tag(path, f"v1.0.{number + 1}")
    last = [save(path, "perf: again"), save(path, "fix(deps): raise again")]
    release = thread.propose()
    assert listed(release) == {"again": "Changed", "raise again": "Fixed"}
    (moved,), (dropped,) = thread.said("type perf were moved to Fixed"), thread.said("scope deps were dropped")
    assert moved.startswith("2 entries") and f"--move {last[0][:7]}=Fixed` does it" in moved
    assert "last by ann on 2026-11-29" in dropped and f"--drop {last[1][:7]}` does it" in dropped
    assert release["authors"] == []


def test_overrides_of_one_package_say_nothing_of_another(tmp_path: Path) -> None:
    """Jobs for other folders of the repository remember their own."""
    path = make_repository(tmp_path)
    save(path, "feat: begin", {"a/x": "1", "b/x": "1"})
    tag(path, "v1.0.0")
    save(path, "feat: both", {"a/x": "2", "b/x": "2"})
    thread = Thread(path, tmp_path)
    seen = thread.propose(path="a")
    changes = {"entries": [{"op": "reword", "id": seen["entries"][0]["id"], "text": "Mine."}]}
    thread.edits.append(RememberedEdit(by="ann", at=DAY, changes=changes, seen={"release": seen}))
    assert (listed(thread.propose(path="a")), listed(thread.propose(path="b"))) == (
        {"Mine.": "Added"},
        {"both": "Added"},
    )
