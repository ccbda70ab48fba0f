"""``pom.xml``: ``project/version`` or the property that it names; the parent's version in modules."""

from __future__ import annotations

import re
from collections.abc import Sequence

from perdure.rules.release.files.base import Found, Place, VersionFormat, is_version_like, quoted_place
from perdure.rules.release.files.xml_text import Element, find_elements

_PROPERTY = re.compile(r"\$\{([^{}]+)\}")
_VERSION, _PARENT = ("project", "version"), ("project", "parent", "version")


def find_pom(text: str) -> Found:
    """Find the project's version. A parent's version is found too, under the key ``parent``."""
    elements = find_elements(text)
    own = next((element for element in elements if element.path == _VERSION), None)
    parent = next((element for element in elements if element.path == _PARENT), None)
    place, note = _find_own(own, elements)
    places = [place] if place else []
    if parent is not None and is_version_like(parent.text):
        places.append(quoted_place("project.parent.version", parent.text, parent.span, follows=True, key="parent"))
    if own is None:
        note = "its version is its parent's, so it is not written here" if parent else "it names no version"
    return Found(tuple(places), _text_at(elements, "project", "artifactId"), (note,) if note else ())


def _find_own(own: Element | None, elements: Sequence[Element]) -> tuple[Place | None, str]:
    if own is None:
        return None, ""
    if is_version_like(own.text):
        return quoted_place("project.version", own.text, own.span), ""
    names = _PROPERTY.findall(own.text)
    # `${revision}${changelist}`: the number is the first one's, the others are given when it is built.
    if names and own.text.startswith("${"):
        values = [element for element in elements if element.path == ("project", "properties", names[0])]
        if len(values) == 1 and is_version_like(values[0].text):
            return quoted_place(f"project.properties.{names[0]}", values[0].text, values[0].span), ""
    return None, f"its version is {own.text}, which is not set here, so it is not written"


def find_modules(text: str) -> list[str]:
    """Return the paths of the modules' pom.xml files, relative to this one's folder."""
    told = [element.text for element in find_elements(text) if element.path[-3:] in (("project", "modules", "module"),)]
    return [module if module.endswith(".xml") else f"{module.rstrip('/')}/pom.xml" for module in told]


def coordinates(text: str, *path: str) -> tuple[str, str]:
    """Return (group, artifact) of the project (no ``path``) or of its ``parent``; a group may be the parent's."""
    elements = find_elements(text)
    group = _text_at(elements, "project", *path, "groupId") or _text_at(elements, "project", "parent", "groupId")
    return group, _text_at(elements, "project", *path, "artifactId")


def _text_at(elements: Sequence[Element], *path: str) -> str:
    return next((element.text for element in elements if element.path == path), "")


POM = VersionFormat("pom", ("pom.xml",), find_pom, "xml")
