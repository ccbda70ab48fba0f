"""What a format of version files must say, and the one way a version is replaced: its characters and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from perdure.errors import StageFailed, UserError

_BOM = "\ufeff"


@dataclass(frozen=True)
class Place:
    """Where a version stands, found by the structure of the file."""

    where: str
    """For people: ``project.version``."""
    version: str
    start: int
    """First character of the version's text, quotes excluded."""
    end: int


@dataclass(frozen=True)
class Found:
    """What a format finds in one file."""

    places: tuple[Place, ...] = ()
    """Empty when the file says no version that could be written."""
    package: str = ""
    """The package's name; empty where the file says none."""
    notes: tuple[str, ...] = ()
    """Why something is not written, without the file's name: "the version is dynamic"."""


class VersionFormat(Protocol):
    """One kind of file. To add a kind: a module with such a class, and a line in ``registry``."""

    @property
    def name(self) -> str:
        """Short name of the format."""
        ...

    @property
    def file_names(self) -> Sequence[str]:
        """Names of the files that are read so, in a package's folder."""
        ...

    def find(self, text: str) -> Found:
        """Find the places that say the package's version.

        Raises:
            ValueError: the text is not of this format; the message says where.
        """
        ...


def find_places(form: VersionFormat, data: bytes, path: str) -> Found:
    """Find the places in a file's bytes; positions count characters of the decoded text, a byte-order mark included.

    Raises:
        UserError: the file is not UTF-8 or not of its format.
    """
    text = _decode(data, path)
    mark = len(text) - len(text.removeprefix(_BOM))
    try:
        found = form.find(text[mark:])
    except ValueError as error:
        raise UserError(f"{path} cannot be read as {form.name}: {error}. Repair the file and commit it.") from None
    places = tuple(Place(place.where, place.version, place.start + mark, place.end + mark) for place in found.places)
    return Found(places, found.package, found.notes)


def replace_version(form: VersionFormat, data: bytes, version: str, path: str) -> bytes:
    """Return the file's bytes with ``version`` in every place; everything else stays, byte for byte.

    Raises:
        UserError: the file is not UTF-8 or not of its format.
        StageFailed: the file would not read as expected afterwards; nothing is written.
    """
    text = _decode(data, path)
    places = sorted(find_places(form, data, path).places, key=lambda place: place.start)
    for place in reversed(places):
        text = text[: place.start] + version + text[place.end :]
    written = text.encode("utf-8")
    after = find_places(form, written, path).places
    if len(after) != len(places) or any(place.version != version for place in after):
        raise StageFailed(f"{path} would not say {version} everywhere after writing it; nothing was written.")
    return written


def _decode(data: bytes, path: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not UTF-8 (byte {error.start}). Convert it and commit it.") from None
