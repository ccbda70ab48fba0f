"""Ranges of versions in manifests: whether a version meets one, and how one follows a new version.

npm's, Cargo's and Poetry's ranges are comparators on semantic versions; Python's others are PEP 440 specifiers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import semver
from packaging.specifiers import InvalidSpecifier, SpecifierSet

_WORKSPACE = "workspace:"
_COMPARATOR = re.compile(r"(?P<op>\^|~>?|>=|<=|>|<|==?)?(?P<v>v?)(?P<version>[0-9xX*][0-9A-Za-z.*+-]*)")
_GLUED = re.compile(r"(\^|~>?|>=|<=|>|<|==?)\s+")
_HYPHEN = re.compile(r"(\S+)\s+-\s+(\S+)")
_SPECIFIER = re.compile(r"\s*(?P<op>~=|===?|!=|>=|<=|>|<)\s*(?P<version>[0-9][0-9A-Za-z.!+*_-]*)\s*")
_TOP = semver.Version(10**9, 0, 0)
_ANY = frozenset({"", "*", "x", "X", "latest"})


@dataclass(frozen=True)
class _Bound:
    """Versions from ``low`` on and below ``high``."""

    low: semver.Version
    high: semver.Version
    allows: str = ""
    """``major.minor.patch`` whose pre-releases may meet it; empty: none."""

    def holds(self, version: semver.Version) -> bool:
        return self.low <= version < self.high


def is_readable(style: str, text: str) -> bool:
    """Whether a text is a range at all: paths, addresses, aliases and catalogs are none and bind nobody."""
    if style == "npm" and text.startswith(_WORKSPACE):
        rest = text.removeprefix(_WORKSPACE)
        return rest in ("*", "^", "~") or _parse("npm", rest) is not None
    return _specifiers(text) is not None if style == "pep440" else _parse(style, text) is not None


def is_met(style: str, text: str, version: str, before: str) -> bool:
    """Whether ``version`` meets a readable range. ``before``: what the package was when the range was written.

    ``workspace:^`` is published as ``^before``, ``workspace:*`` as exactly that: what is published counts.
    """
    if style == "npm" and text.startswith(_WORKSPACE):
        rest = text.removeprefix(_WORKSPACE)
        text = f"{rest.replace('*', '')}{before}" if rest in ("*", "^", "~") else rest
    if style == "pep440":
        specifiers = _specifiers(text)
        return specifiers is not None and specifiers.contains(version, prereleases=True)
    try:
        found = semver.Version.parse(version)
    except ValueError:
        return False
    return any(_meets(alternative, found) for alternative in _parse(style, text) or ())


def follow(style: str, text: str, version: str) -> str:
    """Return the range as it reads for ``version``, in its own form; empty where no rule says how.

    ``^1.2`` becomes ``^2.0``; ``>=1.2,<2`` becomes ``>=2.0,<3``; ``workspace:*`` stays.
    """
    if style == "npm" and text.startswith(_WORKSPACE):
        rest = text.removeprefix(_WORKSPACE)
        if rest in ("*", "^", "~"):
            return text
        inner = follow("npm", rest, version)
        return f"{_WORKSPACE}{inner}" if inner else ""
    pieces = _split(style, text)
    if len(pieces) == 1:
        (op, v, old) = pieces[0]
        tries = [_follow_one(op, v, old, version), _follow_one(op, v, version, version)]
    else:
        tries = [_follow_pair(text, pieces, version)]
    return next((written for written in tries if written and is_met(style, written, version, version)), "")


def raise_to(style: str, text: str, version: str) -> str:
    """Return the range with a whole version in it raised; another one as it is: it goes on being met."""
    bare = text.removeprefix(_WORKSPACE) if style == "npm" else text
    pieces = _split(style, bare)
    if len(pieces) == 1 and pieces[0][0] in ("", "^", "~", "=", "~=") and pieces[0][2].count(".") >= 2:
        return follow(style, text, version) or text
    return text


def _split(style: str, text: str) -> list[tuple[str, str, str]]:
    """(operator, ``v``, version) of each comparator; empty when the text has alternatives or is of another form."""
    if style == "pep440":
        matches = [_SPECIFIER.fullmatch(part) for part in text.split(",") if part.strip()]
        return [(match["op"], "", match["version"]) for match in matches if match] if all(matches) else []
    words = _words(text)
    found = [_COMPARATOR.fullmatch(word) for word in words]
    if "||" in text or _HYPHEN.search(text) or not all(found):
        return []
    return [(match["op"] or "", match["v"], match["version"]) for match in found if match]


def _follow_one(op: str, v: str, old: str, version: str) -> str:
    """The same operator on the new version, with as many numbers as before, or with all of them."""
    return "" if op in (">", "<", "<=", "!=") else f"{op}{v}{_as_wide(old, version)}"


def _follow_pair(text: str, pieces: Sequence[tuple[str, str, str]], version: str) -> str:
    """``>=a,<b`` where b is the next major or minor version after a."""
    if [piece[0] for piece in pieces] != [">=", "<"]:
        return ""
    (_, _, low), (_, _, high) = pieces
    old, end, new = _numbers(low), _numbers(high), _numbers(version)
    if end[:1] == [old[0] + 1] and not any(end[1:]):
        after = [new[0] + 1]
    elif end[:2] == [old[0], old[1] + 1] and not any(end[2:]):
        after = [new[0], new[1] + 1]
    else:
        return ""
    wide = len(high.split("."))
    upper = ".".join(map(str, [*after, 0, 0, 0][: max(wide, len(after))]))
    return text.replace(low, _as_wide(low, version), 1)[::-1].replace(high[::-1], upper[::-1], 1)[::-1]


def _as_wide(old: str, version: str) -> str:
    """``version`` with as many numbers as ``old``; wildcards stay. A pre-release is written whole."""
    parts = old.split(".")
    numbers = re.split(r"[-+]", version, maxsplit=1)[0].split(".")
    if len(parts) >= len(numbers) and not set(parts) & {"x", "X", "*"}:
        return version
    if numbers != version.split("."):
        return version
    return ".".join(part if part in ("x", "X", "*") else number for part, number in zip(parts, numbers, strict=False))


def _numbers(text: str) -> list[int]:
    found = [int(number) for number in re.findall(r"\d+", re.split(r"[-+]", text, maxsplit=1)[0])]
    return [*found, 0, 0, 0][: max(3, len(found))]


def _specifiers(text: str) -> SpecifierSet | None:
    try:
        return SpecifierSet(text)
    except InvalidSpecifier:
        return None


def _words(text: str) -> list[str]:
    return [word for word in re.split(r"[\s,]+", _GLUED.sub(r"\1", text.strip())) if word]


def _parse(style: str, text: str) -> list[list[_Bound]] | None:
    """Return alternatives, each a list of bounds that must all hold; ``None`` when it is no range."""
    alternatives = []
    for part in text.split("||"):
        hyphen = _HYPHEN.fullmatch(part.strip())
        words = [f">={hyphen[1]}", f"<={hyphen[2]}"] if hyphen else _words(part)
        bounds = [_read(style, word) for word in words if word not in _ANY]
        if any(bound is None for bound in bounds):
            return None
        alternatives.append([bound for bound in bounds if bound is not None])
    return alternatives


def _meets(bounds: Sequence[_Bound], version: semver.Version) -> bool:
    if not all(bound.holds(version) for bound in bounds):
        return False
    place = f"{version.major}.{version.minor}.{version.patch}"
    return not version.prerelease or any(bound.allows == place for bound in bounds)


def _read(style: str, word: str) -> _Bound | None:
    match = _COMPARATOR.fullmatch(word)
    if match is None:
        return None
    written = re.split(r"[+]", match["version"])[0]
    numbers, _, label = written.partition("-")
    parts = [int(part) for part in numbers.split(".") if part.isdigit()][:3]
    has_wildcard = any(part in ("x", "X", "*") for part in numbers.split("."))
    try:
        low = semver.Version.parse(".".join(map(str, [*parts, 0, 0, 0][:3])) + (f"-{label}" if label else ""))
    except ValueError:
        return None
    allows = f"{low.major}.{low.minor}.{low.patch}" if label else ""
    op = match["op"] or ("^" if style == "cargo" and not has_wildcard else "")
    return _bound(op, low, parts, allows)


def _bound(op: str, low: semver.Version, parts: Sequence[int], allows: str) -> _Bound:
    floor = semver.Version(0, 0, 0)
    if op == "^":
        return _Bound(low, _caret_end(parts), allows)
    if op.startswith("~"):
        return _Bound(low, _next(parts[:2]), allows)
    if op == ">=":
        return _Bound(low, _TOP, allows)
    if op == ">":
        return _Bound(_next(parts), _TOP, allows)
    if op == "<":
        return _Bound(floor, low, allows)
    if op == "<=":
        return _Bound(floor, _next(parts), allows)
    end = _next(parts) if len(parts) < 3 else semver.Version(low.major, low.minor, low.patch + 1)
    return _Bound(low, low.bump_prerelease() if low.prerelease else end, allows)


def _next(parts: Sequence[int]) -> semver.Version:
    """The first version after all that begin with these numbers."""
    if not parts:
        return _TOP
    raised = [*parts[:-1], parts[-1] + 1, 0, 0]
    return semver.Version(*raised[:3])


def _caret_end(parts: Sequence[int]) -> semver.Version:
    """The first number that is not zero may not grow."""
    for place, number in enumerate(parts):
        if number:
            return _next(parts[: place + 1])
    return _next(parts)
