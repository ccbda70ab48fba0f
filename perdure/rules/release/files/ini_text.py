"""Where one-line values of an INI file stand, read by the rules of Python's ``configparser``."""

from __future__ import annotations

import re
from dataclasses import dataclass

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_SECTION = re.compile(r"\[(?P<name>[^\]]+)\]")
_PAIR = re.compile(r"(?P<key>[^\s=:#;][^=:]*?)[ \t]*[=:][ \t]*(?P<value>.*?)[ \t]*(?:\r?\n)?")


@dataclass(frozen=True)
class IniValue:
    """A value in one line."""

    text: str
    span: tuple[int, int]


def find_values(text: str) -> dict[tuple[str, str], IniValue]:
    """Return one-line values by (section, key in lower case). Values over several lines and empty ones are left out.

    Raises:
        ValueError: a key or section stands twice, so that readers would not agree.
    """
    values: dict[tuple[str, str], IniValue] = {}
    section, last, at = "", ("", ""), 0
    for line in _LINE.findall(text):
        bare = line.strip()
        if not bare or bare[0] in "#;":
            pass
        elif line[0] in " \t":
            values.pop(last, None)  # a continuation
        elif header := _SECTION.match(line):
            section = header["name"]
        elif pair := _PAIR.fullmatch(line):
            last = (section, pair["key"].lower())
            if last in values:
                raise ValueError(f"{section}.{last[1]} stands twice")
            values[last] = IniValue(pair["value"], (at + pair.start("value"), at + pair.end("value")))
        at += len(line)
    return {key: value for key, value in values.items() if value.text}
