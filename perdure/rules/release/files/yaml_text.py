"""Where plain values of a YAML mapping stand. The parser is ruamel.yaml, whose nodes keep their marks."""

from __future__ import annotations

from dataclasses import dataclass

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, ScalarNode

# The parser reads 100,000 characters a second; these files have a few thousand.
_LIMIT_CHARACTERS = 256 * 1024


@dataclass(frozen=True)
class YamlValue:
    """A value in one line: its text and where it stands, quotes excluded."""

    text: str
    span: tuple[int, int]


def find_values(text: str) -> dict[str, YamlValue]:
    """Return the one-line values at the top of a mapping, by key. Numbers stay text (``1.10``).

    Raises:
        ValueError: it is no YAML, no mapping, or has a key twice.
    """
    if len(text) > _LIMIT_CHARACTERS:
        raise ValueError(f"it has {len(text)} characters; expected at most {_LIMIT_CHARACTERS}")
    try:
        root = YAML(typ="safe", pure=True).compose(text)
    except MarkedYAMLError as error:
        place = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        raise ValueError(f"{place}{error.problem or error.context}") from None
    except (YAMLError, RecursionError) as error:
        raise ValueError(str(error).splitlines()[0] if str(error) else "it is nested too deeply") from None
    if not isinstance(root, MappingNode):
        raise ValueError("it is no mapping")
    values: dict[str, YamlValue] = {}
    seen: set[str] = set()
    for key, value in root.value:
        if key.value in seen:
            raise ValueError(f"line {key.start_mark.line + 1}: {key.value!r} stands twice")
        seen.add(key.value)
        if isinstance(value, ScalarNode) and (found := _read(text, value)):
            values[key.value] = found
    return values


def _read(text: str, node: ScalarNode) -> YamlValue | None:
    """``None`` for values with escapes or over several lines."""
    start, end = node.start_mark.index, node.end_mark.index
    if node.style in ("'", '"'):
        start, end = start + 1, end - 1
    return YamlValue(node.value, (start, end)) if text[start:end] == node.value and node.value else None
