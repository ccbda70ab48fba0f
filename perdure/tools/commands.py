"""What a command touches, told from its words alone: the same thing said in another order of options is the same."""

from __future__ import annotations

import re
import shlex
from pathlib import PurePosixPath

from perdure.tools.places import escape

_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ash", "ksh"})
_WRAPPERS = frozenset({"env", "nice", "nohup", "time", "timeout", "stdbuf", "setsid", "command", "exec", "xargs"})
"""Programs that run what follows them."""
_ENDS = frozenset(";&|()\n")
_SUBSTITUTION = re.compile(r"\$\(|\)|`")
_DEEPEST = 3


def command_targets(argv: list[str]) -> list[str]:
    """Return ``command:`` and the words without options of each simple command that ``argv`` would run, sorted.

    ``sh -c`` is looked into as far as plain text goes. This is for permissions that guard and for remembering what was
    denied; it holds nothing back by itself: that is what the sandbox is for.
    """
    found = {_target(words) for words in _simple_commands(argv, 0)}
    return sorted(found) or ["command:"]


def _simple_commands(argv: list[str], depth: int) -> list[list[str]]:
    words = _unwrapped(argv)
    script = _script_of(words)
    if script is None or depth >= _DEEPEST:
        return [words] if words else []
    return [inner for part in split_script(script) for inner in _simple_commands(part, depth + 1)] or [words]


def split_script(script: str) -> list[list[str]]:
    """Split a shell's text into the words of its simple commands; what cannot be read is one command of one word."""
    lexer = shlex.shlex(script.replace("\n", " ; "), posix=True, punctuation_chars=";&|()")
    lexer.whitespace_split = True
    lexer.commenters = ""
    commands: list[list[str]] = [[]]
    try:
        for word in lexer:
            if word and set(word) <= _ENDS:
                commands.append([])
            else:
                commands[-1].append(word)
    except ValueError:
        return [[script]]
    found = [words for words in commands if words]
    return found + [inner for words in found for word in words for inner in _substituted(word)]


def _substituted(word: str) -> list[list[str]]:
    """Commands whose output stands in a word: ``"$(git push)"``."""
    if "$(" not in word and "`" not in word:
        return []
    return split_script(_SUBSTITUTION.sub(" ; ", word))


def _unwrapped(argv: list[str]) -> list[str]:
    """Drop assignments and programs that only run what follows, with their options and numbers."""
    words = list(argv)
    while words and (_is_assignment(words[0]) or PurePosixPath(words[0]).name in _WRAPPERS):
        words = words[1:]
        while words and (words[0].startswith("-") or words[0].rstrip("smhd").isdigit()):
            words = words[1:]
    return words


def _is_assignment(word: str) -> bool:
    name, sign, _ = word.partition("=")
    return bool(sign) and name.isidentifier()


def _script_of(words: list[str]) -> str | None:
    """The text that a shell would run; ``None`` when it is no shell with ``-c``."""
    if not words or PurePosixPath(words[0]).name not in _SHELLS:
        return None
    for place, word in enumerate(words[1:], 1):
        if word.startswith("-") and not word.startswith("--") and word.endswith("c") and place + 1 < len(words):
            return words[place + 1]
        if not word.startswith("-"):
            return None
    return None


def _target(words: list[str]) -> str:
    """The program's name and the words that are no options. The order stays: ``cp a b`` is not ``cp b a``."""
    if not words:
        return "command:"
    rest = [word for word in words[1:] if not word.startswith("-")]
    text = " ".join([PurePosixPath(words[0]).name or words[0], *rest])
    return "command:" + escape(text)
