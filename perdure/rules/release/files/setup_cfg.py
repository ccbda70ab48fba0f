"""``setup.cfg``: ``metadata.version``; and ``current_version`` where bumpversion keeps it."""

from __future__ import annotations

from perdure.rules.release.files.base import Found, VersionFormat, is_version_like, quoted_place
from perdure.rules.release.files.ini_text import IniValue, find_values
from perdure.rules.release.files.python_module import attribute_paths

_REPEATED = (("bumpversion", "current_version"), ("tool:bumpversion", "current_version"), ("commitizen", "version"))


def find_setup_cfg(text: str) -> Found:
    """Find ``metadata.version``, or the file that ``attr:`` or ``file:`` points at."""
    values = find_values(text)
    version = values.get(("metadata", "version"))
    name = values.get(("metadata", "name"))
    places = [quoted_place("metadata.version", version.text, version.span)] if version and _is_plain(version) else []
    for section, key in _REPEATED:
        repeated = values.get((section, key))
        if repeated and _is_plain(repeated):
            places.append(quoted_place(f"{section}.{key}", repeated.text, repeated.span, follows=True))
    pointers, notes = _explain(version)
    return Found(tuple(places), name.text if name else "", notes, pointers)


def _is_plain(value: IniValue) -> bool:
    return is_version_like(value.text)


def _explain(version: IniValue | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if version is None or _is_plain(version):
        return (), ()
    kind, _, target = version.text.partition(":")
    if kind == "attr" and target.strip():
        return attribute_paths(target.strip()), ()
    if kind == "file" and target.strip():
        return (target.strip().split(",")[0].strip(),), ()
    return (), (f"metadata.version is {version.text!r}, no plain version, so it is not written",)


SETUP_CFG = VersionFormat("setup-cfg", ("setup.cfg", ".bumpversion.cfg"), find_setup_cfg)
