"""Version schemes: how a version reads, which is newer, which comes next. One class each, by name in ``SCHEMES``."""

from __future__ import annotations

import re
from typing import Any, Literal, Protocol

import semver
from packaging.version import InvalidVersion, Version

from perdure.errors import UserError

Bump = Literal["major", "minor", "patch"]

BUMPS: tuple[Bump, ...] = ("patch", "minor", "major")
"""Smallest first."""

# Builds that nobody counts as a step towards a release: they neither are the last release nor raise the next one.
_SIDE_CHANNELS = ("nightly", "dev", "canary", "snapshot", "edge", "ci", "build")

_LAST_NUMBER = re.compile(r"(.*?)(\d+)")
_LABEL = re.compile(r"[A-Za-z][A-Za-z-]*")
_PEP440_LABELS = {"a": "a", "alpha": "a", "b": "b", "beta": "b", "rc": "rc", "c": "rc", "pre": "rc", "preview": "rc"}


class VersionScheme(Protocol):
    """One way to write and order versions. Versions are handed about as text, in the form that was written."""

    @property
    def name(self) -> str:
        """Its name in templates."""
        ...

    def is_legal(self, text: str) -> bool:
        """Whether the whole text is a version of this scheme."""
        ...

    def key(self, text: str) -> Any:
        """A key that sorts legal versions of this scheme, older first. Raises ``ValueError`` for others."""
        ...

    def is_final(self, text: str) -> bool:
        """Whether a legal version is a final release (no pre-release of any kind)."""
        ...

    def is_candidate(self, text: str) -> bool:
        """Whether a legal version is a pre-release that leads to its final one (no nightly or development build)."""
        ...

    def final(self, text: str) -> str:
        """The final version of a pre-release's line: ``2.0.0`` for ``2.0.0-rc.1``; a final version is itself."""
        ...

    def bump(self, last: str, bump: Bump) -> str:
        """The final version that follows a final one by this step."""
        ...

    def release(self, text: str) -> tuple[int, ...]:
        """The numbers of a legal version that a step raises, major first, at least three."""
        ...

    def pre_release(self, final: str, label: str, after: str) -> str:
        """The pre-release of ``final`` with this label; ``after`` is the last one of that line, or empty.

        The same label counts on, in the form that ``after`` has; another one begins at 1. Raises ``ValueError`` for a
        label that the scheme does not have.
        """
        ...


def _count_on(label: str) -> str:
    """Raise the last number of a pre-release (``rc.9``, ``rc9``), or begin to count."""
    match = _LAST_NUMBER.fullmatch(label)
    return f"{match[1]}{int(match[2]) + 1}" if match else f"{label}.1"


class SemVerScheme:
    """Semantic Versioning 2.0.0."""

    name = "semver"

    def is_legal(self, text: str) -> bool:
        # The pattern of the library takes any Unicode digit; the specification does not.
        return text.isascii() and semver.Version.is_valid(text)

    def key(self, text: str) -> semver.Version:
        if not self.is_legal(text):
            raise ValueError(f"{text!r} is not a semantic version")
        return semver.Version.parse(text)

    def is_final(self, text: str) -> bool:
        return not self.key(text).prerelease

    def is_candidate(self, text: str) -> bool:
        label = (self.key(text).prerelease or "").lower()
        return bool(label) and not any(side in label for side in _SIDE_CHANNELS)

    def final(self, text: str) -> str:
        return str(self.key(text).finalize_version())

    def bump(self, last: str, bump: Bump) -> str:
        version = self.key(last)
        if bump == "major":
            return str(version.bump_major())
        return str(version.bump_minor() if bump == "minor" else version.bump_patch())

    def release(self, text: str) -> tuple[int, ...]:
        key = self.key(text)
        return key.major, key.minor, key.patch

    def pre_release(self, final: str, label: str, after: str) -> str:
        if not _LABEL.fullmatch(label):
            raise ValueError(f"{label!r} is no label of a semantic version's pre-release, such as rc")
        last = self.key(after) if after else None
        said = _LABEL.match(last.prerelease or "") if last else None
        if last is not None and said and said[0] == label:
            return f"{final}-{_count_on(last.prerelease or '')}"
        return f"{final}-{label}.1"


class AlwaysPatchScheme(SemVerScheme):
    """Semantic versions where every release is the next patch."""

    name = "always-patch"

    def bump(self, last: str, bump: Bump) -> str:
        return super().bump(last, "patch")


class Pep440Scheme:
    """Python's versions (PEP 440): epochs, any number of components, post-releases. Written in normal form."""

    name = "pep440"

    def is_legal(self, text: str) -> bool:
        try:
            Version(text)
        except InvalidVersion:
            return False
        return text.isascii() and text == text.strip()

    def key(self, text: str) -> Version:
        return Version(text)

    def is_final(self, text: str) -> bool:
        version = self.key(text)
        return not version.is_prerelease and version.local is None

    def is_candidate(self, text: str) -> bool:
        version = self.key(text)
        return version.pre is not None and not version.is_devrelease and version.local is None

    def final(self, text: str) -> str:
        return self.key(text).base_version

    def bump(self, last: str, bump: Bump) -> str:
        version = self.key(last)
        width = max(len(version.release), 3 if bump == "patch" else 2)
        parts = [*version.release, *[0] * (width - len(version.release))]
        place = {"major": 0, "minor": 1, "patch": 2}[bump]
        parts = [*parts[:place], parts[place] + 1, *[0] * (width - place - 1)]
        epoch = f"{version.epoch}!" if version.epoch else ""
        return epoch + ".".join(map(str, parts))

    def pre_release(self, final: str, label: str, after: str) -> str:
        short = _PEP440_LABELS.get(label)
        if short is None:
            raise ValueError(f"{label!r} is no label of a PEP 440 pre-release: {', '.join(_PEP440_LABELS)}")
        last = self.key(after).pre if after else None
        return f"{final}{short}{last[1] + 1 if last and last[0] == short else 1}"

    def release(self, text: str) -> tuple[int, ...]:
        version = self.key(text)
        return version.major, version.minor, version.micro, *version.release[3:]


class CalverScheme(Pep440Scheme):
    """Calendar versions: read and ordered as PEP 440 does, zero padded ones too; the date gives the next one."""

    name = "calver"

    def is_legal(self, text: str) -> bool:
        return super().is_legal(text) and len(self.key(text).release) > 1

    def bump(self, last: str, bump: Bump) -> str:
        raise ValueError("the next calendar version follows from a day: perdure.rules.release.calver")


SCHEMES: dict[str, VersionScheme] = {
    scheme.name: scheme for scheme in (SemVerScheme(), Pep440Scheme(), CalverScheme(), AlwaysPatchScheme())
}


def find_scheme(name: str) -> VersionScheme:
    """Return a scheme by name.

    Raises:
        UserError: there is none.
    """
    if name in SCHEMES:
        return SCHEMES[name]
    raise UserError(f"scheme={name!r} is not known. Known schemes: {', '.join(SCHEMES)}.")


def pep440_to_semver(text: str) -> str:
    """Return a PEP 440 pre-release as a semantic version (``1.0.0b2`` → ``1.0.0-b.2``); empty when it has no such."""
    version = Version(text)
    if version.pre is None or len(version.release) > 3 or version.epoch:
        return ""
    numbers = [*version.release, 0, 0][:3]
    return f"{'.'.join(map(str, numbers))}-{version.pre[0]}.{version.pre[1]}"


def is_zero_major(scheme: VersionScheme, text: str) -> bool:
    """Whether a legal version is in initial development (0.x), where a breaking change is a minor step."""
    key = scheme.key(text)
    major = getattr(key, "major", None)
    epoch = getattr(key, "epoch", 0)
    return major == 0 and epoch == 0
