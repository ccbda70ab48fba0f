"""Finding and reading a repository: all layouts of git, nothing executed, clear words for what is not there."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from perdure.errors import SetupError, UserError
from perdure.workspace.config import config_text, parse_list, read_config
from perdure.workspace.git import GitError, identity, open_repository
from perdure.workspace.git_process import run_plain
from perdure.workspace.refs import full_ref, is_object_id, is_ref, short_ref
from perdure.workspace.view import quote_alternate
from tests.support.world import WHO, World, make_world


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """A repository with a remote."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return make_world(tmp_path)


def test_repository_is_found_from_anywhere_inside(world: World) -> None:
    """From its root, a folder or a file in it, and through a link to it."""
    (world.folder / "link").symlink_to(world.repo / "src")
    for path in (world.repo, world.repo / "src", world.repo / "src/app.py", world.repo / ".git", world.folder / "link"):
        found = open_repository(path)
        assert (found.work_tree, found.git_dir) == (world.repo, world.repo / ".git")
        assert found.head_ref() == "refs/heads/main"
        assert found.resolve("HEAD") == found.resolve("refs/heads/main") == world.ref("HEAD")
        assert found.identity == str(world.repo / ".git")


def test_bare_repository_has_no_work_tree(world: World) -> None:
    """A bare repository is read; nothing in it can be dirty."""
    found = open_repository(world.remote)
    assert found.work_tree is None and found.place == world.remote
    assert found.is_dirty() == []
    assert found.slug == "remote"


def test_linked_work_trees_share_one_identity(world: World) -> None:
    """A linked work tree has its own HEAD and index, and the identity of its repository."""
    world.git("worktree", "add", "--quiet", "-b", "side", "../linked")
    linked = open_repository(world.folder / "linked")
    assert linked.identity == open_repository(world.repo).identity
    assert linked.head_ref() == "refs/heads/side"
    (linked.place / "VERSION").write_text("x")
    assert linked.is_dirty() == ["VERSION"]
    assert open_repository(world.repo).is_dirty() == []


def test_submodule_is_its_own_repository(world: World) -> None:
    """A submodule's folder, whose .git is a file, is read as the submodule."""
    args = ("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(world.remote), "sub")
    world.git(*args)
    found = open_repository(world.repo / "sub")
    assert found.work_tree == world.repo / "sub"
    assert found.identity == str(world.repo / ".git/modules/sub")
    assert found.is_dirty() == []


def test_no_repository_says_what_to_do(tmp_path: Path) -> None:
    """A folder without a repository, a path that is not there, a .git that leads nowhere: each says so."""
    with pytest.raises(UserError, match=r"not inside a git repository\. Run `git init`"):
        open_repository(tmp_path)
    with pytest.raises(UserError, match="does not exist"):
        open_repository(tmp_path / "absent")
    (tmp_path / ".git").write_text("gitdir: /nowhere\n")
    with pytest.raises(UserError, match="moved or pruned"):
        open_repository(tmp_path)
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(UserError):
        open_repository(tmp_path / "loop")


def test_kinds_of_repository_that_are_not_read_are_named(world: World) -> None:
    """Refs kept as reftable, and extensions that nobody here knows, are refused by name."""
    config = world.repo / ".git/config"
    original = config.read_text()
    for extension, expected in (("refStorage = reftable", "reftable"), ("quantum = true", r"extensions\.quantum")):
        config.write_text(f"{original}[extensions]\n\t{extension}\n")
        with pytest.raises(SetupError, match=expected):
            open_repository(world.repo)
    config.write_text(f"{original}[extensions]\n\trefStorage = files\n\tnoop = 1\n")
    open_repository(world.repo)


def test_detached_head_and_unborn_branch(world: World) -> None:
    """A detached HEAD is on no branch; a branch without commits resolves to nothing."""
    head = world.ref("HEAD")
    world.git("checkout", "--quiet", "--detach")
    assert open_repository(world.repo).head_ref() is None
    assert open_repository(world.repo).resolve("HEAD") == head
    world.git("checkout", "--quiet", "--orphan", "new")
    found = open_repository(world.repo)
    assert found.head_ref() == "refs/heads/new"
    assert found.resolve("HEAD") is None
    assert found.is_dirty() == ["CHANGELOG.md", "VERSION", "src/app.py"]


def test_refs_are_read_loose_and_packed(world: World) -> None:
    """A ref is found in its own file and among the packed ones; the own file goes first; absent is absent."""
    first = world.ref("HEAD")
    world.git("tag", "v1")
    world.git("pack-refs", "--all")
    assert open_repository(world.repo).resolve("refs/tags/v1") == first
    world.git("commit", "--quiet", "--allow-empty", "-m", "x")
    assert open_repository(world.repo).resolve("refs/heads/main") == world.ref("main") != first
    assert open_repository(world.repo).resolve("refs/tags/none") is None
    assert open_repository(world.repo).resolve("--all") is None


def test_dirty_names_tracked_changes_only(world: World) -> None:
    """Edited, staged, removed and mode-changed tracked files; untracked ones and mere new time stamps do not count."""
    found = open_repository(world.repo)
    (world.repo / "untracked").write_text("x")
    (world.repo / "VERSION").touch()
    assert found.is_dirty() == []
    (world.repo / "CHANGELOG.md").write_text("x")
    world.git("add", "CHANGELOG.md")
    (world.repo / "src/app.py").chmod(0o755)
    (world.repo / "VERSION").unlink()
    before = (world.repo / ".git/index").read_bytes()
    assert found.is_dirty() == ["CHANGELOG.md", "VERSION", "src/app.py"]
    assert (world.repo / ".git/index").read_bytes() == before, "looking does not write"


def test_dirty_follows_the_line_end_rules(world: World) -> None:
    """A checkout with CRLF by configuration or attributes is clean."""
    world.git("config", "core.autocrlf", "true")
    (world.repo / "VERSION").unlink()
    world.git("checkout", "--quiet", "--", "VERSION")
    assert (world.repo / "VERSION").read_bytes() == b"1.2.0\r\n"
    (world.repo / "VERSION").touch()
    assert open_repository(world.repo).is_dirty() == []


def test_reading_leaves_no_trace(world: World) -> None:
    """No file of the repository changes by being read, and no private folder stays behind."""
    import tempfile

    before = {path: path.lstat().st_mtime_ns for path in world.repo.rglob("*")}
    found = open_repository(world.repo)
    found.read("log", "-1")
    found.is_dirty()
    assert {path: path.lstat().st_mtime_ns for path in world.repo.rglob("*")} == before
    own = {path for path in Path(tempfile.gettempdir()).glob("perdure-view-*") if _belongs(path, world)}
    assert own == set()


def _belongs(view: Path, world: World) -> bool:
    """Whether a view looks at this test's repository (other tests run beside this one)."""
    try:
        return (view / "refs").readlink().is_relative_to(world.repo)
    except OSError:
        return False


def test_only_reading_commands_are_run(world: World) -> None:
    """A command that writes, or an option that makes a reading one write a file, is refused."""
    found = open_repository(world.repo)
    canary = world.folder / "canary"
    for args in (
        ("commit",),
        ("gc",),
        ("config", "x.y", "z"),
        (),
        ("log", f"--output={canary}"),
        ("log", "--outpu", str(canary)),
        ("-c", "alias.x=!touch canary", "x"),
    ):
        with pytest.raises(GitError):
            found.read(*args)
    assert not canary.exists()


def test_errors_say_what_git_said(world: World) -> None:
    """A failing command carries its code, git's words and where."""
    with pytest.raises(GitError, match=rf"git cat-file failed .*in {world.repo}") as caught:
        open_repository(world.repo).read("cat-file", "blob", "0" * 40)
    assert caught.value.code == 128 and "0000" in caught.value.stderr


def test_hanging_git_is_ended(tmp_path: Path) -> None:
    """A command that does not end within its limit is killed and named."""
    with pytest.raises(GitError, match="did not end within"):
        run_plain(["sleep", "60"], stdin=b"", env={"PATH": "/usr/bin:/bin"}, cwd=tmp_path, limit=timedelta(seconds=0.2))


def test_replacements_are_not_followed(world: World) -> None:
    """`refs/replace` cannot show a reviewer other content than the ids stand for."""
    head = world.ref("HEAD")
    fake = world.git("commit-tree", "HEAD^{tree}", "-m", "innocent")
    world.git("replace", head, fake)
    assert b"feat: begin" in open_repository(world.repo).read("log", "-1", head)


def test_shallow_and_partial_clones_are_known(world: World) -> None:
    """A cut history is seen as such and still read as far as it goes."""
    world.git("commit", "--quiet", "--allow-empty", "-m", "second")
    world.git("push", "--quiet", "origin", "main")
    shallow = world.folder / "shallow"
    world.git("clone", "--quiet", "--depth=1", f"file://{world.remote}", str(shallow), at=world.folder)
    found = open_repository(shallow)
    assert found.is_shallow and not open_repository(world.repo).is_shallow
    assert found.read("rev-list", "HEAD").split() == [world.ref("main").encode()]


def test_identity_comes_from_the_nearest_place(world: World) -> None:
    """The repository's configuration, then the user's (with what it includes), then what is given; else nobody."""
    assert identity(open_repository(world.repo)) == WHO
    world.git("config", "--remove-section", "user")
    assert identity(open_repository(world.repo)) is None
    given = {"GIT_AUTHOR_NAME": "Env", "GIT_AUTHOR_EMAIL": "env@example.org"}
    assert identity(open_repository(world.repo), given) == ("Env", "env@example.org")
    home = world.folder / "home"
    (home / "more").write_text("[user]\n\temail = mine@example.org\n")
    (home / ".gitconfig").write_text("[user]\n\tname = Mine <x>\n[include]\n\tpath = more\n")
    assert identity(open_repository(world.repo), given) == ("Mine x", "mine@example.org")
    (home / "more").write_text("[user]\n\temail = other@example.org\n")
    assert identity(open_repository(world.repo)) == ("Mine x", "other@example.org")


def test_slug_of_a_repository(world: World) -> None:
    """From the remote's URL, else from the folder."""
    for url, expected in (
        ("https://example.org/Team/Orders.git", "orders"),
        ("git@example.org:team/orders-api.git/", "orders-api"),
        ("/srv/git/orders", "orders"),
    ):
        world.git("config", "remote.origin.url", url)
        assert open_repository(world.repo).slug == expected
    world.git("remote", "remove", "origin")
    assert open_repository(world.repo).slug == "repo"


def test_configuration_is_plain_text(world: World) -> None:
    """Section and name in any case, the subsection exactly; the last value counts; worktree's own goes before."""
    with (world.repo / ".git/config").open("a") as config:
        config.write('[A]\n\tKey = 1\n\tkey = 2\n\tflag\n[b "Sub.Name"]\n\tK = "v\\nw"\n')
    found = open_repository(world.repo)
    assert (found.config("a.KEY"), found.config("a.flag")) == ("2", "true")
    assert found.config("b.Sub.Name.k") == "v\nw"
    assert found.config("b.sub.name.k") is None
    world.git("config", "extensions.worktreeConfig", "true")
    world.git("config", "--worktree", "a.key", "3")
    assert open_repository(world.repo).config("a.key") == "3"


def test_broken_configuration_is_named(world: World) -> None:
    """A configuration that git cannot parse is named with its path."""
    (world.repo / ".git/config").write_text("[core\n")
    with pytest.raises(GitError, match=r"\.git/config cannot be read"):
        open_repository(world.repo)


def test_written_configuration_is_read_back(tmp_path: Path) -> None:
    """Whatever a value holds, writing and reading gives it back, and it stays one value."""
    values = [("a.x.y", 'q"\\ \n[core]\n\tfsmonitor = z # ;'), ('s.we"ird]\\.k', "v"), ("plain.k", "")]
    (tmp_path / "config").write_text(config_text(values))
    assert read_config(tmp_path / "config") == {key: [value] for key, value in values}
    assert parse_list(b"a.b\nc\0a.flag\0") == {"a.b": ["c"], "a.flag": ["true"]}


def test_paths_of_borrowed_objects_stay_one_line() -> None:
    """A path with a line end, a quote or bytes that are no text cannot add a second object store."""
    quoted = quote_alternate(Path('/a"\n/b\\\udcff'))
    assert quoted == '"/a\\042\\012/b\\134\\377"'


def test_repository_at_a_strange_path_is_read(world: World) -> None:
    """Quotes, blanks, line ends and hash signs in the path do not matter."""
    strange = world.folder / '#a "b\n c'
    world.repo.rename(strange)
    found = open_repository(strange)
    assert found.resolve("refs/heads/main")
    assert b"feat: begin" in found.read("log", "-1")


def test_names_of_refs() -> None:
    """The rules of git-check-ref-format, and no name that could be an option."""
    assert is_ref("refs/heads/a/b-c_1.2@x+y") and is_ref("refs/tags/@scope/pkg@1.2.3")
    for name in (
        "HEAD",
        "refs/heads",
        "refs/heads/",
        "refs//x",
        "refs/heads/a.",
        "refs/heads/a\x7f",
        "refs/heads/é\udc80",
    ):
        assert not is_ref(name)
    assert is_object_id("a" * 40) and is_object_id("0" * 64)
    assert not is_object_id("A" * 40) and not is_object_id("a" * 41) and not is_object_id("a" * 40 + "\n")
    assert full_ref("heads", "main") == full_ref("heads", "refs/heads/main") == "refs/heads/main"
    assert short_ref("refs/tags/v1") == "v1"
    with pytest.raises(UserError, match="branch"):
        full_ref("heads", "refs/tags/x")
