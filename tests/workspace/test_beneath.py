"""Writing beneath a folder: in one step, only over what was read before, never through a link."""

from __future__ import annotations

from pathlib import Path

import pytest

from perdure.errors import UserError
from perdure.workspace.beneath import read_entry, remove_entry, write_entry


def test_what_changed_since_it_was_read_is_left_alone(tmp_path: Path) -> None:
    """A file that somebody changed, made or removed after it was read is neither replaced nor removed."""
    path = tmp_path / "file"
    path.write_text("old")
    seen = read_entry(tmp_path, b"file")
    assert seen is not None
    path.write_text("somebody else's")
    assert not write_entry(tmp_path, b"file", "100644", b"new", expected=seen)
    assert not remove_entry(tmp_path, b"file", expected=seen)
    assert not write_entry(tmp_path, b"file", "100644", b"new", expected=None)
    assert [(found.name, found.read_text()) for found in tmp_path.iterdir()] == [("file", "somebody else's")]


def test_what_is_as_it_was_read_is_replaced(tmp_path: Path) -> None:
    """The file that was read is replaced whole, with the modes it had, and removed with the folders it leaves empty."""
    path = tmp_path / "a" / "file"
    assert write_entry(tmp_path, b"a/file", "100644", b"one", expected=None)
    path.chmod(0o640)
    assert write_entry(tmp_path, b"a/file", "100755", b"two", expected=read_entry(tmp_path, b"a/file"))
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"two", 0o750)
    seen = read_entry(tmp_path, b"a/file")
    assert seen is not None and remove_entry(tmp_path, b"a/file", expected=seen)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", [b"../out", b"a/../../out", b"/out", b"", b".git/config", b"a/.GIT/hooks/x", b"a\0b"])
def test_path_that_leaves_or_steers_git_is_refused(tmp_path: Path, path: bytes) -> None:
    """No path leads out of the folder or into a git directory."""
    with pytest.raises(UserError):
        write_entry(tmp_path, path, "100644", b"x", expected=None)


def test_link_on_the_way_is_refused(tmp_path: Path) -> None:
    """A folder that is a link leads nowhere, for reading, writing and removing."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file").write_text("kept")
    root = tmp_path / "root"
    root.mkdir()
    (root / "link").symlink_to(tmp_path / "outside")
    for attempt in (
        lambda: read_entry(root, b"link/file"),
        lambda: write_entry(root, b"link/file", "100644", b"new", expected=None),
    ):
        with pytest.raises(UserError, match="leads through a link"):
            attempt()
    assert (tmp_path / "outside" / "file").read_text() == "kept"
