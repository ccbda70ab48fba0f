"""Looking beneath a folder: no link followed, bounded, and telling whether anything was changed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from perdure.errors import UserError
from perdure.workspace.reading import DEEPEST, changed_paths, find_entry, open_file, stamp_all, walk


def test_walk_gives_folders_before_their_content_by_name(tmp_path: Path) -> None:
    """Files, links and folders with their sizes; git directories are left out."""
    for name in ("b/x", "a", ".git/config", "c/.GIT/x", "b/y/z"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("123")
    (tmp_path / "d").symlink_to("/etc")
    found = [(one.path.decode(), one.kind) for one in walk(tmp_path, most=100)]
    folders = [("b", "folder"), ("b/x", "file"), ("b/y", "folder"), ("b/y/z", "file"), ("c", "folder")]
    assert found == [("a", "file"), *folders, ("d", "link")]
    assert [one.path for one in walk(tmp_path, b"b/y/", most=100)] == [b"b/y/z"]


def test_walk_is_bounded(tmp_path: Path) -> None:
    """After the most that may be looked at one entry says so; what lies too deep is left; no descriptor stays open."""
    for number in range(20):
        (tmp_path / f"{number:02}").touch()
    found = list(walk(tmp_path, most=5))
    assert [one.kind for one in found] == ["file"] * 5 + ["cut"]
    deep = tmp_path / "z"
    for _ in range(DEEPEST + 10):
        deep = deep / "z"
    deep.mkdir(parents=True)
    before = open_descriptors()
    assert max(one.path.count(b"/") for one in walk(tmp_path, most=10_000)) == DEEPEST
    assert open_descriptors() == before


def open_descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_names_that_are_no_text_are_found(tmp_path: Path) -> None:
    """Paths are bytes."""
    name = b"\xff\xfe\n"
    (Path(os.fsdecode(bytes(tmp_path) + b"/" + name))).write_bytes(b"x")
    assert [one.path for one in walk(tmp_path, most=10)] == [name]
    with open_file(tmp_path, name) as descriptor:
        assert os.read(descriptor, 10) == b"x"


def test_entry_is_found_without_opening_it(tmp_path: Path) -> None:
    """A pipe and a link are told by their kind; nothing there is None; a link on the way is refused."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "out").symlink_to("/etc")
    kinds = {name: find_entry(tmp_path, name) for name in (b"pipe", b"out", b"none", b"none/deep")}
    assert {name: one and one.kind for name, one in kinds.items()} == {
        b"pipe": "other",
        b"out": "link",
        b"none": None,
        b"none/deep": None,
    }
    for path in (b"out/passwd", b"../x", b"pipe/x"):
        with pytest.raises(UserError):
            find_entry(tmp_path, path)


def test_every_change_is_told_by_stamps(tmp_path: Path) -> None:
    """Made, removed, rewritten with the same size, moved, another mode, a link's other target."""
    for name in ("same", "gone", "rewritten", "moved", "mode"):
        (tmp_path / name).write_text("12345")
    (tmp_path / "link").symlink_to("same")
    before = stamp_all(tmp_path)
    assert before is not None and changed_paths(before, stamp_all(tmp_path) or {}) == []
    (tmp_path / "made").touch()
    (tmp_path / "gone").unlink()
    (tmp_path / "rewritten").write_text("54321")
    (tmp_path / "moved").rename(tmp_path / "here")
    (tmp_path / "mode").chmod(0o755)
    (tmp_path / "link").unlink()
    (tmp_path / "link").symlink_to("mode")
    changed = changed_paths(before, stamp_all(tmp_path) or {})
    assert changed == [b"gone", b"here", b"link", b"made", b"mode", b"moved", b"rewritten"]
    assert stamp_all(tmp_path, most=2) is None
