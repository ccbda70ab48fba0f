"""Globs of workspaces: which folders they name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

_PIECES = re.compile(r"\*\*/|/\*\*|\*\*|\*|\?")
_INNERMOST = re.compile(r"\{([^{}]*,[^{}]*)\}")
_MOST_CHOICES = 1000
_PLAIN = {"**/": r"(?:[^/]+/)*", "/**": r"(?:/[^/]+)*", "**": r".*", "*": r"[^/]*", "?": r"[^/]"}


def choose_folders(folders: Iterable[str], patterns: Sequence[str]) -> list[str]:
    """Return those of ``folders`` that the patterns name, sorted; ``!pattern`` takes away what came before it.

    ``*`` stays inside a name, ``**`` spans folders, ``{a,b-{c,*}}`` is one of these. Nothing inside ``node_modules`` is
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
    return re.compile("|".join(f"(?:{_write_pattern(one)})" for one in _expand(text)))


def _expand(text: str) -> list[str]:
    """Every choice that braces give, the innermost first; too many of them stay as they are."""
    waiting, done = [text], list[str]()
    while waiting and len(waiting) + len(done) <= _MOST_CHOICES:
        one = waiting.pop()
        match = _INNERMOST.search(one)
        if match is None:
            done.append(one)
        else:
            waiting += [one[: match.start()] + choice + one[match.end() :] for choice in match[1].split(",")]
    return done if not waiting else [text]


def _write_pattern(text: str) -> str:
    out, at = [], 0
    for match in _PIECES.finditer(text):
        out += [re.escape(text[at : match.start()]), _PLAIN[match[0]]]
        at = match.end()
    return "".join([*out, re.escape(text[at:])])
