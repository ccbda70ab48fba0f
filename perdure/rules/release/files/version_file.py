"""``VERSION``: a file that holds a version and nothing else."""

from __future__ import annotations

import re

from perdure.rules.release.files.base import Found, Place

_ONLY_VERSION = re.compile(r"\s*v?(?P<version>\d+(?:\.\d+)*[0-9A-Za-z.+!-]*)\s*")


class VersionFile:
    """A bare version, perhaps behind a ``v``, with blanks around it."""

    name = "version-file"
    file_names = ("VERSION",)

    def find(self, text: str) -> Found:
        match = _ONLY_VERSION.fullmatch(text)
        if match is None:
            return Found(notes=("it holds more than a version, so it is not written",))
        return Found((Place("the whole file", match["version"], match.start("version"), match.end("version")),))
