"""Changing files: exact edits and patches, all or nothing, only where the job may."""

from __future__ import annotations

from pathlib import Path

import pytest

from perdure.testing.tools import ToolBench
from perdure.tools.files_patch import PATCH
from perdure.tools.files_write import EDIT, LARGEST_BYTES, REMOVE, WRITE


def test_file_is_written_whole_and_said(bench: ToolBench) -> None:
    """New files are plain, existing ones keep their mode, the same content again changes nothing."""
    made = bench.call(WRITE, path="src/a.py", content="a\nb\n")
    assert (made.status, made.changed, made.text) == ("ok", True, "Wrote src/a.py: 4 bytes, 2 line ends.")
    file = bench.workspace / "src/a.py"
    file.chmod(0o755)
    assert bench.call(WRITE, path="src/a.py", content="c").changed
    assert (file.read_text(), file.stat().st_mode & 0o111) == ("c", 0o111)
    assert not bench.call(WRITE, path="./src/a.py", content="c").changed


def test_edit_replaces_exactly_one_place(bench: ToolBench) -> None:
    """A text that stands there once is replaced; every other byte stays, line ends too."""
    (bench.workspace / "a").write_bytes(b"one\r\ntwo\r\n\xff\r\n")
    assert bench.call(EDIT, path="a", edits=[{"old": "two", "new": "2"}]).status == "ok"
    assert (bench.workspace / "a").read_bytes() == b"one\r\n2\r\n\xff\r\n"


def test_edit_that_fits_several_places_or_none_is_told_where(bench: ToolBench) -> None:
    """Nothing is changed, and the fault says which lines to look at."""
    (bench.workspace / "a").write_text("x = 1\nif y:\n    x = 2\nx = 1\n")
    several = bench.call(EDIT, path="a", edits=[{"old": "x = 1", "new": "x = 3"}])
    assert "`old` stands 2 times (lines 1, 4); nothing was changed" in several.text
    blanks = bench.call(EDIT, path="a", edits=[{"old": "if y:\n  x = 2", "new": "z"}])
    assert "other blanks or line ends: line 2" in blanks.text
    none = bench.call(EDIT, path="a", edits=[{"old": "nowhere", "new": "z"}])
    assert "does not stand in the file" in none.text
    assert bench.call(EDIT, path="a", edits=[{"old": "x = 1", "new": "x = 3", "all": True}]).changed
    assert (bench.workspace / "a").read_text() == "x = 3\nif y:\n    x = 2\nx = 3\n"


def test_edits_of_one_call_happen_all_or_none(bench: ToolBench) -> None:
    """A second edit that does not fit leaves the first one undone."""
    (bench.workspace / "a").write_text("one two")
    failed = bench.call(EDIT, path="a", edits=[{"old": "one", "new": "1"}, {"old": "three", "new": "3"}])
    assert "edit 2" in failed.text
    assert (bench.workspace / "a").read_text() == "one two"


def test_only_paths_of_the_step_are_changed(bench: ToolBench) -> None:
    """What a step may change is given by globs; other paths are named and stay."""
    bench.paths = ("docs/**", "*.md")
    assert bench.call(WRITE, path="docs/a/b.txt", content="x").status == "ok"
    refused = bench.call(WRITE, path="src/a.md", content="x")
    assert "'src/a.md' may not be changed here; this step may change docs/**, *.md" in refused.text
    patch = "--- /dev/null\n+++ b/src/a\n@@ -0,0 +1 @@\n+x\n"
    assert bench.call(PATCH, patch=patch).status == "error"
    (bench.workspace / "keep").touch()
    assert bench.call(REMOVE, path="keep").status == "error"
    assert sorted(path.name for path in bench.workspace.iterdir()) == ["docs", "keep"]


def test_remove_takes_a_file_or_a_link_and_nothing_else(bench: ToolBench) -> None:
    """A link goes and its target stays; a folder is refused."""
    target = bench.workspace / "target"
    target.write_text("kept")
    (bench.workspace / "link").symlink_to("target")
    (bench.workspace / "folder").mkdir()
    assert bench.call(REMOVE, path="link").changed
    assert target.read_text() == "kept"
    assert bench.call(REMOVE, path="folder").status == "error"
    assert "not in the workspace" in bench.call(REMOVE, path="link").text


def test_file_too_large_to_edit_is_told(bench: ToolBench) -> None:
    """A sparse file of gigabytes is not read into memory."""
    with (bench.workspace / "big").open("wb") as file:
        file.truncate(LARGEST_BYTES + 1)
    assert "larger than 8 MB" in bench.call(EDIT, path="big", edits=[{"old": "a", "new": "b"}]).text


PATCHED = """\
diff --git a/src/a.py b/src/a.py
--- a/src/a.py
+++ b/src/a.py
@@ -1,3 +1,4 @@
 one
-two
+2
+2.5
 three
--- /dev/null
+++ b/new.txt
@@ -0,0 +1,1 @@
+hello
--- a/old.txt
+++ /dev/null
@@ -1 +0,0 @@
-gone
"""


def start(bench: ToolBench, source: str = "one\ntwo\nthree\n") -> Path:
    (bench.workspace / "src").mkdir()
    (bench.workspace / "src/a.py").write_bytes(source.encode())
    (bench.workspace / "old.txt").write_text("gone\n")
    return bench.workspace / "src/a.py"


def test_patch_changes_makes_and_removes_files(bench: ToolBench) -> None:
    """One patch over three files; its targets are all of them."""
    file = start(bench)
    assert PATCH.target({"patch": PATCHED}) == "file:new.txt\nfile:old.txt\nfile:src/a.py"
    outcome = bench.call(PATCH, patch=PATCHED)
    assert (outcome.status, outcome.changed, outcome.summary) == ("ok", True, "patched 3 files")
    assert file.read_text() == "one\n2\n2.5\nthree\n"
    assert (bench.workspace / "new.txt").read_text() == "hello\n"
    assert not (bench.workspace / "old.txt").exists()


def test_patch_that_does_not_fit_writes_nothing(bench: ToolBench) -> None:
    """One wrong hunk in the last file leaves the first file as it was, and says what stands where."""
    file = start(bench)
    (bench.workspace / "old.txt").write_text("other\n")
    outcome = bench.call(PATCH, patch=PATCHED)
    assert "old.txt, hunk 1: the lines that should stay or go do not stand in the file" in outcome.text
    assert file.read_text() == "one\ntwo\nthree\n"
    assert not (bench.workspace / "new.txt").exists()


def test_hunk_is_found_where_it_stands_when_its_line_is_wrong(bench: ToolBench) -> None:
    """Wrong line numbers and counts do not matter when the lines stand in one place; in two they are told."""
    file = start(bench, "zero\n" * 5 + "one\ntwo\nthree\n")
    patch = "--- a/src/a.py\n+++ b/src/a.py\n@@ -90,9 +90,9 @@\n one\n-two\n+2\n"
    assert bench.call(PATCH, patch=patch).status == "ok"
    assert file.read_text().endswith("one\n2\nthree\n")
    twice = "--- a/src/a.py\n+++ b/src/a.py\n@@ -90,1 +90,1 @@\n-zero\n+0\n"
    assert "stand in 5 places (lines 1, 2, 3, 4, 5)" in bench.call(PATCH, patch=twice).text


def test_patch_keeps_line_ends(bench: ToolBench) -> None:
    """Lines of a CRLF file stay CRLF, new ones become CRLF, and a missing last line end stays missing."""
    file = start(bench, "one\r\ntwo\r\nthree")
    assert bench.call(PATCH, patch=PATCHED).status == "ok"
    assert file.read_bytes() == b"one\r\n2\r\n2.5\r\nthree"


def test_patch_says_when_the_last_line_end_comes_or_goes(bench: ToolBench) -> None:
    """`\\ No newline at end of file` is heard."""
    file = start(bench, "one")
    head = "--- a/src/a.py\n+++ b/src/a.py\n@@ -1 +1 @@\n"
    assert bench.call(PATCH, patch=head + "-one\n\\ No newline at end of file\n+two\n").status == "ok"
    assert file.read_bytes() == b"two\n"
    assert bench.call(PATCH, patch=head + "-two\n+three\n\\ No newline at end of file\n").status == "ok"
    assert file.read_bytes() == b"three"


@pytest.mark.parametrize(
    ("patch", "told"),
    [
        ("hello", "changes nothing; expected"),
        ("--- a/x\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n", "renames 'x'"),
        ("@@ -1 +1 @@\n-a\n+b\n", "before any"),
        ("--- a/x\n+++ b/x\n@@ wrong @@\n", "is no hunk"),
        ("--- a/x\n+++ b/x\n@@ -1 +1 @@\nno sign\n", "begins with none of"),
        ("--- a/../secret\n+++ b/../secret\n@@ -1 +1 @@\n-SECRET\n+x\n", "not a path in the workspace"),
        ("--- a/link\n+++ b/link\n@@ -1 +1 @@\n-SECRET\n+x\n", "is a link"),
        ("--- /dev/null\n+++ b/out/new\n@@ -0,0 +1 @@\n+x\n", "leads through a link"),
    ],
)
def test_patch_that_is_none_or_leaves_the_workspace_is_told(bench: ToolBench, patch: str, told: str) -> None:
    """The fault says which line is wrong and what was expected; links and `..` are not followed."""
    (bench.workspace / "link").symlink_to("../secret")
    (bench.workspace / "out").symlink_to("..")
    outcome = bench.call(PATCH, patch=patch)
    assert outcome.status == "error" and told in outcome.text
    assert (bench.workspace.parent / "secret").read_text() == "SECRET"
    assert not (bench.workspace.parent / "new").exists()


def test_what_became_of_a_call_is_told_by_looking(bench: ToolBench) -> None:
    """After a crash the file tells whether the call was made; where it could be both nothing is told."""
    file = bench.workspace / "a"
    file.write_text("one two")
    edit = {"path": "a", "edits": [{"old": "one", "new": "1"}]}
    before = EDIT.probe(edit, bench.context())
    assert before is not None and before.status == "error" and "Call again" in before.text
    EDIT.run(edit, bench.context())
    after = EDIT.probe(edit, bench.context())
    assert after is not None and (after.status, after.changed) == ("ok", True)
    assert EDIT.probe({"path": "a", "edits": [{"old": "1", "new": "1 1"}]}, bench.context()) is None
    written = WRITE.probe({"path": "a", "content": "1 two"}, bench.context())
    assert written is not None and written.status == "ok"
    gone = REMOVE.probe({"path": "b"}, bench.context())
    assert gone is not None and gone.status == "ok"
    assert [path.name for path in bench.workspace.iterdir()] == ["a"]
