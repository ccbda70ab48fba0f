"""The list items of a changelog's section, with the headings that they stand under."""

from __future__ import annotations

import re
from collections.abc import Sequence

from perdure.rules.release.changelog_markup import MARKUPS, Markup
from perdure.rules.release.markdown_text import Hidden, is_definition

BULLET = re.compile(r"( *)([-*+])[ \t]+(.*)")


def read_items(
    lines: Sequence[str], markup: Markup = MARKUPS["markdown"], *, with_definitions: bool = False
) -> list[tuple[str, str]]:
    """Return (section, text) of the list items and paragraphs in a section's body.

    Sections are the headings inside it; before the first one it is empty. Texts keep their lines, without the bullet
    and the indent it asks for. Comments are passed over, and link definitions too (see :func:`find_kept`);
    ``with_definitions`` keeps those as text, for a file that is removed once it is read.
    """
    headings = markup.find_headings(lines)
    hidden = markup.hide(lines) if with_definitions else _hide(lines, markup)
    begins = [("", 0), *((heading.text, heading.body) for heading in headings)]
    ends = [*(heading.line for heading in headings), len(lines)]
    return [
        (name, item)
        for (name, begin), end in zip(begins, ends, strict=True)
        for item in _read_list(lines[begin:end], hidden[begin:end])
    ]


def _read_list(lines: Sequence[str], hidden: Sequence[Hidden]) -> list[str]:
    """Texts of the list items and paragraphs between two headings; lists may be indented as a whole."""
    bullets = {
        number: match
        for number, line in enumerate(lines)
        if not hidden[number] and (match := BULLET.fullmatch(line.rstrip("\r\n")))
    }
    indent = min((len(match[1]) for match in bullets.values()), default=0)
    items: list[list[str]] = []
    for number, line in enumerate(lines):
        bullet = bullets.get(number)
        if hidden[number] == "comment":
            continue
        if bullet and len(bullet[1]) <= indent + 1:
            items.append([bullet[3].rstrip()])
        elif items and (hidden[number] or _continues(line, items[-1][-1])):
            items[-1].append(_unindent(line, indent + 2))
        elif line.strip():
            items.append([line.strip()])
    return ["\n".join(item).strip() for item in items]


def _continues(line: str, above: str) -> bool:
    """Whether a line belongs to the item before it: indented, blank, or right below its text."""
    return line[:1] in (" ", "\t") or not line.strip() or bool(above.strip())


def find_kept(lines: Sequence[str], markup: Markup = MARKUPS["markdown"]) -> list[str]:
    """Return the lines that stay when a section is emptied.

    Those are comments, in which a project tells something to its writers, and link definitions: other sections use
    them too.
    """
    hidden = _hide(lines, markup)
    return [line for number, line in enumerate(lines) if hidden[number] == "comment"]


def _hide(lines: Sequence[str], markup: Markup) -> list[Hidden]:
    """As the markup hides lines; link definitions count as comments, for they show nothing either."""
    hidden = markup.hide(lines)
    if markup.name != "markdown":
        return hidden
    return [
        "comment" if not hidden[number] and is_definition(line) else hidden[number] for number, line in enumerate(lines)
    ]


def _unindent(line: str, width: int) -> str:
    """Drop up to ``width`` blanks at the beginning."""
    text = line.rstrip().expandtabs(4)
    return text[min(width, len(text) - len(text.lstrip(" "))) :]


def item_key(text: str) -> str:
    """What two items have in common that say the same: case, blanks and the last full stop aside."""
    return " ".join(text.casefold().split()).rstrip(".")
