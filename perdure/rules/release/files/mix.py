"""``mix.exs``: ``version:`` in the list that ``project`` gives, or the attribute that it names."""

from __future__ import annotations

import re

from perdure.rules.release.files.base import Found, VersionFormat, is_version_like, quoted_place
from perdure.rules.release.files.code_text import Code, mask_elixir

_PROJECT = re.compile(r"\bdef[ \t]+project\b(?:\(\))?[ \t]*(?:,[ \t]*do:|do)\s*(?=\[)")
_KEY = re.compile(r"(?<![\w@:.])(?P<key>version|app):[ \t\r\n]*(?P<value>@\w+|:\w+|\")")


def find_mix(text: str) -> Found:
    """Find the project's version: dependencies and other lists have versions of their own."""
    try:
        code = mask_elixir(text)
    except ValueError as error:
        return Found(notes=(f"it cannot be read as Elixir ({error}), so it is not written",))
    project = _PROJECT.search(code.mask)
    values = _top_values(code.mask, project.end()) if project else {}
    name = values.get("app", (0, ""))[1].lstrip(":")
    start, value = values.get("version", (0, ""))
    where = "project.version"
    if value.startswith("@"):
        where, start = value, _find_attribute(code, value)
    span = code.strings.get(start)
    if span is None or not is_version_like(text[slice(*span)]):
        return Found((), name, ("its version is computed, so it is not written",))
    return Found((quoted_place(where, text[slice(*span)], span),), name)


def _top_values(mask: str, start: int) -> dict[str, tuple[int, str]]:
    """(position, first characters) of values in the list that begins at ``start``, not of those in lists inside."""
    values: dict[str, tuple[int, str]] = {}
    depth, at = 0, start
    while at < len(mask):
        depth += (mask[at] in "[{(") - (mask[at] in "]})")
        match = _KEY.match(mask, at) if depth == 1 else None
        if match:
            values.setdefault(match["key"], (match.start("value"), match["value"]))
        if not depth:
            break
        at += 1
    return values


def _find_attribute(code: Code, name: str) -> int:
    """The opening quote of the string that a module attribute is given once; -1 when it is not."""
    matches = list(re.finditer(rf"^[ \t]*{re.escape(name)}[ \t]+(?=\")", code.mask, re.MULTILINE))
    return matches[0].end() if len(matches) == 1 else -1


MIX = VersionFormat("mix", ("mix.exs",), find_mix)
