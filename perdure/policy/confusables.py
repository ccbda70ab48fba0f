"""Names that look like other names: mixed scripts, letters borrowed from another alphabet, invisible characters."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from perdure.contracts.base import path_bytes
from perdure.contracts.visible import is_invisible, visible, visible_bytes

_WORD = re.compile(r"[^\W\d_]+")

_CYRILLIC, _LOOKS_CYRILLIC = "авсԁеһіјкӏмнорԛѕтԝхуАВСЕНІЈКМОРЅТХУԜ", "abcdehijklmhopqstwxyABCEHIJKMOPSTXYW"
_GREEK, _LOOKS_GREEK = "αικνορτυχΑΒΕΖΗΙΚΜΝΟΡΤΥΧ", "aiknoptuxABEZHIKMNOPTYX"
_LOOKALIKE = str.maketrans(_CYRILLIC + _GREEK, _LOOKS_CYRILLIC + _LOOKS_GREEK)
"""The letters of UTS #39 that common fonts draw alike; enough to warn, not a proof that a name is harmless."""

_TRUSTED_MIXES = (
    frozenset({"CJK", "HIRAGANA", "KATAKANA", "LATIN"}),
    frozenset({"CJK", "HANGUL", "LATIN"}),
    frozenset({"CJK", "BOPOMOFO", "LATIN"}),
)
"""Scripts that people do write in one word (UTS #39, "highly restrictive")."""


def confusing_name(path: str) -> str:
    """Say why a path (``path_text`` form) could be taken for another one; empty when it could not."""
    raw = path_bytes(path)
    try:
        name = raw.decode("utf-8")
    except UnicodeDecodeError:
        return "its name is no UTF-8"
    if any(is_invisible(char) for char in name):
        return "its name holds characters that cannot be seen"
    plain = unicodedata.normalize("NFKC", name)
    if plain != unicodedata.normalize("NFC", name):
        return f"its name is drawn like '{visible(plain)}'"
    if any(part != part.rstrip(" .") or part != part.lstrip(" ") for part in name.split("/")):
        return "a part of its name begins or ends with a space or a dot that is easily overlooked"
    return _explain_scripts(name)


def colliding_names(paths: Iterable[str]) -> list[tuple[str, str]]:
    """Return pairs of paths that a case-folding or normalising file system would take for one file, sorted."""
    seen: dict[str, str] = {}
    pairs = []
    for path in sorted(set(paths)):
        key = _fold(path)
        if key in seen:
            pairs.append((seen[key], path))
        seen.setdefault(key, path)
    return pairs


def _fold(path: str) -> str:
    text = visible_bytes(path_bytes(path)).translate(_LOOKALIKE)
    return unicodedata.normalize("NFKC", text).casefold()


def _explain_scripts(name: str) -> str:
    for word in _WORD.findall(name):
        scripts = {_script(char) for char in word}
        if len(scripts) > 1 and not any(scripts <= mix for mix in _TRUSTED_MIXES):
            return f"'{word}' in its name mixes letters of {_join(scripts)}"
        skeleton = word.translate(_LOOKALIKE)
        if not word.isascii() and skeleton.isascii():
            return f"'{word}' in its name is written in {_join(scripts)} letters that look like '{skeleton}'"
    return ""


def _script(char: str) -> str:
    return unicodedata.name(char, "UNKNOWN").split(maxsplit=1)[0].split("-")[0]


def _join(scripts: set[str]) -> str:
    return " and ".join(sorted(script.capitalize() for script in scripts))
