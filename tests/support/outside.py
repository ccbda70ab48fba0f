"""The world outside Perdure that the sweeps look at: a counting remote, a counting command, a folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from perdure.contracts.http import JobView
from tests.support.installation import Installation
from tests.support.repositories import Project, git, make_project

TEMPLATES = Path(__file__).resolve().parents[1] / "crash" / "templates"

# What `do` and `undo` did is counted by appending; what is true now is a file of its own. `slow` makes `do` outlive
# its worker: it waits for a file that only the test makes.
ANNOUNCE = """\
cd "$(dirname "$0")" || exit 9
case "$1" in
  do)    echo "$2 began" >> began; while [ -e slow ] && [ ! -e go ]; do sleep 0.05; done
         echo "$2" >> done.log; echo "$2" > "now-$2" ;;
  undo)  echo "$2" >> undone.log; rm -f "now-$2" ;;
  probe) [ -e "now-$2" ] ;;
esac
"""


@dataclass(frozen=True)
class Outside:
    """One project and everything that its release touches."""

    project: Project
    folder: Path
    counter: Path

    def start(self, home: Installation) -> JobView:
        """Submit the job that has one effect of every kind."""
        return home.run("everything", self.project.path, folder=str(self.folder), counter=str(self.counter))

    def lines(self, name: str) -> list[str]:
        """What the counting command has written to one of its logs."""
        path = self.counter / name
        return path.read_text().splitlines() if path.exists() else []

    def assert_applied_once(self) -> None:
        """Each effect is there, and every witness saw it exactly once."""
        main, tag = "refs/heads/main", "refs/tags/v1.3.0"
        path = self.project.path
        assert len(self.project.pushes(main)) == 1
        assert len(self.project.pushes(tag)) == 1
        assert len(self.project.moves(main)) == 4, self.project.moves(main)  # three commits of the fixture, and ours
        assert git(path, "log", "-1", "--format=%s") == "chore(release): 1.3.0"
        assert git(path, "rev-parse", "v1.3.0^{commit}") == git(path, "rev-parse", "main")
        assert git(path, "status", "--porcelain") == ""
        assert git(self.project.remote, "rev-parse", "main") == git(path, "rev-parse", "main")
        assert (self.folder / "RELEASED").read_text() == "v1.3.0"
        assert self.lines("done.log") == ["1.3.0"]
        assert self.lines("undone.log") == []

    def assert_taken_back(self) -> None:
        """Everything is as before, and no way back was walked twice."""
        main, tag = "refs/heads/main", "refs/tags/v1.3.0"
        path = self.project.path
        assert git(path, "log", "-1", "--format=%s") == "fix(api): an empty order is refused"
        assert git(path, "tag") == "v1.2.0"
        assert git(path, "status", "--porcelain") == ""
        assert git(self.project.remote, "rev-parse", "main") == git(path, "rev-parse", "main")
        assert git(self.project.remote, "tag") == "v1.2.0"
        assert len(self.project.pushes(main)) == 2
        assert len(self.project.pushes(tag)) == 2
        assert not (self.folder / "RELEASED").exists()
        assert self.lines("undone.log") == ["1.3.0"]


def make_outside(folder: Path) -> Outside:
    """A fresh project, folder and counting command."""
    counter, target = folder / "counter", folder / "target"
    counter.mkdir(parents=True)
    target.mkdir()
    (counter / "announce").write_text(ANNOUNCE)
    return Outside(make_project(folder / "src"), target, counter)
