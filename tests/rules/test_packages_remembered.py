"""What reviewers did to a plan of several packages is remembered as of one package: by the same mechanism."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from perdure.contracts.decisions import Edits
from perdure.contracts.memory import Memory, RememberedEdit
from perdure.rules.release.packages.edit_checks import find_package_edit_problems
from tests.rules.kit import ReleaseRun, save
from tests.rules.packages_kit import NPM, NPM_TAGS, PackagesRun, make_workspace, texts, versions

DAY = datetime(2026, 11, 29, 9, 0, tzinfo=UTC)


@dataclass
class Thread:
    """Jobs of one workspace: each remembers the edits of those before."""

    path: Path
    folder: Path
    edits: list[RememberedEdit] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)
    gathered: dict[str, Any] = field(default_factory=dict)

    def propose(self, *edits: Edits) -> dict[str, Any]:
        """A new job's proposal."""
        run = PackagesRun(self.path, self.folder, edits=edits, remembered=Memory(edits=self.edits))
        release = run.propose()
        self.findings, self.gathered = run.findings, run.results["gather"]
        return release

    def edit(self, by: str = "ann", why: str = "clearer", **changes: Any) -> None:
        """A job whose first plan is edited so, as it may be, and that ends without being applied."""
        seen = self.propose()
        assert find_package_edit_problems(changes, seen, {"gather": self.gathered}) == []
        at = DAY + timedelta(hours=len(self.edits))
        self.edits.append(RememberedEdit(by=by, at=at, why=why, changes=changes, seen={"release": seen}))

    def said(self, *words: str) -> list[str]:
        """Findings that hold all of these words."""
        return [finding for finding in self.findings if all(word in finding for word in words)]


@pytest.fixture
def thread(tmp_path: Path) -> Thread:
    """Core, app and tool at 1.0.0; a fix of core and tool, and a feature of core since."""
    path = make_workspace(tmp_path, NPM, *NPM_TAGS)
    save(path, "fix: a crash", {"packages/core/a.js": "1", "packages/tool/a.js": "1"})
    save(path, "feat: bulk", {"packages/core/b.js": "1"})
    return Thread(path, tmp_path)


def forget(*ids: str) -> Edits:
    """A reviewer who wants things as they were found."""
    return Edits(by="rhea", changes={"entries": [{"op": "forget", "id": one} for one in ids]})


def ids_of(release: dict[str, Any]) -> dict[str, str]:
    """Id by text and package of the proposed entries."""
    return {f"{entry['text']} {entry['id'].rpartition(':')[2]}": entry["id"] for entry in release["entries"]}


def test_each_package_s_entries_are_again_as_they_were_made(thread: Thread) -> None:
    """Reworded, moved, dropped and added by package, signed; of the other package with the same commit nothing is."""
    known = ids_of(thread.propose())
    crash, bulk = known["a crash core"], known["bulk core"]
    thread.edit(
        entries=[{"op": "reword", "id": crash, "text": "Refuses."}, {"op": "move", "id": bulk, "section": "Fixed"}]
    )
    thread.edit("ben", "", entries=[{"op": "drop", "id": known["a crash tool"]}])
    thread.edit(entries=[{"op": "add", "package": "app", "section": "Fixed", "text": "Words."}])
    release = thread.propose()
    assert (sorted(texts(release, "@x/core")), texts(release, "@x/app")) == (["Refuses.", "bulk"], ["Words."])
    assert versions(release) == {"@x/core": "1.1.0", "@x/app": "1.0.1"} and release["authors"] == ["ann", "ben"]
    assert thread.said(
        f'@x/core: "Refuses." ({crash}) was reworded by ann on 2026-11-29: clearer (found as "a crash").'
    )
    assert thread.said(bulk, "was moved to Fixed by ann") and thread.said("@x/app:", '"Words."', "was added by ann")
    assert thread.said("@x/tool:", "is left out: dropped by ben on 2026-11-29.") and thread.said("--forget ID")

    again = thread.propose(forget(crash, known["a crash tool"]))
    assert "a crash" in texts(again, "@x/core") and texts(again, "@x/tool") == ["a crash"]
    assert again["authors"] == ["ann"]
    thread.edit("rhea", entries=[{"op": "forget", "id": crash[:6]}])
    assert "a crash" in texts(thread.propose(), "@x/core") and not thread.said("reworded")


def test_a_package_s_version_is_proposed_again_for_what_it_was_chosen_for(thread: Thread) -> None:
    """The same base and entries: it stands, as theirs, and dependants follow it; another commit: it is only named."""
    thread.edit(version={"core": "2.0.0"}, why="the API is new")
    release = thread.propose()
    assert versions(release) == {"@x/core": "2.0.0", "@x/app": "1.0.1", "@x/tool": "1.0.1"}
    (reason,) = release["packages"][0]["reasons"]
    assert reason == "2.0.0 was chosen by ann on 2026-11-29: the API is new, for these same changes."
    assert versions(thread.propose(forget("version:core")))["@x/core"] == "1.1.0"
    assert versions(thread.propose(Edits(by="rhea", changes={"version": {"@x/core": "1.9.0"}})))["@x/core"] == "1.9.0"
    save(thread.path, "fix: more", {"packages/core/c.js": "1"})
    assert versions(thread.propose())["@x/core"] == "1.1.0"
    assert thread.said("@x/core: Not proposed again: the version 2.0.0, chosen by ann on 2026-11-29")


def test_what_follows_is_worded_again_while_it_follows_from_the_same(thread: Thread) -> None:
    """The entry about a new version of core has its words as long as that is the version."""
    thread.edit(version={"core": "2.0.0"})
    follows = ids_of(thread.propose())["depends on @x/core 2.0.0 app"]
    thread.edit("ben", entries=[{"op": "reword", "id": follows, "text": "Needs the new core"}])
    release = thread.propose()
    assert (texts(release, "@x/app"), release["authors"]) == (["Needs the new core"], ["ann", "ben"])
    other = thread.propose(Edits(by="rhea", changes={"version": {"core": "3.0.0"}}))
    assert texts(other, "@x/app") == ["depends on @x/core 3.0.0"]


def test_a_line_of_the_map_is_one_package_s_or_everybody_s(thread: Thread) -> None:
    """``feat:core`` counts in core, ``fix`` in all; each is said with its maker, and forgotten by its name."""
    thread.edit(map={"feat:core": "patch"}, why="rare")
    thread.edit("ben", map={"fix": "minor"})
    release = thread.propose()
    assert versions(release) == {"@x/core": "1.1.0", "@x/tool": "1.1.0"} and release["authors"] == ["ann", "ben"]
    assert release["packages"][0]["map"] == {"feat": "patch", "fix": "minor"}
    assert set(release["settled"]) == {"feat:core", "fix:core", "fix:app", "fix:tool"}
    thread.edit("rhea", entries=[{"op": "forget", "id": "fix"}])
    assert versions(thread.propose()) == {"@x/core": "1.0.1", "@x/tool": "1.0.1"}
    assert thread.said("@x/core:", "feat counts as patch, not minor: set by ann on 2026-11-29: rare")
    assert versions(thread.propose(forget("feat:core")))["@x/core"] == "1.1.0"


def test_a_package_released_alone_and_with_others_has_one_memory(thread: Thread) -> None:
    """What was done in a release of the folder alone counts in one of all, and the other way round."""
    crash = ids_of(thread.propose())["a crash core"]
    thread.edit(entries=[{"op": "reword", "id": crash, "text": "Refuses."}], map={"feat:core": "patch"})
    alone = ReleaseRun(
        thread.path,
        thread.folder,
        {"path": "packages/core", "tag": "@x/core@{version}"},
        remembered=Memory(edits=thread.edits),
    )
    release = alone.propose()
    assert [entry["text"] for entry in release["entries"]] == ["bulk", "Refuses."] and release["version"] == "1.0.1"
    changes = {"entries": [{"op": "reword", "id": release["entries"][0]["id"], "text": "Imports."}]}
    thread.edits.append(
        RememberedEdit(by="ben", at=DAY + timedelta(days=1), changes=changes, seen={"release": release})
    )
    assert texts(thread.propose(), "@x/core") == ["Imports.", "Refuses."]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"map": {"feat:nobody": "patch"}}, "The line 'feat:nobody' names no package ('nobody')"),
        ({"map": {"docs:core": "patch"}}, "'docs' is no line of a type map"),
        ({"entries": [{"op": "forget", "id": "version:core"}]}, "Nothing is remembered of 'version:core'"),
    ],
)
def test_what_cannot_be_is_refused_before_it_is_recorded(thread: Thread, changes: dict[str, Any], says: str) -> None:
    """A line of no package, of no type, and what nobody ever said."""
    (problem,) = find_package_edit_problems(changes, thread.propose(), {"gather": thread.gathered})
    assert says in problem
