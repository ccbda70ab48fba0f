"""Which file is the changelog, and what is waiting in it."""

from __future__ import annotations

from typing import Any

from perdure.contracts.base import JsonDict
from perdure.errors import UserError
from perdure.rules.git_tree import CommitTree, join
from perdure.rules.release.changelog import has_foreign_headings, read_changelog, read_items

NEW_NAME = "CHANGELOG.md"

_MARKDOWN = ("changelog.md", "changes.md", "history.md", "news.md", "releases.md")
_OTHER_ENDINGS = (".rst", ".adoc", ".txt", "")
_OTHERS = tuple(stem + ending for stem in ("changelog", "changes", "history", "news") for ending in _OTHER_ENDINGS)


def describe_changelog(tree: CommitTree) -> tuple[JsonDict, list[str]]:
    """Return ({path, format, unreleased: [{section, text}]}, findings) of the changelog in a folder of a commit.

    ``format`` is ``markdown``, ``absent`` (``path`` is the one to create) or ``unsupported`` (nothing is written).

    Raises:
        UserError: it is a symbolic link or not UTF-8.
    """
    name = _find_name(tree.names, _MARKDOWN) or _find_name(tree.names, _OTHERS)
    path = join(tree.folder, name or NEW_NAME)
    if not name or tree.has_folder(name):
        return _describe(path, "absent"), []
    text = decode_changelog(tree.read(name) or b"", path)
    if name.lower() not in _MARKDOWN:
        return _describe(path, "unsupported"), [f"{path} is not Markdown, so it is not extended yet: edit it by hand."]
    if has_foreign_headings(text):
        return _describe(path, "unsupported"), [f"{path} underlines its headings, so it is not extended yet."]
    changelog = read_changelog(text.removeprefix("\ufeff"))
    if changelog.unreleased is None:
        return _describe(path, "markdown"), []
    heading, end = changelog.unreleased
    items = read_items(changelog.lines[heading + 1 : end])
    return _describe(path, "markdown", [{"section": section, "text": item} for section, item in items]), []


def decode_changelog(data: bytes, path: str) -> str:
    """Decode a changelog's bytes; encoding the result gives the same bytes.

    Raises:
        UserError: it is not UTF-8.
    """
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not UTF-8 (byte {error.start}). Convert it to UTF-8 and commit it.") from None


def _find_name(names: list[str], wanted: tuple[str, ...]) -> str:
    by_lower: dict[str, str] = {name.lower(): name for name in reversed(names)}
    return next((by_lower[name] for name in wanted if name in by_lower), "")


def _describe(path: str, form: str, unreleased: list[dict[str, Any]] | None = None) -> JsonDict:
    return {"path": path, "format": form, "unreleased": unreleased or []}
