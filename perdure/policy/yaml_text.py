"""YAML 1.2 read into plain data with the line of everything, and without its traps.

Fractions, dates and numbers that would not come back as they were written (``1.10``, ``007``) stay text; only plain
whole numbers, ``true``, ``false`` and ``null`` become values. Duplicate keys, merge keys (``<<``), tags and anchors
that blow up are refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from perdure.contracts.template import Place

SIZE_LIMIT_BYTES = 64 * 1024
NODE_LIMIT = 20_000
"""Values after every alias is written out."""
DEPTH_LIMIT = 30

_WHOLE_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,14}")
_WORDS: dict[str, bool | None] = {"": None, "~": None, "null": None, "Null": None, "NULL": None}
_WORDS |= {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_CORE = "tag:yaml.org,2002:"
_KNOWN_TAGS = {_CORE + name for name in ("str", "int", "float", "bool", "null", "timestamp", "map", "seq")}


class YamlProblem(Exception):
    """Why the text cannot be used, and on which line (from 1)."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line
        self.message = message


@dataclass
class YamlText:
    """What a YAML text says."""

    value: Any = None
    lines: dict[Place, int] = field(default_factory=dict)
    """Line (from 1) of every value by its place: that of the key, or of the item."""


def read_yaml(text: str) -> YamlText:
    """Read one YAML document.

    Raises:
        YamlProblem: it is no YAML, or uses what is refused. The first problem only: what follows could be nonsense.
    """
    if len(text.encode("utf-8", "surrogatepass")) > SIZE_LIMIT_BYTES:
        raise YamlProblem(1, f"The file is larger than {SIZE_LIMIT_BYTES} bytes.")
    node = _compose(text)
    if node is None:
        raise YamlProblem(1, "The file is empty.")
    reader = _Reader()
    return YamlText(reader.read(node, (), 1, node.start_mark.line + 1), reader.lines)


def _compose(text: str) -> Node | None:
    try:
        return YAML(typ="safe", pure=True).compose(text)  # type: ignore[no-any-return]
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise YamlProblem(
            mark.line + 1 if mark else 1, f"This is no YAML: {error.problem or error.context}."
        ) from error
    except YAMLError as error:
        raise YamlProblem(1, f"This is no YAML: {' '.join(str(error).split())}.") from error
    except RecursionError as error:
        raise YamlProblem(1, f"Values are nested more than {DEPTH_LIMIT} deep.") from error


class _Reader:
    """Turns nodes into data, counting what aliases expand to."""

    def __init__(self) -> None:
        self.lines: dict[Place, int] = {}
        self._nodes = 0

    def read(self, node: Node, place: Place, depth: int, line: int) -> Any:
        self._count(node, depth)
        self.lines[place] = line
        if isinstance(node, MappingNode):
            return self._read_mapping(node, place, depth)
        if isinstance(node, SequenceNode):
            return [
                self.read(item, (*place, position), depth + 1, item.start_mark.line + 1)
                for position, item in enumerate(node.value)
            ]
        return _read_scalar(node)

    def _count(self, node: Node, depth: int) -> None:
        line, self._nodes = node.start_mark.line + 1, self._nodes + 1
        if node.tag not in _KNOWN_TAGS:
            raise YamlProblem(line, f"The tag {node.tag} is not used here; write plain values.")
        if depth > DEPTH_LIMIT:
            raise YamlProblem(line, f"Values are nested more than {DEPTH_LIMIT} deep, or an anchor holds itself.")
        if self._nodes > NODE_LIMIT:
            raise YamlProblem(line, f"The file has more than {NODE_LIMIT} values once its aliases are written out.")

    def _read_mapping(self, node: MappingNode, place: Place, depth: int) -> dict[str, Any]:
        value: dict[str, Any] = {}
        for key_node, inner in node.value:
            line = key_node.start_mark.line + 1
            key = _read_key(key_node, line)
            if key in value:
                first = self.lines[(*place, key)]
                raise YamlProblem(line, f"The key {key!r} stands here twice, first on line {first}; keep one.")
            value[key] = self.read(inner, (*place, key), depth + 1, line)
        return value


def _read_key(node: Node, line: int) -> str:
    if node.tag == _CORE + "merge":
        raise YamlProblem(line, "Merge keys (<<) are not part of YAML 1.2; write the fields out.")
    if not isinstance(node, ScalarNode) or node.tag not in _KNOWN_TAGS:
        raise YamlProblem(line, "A key must be text.")
    return str(node.value)


def _read_scalar(node: Node) -> Any:
    text = str(node.value)
    if not isinstance(node, ScalarNode) or node.style is not None or node.tag == _CORE + "str":
        return text
    if text in _WORDS:
        return _WORDS[text]
    return int(text) if _WHOLE_NUMBER.fullmatch(text) else text
