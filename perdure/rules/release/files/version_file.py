"""``VERSION``: a file that holds a version and nothing else."""

from __future__ import annotations

import re

from perdure.rules.release.files.base import Found, Place, VersionFormat

_ONLY_VERSION = re.compile(r"\s*v?(?P<version>\d[0-9A-Za-z.+!-]{0,80})\s*")


def find_version(text: str) -> Found:
    """Find a bare version, perhaps behind a ``v``, with blanks around it."""
    match = _ONLY_VERSION.fullmatch(text)
    if match is None:
        return Found(notes=("it holds more than a version, so it is not written",))
    return Found((Place("the whole file", match["version"], match.start("version"), match.end("version")),))


VERSION_FILE = VersionFormat(
    "version-file",
    ("VERSION", "VERSION.txt", "version.txt"),
    find_version,
    "text",
    patterns=("*/VERSION", "src/*/VERSION"),
)
