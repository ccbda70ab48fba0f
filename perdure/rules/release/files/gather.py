"""The source ``release.version_files``: which files of the base commit say the package's version."""

from __future__ import annotations

from perdure.contracts.base import JsonDict
from perdure.rules.base import Rule, RuleContext, RuleResult
from perdure.rules.git_branch import find_branch
from perdure.rules.git_tree import CommitTree, join, open_input, package_path
from perdure.rules.release.files.base import find_places
from perdure.rules.release.files.registry import formats_by_file

FILES = "release.version_files"


def gather_version_files(arguments: JsonDict, context: RuleContext) -> RuleResult:
    """Find the files that say the package's version, in the objects of the branch's newest commit.

    ``with``: ``repo``; optional ``path`` and ``branch``. The value's ``version`` and ``package`` are those of the
    first file that says one, in the order of the formats; both may be empty.

    Raises:
        UserError: such a file is a symbolic link, or cannot be read as what its name says.
    """
    tree = _open_tree(arguments)
    files: list[JsonDict] = []
    findings: list[str] = []
    for name, form in formats_by_file().items():
        data, path = tree.read(name), join(tree.folder, name)
        if data is None:
            continue
        found = find_places(form, data, path)
        findings += [f"{path}: {note}." for note in found.notes]
        places = [{"where": place.where, "version": place.version} for place in found.places]
        files.append({"path": path, "format": form.name, "package": found.package, "places": places})
    findings += _warn_of_locks(tree)
    versions = [place["version"] for file in files for place in file["places"]]
    value: JsonDict = {
        "rule": FILES,
        "commit": tree.commit,
        "path": tree.folder,
        "files": sorted(files, key=lambda file: not file["places"]),
        "version": versions[0] if versions else "",
        "package": next((file["package"] for file in files if file["package"]), ""),
    }
    said = ", ".join(file["path"] for file in files if file["places"])
    return RuleResult(value, f"{versions[0]} in {said}" if versions else "no version file", findings=findings)


def _open_tree(arguments: JsonDict) -> CommitTree:
    repository = open_input(arguments["repo"])
    _, commit = find_branch(repository, str(arguments.get("branch") or ""))
    return CommitTree(repository, commit, package_path(repository, arguments.get("path")))


def _warn_of_locks(tree: CommitTree) -> list[str]:
    names = {"Cargo.lock": "Cargo.toml", "uv.lock": "pyproject.toml"}
    stale = [lock for lock, manifest in names.items() if {lock, manifest} <= set(tree.names)]
    return [f"{join(tree.folder, lock)} repeats the version and is not written yet." for lock in stale]


FILES_RULE = Rule(
    name=FILES,
    rule_class="source",
    run=gather_version_files,
    needs=frozenset({"repo"}),
    takes=frozenset({"path", "branch"}),
    about="Files that say the package's version: pyproject.toml, package.json, Cargo.toml, VERSION.",
)
