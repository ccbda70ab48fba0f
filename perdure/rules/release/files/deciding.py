"""Which of the versions that files say is the package's."""

from __future__ import annotations

import re
from collections.abc import Sequence

from perdure.rules.release.files.workspaces import FoundFile

_PLACEHOLDER = re.compile(r"0\.0\.0(?:[-+.].*)?")


def is_placeholder(version: str) -> bool:
    """Whether a version says that the build or a tool puts the real one in."""
    return bool(_PLACEHOLDER.fullmatch(version))


def decide_version(found: Sequence[FoundFile], members: Sequence[FoundFile]) -> str:
    """Return what the first manifest says; a placeholder counts last.

    Without one: what all files that repeat a version agree on, then what all members of a workspace agree on. Empty
    when they do not.
    """
    places = [place for file in found for place in file.found.places]
    own = [place.version for place in places if not place.follows]
    real = [version for version in own if not is_placeholder(version)]
    if real:
        return real[0]
    for group in (places, [place for file in members for place in file.found.places]):
        agreed = {place.version for place in group if not is_placeholder(place.version)}
        if agreed:
            return agreed.pop() if len(agreed) == 1 else ""
    return own[0] if own else ""
