"""A worker that dies anywhere while an operation is applied or taken back: each effect happens once."""

from __future__ import annotations

import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from perdure.contracts.http import JobView
from tests.crash.points import apply_points, kinds_of, undo_points
from tests.support.hearing import Ear, listening
from tests.support.installation import Installation, wait_until
from tests.support.records import Records, serve_records
from tests.support.repositories import git

SAMPLE = 9
"""Every ninth point runs in the ordinary tests; all of them in ``make torture``."""

KINDS = kinds_of("operations")
BACK = [kind for kind in KINDS if kind not in ("sqlite.backup", "notify.send")]


@dataclass(frozen=True)
class Operation:
    """A database, a service and a link."""

    name: str
    folder: Path
    records: Records
    ear: Ear

    def start(self, home: Installation) -> JobView:
        """Submit the job; its channel gets an address."""
        to = f"team-{self.name}"
        secret = home.settings.secrets / to
        secret.parent.mkdir(mode=0o700, exist_ok=True)
        secret.write_text(self.ear.url)
        secret.chmod(0o600)
        about = {"name": self.name, "folder": str(self.folder), "url": self.records.url, "to": to}
        return home.run("operations", self.folder, **about)

    def commits(self, branch: str) -> list[str]:
        """Subjects of a branch, newest first."""
        return git(self.folder / "repo", "log", "--format=%s", branch).splitlines()

    def orders(self, file: Path) -> list[str]:
        """What a database file holds."""
        with closing(sqlite3.connect(file)) as connection:
            return [row[0] for row in connection.execute("SELECT name FROM orders")]

    def assert_applied_once(self) -> None:
        """Each effect is there once, and the backup is of before."""
        assert self.orders(self.folder / "orders.db") == [self.name]
        backups = [file for file in self.folder.glob("*.db") if file.name != "orders.db"]
        assert [self.orders(file) for file in backups] == [[]]
        assert self.records.held == {self.name: {"state": "active"}}
        assert len(self.records.asked("PUT")) <= 2, "sent again only when it was proven not done"
        assert (self.folder / "current").readlink() == Path("green")
        assert self.commits("stable") == ["fix: wrong", "feat: begin"]
        assert self.commits("main")[1:] == ["fix: wrong", "feat: begin"]
        assert (self.folder / "repo" / "orders.txt").read_text() == "right\n"
        assert [file.name for file in self.folder.iterdir() if file.name.startswith(".perdure-")] == []

    def assert_told(self) -> None:
        """The message arrives; one that was on its way when the worker died comes again with its key."""
        wait_until(lambda: self.ear.heard, "the message to arrive")
        assert set(self.ear.heard) == {("Orders are switched", f"{self.name} is live.")}
        assert len(set(self.ear.keys)) == 1

    def assert_taken_back(self) -> None:
        """Everything is as before, but for the backup."""
        assert self.orders(self.folder / "orders.db") == []
        assert self.records.held == {}
        assert (self.folder / "current").readlink() == Path("blue")
        assert self.commits("main") == ["fix: wrong", "feat: begin"]
        assert git(self.folder / "repo", "branch", "--list", "stable") == ""


def make_history(repo: Path) -> None:
    """A repository whose last commit is to be taken back."""
    git(repo.parent, "init", "-q", "-b", "main", str(repo))
    git(repo, "config", "user.name", "Mara Maintainer")
    git(repo, "config", "user.email", "mara@example.org")
    for text, subject in (("right\n", "feat: begin"), ("wrong\n", "fix: wrong")):
        (repo / "orders.txt").write_text(text)
        git(repo, "add", ".")
        git(repo, "commit", "-q", "-m", subject)


@pytest.fixture
def operation(tmp_path: Path) -> Iterator[Operation]:
    """One of its own for each test."""
    for name in ("blue", "green"):
        (tmp_path / name).mkdir()
    (tmp_path / "current").symlink_to("blue")
    make_history(tmp_path / "repo")
    with closing(sqlite3.connect(tmp_path / "orders.db")) as connection:
        connection.execute("CREATE TABLE orders (name text)")
    with serve_records() as records, listening() as ear:
        yield Operation(uuid.uuid4().hex[:8], tmp_path, records, ear)


def _sweep(points: list[str]) -> list[object]:
    return [
        pytest.param(point, id=point, marks=[] if number % SAMPLE == 0 else [pytest.mark.torture])
        for number, point in enumerate(points)
    ]


@pytest.mark.parametrize("point", _sweep(apply_points(KINDS, foreseen=True)))
def test_operation_killed_anywhere_is_applied_once(home: Installation, operation: Operation, point: str) -> None:
    """Killed at any step of any effect, the job ends applied and each effect happened once."""
    with home.dying_worker(point):
        job = operation.start(home)
        home.approve(job)
        home.done(job)
        operation.assert_told()
    operation.assert_applied_once()


@pytest.mark.parametrize("point", _sweep(undo_points(BACK)))
def test_operation_killed_while_undone_is_as_before(home: Installation, operation: Operation, point: str) -> None:
    """Killed anywhere while it is taken back, everything ends as before."""
    first = home.start_worker()
    job = operation.start(home)
    home.approve(job)
    done = home.done(job)
    first.kill()
    first.wait()
    with home.dying_worker(point):
        undo = home.undo(done)
        home.approve(undo)
        home.done(undo)
    operation.assert_taken_back()
