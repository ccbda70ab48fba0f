"""files.write: a file beneath its root, no link followed, never over a foreign change."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from perdure.effects.base import Found
from perdure.errors import EffectFailed, UserError
from tests.support.world import Planned, World


@pytest.fixture
def root(world: World) -> Path:
    """A folder to write beneath."""
    folder = world.folder / "root"
    (folder / "etc").mkdir(parents=True)
    (folder / "etc/app.conf").write_text("level=1\n")
    (folder / "etc/app.conf").chmod(0o600)
    return folder


def write(world: World, root: Path, path: str = "etc/app.conf", content: Any = "level=2\n", **more: Any) -> Planned:
    return world.plan("files.write", {"root": str(root), "path": path, "content": content, **more})


def test_file_is_replaced_once_and_taken_back(world: World, root: Path) -> None:
    """The new content is there with the file's permissions; the way back restores the old bytes."""
    planned = write(world, root)
    assert planned.draft.summary == "etc/app.conf +1 −1"
    planned.apply()
    path = root / "etc/app.conf"
    assert path.read_text() == "level=2\n"
    assert path.stat().st_mode & 0o777 == 0o600
    planned.inverse.apply()
    assert path.read_text() == "level=1\n"
    assert [entry.name for entry in path.parent.iterdir()] == ["app.conf"], "no temporary file is left"


def test_new_file_is_made_with_its_folders_and_taken_back(world: World, root: Path) -> None:
    """A file that was not there is made, executable if asked; the way back removes it and folders left empty."""
    planned = write(world, root, "a/b/run.sh", "#!/bin/sh\n", executable=True)
    planned.apply()
    assert os.access(root / "a/b/run.sh", os.X_OK)
    planned.inverse.apply()
    assert not (root / "a").exists()
    assert (root / "etc").exists()


def test_file_is_removed_and_put_back(world: World, root: Path) -> None:
    """Content null removes; the way back writes the old bytes again."""
    planned = write(world, root, content=None)
    assert planned.draft.summary == "etc/app.conf removed"
    planned.apply()
    assert not (root / "etc/app.conf").exists()
    planned.inverse.apply()
    assert (root / "etc/app.conf").read_text() == "level=1\n"


def test_second_do_changes_nothing(world: World, root: Path) -> None:
    """Done is seen as done; doing it again is refused because the old content is gone."""
    planned = write(world, root)
    planned.apply()
    with pytest.raises(EffectFailed):
        planned.do()
    assert planned.found() is Found.done


def test_foreign_change_is_left_alone_in_both_directions(world: World, root: Path) -> None:
    """A file that somebody else changed is foreign: neither written nor taken back."""
    planned = write(world, root)
    (root / "etc/app.conf").write_text("level=9\n")
    for direction in (planned, planned.inverse):
        assert direction.found() is Found.foreign
        assert direction.check() != []
        with pytest.raises(EffectFailed):
            direction.do()
    assert (root / "etc/app.conf").read_text() == "level=9\n"


def test_left_over_of_a_killed_attempt_does_not_matter(world: World, root: Path) -> None:
    """A half-written temporary file of an attempt that was killed is replaced, and the file is whole at any time."""
    planned = write(world, root)
    (root / "etc/.perdure-app.conf").write_text("lev")
    planned.apply()
    assert not (root / "etc/.perdure-app.conf").exists()


@pytest.mark.parametrize("where", ["folder", "file", "root", "spare"])
def test_links_planted_after_the_plan_lead_nowhere(world: World, root: Path, where: str) -> None:
    """A link put into the way after the review is refused; nothing outside of the root changes."""
    outside = world.folder / "outside"
    outside.mkdir()
    (outside / "app.conf").write_text("level=1\n")
    planned = write(world, root)
    if where == "root":
        root.rename(world.folder / "moved")
        root.symlink_to(world.folder / "moved")
    elif where == "folder":
        (root / "etc").rename(root / "old")
        (root / "etc").symlink_to(outside)
    elif where == "file":
        (root / "etc/app.conf").unlink()
        (root / "etc/app.conf").symlink_to(outside / "app.conf")
    else:
        (root / "etc/.perdure-app.conf").symlink_to(outside / "app.conf")
    if where == "spare":
        planned.apply()
    else:
        assert planned.found() is Found.foreign
        with pytest.raises(EffectFailed):
            planned.do()
    assert (outside / "app.conf").read_text() == "level=1\n"
    assert [entry.name for entry in outside.iterdir()] == ["app.conf"]


@pytest.mark.parametrize(
    "path", ["../x", "/etc/x", "a/../../x", ".git/hooks/pre-commit", "a/.GIT/config", "", "a//b", "."]
)
def test_paths_that_leave_are_refused(world: World, root: Path, path: str) -> None:
    """A path that leaves the root, or leads into a git directory, is refused when planned."""
    with pytest.raises(UserError):
        write(world, root, path)


def test_what_is_no_file_is_refused(world: World, root: Path) -> None:
    """Links, folders and pipes are not replaced; a root must be an absolute folder; content must be text."""
    (root / "link").symlink_to("etc/app.conf")
    os.mkfifo(root / "pipe")
    for path in ("link", "etc", "pipe"):
        with pytest.raises(UserError, match="regular files only"):
            write(world, root, path)
    with pytest.raises(UserError, match="absolute path"):
        world.plan("files.write", {"root": "relative", "path": "x", "content": ""})
    with pytest.raises(UserError, match="expected a text"):
        write(world, root, content=3)


def test_file_that_cannot_be_read_is_unknown_not_absent(world: World, root: Path) -> None:
    """A probe that meets an error of the disk says unknown."""
    planned = write(world, root)
    root.rename(world.folder / "gone")
    assert planned.found() is Found.unknown
