"""Commits that only announce a version: ``chore(release): 1.2.0``, ``Bump version to 1.2.0``, ``v1.2.0``."""

from __future__ import annotations

import re

from perdure.rules.release.gitmoji import strip_gitmoji

_LONGEST = 120
"""Nobody announces a version in a longer subject, and the patterns below are not made for 97 kB."""

_PREFIX = re.compile(r"(?P<type>chore|build|ci|release|bump|version)(?:\((?P<scope>[^()]*)\))?!?: *", re.IGNORECASE)
_REQUEST = re.compile(r" *\((?:#|!)\d+\)$")
_VERSION = re.compile(r"(?P<package>[\w@/-]*?[-/@_])??v?(?P<version>\d+(?:\.\d+)+[\w.+-]*?)\.?", re.IGNORECASE)
_MARKS = frozenset(
    "release releasing released publish publishing bump bumped bumping version tag [release]".split()  # noqa: SIM905
)
_LINKS = frozenset("prepare preparing cut for from to the of new next → -> -->".split())  # noqa: SIM905
_BARE = frozenset(
    {
        "release",
        "bump version",
        "version bump",
        "cut release",
        "new release",
        "prepare release",
        "bump version for release",
    }
)
"""What announces a version without naming it."""

_NAMES_A_PACKAGE = frozenset({"release", "releasing", "publish"})
_NO_PACKAGES = frozenset({"", "release", "version", "main", "master", "misc", "bump"})
"""Scopes of release commits that say nothing about which package."""


def is_release_commit(subject: str) -> bool:
    """Whether a subject only announces a version."""
    return read_announcement(subject) is not None


def read_announcement(subject: str) -> str | None:
    """Return the version that a subject announces; empty when it names none (``chore: release``), ``None`` when the
    subject says something else. A version that names a package with it (``app-1.2.0``) is returned with the package.
    """
    text = subject.strip()
    if not text or len(text) > _LONGEST:
        return None
    text = _REQUEST.sub("", strip_gitmoji(text))
    prefix = _PREFIX.match(text)
    is_marked = prefix is not None and _is_mark(prefix)
    words = text[prefix.end() :] if prefix else text
    if " ".join(words.lower().split()) in _BARE:
        return ""
    version = _read_words(words.replace(":", " ").split(), is_marked=is_marked)
    scope = (prefix["scope"] or "").strip().lower() if prefix else ""
    return f"{scope}@{version}" if version and scope not in _NO_PACKAGES else version


def _is_mark(prefix: re.Match[str]) -> bool:
    return prefix["type"].lower() in _MARKS or (prefix["scope"] or "").lower() in {"release", "version"}


def _read_words(words: list[str], *, is_marked: bool) -> str | None:
    """The last version among words that all announce; the first may be a package's name before its version."""
    versions: list[str] = []
    lower = [word.lower() for word in words]
    others = 0
    for place, word in enumerate(lower):
        match = _VERSION.fullmatch(words[place])
        if match:
            versions.append(f"{match['package'] or ''}{match['version']}")
        elif word in _MARKS:
            is_marked = True
        elif word not in _LINKS:
            others += 1
            if not (_NAMES_A_PACKAGE & set(lower[:place]) and _is_before_version(words, place)):
                return None
    says_nothing_else = all(_VERSION.fullmatch(word) or word in ("→", "->", "-->", "to") for word in words)
    if not versions or others > 1 or not (is_marked or says_nothing_else or "prepare" in lower):
        return None
    return versions[-1]


def _is_before_version(words: list[str], place: int) -> bool:
    return place + 1 < len(words) and _VERSION.fullmatch(words[place + 1]) is not None
