"""``pubspec.yaml``, ``Chart.yaml``, ``galaxy.yml`` and ``CITATION.cff``."""

from __future__ import annotations

from dataclasses import replace

from perdure.rules.release.files.base import Found, Place, VersionFormat, is_version_like, quoted_place
from perdure.rules.release.files.yaml_text import YamlValue, find_values


def find_pubspec(text: str) -> Found:
    """Find ``version`` without the build number behind ``+``, which counts on its own and is left as it is."""
    values = find_values(text)
    place = _find_place(values, "version")
    if place is None:
        return Found((), _name(values), ("it names no version",))
    bare, plus, build = place.version.partition("+")
    note = (f"the build number +{build} is left as it is; raise it in the review where a store asks for it",)
    return Found((replace(place, version=bare, end=place.start + len(bare)),), _name(values), note if plus else ())


def find_chart(text: str) -> Found:
    """Find the chart's ``version``; ``appVersion`` follows only while both are the same."""
    values = find_values(text)
    version, app = _find_place(values, "version"), _find_place(values, "appVersion", follows=True)
    notes: tuple[str, ...] = ()
    if version and app and app.version != version.version:
        notes = (f"appVersion {app.version} is another version than the chart's {version.version} and is left",)
    return Found(tuple(place for place in (version, app) if place), _name(values), notes)


def find_top_version(text: str) -> Found:
    """Find ``version`` at the top."""
    values = find_values(text)
    place = _find_place(values, "version")
    return Found((place,) if place else (), _name(values))


def find_citation(text: str) -> Found:
    """Find ``version`` at the top of a citation file; ``date-released`` stays for a person."""
    values = find_values(text)
    place = _find_place(values, "version", follows=True)
    dated = values.get("date-released")
    note = (f"date-released {dated.text} is left as it is",) if place and dated else ()
    return Found((place,) if place else (), notes=note)


def _find_place(values: dict[str, YamlValue], key: str, *, follows: bool = False) -> Place | None:
    value = values.get(key)
    if value is None or not is_version_like(value.text):
        return None
    return quoted_place(key, value.text, value.span, follows=follows)


def _name(values: dict[str, YamlValue]) -> str:
    return values["name"].text if "name" in values else ""


PUBSPEC = VersionFormat("pubspec", ("pubspec.yaml",), find_pubspec)
CHART = VersionFormat("chart", ("Chart.yaml",), find_chart)
GALAXY = VersionFormat("galaxy", ("galaxy.yml",), find_top_version)
CITATION = VersionFormat("citation", ("CITATION.cff",), find_citation)
