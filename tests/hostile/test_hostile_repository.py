"""A repository that tries everything: no program that it brings runs outside of the sandbox, no link leads outside.

Every way git knows to run a program on a repository's word is set to leave a canary; then all that Perdure does with a
repository is done. A control test shows that ordinary git does run what is planted: the canaries prove something.
"""

from __future__ import annotations

import subprocess
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest

from perdure.contracts.base import BlobRef
from perdure.effects.base import Found
from perdure.errors import PerdureError, StageFailed, UserError
from perdure.store.blobs import BlobStore
from perdure.workspace.copies import export_tree, open_draft
from perdure.workspace.git import identity, open_repository
from perdure.workspace.remotes import find_remote, read_remote_refs
from perdure.workspace.sandbox import Sandbox
from tests.support.world import WHO, World, make_world

HOOKS = (
    *("applypatch-msg", "pre-applypatch", "post-applypatch", "pre-commit", "pre-merge-commit", "prepare-commit-msg"),
    *("commit-msg", "post-commit", "pre-rebase", "post-checkout", "post-merge", "pre-push", "reference-transaction"),
    *("pre-auto-gc", "post-rewrite", "sendemail-validate", "fsmonitor-watchman", "post-index-change"),
    *("pre-receive", "update", "post-receive", "post-update", "push-to-checkout", "proc-receive"),
)

CONFIG = """
[core]
    fsmonitor = {trap} fsmonitor
    sshCommand = {trap} ssh
    editor = {trap} editor
    pager = {trap} pager
    askPass = {trap} askpass
    gitProxy = {trap} proxy
    hooksPath = {hooks}
    attributesFile = {attributes}
    alternateRefsCommand = {trap} alternate
[sequence]
    editor = {trap} sequence
[gpg]
    program = {trap} gpg
[gpg "ssh"]
    program = {trap} gpgssh
    defaultKeyCommand = {trap} keycommand
[push]
    gpgSign = if-asked
[log]
    showSignature = true
[diff]
    external = {trap} external
[diff "trap"]
    command = {trap} diffcommand
    textconv = {trap} textconv
[filter "trap"]
    clean = {trap} clean
    smudge = {trap} smudge
    process = {trap} process
    required = true
[merge "trap"]
    driver = {trap} merge
[credential]
    helper = !{trap} credential
[include]
    path = {include}
[includeIf "gitdir:**"]
    path = {include}
[uploadpack]
    packObjectsHook = {trap} packobjects
[remote "origin"]
    uploadpack = {trap} uploadpack
    receivepack = {trap} receivepack
    vcs = trap
    proxy = {trap}
[alias]
    status = !{trap} alias
    rev-parse = !{trap} alias
[trailer "x"]
    command = {trap} trailer
[pager]
    log = {trap} pagerlog
[interactive]
    diffFilter = {trap} difffilter
[url "ext::{trap} insteadof"]
    insteadOf = trap://
[protocol]
    allow = always
[protocol "ext"]
    allow = always
[submodule]
    recurse = true
[submodule "sub"]
    update = !{trap} submodule
    active = true
"""


@pytest.fixture
def canaries(tmp_path: Path) -> Path:
    """Where planted programs leave their names."""
    folder = tmp_path / "canaries"
    folder.mkdir()
    return folder


@pytest.fixture
def hostile(tmp_path: Path, canaries: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """A world whose repository is set full of traps. Its remote is an ordinary one."""
    base = tmp_path / "base"
    base.mkdir()
    world = make_world(base)
    monkeypatch.setenv("HOME", str(base / "home"))
    trap = tmp_path / "trap"
    trap.write_text(f'#!/bin/sh\ntouch "{canaries}/${{1:-$(basename "$0")}}"\ncat\n')
    trap.chmod(0o755)
    hooks = tmp_path / "hooks"
    for folder in (hooks, world.repo / ".git/hooks"):
        folder.mkdir(exist_ok=True)
        for name in HOOKS:
            (folder / name).write_text(f'#!/bin/sh\ntouch "{canaries}/hook-{name}"\n')
            (folder / name).chmod(0o755)
    attributes = "* filter=trap diff=trap merge=trap ident\n"
    (tmp_path / "attributes").write_text(attributes)
    (world.repo / ".git/info").mkdir(exist_ok=True)
    (world.repo / ".git/info/attributes").write_text(attributes)
    (tmp_path / "included").write_text(f"[core]\n\tfsmonitor = {trap} included\n[user]\n\tname = Included\n")
    text = CONFIG.format(
        trap=trap, hooks=hooks, attributes=tmp_path / "attributes", include=tmp_path / "included", attribute=attributes
    )
    with (world.repo / ".git/config").open("a") as config:
        config.write(text)
    return world


def planted(canaries: Path) -> list[str]:
    return sorted(path.name for path in canaries.iterdir())


def test_control_ordinary_git_runs_what_is_planted(hostile: World, canaries: Path) -> None:
    """The traps work: plain git on this repository runs hooks, filters and configured programs."""
    (hostile.repo / "VERSION").write_text("changed\n")
    config = hostile.repo / ".git/config"
    text = config.read_text()
    # Each of these stops git before it comes to the next one.
    for stopper in ("process = ", "vcs = "):
        text = "".join(line for line in text.splitlines(keepends=True) if stopper not in line)
    config.write_text(text)
    env = {"PATH": "/usr/bin:/bin", "HOME": str(hostile.folder / "home")}
    for args in (["status"], ["diff"], ["add", "--all"], ["commit", "-m", "x"], ["tag", "t"]):
        subprocess.run(["git", *args], cwd=hostile.repo, env=env, capture_output=True, timeout=30)
    found = set(planted(canaries))
    hooks = {"hook-pre-commit", "hook-reference-transaction", "hook-post-index-change"}
    assert {"diffcommand", "clean", "included"} | hooks <= found, found


def test_reading_runs_nothing(hostile: World, canaries: Path) -> None:
    """Opening, reading history, diffs, refs, configuration, dirtiness and the remote: no canary."""
    (hostile.repo / "VERSION").write_text("changed\n")
    repository = open_repository(hostile.repo)
    assert repository.is_dirty() == ["VERSION"]
    head = repository.resolve("HEAD")
    assert head
    for args in (
        ("log", "-p", "--format=%H%n%B", head),
        ("log", "--show-signature", "-1", head),
        ("show", "--textconv", "--ext-diff", head),
        ("diff-tree", "-p", "--root", head),
        ("for-each-ref",),
        ("ls-tree", "-r", head),
        ("cat-file", "--filters", f"{head}:VERSION"),
        ("cat-file", "--textconv", f"{head}:VERSION"),
        ("describe", "--always", head),
    ):
        repository.read(*args)
    assert identity(repository) == WHO, "includes of a repository are not followed"
    remote = find_remote(repository, "origin")
    assert remote is not None
    assert "refs/heads/main" in read_remote_refs(remote)
    assert planted(canaries) == []


def test_drafting_and_exporting_run_nothing(hostile: World, canaries: Path, tmp_path: Path) -> None:
    """A draft with attributes and hooks of its own, its commit, and exports with and without git: no canary."""
    draft = hostile.draft({".gitattributes": "* filter=trap diff=trap\n", "VERSION": "1.3.0\n"})
    repository = open_repository(hostile.repo)
    pack = BlobRef.model_validate(draft["pack"])
    for name, with_git in (("plain", False), ("with", True)):
        folder = tmp_path / name / "tree"
        folder.parent.mkdir()
        export_tree(repository, draft["commit"], pack, hostile.blobs, folder, with_git=with_git)
        assert (folder / "VERSION").read_text() == "1.3.0\n"
        assert not (folder / ".git/hooks").exists()
    assert planted(canaries) == []


def test_applying_and_taking_back_run_nothing(hostile: World, canaries: Path) -> None:
    """Commit with the checkout brought along, tag, push, and all of it back: no canary.

    Attributes that send every file through a filter make git.commit refuse; without them all else stays hostile.
    """
    draft = hostile.draft({"VERSION": "1.3.0\n", "new.txt": "n\n"})
    (hostile.repo / ".gitattributes").write_text("* filter=trap\n")
    with pytest.raises(UserError, match="filter program"):
        hostile.plan_commit(draft)
    (hostile.repo / ".gitattributes").unlink()
    commit = hostile.plan_commit(draft)
    tag = hostile.plan("git.tag", {"name": "v1.3.0", "at": draft["commit"], "message": "m"}, draft=draft)
    earlier = [("git.commit", commit.body), ("git.tag", tag.body)]
    push = hostile.plan("git.push", {"remote": "origin", "refs": ["main", "v1.3.0"]}, draft=draft, earlier=earlier)
    for planned in (commit, tag, push):
        planned.apply()
    for planned in (push, tag, commit):
        planned.inverse.apply()
    assert planted(canaries) == []


def test_index_with_a_monitor_of_its_own_runs_nothing(hostile: World, canaries: Path) -> None:
    """An index that says it is watched by a program, or is split, is read and rewritten without that program."""
    for args in (["update-index", "--fsmonitor"], ["update-index", "--split-index"]):
        env = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}
        subprocess.run(["git", "-c", "core.hooksPath=/dev/null", *args], cwd=hostile.repo, env=env, capture_output=True)
    for path in canaries.iterdir():
        path.unlink()
    planned = hostile.plan_commit(hostile.draft({"VERSION": "1.3.0\n"}))
    planned.apply()
    assert planted(canaries) == []


def test_local_remote_of_the_repository_itself_is_refused(hostile: World, canaries: Path) -> None:
    """A "remote" that the repository brings along would run its own hooks when pushed to: refused."""
    inner = hostile.repo / "vendor.git"
    inner.mkdir()
    subprocess.run(["git", "init", "--quiet", "--bare"], cwd=inner, check=True)
    (inner / "hooks").mkdir(exist_ok=True)
    (inner / "hooks/pre-receive").write_text(f"#!/bin/sh\ntouch {canaries}/inner\n")
    (inner / "hooks/pre-receive").chmod(0o755)
    config = hostile.repo / ".git/config"
    original = config.read_text()
    for url in ("vendor.git", "./vendor.git", str(inner), f"file://{inner}", ".", ".git"):
        config.write_text(original.replace("url = ../remote.git", f"url = {url}"))
        with pytest.raises(UserError, match="inside the repository itself"):
            find_remote(open_repository(hostile.repo), "origin")
    link = hostile.folder / "innocent.git"
    link.symlink_to(inner)
    config.write_text(original.replace("url = ../remote.git", f"url = {link}"))
    with pytest.raises(UserError, match="inside the repository itself"):
        find_remote(open_repository(hostile.repo), "origin")


def _tree_with(world: World, entries: list[tuple[str, str, str]]) -> str:
    """A commit whose tree has these (mode, name, content) entries, written byte by byte: git itself would refuse."""
    raw = b""
    for mode, name, content in entries:
        if mode == "40000":
            oid = content
        else:
            done = subprocess.run(
                ["git", "hash-object", "-w", "--stdin"], cwd=world.repo, input=content.encode(), capture_output=True
            )
            oid = done.stdout.decode().strip()
        raw += f"{mode} {name}\0".encode() + bytes.fromhex(oid)
    argv = ["git", "hash-object", "-t", "tree", "-w", "--literally", "--stdin"]
    return subprocess.run(argv, cwd=world.repo, input=raw, capture_output=True).stdout.decode().strip()


@pytest.mark.parametrize("name", ["..", ".git", ".GIT", "git~1", ".", "a/../../x", ".git "])
def test_crafted_paths_in_a_tree_do_not_leave_the_workspace(tmp_path: Path, name: str) -> None:
    """A tree with `..`, `.git` or the like in it is not checked out; nothing appears outside of the folder."""
    base = tmp_path / "base"
    base.mkdir()
    world = make_world(base)
    inner = _tree_with(world, [("100755", "hooks", "#!/bin/sh\n")])
    tree = _tree_with(world, [("40000", name, inner)] if "/" not in name else [("100644", name, "x")])
    commit = world.git("commit-tree", tree, "-m", "crafted")
    folder = tmp_path / "draft"
    folder.mkdir()
    with suppress(StageFailed):  # git refuses most of them
        open_draft(open_repository(world.repo), commit, folder)
    assert {path.name for path in folder.iterdir()} <= {"git", "tree"}
    assert not (folder / "tree" / ".git").exists()
    assert not (tmp_path / "x").exists() and not (folder / "hooks").exists()


def test_links_in_a_tree_are_never_written_through(tmp_path: Path) -> None:
    """A link and a folder of one name in a tree, and a link where a version file should be: nothing outside changes."""
    base = tmp_path / "base"
    base.mkdir()
    world = make_world(base)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "f").write_text("kept\n")
    (world.repo / "VERSION").unlink()
    (world.repo / "VERSION").symlink_to(outside / "f")
    (world.repo / "dir").symlink_to(outside)
    world.git("add", "--all")
    world.git("commit", "--quiet", "--message=links")
    folder = tmp_path / "draft"
    folder.mkdir()
    copy = open_draft(open_repository(world.repo), world.ref("HEAD"), folder)
    for path in ("VERSION", "dir/f", "dir/new"):
        with pytest.raises(UserError, match=r"link|regular"):
            copy.write(path, b"owned")
        with pytest.raises(UserError, match=r"link|regular"):
            copy.read(path)
    assert [path.name for path in outside.iterdir()] == ["f"] and (outside / "f").read_text() == "kept\n"


def test_repository_inside_a_workspace_is_never_discovered(tmp_path: Path, canaries: Path) -> None:
    """A nested repository with hooks and a monitor, made inside a draft, is refused and none of it runs."""
    base = tmp_path / "base"
    base.mkdir()
    world = make_world(base)
    folder = tmp_path / "draft"
    folder.mkdir()
    copy = open_draft(open_repository(world.repo), world.ref("HEAD"), folder)
    nested = copy.root / "nested"
    nested.mkdir()
    for place in (copy.root, nested):
        subprocess.run(["git", "init", "--quiet"], cwd=place, check=True)
        (place / ".git/hooks").mkdir(exist_ok=True)
        with (place / ".git/config").open("a") as config:
            config.write(f"[core]\n\tfsmonitor = touch {canaries}/nested; false\n")
    (nested / "file").write_text("x")
    subprocess.run(["git", "-c", "core.fsmonitor=false", "add", "file"], cwd=nested, check=True)
    identity_args = ["-c", "user.name=x", "-c", "user.email=x", "-c", "core.fsmonitor=false"]
    subprocess.run(["git", *identity_args, "commit", "-qm", "x"], cwd=nested, check=True)
    with pytest.raises(StageFailed, match="repository inside itself"):
        copy.changes(BlobStore(tmp_path / "blobs"))
    assert planted(canaries) == []


def test_tests_of_a_repository_find_no_token_and_no_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A conftest.py that looks for tokens, keys, sockets and the data folder finds none and reaches nobody."""
    base = tmp_path / "base"
    base.mkdir()
    world = make_world(base)
    data = tmp_path / "data"
    (data / "keys").mkdir(parents=True)
    (data / "keys/decision.pem").write_text("CANARY-7f3a")
    monkeypatch.setenv("PERDURE_TOKEN", "CANARY-7f3a")
    monkeypatch.setenv("GITHUB_TOKEN", "CANARY-7f3a")
    spy = (
        "import os, pathlib, socket\n"
        "MARK = b'CANARY' + b'-7f3a'\n"
        "loot = [f'{k}={v}' for k, v in os.environ.items() if MARK.decode() in v]\n"
        f"for place in ['/', '/home', '/root', '/run', '/var/run', '/tmp', '/proc', {str(tmp_path)!r}]:\n"
        "    for path in pathlib.Path(place).rglob('*') if place not in ('/', '/proc') else []:\n"
        "        try:\n"
        "            if path.is_socket() or (path.is_file() and MARK in path.read_bytes()):\n"
        "                loot.append(str(path))\n"
        "        except OSError: pass\n"
        "for pid in pathlib.Path('/proc').glob('[0-9]*'):\n"
        "    for name in ('environ', 'cmdline'):\n"
        "        try:\n"
        "            if MARK in (pid / name).read_bytes(): loot.append(str(pid / name))\n"
        "        except OSError: pass\n"
        "for port in (7233, 22, 80, 443):\n"
        "    try: socket.create_connection(('127.0.0.1', port), 1); loot.append(f'port {port}')\n"
        "    except OSError: pass\n"
        "for path in ('/workspace/../etc/passwd.new', '/usr/x', '/etc/x', '/x', '/dev/x'):\n"
        "    try: open(path, 'w').close(); loot.append(path)\n"
        "    except OSError: pass\n"
        "print('LOOT', loot)\n"
    )
    draft = world.draft({"conftest.py": spy})
    folder = tmp_path / "check" / "tree"
    folder.parent.mkdir()
    pack = BlobRef.model_validate(draft["pack"])
    export_tree(open_repository(world.repo), draft["commit"], pack, world.blobs, folder, with_git=True)
    done = Sandbox.find().run(["python3", "conftest.py"], workspace=folder, limit=timedelta(seconds=60))
    assert done.stdout == b"LOOT []\n", done.output


@pytest.mark.parametrize(
    "head",
    [
        "ref: refs/heads/../../x",
        "ref: /etc/passwd",
        "../../../etc/passwd",
        "ref: refs/heads/a b",
        "\0",
        "ref: HEAD",
        "",
    ],
)
def test_crafted_head_is_refused(tmp_path: Path, head: str) -> None:
    """A HEAD that is neither a branch nor an id is said to be broken; it is never written into a git directory."""
    base = tmp_path / "base"
    base.mkdir()
    world = make_world(base)
    (world.repo / ".git/HEAD").write_text(head + "\n")
    with pytest.raises(PerdureError, match="expected 'ref: refs/heads/"):
        open_repository(world.repo).head_ref()


def test_refs_with_crafted_names_are_left_out(tmp_path: Path) -> None:
    """A remote that lists names which git forbids, or options, cannot get them into a plan."""
    from perdure.workspace.remotes import parse_remote_refs

    oid = "a" * 40
    listed = "\n".join(
        f"{oid}\t{name}"
        for name in (
            "refs/heads/main",
            "refs/heads/-x",
            "refs/heads/a..b",
            "--upload-pack=x",
            "refs/tags/v1^{}",
            "HEAD",
        )
    )
    assert parse_remote_refs(listed.encode()) == {"refs/heads/main": oid}
    assert parse_remote_refs(b"not an id\trefs/heads/x\n") == {}


def test_pipes_and_devices_in_a_git_folder_do_not_hang(tmp_path: Path) -> None:
    """A pipe in the place of HEAD, config or index is refused, not waited for."""
    import os

    base = tmp_path / "base"
    base.mkdir()
    world = make_world(base)
    for name in ("config", "index"):
        (world.repo / ".git" / name).unlink()
        os.mkfifo(world.repo / ".git" / name)
    repository = open_repository(world.repo)
    assert repository.config("user.name") is None
    repository.is_dirty()
    (world.repo / ".git/HEAD").unlink()
    os.mkfifo(world.repo / ".git/HEAD")
    with pytest.raises(UserError, match="not inside a git repository"):
        open_repository(world.repo)


def test_forged_objects_are_refused_before_they_are_stored(tmp_path: Path) -> None:
    """A pack whose tree holds `.git` is checked object by object and does not enter the person's repository."""
    base = tmp_path / "base"
    base.mkdir()
    world = make_world(base)
    draft = world.draft({"VERSION": "1.3.0\n"})
    other = tmp_path / "other"
    other.mkdir()
    forger = make_world(other)
    inner = _tree_with(forger, [("100755", "config", "[core]\n\tfsmonitor = touch owned\n")])
    tree = _tree_with(forger, [("40000", ".git", inner)])
    commit = forger.git("commit-tree", tree, "-m", "forged")
    argv = ["git", "pack-objects", "--revs", "--stdout", "-q"]
    pack = subprocess.run(argv, cwd=forger.repo, input=f"{commit}\n".encode(), capture_output=True).stdout
    body = {
        **world.plan_commit(draft).body,
        "new": commit,
        "pack": world.blobs.put(pack).model_dump(),
        "checkout": False,
    }
    effect = world.plan_commit(draft).effect
    with pytest.raises(PerdureError):
        effect.do(body, world.context())
    assert effect.probe(body, world.context()).found is Found.not_done
    assert world.git("cat-file", "-t", commit, check=False) == ""
