"""Which tool's settings count in a project: the first that decides versions, written ones before mere use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from perdure.rules.git_tree import CommitTree
from perdure.rules.release.settings.cocogitto import find_cocogitto
from perdure.rules.release.settings.commitizen import find_commitizen
from perdure.rules.release.settings.files import SettingsFiles
from perdure.rules.release.settings.git_cliff import find_git_cliff
from perdure.rules.release.settings.model import ToolSettings
from perdure.rules.release.settings.python_semantic_release import find_python_semantic_release
from perdure.rules.release.settings.release_please import find_release_please
from perdure.rules.release.settings.semantic_release import find_semantic_release
from perdure.rules.release.settings.standard_version import find_lerna, find_standard_version

Finder = Callable[[SettingsFiles], ToolSettings | None]

TOOLS: tuple[Finder, ...] = (
    find_semantic_release,
    find_python_semantic_release,
    find_release_please,
    find_cocogitto,
    find_commitizen,
    find_standard_version,
    find_lerna,
    find_git_cliff,
)


class ProjectSettings:
    """The settings in one commit: of the whole project, and of packages in its folders."""

    def __init__(self, root: CommitTree) -> None:
        self._files = SettingsFiles(root)
        self.root = _find(self._files)
        """Those of the repository's root, with what there was not read."""

    def of(self, tree: CommitTree) -> ToolSettings:
        """Return the settings of the package in ``tree``: its own, else the root's, without that one's tag form.

        ``findings`` name what was not read in the package's own folder; of the root's folder ``root`` tells.
        """
        if tree.folder == self._files.folder:
            return self.root
        own = _find(SettingsFiles(tree))
        if own.lines or own.zero:
            return own
        # release-please sets up every package in one file at the root.
        above = find_release_please(self._files, tree.folder) or self.root
        more = above.findings if above.tool == "release-please" else ()
        return replace(above, tag="", findings=(*own.findings, *more))


def find_settings(root: CommitTree, tree: CommitTree) -> ToolSettings:
    """Return the settings of the package in ``tree`` with everything that was not read, of the root's folder too.

    Nothing is run, and nothing broken is an error.
    """
    project = ProjectSettings(root)
    found = project.of(tree)
    return replace(found, findings=tuple(dict.fromkeys((*project.root.findings, *found.findings))))


def _find(files: SettingsFiles) -> ToolSettings:
    found = [one for find in TOOLS if (one := find(files)) is not None]
    found.sort(key=lambda one: not (one.is_explicit and (one.lines or one.zero)))
    if not found:
        return ToolSettings(findings=tuple(files.findings))
    first, *others = found
    rest = [f"{one.file} ({one.tool})" for one in others if one.is_explicit and (one.lines or one.zero)]
    findings = [*files.findings, *first.findings]
    if rest:
        findings.append(f"Of several release tools {first.tool} counts ({first.file}), not {', '.join(rest)}.")
    return replace(first, findings=tuple(findings))
