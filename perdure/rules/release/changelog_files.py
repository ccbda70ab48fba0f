"""Which file is the changelog, how it is written, and what is waiting in it."""

from __future__ import annotations

import codecs
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from perdure.contracts.base import JsonDict
from perdure.errors import UserError
from perdure.rules.git_tree import CommitTree, join
from perdure.rules.release.changelog import Changelog, read_changelog
from perdure.rules.release.changelog_items import item_key, read_items
from perdure.rules.release.changelog_markup import MARKUPS

NEW_NAME = "CHANGELOG.md"

_STEMS = ("changelog", "changes", "history", "news", "releases", "release_notes", "release-notes", "releasenotes")
_ENDINGS = {
    ".md": "markdown", ".markdown": "markdown", ".rst": "rst", ".adoc": "asciidoc", ".asciidoc": "asciidoc",
    ".txt": "", "": "",
}  # fmt: skip
_FOLDERS = ("", "docs", "doc", "docs/source")
_VERSION_LINE = re.compile(r"^\W{0,6}(?:version|release)?\W{0,3}v?\d+\.\d+(?:\.\d+)?\b", re.IGNORECASE | re.MULTILINE)
_NOTHING = re.compile(
    r"(?:nothing (?:has )?changed(?: yet)?|no changes(?: yet)?|nothing yet|n/a|tbd|none)[.!]*", re.IGNORECASE
)
_LOOKED = 40
"""So many versions are looked at for the names of sections."""
_MOST_SECTIONS = 20
_MARKS = ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))


def describe_changelog(tree: CommitTree) -> tuple[JsonDict, list[str]]:
    """Return ({path, format, unreleased: [{section, text}], …}, findings) of a package's changelog in a commit.

    The first file with a known name that has versions or a section of what is to come is it, in the package's folder
    or its documentation; else the first that has a known name. ``format`` is a markup's name, ``absent`` (``path`` is
    the one to create) or ``unsupported`` (nothing is written). Where it has versions: ``sections`` are their
    headings, ``listed`` tells which version lists what is waiting too, ``becomes_release`` that its heading names one.

    Raises:
        UserError: it is a symbolic link, or what waits in it is not UTF-8.
    """
    first: tuple[JsonDict, list[str]] | None = None
    for path, ending, data in _find_files(tree):
        text = decode_changelog(data).removeprefix("\ufeff")
        form, changelog = _read(text, _ENDINGS[ending])
        if changelog is not None and (changelog.versions or changelog.unreleased):
            return {**_describe(path, form, _read_waiting(changelog, path)), **_describe_versions(changelog)}, []
        first = first or _explain(path, form, text, changelog)
    return first or (_describe(join(tree.folder, NEW_NAME), "absent"), [])


def read_released(tree: CommitTree, most: int) -> dict[str, list[str]]:
    """Return the items of a changelog's topmost ``most`` versions, by version as written; empty where none has any.

    Raises:
        UserError: the changelog is a symbolic link.
    """
    for _, ending, data in _find_files(tree):
        _, changelog = _read(decode_changelog(data).removeprefix("\ufeff"), _ENDINGS[ending])
        if changelog is not None and changelog.versions:
            return {
                one.version: [text for _, text in read_items(changelog.lines[one.body : one.end], changelog.markup)]
                for one in changelog.versions[:most]
            }
    return {}


def _find_files(tree: CommitTree) -> Iterator[tuple[str, str, bytes]]:
    """(path, ending, bytes) of every file with a changelog's name, in the order in which they count."""
    is_first = True
    for inside, name, ending in _find_names(tree):
        # A link in the first place is refused by reading it; later on another file is the changelog.
        if is_first or not inside.is_link(name):
            yield join(inside.folder, name), ending, inside.read(name) or b""
        is_first = False


def _find_names(tree: CommitTree) -> Iterator[tuple[CommitTree, str, str]]:
    for folder in _FOLDERS:
        inside = tree.open_folder(folder) if folder else tree
        by_lower = {name.lower(): name for name in reversed(inside.names)} if inside else {}
        for ending in _ENDINGS:
            for stem in _STEMS:
                name = by_lower.get(stem + ending)
                if inside and name and not inside.has_folder(name):
                    yield inside, name, ending


def _read(text: str, form: str) -> tuple[str, Changelog | None]:
    """Return (format, structure); plain text is taken for the markup that finds versions in it."""
    if form:
        return form, read_changelog(text, MARKUPS[form])
    for guess in ("rst", "markdown", "asciidoc"):
        changelog = read_changelog(text, MARKUPS[guess])
        if changelog.versions:
            return guess, changelog
    return "", None


def _explain(path: str, form: str, text: str, changelog: Changelog | None) -> tuple[JsonDict, list[str]]:
    """A file with a title at most is begun; where it has sections or versions of another kind, none is guessed."""
    if changelog is not None and not _VERSION_LINE.search(text) and not _has_sections(changelog):
        return _describe(path, form), []
    return _describe(path, "unsupported"), [
        f"{path} has no headings that name versions, so it is not extended: edit it by hand in the review."
    ]


def _has_sections(changelog: Changelog) -> bool:
    """Whether there is more than a title, and no mark that tells where to write."""
    return changelog.start_mark < 0 and len(changelog.markup.find_headings(changelog.lines)) > 1


def _read_waiting(changelog: Changelog, path: str) -> list[dict[str, Any]]:
    pending = changelog.unreleased
    if pending is None:
        return []
    items = read_items(changelog.lines[pending.body : pending.end], changelog.markup)
    if any("\udc80" <= char <= "\udcff" for _, item in items for char in item):
        raise UserError(f"{path} is not UTF-8 where it tells what is to come. Convert it to UTF-8 and commit it.")
    return [{"section": section, "text": item} for section, item in items if not _NOTHING.fullmatch(item)]


def decode_changelog(data: bytes) -> str:
    """Decode a changelog's bytes. Bytes that are not UTF-8 are kept aside, so that they come back as they were."""
    return data.decode(_encoding(data), "surrogateescape")


def encode_changelog(text: str, before: bytes, path: str) -> bytes:
    """Encode a text made from :func:`decode_changelog` of ``before`` in the same encoding.

    Raises:
        UserError: the file is not UTF-8 and what was added needs more than ASCII: nobody could read both.
    """
    old = decode_changelog(before)
    is_foreign = any("\udc80" <= char <= "\udcff" for char in old)
    if is_foreign and not set(text) <= set(old) | set(map(chr, range(128))):
        raise UserError(f"{path} is not UTF-8, and the new section is not ASCII. Convert it to UTF-8 and commit it.")
    return text.encode(_encoding(before), "surrogateescape")


def _encoding(data: bytes) -> str:
    return next((name for mark, name in _MARKS if data.startswith(mark)), "utf-8")


def _describe_versions(changelog: Changelog) -> JsonDict:
    pending = changelog.unreleased
    waiting = read_items(changelog.lines[pending.body : pending.end], changelog.markup) if pending else []
    wanted = {item_key(text) for _, text in waiting}
    counts: Counter[str] = Counter()
    listed: dict[str, str] = {}
    for one in changelog.versions if wanted else changelog.versions[:_LOOKED]:
        items = read_items(changelog.lines[one.body : one.end], changelog.markup)
        counts.update({" ".join(section.split()) for section, _ in items} - {""})
        listed.update({key: one.version for _, text in items if (key := item_key(text)) in wanted})
    sections = [name for name, _ in counts.most_common(_MOST_SECTIONS)]
    return {"sections": sections, "listed": listed, "becomes_release": bool(pending and not pending.keeps_heading)}


def _describe(path: str, form: str, unreleased: list[dict[str, Any]] | None = None) -> JsonDict:
    return {"path": path, "format": form, "unreleased": unreleased or []}
