"""Which characters of Ruby and Elixir source are code: comments, strings and heredocs are found and masked.

No parser of either language keeps positions in Python. Only literals matter here, so this walks over them and nothing
else; what it cannot follow (an unclosed literal) is an error, never a guess.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_CLOSING = {"(": ")", "[": "]", "{": "}", "<": ">"}
_HEREDOC = re.compile(r"<<[~-]?(?P<quote>[\"'`]?)(?P<name>[A-Z_][A-Za-z0-9_]*)(?P=quote)")
_PERCENT = re.compile(r"%(?P<kind>[qQwWiIrsx]?)(?P<open>[^\w\s=])")
_SIGIL = re.compile(r"~(?P<kind>[a-zA-Z]+)(?P<open>\"\"\"|'''|[/|\"'(\[{<])")
_LOOK_BACK = 80
_OPERATORS = frozenset("\n(,=~|&{[;!?:<>+*-")
_KEYWORD = re.compile(r"\b(?:if|unless|when|and|or|not|while|return|in|do|then)\Z")


@dataclass
class Code:
    """A source text with everything that is no code blanked."""

    mask: str
    """As long as the text; line ends and quotes are kept, the insides of literals and comments are blanks."""
    strings: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Plain one-line strings: position of the opening quote → span of the inside."""


def mask_ruby(text: str) -> Code:
    """Mask Ruby source. Raises ``ValueError`` for a literal that does not end."""
    return _Scanner(text, is_ruby=True).scan()


def mask_elixir(text: str) -> Code:
    """Mask Elixir source. Raises ``ValueError`` for a literal that does not end."""
    return _Scanner(text, is_ruby=False).scan()


class _Scanner:
    def __init__(self, text: str, *, is_ruby: bool) -> None:
        self._text, self._is_ruby = text, is_ruby
        self._mask = list(text)
        self._strings: dict[int, tuple[int, int]] = {}
        self._heredocs: list[str] = []
        self._at = 0

    def scan(self) -> Code:
        try:
            self._take_line_start()
            self._walk("")
        except RecursionError:
            raise ValueError("it is nested too deeply") from None
        return Code("".join(self._mask), self._strings)

    def _walk(self, closing: str) -> None:
        """Walk over code up to the end, or to the brace that closes an interpolation."""
        depth = 0
        while self._at < len(self._text):
            char = self._text[self._at]
            if closing and char == closing and not depth:
                return
            depth += (char == "{") - (char == "}") if closing else 0
            if not self._take_literal(char):
                self._at += 1
        if closing:
            raise ValueError("an interpolation does not end")

    def _take_literal(self, char: str) -> bool:
        """Take a comment or literal that begins here; whether there was one."""
        if char == "\n":
            self._at += 1
            self._take_line_start()
        elif char == "#":
            self._blank_to(self._line_end())
        elif char in "\"'`":
            self._take_string(char)
        elif char == "?" and self._is_character():
            self._blank_to(self._at + 2)
        else:
            return self._take_ruby(char) if self._is_ruby else self._take_elixir(char)
        return True

    def _is_character(self) -> bool:
        """``?x``, not the end of a name such as ``empty?``."""
        before, after = self._text[self._at - 1 : self._at], self._text[self._at + 1 : self._at + 2]
        return not before.isalnum() and before != "_" and bool(after.strip())

    def _take_line_start(self) -> None:
        for name in self._heredocs:
            end = re.compile(rf"^[ \t]*{re.escape(name)}[ \t]*\r?$", re.MULTILINE).search(self._text, self._at)
            if end is None:
                raise ValueError(f"the heredoc {name} does not end")
            self._blank_to(end.end())
        self._heredocs.clear()
        if self._is_ruby and self._text.startswith("=begin", self._at):
            end = re.compile(r"^=end\b", re.MULTILINE).search(self._text, self._at)
            self._blank_to(end.end() if end else len(self._text))
        elif self._is_ruby and re.compile(r"__END__\r?(?:\n|\Z)").match(self._text, self._at):
            self._blank_to(len(self._text))

    def _take_string(self, quote: str) -> None:
        start = self._at
        triple = quote * 3
        is_long = not self._is_ruby and self._text.startswith(triple, start)
        mark = triple if is_long else quote
        self._at += len(mark)
        self._take_inside("", mark, has_interpolation=quote != "'" or not self._is_ruby, start=start)
        inside = (start + len(mark), self._at - len(mark))
        if not is_long and "\n" not in self._text[inside[0] : inside[1]]:
            self._strings[start] = inside

    def _take_inside(self, opening: str, closing: str, *, has_interpolation: bool, start: int) -> None:
        """Blank a literal's inside and step over its end."""
        depth = 0
        while not (self._text.startswith(closing, self._at) and not depth):
            if self._at >= len(self._text):
                raise ValueError(f"the literal that begins at character {start} does not end")
            char = self._text[self._at]
            if char == "\\":
                self._blank_to(self._at + 2)
            elif has_interpolation and self._text.startswith("#{", self._at):
                begin, self._at = self._at, self._at + 2
                self._walk("}")
                end, self._at = self._at + 1, begin
                self._forget_strings(begin)
                self._blank_to(end)
            else:
                depth += bool(opening) and (char == opening) - (char == closing)
                self._blank_to(self._at + 1)
        self._at += len(closing)

    def _forget_strings(self, begin: int) -> None:
        """Strings inside an interpolation are part of another one."""
        while self._strings and next(reversed(self._strings)) >= begin:
            self._strings.popitem()

    def _take_ruby(self, char: str) -> bool:
        heredoc = _HEREDOC.match(self._text, self._at) if char == "<" else None
        percent = _PERCENT.match(self._text, self._at) if char == "%" and self._expects_operand() else None
        if heredoc:
            self._heredocs.append(heredoc["name"])
            self._at = heredoc.end()
        elif percent:
            self._take_delimited(percent["open"], percent.end(), percent["kind"] not in ("q", "w", "i", "s"))
        elif char == "/" and self._expects_operand():
            self._take_delimited("/", self._at + 1, True)
        else:
            return False
        return True

    def _take_elixir(self, char: str) -> bool:
        sigil = _SIGIL.match(self._text, self._at) if char == "~" else None
        if sigil is None:
            return False
        self._take_delimited(sigil["open"], sigil.end(), sigil["kind"][0].islower())
        return True

    def _take_delimited(self, opening: str, begin: int, has_interpolation: bool) -> None:
        start, self._at = self._at, begin
        closing = _CLOSING.get(opening, opening)
        nested = opening if opening in _CLOSING else ""
        self._take_inside(nested, closing, has_interpolation=has_interpolation, start=start)

    def _expects_operand(self) -> bool:
        """Whether a literal can begin here, where a division or a remainder could stand too."""
        # A bounded look back: a line may be a million characters long.
        before = "".join(self._mask[max(self._at - _LOOK_BACK, 0) : self._at]).rstrip(" \t")
        return not before or before[-1] in _OPERATORS or bool(_KEYWORD.search(before[-10:]))

    def _line_end(self) -> int:
        end = self._text.find("\n", self._at)
        return len(self._text) if end < 0 else end

    def _blank_to(self, end: int) -> None:
        end = min(end, len(self._text))
        for place in range(self._at, end):
            if self._mask[place] not in "\r\n":
                self._mask[place] = " "
        self._at = end
