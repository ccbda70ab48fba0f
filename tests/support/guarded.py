"""A project whose main is protected by a forge: what a release through it must leave, and how a person merges."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perdure.contracts.http import JobView
from perdure.contracts.job import JobPhase
from perdure.testing.forge import Forge, serve_forge
from tests.support.installation import Installation, wait_until
from tests.support.repositories import Project, git, make_project

BRANCH = "perdure/release-v1.3.0"


@dataclass(frozen=True)
class Guarded:
    """One project behind its forge."""

    project: Project
    forge: Forge

    def start(self, home: Installation, flavour: str = "github", **inputs: Any) -> JobView:
        """Submit a release through the protected branch."""
        self.give_token(home)
        about = {"forge": flavour, "api": self.forge.api(flavour), "project": self.forge.project, **inputs}
        return home.run("guarded", self.project.path, **about)

    def give_token(self, home: Installation, token: str = "") -> None:
        """Put the forge's token where the worker finds it."""
        folder = home.settings.data / "secrets"
        folder.mkdir(mode=0o700, exist_ok=True)
        (folder / "forge-token").write_text((token or self.forge.token) + "\n")

    def parked(self, home: Installation, job: JobView) -> JobView:
        """Wait until the job waits for a merge."""
        return home.wait(job, JobPhase.waiting_for_merge)

    def number(self) -> int:
        """The request that is open."""

        def look() -> int:
            return next((key for key, one in self.forge.requests.items() if one["state"] == "open"), 0)

        found: int = wait_until(look, "an open request")
        return found

    def ref(self, name: str) -> str:
        """What a ref of the remote is at; empty when there is none."""
        return self.forge.git.resolve(name)

    def assert_released_once(self) -> None:
        """main has the approved content, the tag is on it, the release is whole; nothing of it twice."""
        main = self.ref("refs/heads/main")
        assert self.forge.git.run("show", "main:pyproject.toml").find('version = "1.3.0"') > 0
        assert self.ref("refs/tags/v1.3.0^{commit}") == main
        assert len(self.project.pushes("refs/tags/v1.3.0")) == 1
        assert len(self.project.pushes(f"refs/heads/{BRANCH}")) == 2, "there, and away again"
        assert [one["state"] for one in self.forge.requests.values()] == ["merged"]
        (release,) = self.forge.releases.values()
        assert (release["tag"], release["draft"]) == ("v1.3.0", False)
        assert sorted(one["name"] for one in self.forge.assets.values() if one["name"]) == [
            "orders.py",
            "pyproject.toml",
        ]
        assert git(self.project.path, "tag") == "v1.2.0", "the user's repository is not touched"

    def assert_untouched(self) -> None:
        """Nothing of ours is left: no branch, no open request, no tag, no release."""
        assert self.ref("refs/tags/v1.3.0") == "" and self.forge.releases == {}
        assert self.ref(f"refs/heads/{BRANCH}") == ""
        assert not [one for one in self.forge.requests.values() if one["state"] == "open"]


@contextmanager
def make_guarded(folder: Path) -> Iterator[Guarded]:
    """A fresh project with a protected main, and a forge that serves it."""
    project = make_project(folder / "src")
    with serve_forge(project.remote, protected="main") as forge:
        yield Guarded(project, forge)
