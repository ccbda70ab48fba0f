"""``*.gemspec``, ``lib/**/version.rb`` and the gem's own line in ``Gemfile.lock``."""

from __future__ import annotations

import re

from perdure.rules.release.files.base import Found, Place, VersionFormat, is_version_like, quoted_place
from perdure.rules.release.files.code_text import Code, mask_ruby

_SPECIFICATION = re.compile(r"\bGem::Specification\.new\b[^\n|]*(?:\bdo|\{)\s*\|\s*(?P<name>\w+)\s*\|")
_CONSTANT = re.compile(r"^[ \t]*(?:[A-Z]\w*::)*VERSION[ \t]*(?:\|\|)?=[ \t]*(?=[\"'])", re.MULTILINE)
_END = re.compile(r"(?:\.freeze)?[ \t]*(?:;|\r?$|if\b|unless\b)", re.MULTILINE)
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_OWN_GEM = re.compile(r"^ {4}(?P<name>\S+) \((?P<version>[^()\s]+)\)\r?$")


def find_gemspec(text: str) -> Found:
    """Find the string that the specification's ``version`` is given, or the local that holds it."""
    try:
        code = mask_ruby(text)
    except ValueError as error:
        return Found(notes=(f"it cannot be read as Ruby ({error}), so it is not written",))
    block = _SPECIFICATION.search(code.mask)
    if block is None:
        return Found(notes=("it holds no Gem::Specification.new block, so it is not written",))
    name = _assigned(code, text, rf"{re.escape(block['name'])}\.name")
    version = _assigned(code, text, rf"{re.escape(block['name'])}\.version")
    local = re.search(rf"^[ \t]*{re.escape(block['name'])}\.version[ \t]*=[ \t]*([a-z_]\w*)[ \t]*\r?$", code.mask, re.M)
    if version is None and local:
        version = _assigned(code, text, re.escape(local[1]))
    where = f"{block['name']}.version"
    places = (quoted_place(where, version[0], version[1]),) if version and is_version_like(version[0]) else ()
    return Found(places, name[0] if name else "")


def find_version_rb(text: str) -> Found:
    """Find the string constant ``VERSION``."""
    try:
        code = mask_ruby(text)
    except ValueError as error:
        return Found(notes=(f"it cannot be read as Ruby ({error}), so it is not written",))
    found = [_read(code, text, match.end()) for match in _CONSTANT.finditer(code.mask)]
    texts = [value for value in found if value and is_version_like(value[0])]
    if len(texts) != 1:
        return Found(notes=("it names no VERSION as one string, so it is not written",))
    return Found((quoted_place("VERSION", texts[0][0], texts[0][1], follows=True),))


def find_gemfile_lock(text: str) -> Found:
    """Find the gem that lies beside the lock: ``PATH``, ``remote: .``; ``key`` is its name."""
    places, block, remote, at = [], "", "", 0
    for line in _LINE.findall(text):
        match = _OWN_GEM.match(line.rstrip("\n"))
        if line[:1].strip():
            block, remote = line.strip(), ""
        elif line.startswith("  remote: "):
            remote = line.removeprefix("  remote: ").strip()
        elif match and block == "PATH" and remote == ".":
            start = at + match.start("version")
            places.append(Place(match["name"], match["version"], start, at + match.end("version"), key=match["name"]))
        at += len(line)
    return Found(tuple(places))


def _assigned(code: Code, text: str, target: str) -> tuple[str, tuple[int, int]] | None:
    """The string that a target is given; ``None`` when it is given none, or more than one."""
    matches = list(re.finditer(rf"^[ \t]*{target}[ \t]*=[ \t]*(?=[\"'])", code.mask, re.MULTILINE))
    return _read(code, text, matches[0].end()) if len(matches) == 1 else None


def _read(code: Code, text: str, quote: int) -> tuple[str, tuple[int, int]] | None:
    """The string whose opening quote stands there, when the statement ends with it."""
    span = code.strings.get(quote)
    if span is None or not _END.match(code.mask, span[1] + 1):
        return None
    return text[span[0] : span[1]], span


GEMSPEC = VersionFormat("gemspec", (), find_gemspec, patterns=("*.gemspec",))
VERSION_RB = VersionFormat("version-rb", (), find_version_rb, patterns=("lib/**/version.rb",))
GEMFILE_LOCK = VersionFormat("gemfile-lock", ("Gemfile.lock",), find_gemfile_lock, names_own_package=False)
