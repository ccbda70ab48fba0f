"""The sources ``release.version_files`` and ``release.change_files``: what the base commit says of itself."""

from __future__ import annotations

from perdure.contracts.base import JsonDict
from perdure.rules.base import Rule, RuleContext, RuleResult
from perdure.rules.git_branch import find_branch
from perdure.rules.git_tree import CommitTree, open_input, package_path
from perdure.rules.release.change_files import find_change_files
from perdure.rules.release.changelog_files import describe_changelog
from perdure.rules.release.files.gather import FILES, FILES_RULE

CHANGES = "release.change_files"


def gather_change_files(arguments: JsonDict, context: RuleContext) -> RuleResult:
    """Find the changelog, what is written under ``[Unreleased]``, and change files, in the branch's newest commit.

    ``with``: ``repo``; optional ``path``, ``branch`` and ``follow`` (as for ``git.history``).

    Raises:
        UserError: the changelog is a symbolic link or not UTF-8.
    """
    repository = open_input(arguments["repo"])
    _, commit = find_branch(repository, str(arguments.get("branch") or ""), str(arguments.get("follow") or ""))
    tree = CommitTree(repository, commit, package_path(repository, arguments.get("path")))
    changelog, findings = describe_changelog(tree)
    files, left_alone = find_change_files(repository, tree)
    value: JsonDict = {"rule": CHANGES, "commit": tree.commit, "changelog": changelog, "files": files}
    return RuleResult(value, _summarize(changelog, len(files)), findings=findings + left_alone)


def _summarize(changelog: JsonDict, files: int) -> str:
    unreleased = len(changelog["unreleased"])
    told = "no changelog yet" if changelog["format"] == "absent" else str(changelog["path"])
    told = f"{unreleased} unreleased in {told}" if unreleased else told
    return f"{files} change file{'' if files == 1 else 's'}, {told}" if files else told


CHANGES_RULE = Rule(
    name=CHANGES,
    rule_class="source",
    run=gather_change_files,
    needs=frozenset({"repo"}),
    takes=frozenset({"path", "branch", "follow"}),
    about="The changelog, what is written under [Unreleased], and change files.",
)

__all__ = ["CHANGES", "CHANGES_RULE", "FILES", "FILES_RULE", "gather_change_files"]
