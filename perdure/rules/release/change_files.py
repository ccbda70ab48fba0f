"""Change files: one small file a change, written with it and gone with the release that takes it over.

Read are changesets (``.changeset/*.md``), news fragments as towncrier names them (``123.bugfix.rst``, ``+x.misc.md``)
and fragments with sections of their own (``changelog.d/20261130_import.md`` with ``### Added``).
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from perdure.contracts.base import JsonDict
from perdure.errors import UserError
from perdure.rules.git_tree import CommitTree, join
from perdure.rules.release.changelog_items import read_items
from perdure.rules.release.entries import clean_text
from perdure.rules.release.versions import Bump
from perdure.workspace.git import Repository

_FOLDERS = ("changelog.d", "changes.d", "news", "newsfragments", "changes")
_MAY_HOLD_SECTIONS = ("changelog.d", "changes.d")
"""Where a file may have headings of its own; a ``news`` folder may as well be that of a web site."""
_CHANGESETS = ".changeset"
_PRE = "pre.json"
_TYPES: Mapping[str, tuple[str, Bump]] = {
    **dict.fromkeys(("feature", "features", "feat", "added", "add", "new"), ("Added", "minor")),
    **dict.fromkeys(("change", "changed", "enhancement", "improvement"), ("Changed", "minor")),
    **dict.fromkeys(("bugfix", "bug", "fix", "fixed"), ("Fixed", "patch")),
    **dict.fromkeys(("deprecation", "deprecated", "deprecate"), ("Deprecated", "minor")),
    **dict.fromkeys(("removal", "removed", "remove"), ("Removed", "major")),
    **dict.fromkeys(("breaking", "incompat", "major"), ("Changed", "major")),
    **dict.fromkeys(("security", "vulnerability"), ("Security", "patch")),
    **dict.fromkeys(("performance", "perf", "packaging", "vendor", "doc", "docs", "process"), ("Changed", "patch")),
    **dict.fromkeys(("misc", "trivial", "internal", "other"), ("Other", "patch")),
    "minor": ("Changed", "minor"),
    "patch": ("Fixed", "patch"),
}
_FRAGMENT = re.compile(
    r"(?P<issue>[^.]*(?:\.[^.]+)*?)\.(?P<type>[a-z]+)(?:\.\d+)?(?:\.(?:md|rst|txt|adoc))?", re.IGNORECASE
)
_NO_FRAGMENTS = frozenset({"readme", "template", "changelog", "index", "_template"})
_FRONT = re.compile(r"---[ \t]*\r?\n(?P<front>.*?)^---[ \t]*(?:\r?\n|\Z)(?P<text>.*)", re.DOTALL | re.MULTILINE)
_BUMPED = re.compile(r"""["']?(?P<package>[^"':]+)["']?[ \t]*:[ \t]*["']?(?P<bump>major|minor|patch|none)["']?[ \t]*""")
_CHANGESET_SECTIONS: Mapping[str, str] = {"major": "Changed", "minor": "Added", "patch": "Fixed"}


@dataclass(frozen=True)
class Change:
    """One change that a file tells of."""

    section: str
    text: str
    bump: Bump
    package: str = ""
    """Of a changeset: which package it is about; empty elsewhere."""

    def to_json(self) -> JsonDict:
        """Return plain JSON."""
        return {**vars(self)}


def find_change_files(repository: Repository, tree: CommitTree) -> tuple[list[JsonDict], list[str]]:
    """Return ([{path, changes: [{section, text, bump, package}]}], findings) of a package's folder, sorted by path.

    Changesets lie at the repository's root; the other folders in the package's own. A file that cannot be read as a
    change is left alone and named.
    """
    root = CommitTree(repository, tree.commit, "") if tree.folder else tree
    sets, said = find_changesets(root)
    fragments, more = find_fragments(tree)
    return sets + fragments, said + more


def find_changesets(root: CommitTree) -> tuple[list[JsonDict], list[str]]:
    """Return (files, findings) of the changesets at the repository's root, as :func:`find_change_files` does.

    Where their pre mode is being left (``changeset pre exit``) its file is one of them, with no change of its own.

    Raises:
        UserError: they are in pre mode: files that wait, listed, for a final version would be lost.
    """
    changesets = root.open_folder(_CHANGESETS)
    if changesets is None:
        return [], []
    files, findings = _sort_out(_read_changesets(changesets))
    return files + _read_pre_mode(changesets), findings


def leave_pre_mode(consumed: Iterable[str], files: Iterable[JsonDict]) -> list[str]:
    """Return what is taken over, sorted: the file of the pre mode only with the last changeset, for the others wait."""
    taken = set(consumed)
    mark, start = f"{_CHANGESETS}/{_PRE}", f"{_CHANGESETS}/"
    waits = {str(file["path"]) for file in files if file["path"].startswith(start)} - taken
    return sorted(taken - {mark} if waits else taken)


def find_fragments(tree: CommitTree) -> tuple[list[JsonDict], list[str]]:
    """Return (files, findings) of a package's own fragments, as :func:`find_change_files` does."""
    found: list[tuple[str, list[Change] | None]] = []
    for name in [configured] if (configured := _read_configured(tree)) else _FOLDERS:
        folder = tree.open_folder(name)
        found += _read_fragments(folder, may_hold_sections=name in _MAY_HOLD_SECTIONS) if folder else []
    return _sort_out(found)


def _sort_out(found: Iterable[tuple[str, list[Change] | None]]) -> tuple[list[JsonDict], list[str]]:
    files: list[JsonDict] = []
    findings: list[str] = []
    for path, changes in found:
        if changes is None:
            findings.append(f"{path} is left alone: it cannot be read as a change file.")
        else:
            files.append({"path": path, "changes": [change.to_json() for change in changes]})
    return files, findings


def _read_configured(tree: CommitTree) -> str:
    """The folder that ``[tool.towncrier]`` names in pyproject.toml; empty when there is none such in the commit."""
    try:
        data = tree.read("pyproject.toml") or b""
        tool = tomllib.loads(data.decode("utf-8")).get("tool", {})
        named = str(tool.get("towncrier", {}).get("directory", "")).strip("/")
        return named if named and ".." not in named.split("/") and tree.open_folder(named) else ""
    except (UserError, UnicodeDecodeError, tomllib.TOMLDecodeError, AttributeError):
        return ""


def _read_changesets(tree: CommitTree) -> Iterator[tuple[str, list[Change] | None]]:
    for name in tree.names:
        if name.endswith(".md") and name.lower() != "readme.md":
            yield join(tree.folder, name), _read_changeset(_decode(tree.read(name) or b""))


def _read_pre_mode(tree: CommitTree) -> list[JsonDict]:
    if _PRE not in tree.names:
        return []
    path = join(tree.folder, _PRE)
    try:
        mode = json.loads(_decode(tree.read(_PRE) or b"")).get("mode")
    except (ValueError, AttributeError):
        mode = None
    if mode != "exit":
        raise UserError(
            f"{path} says that changesets are in pre mode ({mode or 'unreadable'}), which is not supported. Leave it "
            "(`changeset pre exit`, and commit that): the final versions are then released from all that waited. "
            "pre=… makes pre-releases here."
        )
    return [{"path": path, "changes": []}]


def _read_fragments(tree: CommitTree, *, may_hold_sections: bool) -> Iterator[tuple[str, list[Change] | None]]:
    for name in tree.names:
        if name.startswith(".") or name.split(".")[0].lower() in _NO_FRAGMENTS or tree.has_folder(name):
            continue
        if _type_of(name) or (may_hold_sections and name.endswith(".md")):
            yield join(tree.folder, name), _read_fragment(name, _decode(tree.read(name) or b""))


def _decode(data: bytes) -> str:
    return data.decode("utf-8", "replace").removeprefix("\ufeff").replace("\r\n", "\n")


def _type_of(name: str) -> str:
    match = _FRAGMENT.fullmatch(name)
    return match["type"].lower() if match and match["type"].lower() in _TYPES else ""


def _read_fragment(name: str, text: str) -> list[Change] | None:
    kind = _type_of(name)
    if not kind:
        return _read_sections(text)
    section, bump = _TYPES[kind]
    match = _FRAGMENT.fullmatch(name)
    issue = match["issue"] if match else ""
    said = clean_text(text) or (f"#{issue}" if issue.isdigit() else "")
    reference = f" (#{issue})" if issue.isdigit() and f"#{issue}" not in said else ""
    return [Change(section, said + reference, bump)] if said else None


def _read_sections(text: str) -> list[Change] | None:
    """A fragment with headings of its own; ``None`` when it has none that says a kind of change."""
    found = [
        Change(*_TYPES[section.lower()][:1], clean_text(item), _TYPES[section.lower()][1])
        for section, item in read_items(text.splitlines(keepends=True), with_definitions=True)
        if section.lower() in _TYPES and clean_text(item)
    ]
    return found or None


def _read_changeset(text: str) -> list[Change] | None:
    """``None`` when it has no front matter; an empty list when it asks for no release."""
    match = _FRONT.match(text)
    if match is None:
        return None
    said = clean_text(match["text"])
    bumps = [found for line in match["front"].splitlines() if (found := _BUMPED.fullmatch(line.strip()))]
    lines = [line for line in match["front"].splitlines() if line.strip() and not line.strip().startswith("#")]
    if len(bumps) != len(lines):
        return None
    return [_write_changeset(found, said) for found in bumps if found["bump"] != "none" and said]


def _write_changeset(found: re.Match[str], text: str) -> Change:
    bump: Bump = "major" if found["bump"] == "major" else "minor" if found["bump"] == "minor" else "patch"
    return Change(_CHANGESET_SECTIONS[bump], text, bump, found["package"].strip())
