"""Checkpoints: everything in a folder is kept, nothing in it is touched, and every one can be gone back to."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from perdure.errors import StageFailed
from perdure.workspace.checkpoints import Checkpoints, Snapshot, open_checkpoints
from perdure.workspace.copies import open_draft
from perdure.workspace.git import Repository, open_repository
from tests.support.repositories import git
from tests.support.world import AT, World, make_world


@dataclass
class Place:
    """An agent's workspace on a base commit, and its checkpoints."""

    world: World
    repository: Repository
    base: str
    root: Path
    points: Checkpoints

    def take(self, parent: str = "") -> Snapshot | None:
        return self.points.take(self.root, parent or self.base, note="a call", at=AT)

    def must_take(self, parent: str = "") -> Snapshot:
        found = self.take(parent)
        assert found is not None
        return found


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A workspace with nothing changed in it yet."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    world = make_world(tmp_path)
    repository, base = open_repository(world.repo), world.ref("HEAD")
    folder = tmp_path / "work"
    folder.mkdir()
    open_draft(repository, base, folder)
    return Place(world, repository, base, folder / "tree", points_at(repository, folder))


def points_at(repository: Repository, folder: Path, name: str = "checkpoints") -> Checkpoints:
    return open_checkpoints(
        folder / name,
        object_format=repository.object_format,
        index=folder / "git" / "index",
        borrow=[repository.common_dir / "objects"],
    )


def files_of(root: Path) -> dict[str, bytes]:
    """Everything beneath a folder: type, permission to run, bytes."""
    found = {}
    for path in sorted(root.rglob("*")):
        name = os.fsencode(path.relative_to(root)).decode("utf-8", "backslashreplace")
        if path.is_symlink():
            found[name] = b"link " + os.fsencode(path.readlink())
        elif path.is_file() and os.access(path, os.R_OK):
            found[name] = (b"x " if os.access(path, os.X_OK) else b"- ") + path.read_bytes()
    return found


def _ignored(root: Path) -> None:
    (root / ".gitignore").write_text("*.log\nbuild/\n")
    (root / "secret.log").write_text("token")
    (root / "build").mkdir()
    (root / "build" / "out").write_bytes(b"\0\1")


def _attributes(root: Path) -> None:
    (root / ".gitattributes").write_text("*.txt text eol=lf filter=evil\n")
    (root / "dos.txt").write_bytes(b"a\r\nb\r\n")


def _nested(root: Path) -> None:
    inner = root / "vendor" / "inner"
    inner.mkdir(parents=True)
    git(inner, "init", "-q")
    (inner / "code").write_text("1")
    (inner / "deep").mkdir()
    (inner / "deep" / "more").write_text("2")


def _nested_with_commit(root: Path) -> None:
    _nested(root)
    git(root / "vendor" / "inner", "add", "-A")
    git(root / "vendor" / "inner", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "inner")


def _own_repository(root: Path) -> None:
    git(root, "init", "-q")
    (root / "VERSION").write_text("9\n")


def _names(root: Path) -> None:
    (root / "Readme").write_text("case")
    (root / "ünïcödé").write_text("u")
    (root / ":(exclude)magic").write_text("m")
    (root / "*").write_text("star")
    (root / "new\nline").write_text("n")
    Path(os.fsdecode(os.fsencode(root) + b"/caf\xe9")).write_bytes(b"latin")
    deep = root / "/".join(["long" * 20] * 8)
    deep.mkdir(parents=True)
    (deep / "file").write_text("deep")


def _kinds(root: Path) -> None:
    (root / "VERSION").unlink()
    (root / "VERSION").mkdir()
    (root / "VERSION" / "inside").write_text("a file became a folder")
    (root / "link").symlink_to("/etc/passwd")
    (root / "run.sh").write_text("#!/bin/sh\n")
    (root / "run.sh").chmod(0o755)


def _specials(root: Path) -> None:
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as one, contextlib.chdir(root):  # a socket's whole path may be too long
        one.bind("sock")
    (root / "plain").write_text("p")


def _removed(root: Path) -> None:
    (root / "VERSION").unlink()


AWKWARD: dict[str, Callable[[Path], None]] = {
    "ignored files": _ignored,
    "attributes": _attributes,
    "unborn repository inside": _nested,
    "repository inside": _nested_with_commit,
    "a repository of its own": _own_repository,
    "names": _names,
    "kinds": _kinds,
    "pipes and sockets": _specials,
    "removed": _removed,
}


@pytest.mark.parametrize("how", AWKWARD)
def test_everything_is_kept_and_gone_back_to(place: Place, how: str) -> None:
    """Whatever a call left, the next checkpoint holds it; back and forth the files are the same, byte for byte."""
    before = files_of(place.root)
    AWKWARD[how](place.root)
    made = place.must_take()
    after = files_of(place.root)
    outside = {name: data for name, data in after.items() if ".git/" in name}
    assert place.points.restore(place.root, made.commit, place.base) == []
    assert files_of(place.root) == before | outside
    assert place.points.restore(place.root, place.base, made.commit) == []
    assert files_of(place.root) == after


def test_nothing_of_the_user_is_touched(place: Place) -> None:
    """Refs, index, stash, hooks and objects of the repository are byte for byte what they were."""
    own = {path: path.read_bytes() for path in (place.world.repo / ".git").rglob("*") if path.is_file()}
    _ignored(place.root)
    made = place.must_take()
    place.points.restore(place.root, made.commit, place.base)
    assert {path: path.read_bytes() for path in (place.world.repo / ".git").rglob("*") if path.is_file()} == own


def test_no_program_of_the_workspace_runs(place: Place, tmp_path: Path) -> None:
    """Filters, hooks and fsmonitor that a command planted in the workspace are not run by a checkpoint."""
    witness = tmp_path / "ran"
    git(place.root, "init", "-q")
    evil = f"sh -c 'echo ran >> {witness}; cat'"
    for key in ("filter.evil.clean", "filter.evil.smudge", "core.fsmonitor"):
        git(place.root, "config", key, evil)
    hook = place.root / ".git" / "hooks" / "reference-transaction"
    hook.write_text(f"#!/bin/sh\necho ran >> {witness}\n")
    hook.chmod(0o755)
    _attributes(place.root)
    made = place.must_take()
    place.points.restore(place.root, made.commit, place.base)
    assert not witness.exists()


def test_nothing_changed_is_no_checkpoint(place: Place) -> None:
    """A call that wrote nothing new makes none; the same files again make none either."""
    assert place.take() is None
    (place.root / "VERSION").write_text("2\n")
    made = place.must_take()
    assert place.take(made.commit) is None


def test_checkpoint_travels_with_its_pack(place: Place, tmp_path: Path) -> None:
    """From the base's objects and the packs alone every checkpoint can be read somewhere else."""
    (place.root / "one").write_text("1")
    first = place.must_take()
    (place.root / "one").write_text("2")
    second = place.must_take(first.commit)
    elsewhere = points_at(place.repository, tmp_path / "work", "elsewhere")
    for made in (first, second):
        elsewhere.add(made.pack)
    (change,) = elsewhere.changes(first.commit, second.commit)
    assert elsewhere.contents([change]) == {change.old_id: b"1", change.new_id: b"2"}


def test_newer_work_is_not_lost_by_going_back(place: Place) -> None:
    """A path that was changed since the checkpoint is left alone and named."""
    (place.root / "one").write_text("1")
    (place.root / "two").write_text("1")
    made = place.must_take()
    (place.root / "one").write_text("mine")
    assert place.points.restore(place.root, made.commit, place.base) == [b"one"]
    assert (place.root / "one").read_text() == "mine" and not (place.root / "two").exists()


def test_links_are_not_followed_on_the_way_back(place: Place, tmp_path: Path) -> None:
    """A folder that became a link since is not written through."""
    (place.root / "folder").mkdir()
    (place.root / "folder" / "file").write_text("1")
    made = place.must_take()
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("1")
    (place.root / "folder" / "file").unlink()
    (place.root / "folder").rmdir()
    (place.root / "folder").symlink_to(outside)
    left = place.points.restore(place.root, made.commit, place.base)
    assert left == [b"folder/file"] and (outside / "file").read_text() == "1"


def test_unreadable_file_is_named(place: Place) -> None:
    """What cannot be kept is said: nobody believes that it could be gone back to."""
    os.mkfifo(place.root / "pipe")
    (place.root / "file").write_text("1")
    assert place.must_take().left_out == (b"pipe",)


def test_workspace_that_is_gone_says_so(place: Place) -> None:
    """Without its folder there is nothing to keep."""
    subprocess.run(["rm", "-r", str(place.root)], check=True)
    with pytest.raises(StageFailed, match="is gone"):
        place.take()


def test_lock_of_a_dead_worker_is_no_obstacle(place: Place, tmp_path: Path) -> None:
    """A worker that died in the middle of a checkpoint left git's lock; the next attempt goes on."""
    (tmp_path / "work" / "checkpoints" / "index.lock").write_text("")
    (place.root / "file").write_text("1")
    points = points_at(place.repository, tmp_path / "work")
    assert points.take(place.root, place.base, note="again", at=AT) is not None
