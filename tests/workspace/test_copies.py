"""Drafts and exports: exactly the content, raw, in private."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import pytest

from perdure.contracts.base import BlobRef, path_text
from perdure.errors import StageFailed, UserError
from perdure.workspace.copies import DraftCopy, export_tree, open_draft
from perdure.workspace.git import open_repository
from perdure.workspace.sandbox import Sandbox
from tests.support.world import AT, FILES, WHO, World, make_world


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """A repository with a remote."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return make_world(tmp_path)


def draft(world: World, name: str = "draft") -> DraftCopy:
    """A draft on HEAD."""
    folder = world.folder / name
    folder.mkdir()
    return open_draft(open_repository(world.repo), world.ref("HEAD"), folder)


def test_draft_reads_and_writes_in_private(world: World) -> None:
    """The draft holds the base's files; the checkout and the repository's objects stay as they are."""
    objects = sorted((world.repo / ".git").rglob("*"))
    copy = draft(world)
    assert copy.read("VERSION") == b"1.2.0\n" and copy.read("none") is None and copy.read("no/file") is None
    copy.write("VERSION", b"1.3.0\n")
    copy.write("a/b/new", b"n")
    copy.commit("m", WHO, AT, world.blobs)
    assert (world.repo / "VERSION").read_text() == "1.2.0\n"
    assert sorted((world.repo / ".git").rglob("*")) == objects


def test_draft_starts_from_the_base_not_from_the_checkout(world: World) -> None:
    """What somebody edits in the checkout does not enter the draft."""
    (world.repo / "VERSION").write_text("mine\n")
    assert draft(world).read("VERSION") == b"1.2.0\n"


def test_changes_name_old_and_new_content(world: World) -> None:
    """Changed, new, removed, executable, link and unusual names, sorted by path; contents lie in the blob store."""
    (world.repo / "keep.sh").write_text("x")
    (world.repo / "keep.sh").chmod(0o755)
    world.git("add", "--all")
    world.git("commit", "--quiet", "-m", "x")
    copy = draft(world)
    copy.write("VERSION", b"1.3.0\n")
    copy.write("keep.sh", b"y")
    copy.write("CHANGELOG.md", FILES["CHANGELOG.md"].encode())
    copy.write(path_text(b"odd \xff\n"), b"o")
    (copy.root / "src/app.py").unlink()
    (copy.root / "link").symlink_to("VERSION")
    changes = {change.path: change for change in copy.changes(world.blobs)}
    assert list(changes) == sorted(changes, key=lambda path: path.encode()) or len(changes) == 5
    assert set(changes) == {"VERSION", "keep.sh", path_text(b"odd \xff\n"), "src/app.py", "link"}
    version = changes["VERSION"]
    assert version.old and version.new
    assert (world.blobs.get(version.old), world.blobs.get(version.new)) == (b"1.2.0\n", b"1.3.0\n")
    assert (changes["keep.sh"].old_mode, changes["keep.sh"].new_mode) == ("100755", "100755")
    removed = changes["src/app.py"]
    assert removed.new is None and removed.new_mode == "" and removed.old_mode == "100644"
    link = changes["link"]
    assert link.old is None and link.new and link.new_mode == "120000" and world.blobs.get(link.new) == b"VERSION"


def test_ignored_files_stay_out_unless_written_on_purpose(world: World) -> None:
    """What the base's .gitignore leaves out does not enter the commit by accident, but what a rule writes does."""
    (world.repo / ".gitignore").write_text("*.log\n")
    world.git("add", "--all")
    world.git("commit", "--quiet", "-m", "x")
    copy = draft(world)
    (copy.root / "noise.log").write_text("x")
    copy.write("wanted.log", b"y")
    assert [change.path for change in copy.changes(world.blobs)] == ["wanted.log"]


def test_commit_has_fixed_ids_and_a_whole_pack(world: World) -> None:
    """The same content, message, person and time give the same ids; the pack alone holds every new object."""
    values = []
    for name in ("one", "two"):
        copy = draft(world, name)
        copy.write("VERSION", b"1.3.0\n")
        copy.write("a/b/new", b"n")
        values.append(copy.commit("chore(release): 1.3.0", WHO, AT, world.blobs))
    assert values[0] == values[1]
    value = values[0]
    assert value["base"] == world.ref("HEAD") and value["repository"] == str(world.repo)
    assert value["identity"] == {"name": WHO[0], "email": WHO[1]}
    pack = world.folder / "pack"
    pack.write_bytes(world.blobs.get(BlobRef.model_validate(value["pack"])))
    world.git("clone", "--quiet", "--bare", str(world.remote), str(world.folder / "other.git"), at=world.folder)
    with pack.open("rb") as file:
        import subprocess

        subprocess.run(["git", "unpack-objects", "-q"], cwd=world.folder / "other.git", stdin=file, check=True)
    shown = world.git("log", "-1", "--format=%an <%ae> %cn %at %ct|%B", value["commit"], at=world.folder / "other.git")
    when = int(AT.timestamp())
    assert shown == f"{WHO[0]} <{WHO[1]}> {WHO[0]} {when} {when}|chore(release): 1.3.0"
    assert world.git("fsck", "--strict", value["commit"], at=world.folder / "other.git") == ""


def test_file_becomes_folder_and_back(world: World) -> None:
    """A path may change from file to folder in one draft."""
    copy = draft(world)
    (copy.root / "VERSION").unlink()
    copy.write("VERSION/major", b"1")
    value = copy.commit("m", WHO, AT, world.blobs)
    assert [change["path"] for change in value["changes"]] == ["VERSION", "VERSION/major"]


def test_bytes_go_in_and_out_raw(world: World) -> None:
    """No attribute changes a byte: CRLF, $Id$ and encodings stay as they are in both directions."""
    attributes = "* text eol=crlf ident\n*.u working-tree-encoding=UTF-16\n"
    (world.repo / ".gitattributes").write_text(attributes)
    (world.repo / "f").write_bytes(b"$Id$\nlf\n")
    world.git("-c", "core.autocrlf=false", "add", "--all")
    world.git("commit", "--quiet", "-m", "x")
    copy = draft(world)
    assert copy.read("f") == b"$Id$\nlf\n"
    copy.write("f", b"$Id: x $\r\nmixed\n")
    copy.write("t.u", b"\xff\xfe")
    value = copy.commit("m", WHO, AT, world.blobs)
    folder = world.folder / "export" / "tree"
    folder.parent.mkdir()
    pack = BlobRef.model_validate(value["pack"])
    export_tree(open_repository(world.repo), value["commit"], pack, world.blobs, folder)
    assert (folder / "f").read_bytes() == b"$Id: x $\r\nmixed\n"
    assert (folder / "t.u").read_bytes() == b"\xff\xfe"


@pytest.mark.parametrize("message", ["", " \n", "a\0b"])
def test_empty_message_is_refused(world: World, message: str) -> None:
    """A commit has a message."""
    with pytest.raises(UserError, match="commit message"):
        draft(world).commit(message, WHO, AT, world.blobs)


def test_what_cannot_be_committed_is_named(world: World) -> None:
    """A pipe in the draft is not committed in silence."""
    copy = draft(world)
    (copy.root / "VERSION").unlink()
    os.mkfifo(copy.root / "VERSION")
    with pytest.raises(StageFailed, match="VERSION is a folder, pipe or device"):
        copy.changes(world.blobs)


def test_export_is_the_commit_and_nothing_else(world: World) -> None:
    """A checkout of the base or of the draft, with no git directory; removing it leaves nothing behind."""
    value = world.draft({"VERSION": "1.3.0\n", "new": "n", "src/app.py": None})
    pack = BlobRef.model_validate(value["pack"])
    for commit, expected in (
        (value["base"], FILES),
        (value["commit"], {"VERSION": "1.3.0\n", "CHANGELOG.md": FILES["CHANGELOG.md"], "new": "n"}),
    ):
        folder = world.folder / commit[:7] / "tree"
        folder.parent.mkdir()
        export_tree(open_repository(world.repo), commit, pack, world.blobs, folder)
        found = {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}
        assert found == expected
        assert [path.name for path in folder.parent.iterdir()] == ["tree"]


def test_export_with_git_stands_alone(world: World) -> None:
    """Test commands that ask git find a clean repository at the commit, in the sandbox, without borrowing objects."""
    value = world.draft({"VERSION": "1.3.0\n"})
    folder = world.folder / "check" / "tree"
    folder.parent.mkdir()
    pack = BlobRef.model_validate(value["pack"])
    export_tree(open_repository(world.repo), value["commit"], pack, world.blobs, folder, with_git=True)
    script = "git status --porcelain && git rev-parse HEAD && git ls-files && git fsck && git describe --always"
    done = Sandbox.find().run(["sh", "-ec", script], workspace=folder, limit=timedelta(seconds=30))
    assert done.code == 0, done.output
    assert done.stdout.decode().split() == [value["commit"], *sorted(FILES), value["commit"][:7]]


def test_draft_of_a_linked_shallow_bare_or_submodule_repository(world: World) -> None:
    """Every layout of a repository can be drafted from."""
    world.git("worktree", "add", "--quiet", "-b", "side", "../linked")
    shallow = world.folder / "shallow"
    world.git("clone", "--quiet", "--depth=1", f"file://{world.remote}", str(shallow), at=world.folder)
    for number, path in enumerate((world.folder / "linked", shallow, world.remote)):
        repository = open_repository(path)
        folder = world.folder / f"draft-{number}"
        folder.mkdir()
        base = repository.resolve("HEAD")
        assert base
        copy = open_draft(repository, base, folder)
        copy.write("VERSION", b"x")
        assert copy.commit("m", WHO, AT, world.blobs)["repository"] == str(path)
