"""MSBuild projects (``*.csproj``, ``Directory.Build.props``) and ``*.nuspec``."""

from __future__ import annotations

from perdure.rules.release.files.base import Found, VersionFormat, is_version_like, quoted_place
from perdure.rules.release.files.xml_text import Element, find_elements

_WRITTEN = ("Version", "VersionPrefix", "PackageVersion")
_LEFT = ("AssemblyVersion", "FileVersion", "AssemblyFileVersion", "InformationalVersion", "VersionSuffix")
_KINDS = ("csproj", "fsproj", "vbproj")


def find_msbuild(text: str) -> Found:
    """Find the literal versions in property groups. Four-part assembly versions are their own and only named."""
    elements = [element for element in find_elements(text) if element.path[:-1] == ("Project", "PropertyGroup")]
    places = [
        quoted_place(element.path[-1], element.text, element.span)
        for element in elements
        if element.path[-1] in _WRITTEN and is_version_like(element.text)
    ]
    left = [element for element in elements if element.path[-1] in _LEFT and _is_literal(element)]
    notes = [f"{element.path[-1]} says {element.text} and is not written" for element in left]
    names = [element.text for element in elements if element.path[-1] == "PackageId" and _is_literal(element)]
    return Found(tuple(places), names[0] if names else "", tuple(notes))


def find_nuspec(text: str) -> Found:
    """Find ``package/metadata/version``; ``$version$`` is filled in by the build."""
    elements = {element.path: element for element in find_elements(text)}
    version = elements.get(("package", "metadata", "version"))
    name = elements.get(("package", "metadata", "id"))
    places = [quoted_place("package.metadata.version", version.text, version.span)] if version else []
    return Found(tuple(place for place in places if is_version_like(place.version)), name.text if name else "")


def _is_literal(element: Element) -> bool:
    return "$(" not in element.text


MSBUILD = VersionFormat(
    "msbuild",
    ("Directory.Build.props",),
    find_msbuild,
    "xml",
    patterns=(*(f"*.{kind}" for kind in _KINDS), *(f"src/*/*.{kind}" for kind in _KINDS)),
)
NUSPEC = VersionFormat("nuspec", (), find_nuspec, "xml", patterns=("*.nuspec",))
