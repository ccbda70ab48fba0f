"""A real repository with a real bare remote, and the means to plan and apply effects on it without a server."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from perdure.contracts.base import JsonDict
from perdure.effects.base import Effect, EffectContext, EffectDraft, EffectRequest, Found
from perdure.effects.registry import default_effects
from perdure.store.blobs import BlobStore
from perdure.workspace.copies import open_draft
from perdure.workspace.git import open_repository
from perdure.workspace.processes import GroupRunner

AT = datetime(2026, 11, 30, 10, 12, tzinfo=UTC)
WHO = ("Ada Releaser", "ada@example.org")
FILES = {"VERSION": "1.2.0\n", "CHANGELOG.md": "# Changelog\n", "src/app.py": "print('hi')\n"}


@dataclass
class World:
    """``repo`` is a person's clone on ``main``, ``remote`` its bare origin."""

    folder: Path
    blobs: BlobStore
    secrets: dict[str, str] = field(default_factory=dict)
    groups: list[tuple[int, str]] = field(default_factory=list)

    @property
    def repo(self) -> Path:
        return self.folder / "repo"

    @property
    def remote(self) -> Path:
        return self.folder / "remote.git"

    def git(self, *args: str, at: Path | None = None, check: bool = True) -> str:
        """Run git as the person would, with a home of its own."""
        env = {
            "PATH": os.defpath,
            "HOME": str(self.folder / "home"),
            "GIT_CONFIG_NOSYSTEM": "1",
            **{
                f"GIT_{role}_{key}": WHO[key == "EMAIL"]
                for role in ("AUTHOR", "COMMITTER")
                for key in ("NAME", "EMAIL")
            },
        }
        done = subprocess.run(["git", *args], cwd=at or self.repo, env=env, capture_output=True, text=True)
        assert done.returncode == 0 or not check, done.stderr
        return done.stdout.strip()

    def ref(self, name: str, at: Path | None = None) -> str:
        """The id of a ref, here or in the remote; empty when absent."""
        return self.git("rev-parse", "--verify", "--quiet", name, at=at, check=False)

    def draft(self, files: dict[str, str | None], message: str = "chore(release): 1.3.0") -> JsonDict:
        """Draft a commit on HEAD; ``None`` removes a file."""
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        copy = open_draft(open_repository(self.repo), self.ref("HEAD"), folder)
        for path, text in files.items():
            if text is None:
                (copy.root / path).unlink()
            else:
                copy.write(path, text.encode())
        return copy.commit(message, WHO, AT, self.blobs)

    def request(self, arguments: JsonDict, **more: Any) -> EffectRequest:
        """A step's request with these arguments."""
        return EffectRequest(id="step", arguments=arguments, **more)

    def context(self) -> EffectContext:
        """A fresh context; process groups are noted in ``groups``."""
        scratch = Path(tempfile.mkdtemp(dir=self.folder, prefix="scratch-"))
        runner = GroupRunner(self.folder / "target.lock", lambda pgid, mark: self.groups.append((pgid, mark)))
        return EffectContext(blobs=self.blobs, scratch=scratch, runner=runner, now=AT, secrets=self.secrets)

    def plan(self, kind: str, arguments: JsonDict, **more: Any) -> Planned:
        """Plan one effect of ``kind``."""
        effect = default_effects()[kind]
        return Planned(self, effect, effect.plan(self.request(arguments, **more), self.context()))

    def plan_commit(self, draft: JsonDict, branch: str = "main") -> Planned:
        """Plan the draft's commit."""
        arguments = {"branch": branch, "from": draft["base"], "to": draft["commit"]}
        return self.plan("git.commit", arguments, draft=draft)


@dataclass
class Planned:
    """A planned effect, with its methods bound."""

    world: World
    effect: Effect
    draft: EffectDraft

    @property
    def body(self) -> JsonDict:
        return self.draft.body

    @property
    def inverse(self) -> Planned:
        """The inverse as an effect."""
        assert self.draft.inverse.body is not None
        return replace(self, draft=replace(self.draft, body=self.draft.inverse.body))

    def found(self) -> Found:
        return self.effect.probe(self.body, self.world.context()).found

    def check(self) -> list[str]:
        return self.effect.check(self.body, self.world.context())

    def do(self) -> JsonDict:
        return self.effect.do(self.body, self.world.context())

    def verify(self) -> list[str]:
        return self.effect.verify(self.body, self.world.context())

    def apply(self) -> JsonDict:
        """As the applier would: nothing in the way, not done, do, verified."""
        assert self.found() is Found.not_done
        assert self.check() == []
        result = self.do()
        assert self.verify() == []
        assert self.found() is Found.done
        return result


def make_world(folder: Path) -> World:
    """Make the repository, its remote, and a store for blobs."""
    world = World(folder, BlobStore(folder / "blobs"))
    for path in (world.repo, world.remote, folder / "home"):
        path.mkdir()
    world.git("init", "--quiet", "--bare", "--initial-branch=main", at=world.remote)
    world.git("init", "--quiet", "--initial-branch=main")
    for path, text in FILES.items():
        target = world.repo / path
        target.parent.mkdir(exist_ok=True)
        target.write_text(text)
    world.git("add", "--all")
    world.git("commit", "--quiet", "--message=feat: begin")
    world.git("push", "--quiet", str(world.remote), "main")
    with (world.repo / ".git/config").open("a") as config:
        config.write(f"[user]\n\tname = {WHO[0]}\n\temail = {WHO[1]}\n")
        config.write('[remote "origin"]\n\turl = ../remote.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n')
    return world


def copy_world(made: World, folder: Path) -> World:
    """Copy a world: ten times quicker than making one."""
    shutil.copytree(made.folder, folder, symlinks=True, dirs_exist_ok=True)
    return World(folder, BlobStore(folder / "blobs"))
