"""The sources ``release.version_files`` and ``release.change_files``: what the base commit says of itself."""

from __future__ import annotations

from perdure.contracts.base import JsonDict
from perdure.rules.base import Rule, RuleContext, RuleResult
from perdure.rules.git_branch import find_branch
from perdure.rules.git_tree import CommitTree, join, open_input, package_path
from perdure.rules.release.changelog_files import describe_changelog
from perdure.rules.release.files.gather import FILES, FILES_RULE

CHANGES = "release.change_files"

_CHANGE_FOLDERS = (".changeset", "changelog.d", "changes.d", "news", "newsfragments")


def gather_change_files(arguments: JsonDict, context: RuleContext) -> RuleResult:
    """Find the changelog and what is written under ``[Unreleased]``, in the branch's newest commit.

    ``with``: ``repo``; optional ``path`` and ``branch``. Folders of change files are named, not read yet.

    Raises:
        UserError: the changelog is a symbolic link or not UTF-8.
    """
    tree = _open_tree(arguments)
    changelog, findings = describe_changelog(tree)
    folders = [join(tree.folder, name) for name in _CHANGE_FOLDERS if tree.has_folder(name)]
    findings += [f"{folder}/ is not read yet: add its entries in the review." for folder in folders]
    unreleased = len(changelog["unreleased"])
    value: JsonDict = {"rule": CHANGES, "commit": tree.commit, "changelog": changelog, "folders": folders}
    state = f"{unreleased} unreleased in {changelog['path']}" if unreleased else changelog["path"]
    return RuleResult(value, "no changelog yet" if changelog["format"] == "absent" else state, findings=findings)


def _open_tree(arguments: JsonDict) -> CommitTree:
    repository = open_input(arguments["repo"])
    _, commit = find_branch(repository, str(arguments.get("branch") or ""))
    return CommitTree(repository, commit, package_path(repository, arguments.get("path")))


CHANGES_RULE = Rule(
    name=CHANGES,
    rule_class="source",
    run=gather_change_files,
    needs=frozenset({"repo"}),
    takes=frozenset({"path", "branch"}),
    about="The changelog, and what is written under [Unreleased].",
)

__all__ = ["CHANGES", "CHANGES_RULE", "FILES", "FILES_RULE", "gather_change_files"]
