"""Where string constants of a Python module stand in its text. The syntax tree is Python's own; nothing is run."""

from __future__ import annotations

import ast
import re
import warnings
from dataclasses import dataclass

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_PLAIN = re.compile(r"""(?:[rRuU]?)('''|\"\"\"|'|")(?P<body>.*)\1""", re.DOTALL)


@dataclass(frozen=True)
class Constant:
    """A plain string constant: its text and where it stands, quotes excluded."""

    value: str
    span: tuple[int, int]


class PythonText:
    """A module's syntax tree with positions in characters.

    Raises:
        ValueError: this Python cannot parse the text; the message says where.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._lines = _LINE.findall(text)
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line))
        self.tree = _parse(text)

    def read_constant(self, node: ast.expr | None) -> Constant | None:
        """Return a plain string constant; ``None`` for anything else, escapes and joined strings included."""
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            return None
        start = self._position(node.lineno, node.col_offset)
        end = self._position(node.end_lineno or node.lineno, node.end_col_offset or 0)
        match = _PLAIN.fullmatch(self._text, start, end)
        if match is None or match["body"] != node.value:
            return None
        return Constant(node.value, match.span("body"))

    def assignments(self, name: str) -> list[ast.expr]:
        """Return the values that ``name`` is given at the top of the module, in order."""
        values = []
        for node in self.tree.body:
            targets = node.targets if isinstance(node, ast.Assign) else []
            targets = [node.target] if isinstance(node, ast.AnnAssign) else targets
            if any(isinstance(target, ast.Name) and target.id == name for target in targets):
                values.append(node.value)  # type: ignore[attr-defined]  # only assignments have targets
        return [value for value in values if value is not None]

    def _position(self, line: int, column_bytes: int) -> int:
        before = self._lines[line - 1].encode("utf-8")[:column_bytes]
        return self._starts[line - 1] + len(before.decode("utf-8"))


def _parse(text: str) -> ast.Module:
    try:
        with warnings.catch_warnings():
            # Invalid escapes and the like are the project's business.
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except SyntaxError as error:
        raise ValueError(f"line {error.lineno}: {error.msg}") from None
    except (RecursionError, MemoryError):
        raise ValueError("it is nested too deeply") from None
