"""Which packages a commit changes, however they lie: found by comparing trees no deeper than packages are."""

import os
from pathlib import Path

from perdure.rules.release.packages.changed import find_changed_packages
from perdure.workspace.git import open_repository
from tests.rules.kit import make_repository, save
from tests.support.repositories import git

FOLDERS = ("libs/a", "libs/a/inner/b", "top")


def changed(path: Path, name: str, *folders: str) -> set[str]:
    """The folders of packages that a commit changes."""
    return find_changed_packages(open_repository(path), [name], folders).get(name, set())


def test_a_change_counts_for_the_deepest_package_that_holds_it(tmp_path: Path) -> None:
    """A package within another is its own; what no package holds is the root's, where the root is one."""
    path = make_repository(tmp_path)
    first = save(path, "1", {"libs/a/x/y/z": "1", "libs/a/inner/b/x": "1", "libs/a/inner/x": "1", "top/x": "1"})
    assert changed(path, first, *FOLDERS) == set(FOLDERS)
    outer = save(path, "2", {"libs/a/inner/x": "2"})
    assert changed(path, outer, *FOLDERS) == {"libs/a"}
    inner = save(path, "3", {"libs/a/inner/b/deep/x": "3"})
    assert changed(path, inner, *FOLDERS) == {"libs/a/inner/b"}
    beside = save(path, "4", {"libs/x": "4", "other/x": "4"})
    assert changed(path, beside, *FOLDERS) == set()
    assert changed(path, beside, *FOLDERS, "") == {""}
    assert changed(path, save(path, "nothing"), *FOLDERS, "") == set()


def test_a_package_that_goes_or_becomes_a_file_has_changed(tmp_path: Path) -> None:
    """A folder removed is a change of each package in it; a file in its place is one of what holds the folder too."""
    path = make_repository(tmp_path)
    save(path, "1", {"libs/a/x": "1", "libs/a/inner/b/x": "1", "top/x": "1"})
    git(path, "rm", "-rq", "libs")
    assert changed(path, save(path, "2", {"libs": "a file"}), *FOLDERS, "") == {"libs/a", "libs/a/inner/b", ""}


def test_names_that_are_no_text_and_merges_are_read(tmp_path: Path) -> None:
    """Bytes that are no UTF-8, line ends and colons in names disturb nothing; a merge changes nothing itself."""
    path = make_repository(tmp_path)
    save(path, "1", {"top/x": "1"})
    git(path, "switch", "-qc", "side")
    for name in (b"\xff/\n:x", b":y\n", b"libs/a/\xfe"):
        target = path / "top" / os.fsdecode(name)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("1")
    side = save(path, "2")
    git(path, "switch", "-q", "main")
    main = save(path, "3", {"libs/a/x": "1"})
    git(path, "merge", "-q", "--no-ff", "-m", "m", "side")
    merge = git(path, "rev-parse", "HEAD")
    assert changed(path, side, *FOLDERS, "") == {"top"}
    found = find_changed_packages(open_repository(path), [merge, side, main], FOLDERS)
    assert found == {side: {"top"}, main: {"libs/a"}}
