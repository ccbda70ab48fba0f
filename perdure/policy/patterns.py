"""Patterns of names, words and targets: a few signs, matched in time that a pattern cannot blow up."""

from __future__ import annotations

from collections.abc import Iterator

LONGEST = 20_000
"""Characters of a text that is still looked at."""

_ANY, _WITHIN, _ONE = object(), object(), object()


def matches(pattern: str, text: str, *, broad: bool = False) -> bool:
    """Whether ``text`` as a whole is what ``pattern`` describes, letter case counting.

    ``**`` stands for anything, ``*`` for anything without ``/``, ``?`` for one character but ``/``; ``*`` alone is
    ``**``. ``broad`` reads each of them as going over ``/`` too: rules that refuse are read broadly, rules that allow
    narrowly, so that ``https://*.example.org/**`` is not widened by a path that holds the name.

    Takes time proportional to both lengths multiplied, whatever they hold; regular expressions would not. Of a text
    longer than :data:`LONGEST` only ``**`` is known to match: in doubt a broad pattern matches and a narrow one does
    not.
    """
    if pattern in ("*", "**"):
        return True
    if len(text) > LONGEST:
        return broad
    signs = list(_read(pattern))
    reached = _skip_stars({0}, signs)
    for character in text:
        reached = _skip_stars(set(_step(reached, signs, character, broad=broad)), signs)
        if not reached:
            return False
    return len(signs) in reached


def glob_matches(pattern: str, path: str) -> bool:
    """Whether a path matches a glob; ``**`` between slashes stands for any folders, none too."""
    return _match_parts(pattern.removeprefix("./").split("/"), path.split("/"))


def _match_parts(patterns: list[str], parts: list[str]) -> bool:
    """Part by part, keeping which patterns are done so far: no glob can blow it up."""
    reached = _skip_folders({0}, patterns)
    for part in parts:
        following = set()
        for place in reached:
            if place < len(patterns):
                is_any = patterns[place] == "**"
                if is_any or matches(patterns[place], part):
                    following.add(place if is_any else place + 1)
        reached = _skip_folders(following, patterns)
    return len(patterns) in reached


def _skip_folders(reached: set[int], patterns: list[str]) -> set[int]:
    for place in sorted(reached):
        while place < len(patterns) and patterns[place] == "**":
            place += 1
            reached.add(place)
    return reached


def _read(pattern: str) -> Iterator[object]:
    at = 0
    while at < len(pattern):
        if pattern.startswith("**", at):
            yield _ANY
            at += 2
            continue
        yield {"*": _WITHIN, "?": _ONE}.get(pattern[at], pattern[at])
        at += 1


def _skip_stars(reached: set[int], signs: list[object]) -> set[int]:
    """Add the places behind stars: each may stand for nothing."""
    for place in sorted(reached):
        while place < len(signs) and signs[place] in (_ANY, _WITHIN):
            place += 1
            reached.add(place)
    return reached


def _step(reached: set[int], signs: list[object], character: str, *, broad: bool) -> Iterator[int]:
    is_inside = broad or character != "/"
    for place in reached:
        sign = signs[place] if place < len(signs) else None
        if sign is _ANY or (sign is _WITHIN and is_inside):
            yield place
        elif sign == character or (sign is _ONE and is_inside):
            yield place + 1
