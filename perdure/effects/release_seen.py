"""What a look at a release on a forge shows, and how its parts are compared with what the plan says."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from perdure.contracts.base import BlobRef, JsonDict
from perdure.errors import EffectFailed

SHOWN = 5
"""So many names are listed in a sentence."""


class Standing(StrEnum):
    """How a release stands."""

    absent = "absent"
    partial = "partial"
    """Ours, and not all of it is there yet."""
    whole = "whole"
    """Ours: name, notes and every asset as planned."""
    foreign = "foreign"
    """Somebody else's, or ours and changed since."""


@dataclass(frozen=True)
class Seen:
    """One look."""

    standing: Standing
    detail: str
    """One line for people."""
    url: str = ""
    release: JsonDict | None = None
    """As the forge gives it; ``None`` when only files are there."""
    missing: list[JsonDict] = field(default_factory=list)
    """Assets of the plan that are not there."""
    broken: list[int] = field(default_factory=list)
    """Ids of what an upload that was cut has left, and of releases made twice."""
    strangers: list[str] = field(default_factory=list)
    """Names of assets that are not in the plan."""


class Releases(Protocol):
    """One release on one forge. Raises ``NoAnswer`` for silence and ``EffectFailed`` for a 4xx."""

    def look(self) -> Seen:
        """Look at it; reads only."""
        ...

    def complete(self, seen: Seen) -> None:
        """Make what is missing, and nothing twice."""
        ...

    def remove(self, seen: Seen) -> None:
        """Delete it."""
        ...


def same_text(found: object, planned: str) -> bool:
    """Whether a forge's text is ours; forges change line ends and blanks at the end."""
    return _plain(str(found or "")) == _plain(planned)


def blob_of(asset: JsonDict) -> BlobRef:
    """The content of a planned asset."""
    return BlobRef.model_validate(asset["blob"])


def listed(names: list[str]) -> str:
    """Names in a sentence."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def judge(label: str, is_ready: bool, missing: list[JsonDict], changed: list[str]) -> tuple[Standing, str]:
    """What a release whose name and notes are ours comes to."""
    if changed:
        return Standing.foreign, f"{label} has other content under {listed(changed)}."
    if missing:
        return Standing.partial, f"{label} lacks {listed([asset['name'] for asset in missing])}."
    return (Standing.whole, f"{label} is there") if is_ready else (Standing.partial, f"{label} is not published yet.")


def refuse_other_tag(project: str, tag: str, found: str, planned: str) -> None:
    """A release announces the tag of this plan. ``found``: its object on the forge, empty when there is no such tag.

    Raises:
        EffectFailed: it is missing (a forge might make one by itself, somewhere) or another object.
    """
    if not found:
        raise EffectFailed(f"{project} has no tag {tag} on the forge. Push it before the release.")
    if planned and found != planned:
        raise EffectFailed(f"The tag {tag} on the forge is {found[:7]}; expected {planned[:7]}, the one of this plan.")


def _plain(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.replace("\r\n", "\n").strip().split("\n"))
