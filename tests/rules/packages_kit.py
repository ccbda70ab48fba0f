"""Releases of several packages as a job makes them: real git, the shipped rules, a real draft, its checks."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perdure.contracts.base import BlobRef
from perdure.contracts.decisions import Edits
from perdure.contracts.memory import Memory
from perdure.rules.base import RuleContext, RuleResult
from perdure.rules.registry import default_rules
from perdure.store.blobs import BlobStore
from perdure.workspace.copies import DraftCopy, open_draft
from perdure.workspace.git import open_repository
from tests.rules.kit import NOW, make_repository, save, tag

Files = Mapping[str, str]


@dataclass
class PackagesRun:
    """One job's round over the rules of ``release-packages``."""

    repository: Path
    folder: Path
    inputs: dict[str, Any] = field(default_factory=dict)
    edits: Sequence[Edits] = ()
    remembered: Memory = field(default_factory=Memory)
    findings: list[str] = field(default_factory=list)
    results: dict[str, Any] = field(default_factory=dict)

    def gather(self) -> dict[str, Any]:
        """Run the source."""
        wished = {key: self.inputs.get(key) for key in ("packages", "tag", "scheme")}
        arguments = {"repo": {"path": str(self.repository)}, "remote": self.inputs.get("remote", ""), **wished}
        value: dict[str, Any] = self.run("release.packages", arguments).value
        self.results["gather"] = {"workspace": value}
        return value

    def propose(self) -> dict[str, Any]:
        """Gather, then run the analysis."""
        self.gather()
        wished = {key: self.inputs.get(key) for key in ("versions", "only", "pre")}
        value: dict[str, Any] = self.run("release.propose_packages", {"from": self.results["gather"], **wished}).value
        self.results["analyze"] = {"release": value}
        return value

    def draft(self) -> DraftCopy:
        """Propose, draft and check: the check must be green."""
        release = self.propose()
        space = open_draft(open_repository(self.repository), release["base"], self.folder / "draft")
        self.run("release.write_packages", {"release": release}, space)
        verdict = self.run("release.check_packages", {}, space)
        assert verdict.status == "ok", verdict.summary
        return space

    def run(self, name: str, arguments: dict[str, Any], space: DraftCopy | None = None) -> RuleResult:
        """Run one rule; its value must be JSON that comes back as it was, as between activities."""
        blobs = BlobStore(self.folder / "blobs")
        context = RuleContext(
            blobs, NOW, self.inputs, self.results, list(self.edits), space, remembered=self.remembered
        )
        result = default_rules()[name].run(arguments, context)
        assert json.loads(json.dumps(result.value, allow_nan=False)) == result.value
        self.findings += result.findings
        return result

    def changed(self, space: DraftCopy) -> dict[str, str]:
        """The drafted files that differ from the base, by path; an empty text for a removed one."""
        blobs = BlobStore(self.folder / "blobs")
        value = space.commit("draft", ("Mara", "mara@example.org"), NOW, blobs)
        found = {}
        for change in value["changes"]:
            new = BlobRef.model_validate(change["new"]) if change["new"] else None
            found[change["path"]] = blobs.get(new).decode() if new else ""
        return found


def versions(release: Mapping[str, Any]) -> dict[str, str]:
    """The new version of every released package, in the order of the plan."""
    return {package["name"]: package["version"] for package in release["packages"]}


def texts(release: Mapping[str, Any], name: str) -> list[str]:
    """The texts of one package's entries."""
    [package] = [one for one in release["packages"] if one["name"] == name]
    return [entry["text"] for entry in package["entries"]]


def make_workspace(folder: Path, files: Files, *tags: str) -> Path:
    """A repository whose first commit holds ``files``, with ``tags`` on it."""
    path = make_repository(folder)
    save(path, "feat: begin", files)
    tag(path, *tags)
    return path


def manifest(name: str, version: str = "1.0.0", **more: Any) -> str:
    """A package.json."""
    return json.dumps({"name": name, "version": version, **more}, indent=2) + "\n"


NPM: Files = {
    "package.json": '{"private": true, "workspaces": ["packages/*"]}\n',
    "packages/core/package.json": manifest("@x/core"),
    "packages/app/package.json": manifest("@x/app", dependencies={"@x/core": "^1.0.0", "left": "^9.0.0"}),
    "packages/site/package.json": manifest("site", private=True, dependencies={"@x/app": "^1.0.0"}),
    "packages/tool/package.json": manifest("@x/tool", devDependencies={"@x/core": "^1.0.0"}),
}
"""Core, an app that needs it, a private site that needs the app, a tool that only tests with core."""

NPM_TAGS = ("@x/core@1.0.0", "@x/app@1.0.0", "@x/tool@1.0.0")
