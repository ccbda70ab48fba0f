"""What a format of version files must say, and the one way a version is replaced: its characters and nothing else."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace

from perdure.errors import StageFailed, UserError
from perdure.rules.release.files.decoding import Encoding, decode

_BOM = "\ufeff"
_WRITABLE = re.compile(r"[0-9A-Za-z.+!_-]+")
_LOOKS_LIKE_VERSION = re.compile(r"v?\d[0-9A-Za-z.+!_-]{0,80}")


@dataclass(frozen=True)
class Place:
    """Where a version stands, found by the structure of the file."""

    where: str
    """For people: ``project.version``. No two places of a file have the same."""
    version: str
    start: int
    """First character of the version's text, quotes excluded."""
    end: int
    follows: bool = False
    """A repetition: written only while it says what the package says."""
    key: str = ""
    """In a file that speaks of several packages: which one. Empty for the file's own package."""


@dataclass(frozen=True)
class Found:
    """What a format finds in one file."""

    places: tuple[Place, ...] = ()
    """Empty when the file says no version that could be written."""
    package: str = ""
    """The package's name; empty where the file says none."""
    notes: tuple[str, ...] = ()
    """Why something is not written, without the file's name: "its version is dynamic"."""
    pointers: tuple[str, ...] = ()
    """Paths beside this file that the build reads the version from; the first that exists counts."""


@dataclass(frozen=True)
class VersionFormat:
    """One kind of file. To add a kind: a module with such a value, and a line in ``registry``."""

    name: str
    """Short name of the format."""
    file_names: tuple[str, ...]
    """Names of the files that are read so, in a package's folder."""
    find: Callable[[str], Found]
    """Find the places in a text without byte-order mark. Raises ``ValueError`` when it is not of this format."""
    encoding: Encoding = "utf-8"
    patterns: tuple[str, ...] = ()
    """More files, as paths beneath the package's folder: ``*`` stays inside a name, ``**`` spans folders."""
    names_own_package: bool = True
    """False for files that repeat versions of several packages (lock files): they are asked for by key."""


def find_places(form: VersionFormat, data: bytes, path: str) -> Found:
    """Find the places in a file's bytes; positions count characters of the decoded text, a byte-order mark included.

    Raises:
        UserError: the file cannot be decoded or is not of its format.
    """
    return _find(form, decode(data, form.encoding, path)[0], path)


def _find(form: VersionFormat, text: str, path: str) -> Found:
    mark = len(text) - len(text.removeprefix(_BOM))
    try:
        found = form.find(text[mark:])
    except ValueError as error:
        raise UserError(f"{path} cannot be read as {form.name}: {error}. Repair the file and commit it.") from None
    moved = (replace(place, start=place.start + mark, end=place.end + mark) for place in found.places)
    return replace(found, places=_name_apart(moved))


def replace_version(
    form: VersionFormat, data: bytes, version: str, path: str, *, wheres: Collection[str] | None = None
) -> bytes:
    """Return the file's bytes with ``version`` in the places named ``wheres`` (default: every one).

    Everything else stays, byte for byte; so do the encoding and a byte-order mark.

    Raises:
        UserError: the file cannot be decoded or is not of its format.
        StageFailed: the file would not read as expected afterwards; nothing is written.
    """
    if not _WRITABLE.fullmatch(version):
        raise StageFailed(f"{version!r} holds more than letters, digits and .+-_!, so it is not written to {path}.")
    text, encoding = decode(data, form.encoding, path)
    before = _find(form, text, path).places
    chosen = [place for place in before if wheres is None or place.where in wheres]
    for place in sorted(chosen, key=lambda place: place.start, reverse=True):
        text = text[: place.start] + version + text[place.end :]
    expected = {place.where: version if place in chosen else place.version for place in before}
    after = {place.where: place.version for place in _find(form, text, path).places}
    if after != expected:
        raise StageFailed(f"{path} would not say {version} everywhere after writing it; nothing was written.")
    return text.encode(encoding)


def is_version_like(text: str) -> bool:
    """Whether a text can be a version: it begins with a digit (or ``v`` and one) and holds no blanks or markup."""
    return bool(_LOOKS_LIKE_VERSION.fullmatch(text))


def quoted_place(where: str, version: str, span: tuple[int, int], **more: object) -> Place:
    """Return the place of a version whose text (without quotes) has this span, any ``v`` before it left out."""
    bare = version.removeprefix("v")
    return replace(Place(where, bare, span[0] + len(version) - len(bare), span[1]), **more)  # type: ignore[arg-type]


def _name_apart(places: Iterable[Place]) -> tuple[Place, ...]:
    """Number places that have the same name: ``Version``, ``Version (2)``."""
    seen: Counter[str] = Counter()
    named = []
    for place in places:
        seen[place.where] += 1
        number = seen[place.where]
        named.append(place if number == 1 else replace(place, where=f"{place.where} ({number})"))
    return tuple(named)
