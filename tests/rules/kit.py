"""Runs of the release rules as a job runs them: real git, a real blob store, a real draft copy."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from perdure.contracts.decisions import Edits
from perdure.contracts.memory import Memory
from perdure.rules.base import RuleContext, RuleResult
from perdure.rules.registry import default_rules
from perdure.store.blobs import BlobStore
from perdure.workspace.copies import DraftCopy, open_draft
from perdure.workspace.git import open_repository
from tests.support.repositories import git

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


def make_repository(folder: Path, *, name: str = "app") -> Path:
    """An empty repository on branch main with a user."""
    path = folder / name
    path.mkdir(parents=True)
    git(path, "init", "-q", "-b", "main")
    git(path, "config", "user.name", "Mara Maintainer")
    git(path, "config", "user.email", "mara@example.org")
    return path


def save(path: Path, message: str, files: Mapping[str, str | bytes] | None = None) -> str:
    """Write files (by path) and commit everything; return the commit's id."""
    for name, text in (files or {}).items():
        target = path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text if isinstance(text, bytes) else text.encode())
    git(path, "add", "-A")
    git(path, "commit", "-q", "--allow-empty", "--allow-empty-message", "--cleanup=verbatim", "-m", message)
    return git(path, "rev-parse", "HEAD")


def tag(path: Path, *names: str) -> None:
    """Put annotated tags on HEAD."""
    for name in names:
        git(path, "tag", "-a", name, "-m", name)


def write_history(path: Path, messages: Iterable[str]) -> None:
    """Commit many messages quickly, one after the other, on main."""
    lines = []
    for number, message in enumerate(messages):
        data = message.encode()
        lines.append(b"commit refs/heads/main\ncommitter M <m@example.org> %d +0000\n" % (1_700_000_000 + number))
        lines.append(b"data %d\n%s\n" % (len(data), data))
    subprocess.run(["git", "fast-import", "--quiet"], cwd=path, input=b"".join(lines), check=True, capture_output=True)


@dataclass
class ReleaseRun:
    """One job's round over the rules, stage by stage, with the arguments of the shipped template."""

    repository: Path
    folder: Path
    inputs: dict[str, Any] = field(default_factory=dict)
    edits: Sequence[Edits] = ()
    results: dict[str, Any] = field(default_factory=dict)
    findings: list[str] = field(default_factory=list)
    remembered: Memory = field(default_factory=Memory)

    def gather(self) -> dict[str, Any]:
        """Run the three sources."""
        common = {"repo": {"path": str(self.repository)}, "path": self.inputs.get("path", ".")}
        common |= {"follow": self.inputs["follow"]} if "follow" in self.inputs else {}
        history = self.run("git.history", {**common, "tag": self.inputs.get("tag", "v{version}")})
        files, notes = self.run("release.version_files", common), self.run("release.change_files", common)
        gathered = {"history": history.value, "files": files.value, "notes": notes.value}
        self.results["gather"] = gathered
        return gathered

    def propose(self) -> dict[str, Any]:
        """Gather, then run the analysis."""
        self.gather()
        scheme, version = self.inputs.get("scheme", "semver"), self.inputs.get("version")
        wished = {"scheme": scheme, "version": version, "pre": self.inputs.get("pre")}
        proposed = self.run("release.propose", {"from": self.results["gather"], **wished})
        release: dict[str, Any] = proposed.value
        self.results["analyze"] = {"release": release}
        return release

    def draft(self) -> DraftCopy:
        """Propose, then run the draft steps in a private copy."""
        release = self.propose()
        space = open_draft(open_repository(self.repository), release["base"], self.folder / "draft")
        self.run("release.write_versions", {"version": release["version"]}, space)
        self.run("release.write_changelog", {"release": release}, space)
        return space

    def check(self, name: str, space: DraftCopy) -> RuleResult:
        """Run one check on a draft."""
        return self.run(name, {}, space)

    def run(self, name: str, arguments: dict[str, Any], space: DraftCopy | None = None) -> RuleResult:
        """Run one rule; its value must be JSON that comes back as it was, as between activities."""
        blobs = BlobStore(self.folder / "blobs")
        context = RuleContext(
            blobs, NOW, self.inputs, self.results, edits=list(self.edits), remembered=self.remembered, space=space
        )
        result = default_rules()[name].run(arguments, context)
        assert json.loads(json.dumps(result.value, allow_nan=False)) == result.value
        self.findings += result.findings
        return result
