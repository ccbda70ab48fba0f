"""Globs of workspaces: which folders they name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

_PIECES = re.compile(r"\*\*/|/\*\*|\*\*|\*|\?|\{[^{}]*\}")


def choose_folders(folders: Iterable[str], patterns: Sequence[str]) -> list[str]:
    """Return those of ``folders`` that the patterns name, sorted; ``!pattern`` takes away what came before it.

    ``*`` stays inside a name, ``**`` spans folders, ``{a,b-*}`` is either. Nothing inside ``node_modules`` is
    ever meant.
    """
    chosen: set[str] = set()
    listed = [folder for folder in folders if "node_modules" not in folder.split("/")]
    for pattern in patterns:
        wanted = _compile(pattern.removeprefix("!"))
        found = {folder for folder in listed if wanted.fullmatch(folder)}
        chosen = chosen - found if pattern.startswith("!") else chosen | found
    return sorted(chosen)


@lru_cache(maxsize=256)
def _compile(pattern: str) -> re.Pattern[str]:
    text = pattern.strip().removeprefix("./").rstrip("/")
    text = "" if text == "." else text
    return re.compile(_write_pattern(text))


def _write_pattern(text: str) -> str:
    out, at = [], 0
    for match in _PIECES.finditer(text):
        out += [re.escape(text[at : match.start()]), _translate(match[0])]
        at = match.end()
    return "".join([*out, re.escape(text[at:])])


def _translate(piece: str) -> str:
    plain = {"**/": r"(?:[^/]+/)*", "/**": r"(?:/[^/]+)*", "**": r".*", "*": r"[^/]*", "?": r"[^/]"}
    if piece in plain:
        return plain[piece]
    return "(?:" + "|".join(_write_pattern(one) for one in piece[1:-1].split(",")) + ")"
