"""Users' packages: entry points that the settings name with a version. Nothing else of a package is ever imported."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from perdure.errors import SetupError
from perdure.policy.names import suggest

_NAMED = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)@(\S+)")


def load_named(table: str, named: str) -> tuple[list[Any], str, str]:
    """Import what ``named``, ``name@version`` of an entry point in the group ``perdure.<table>``, gives.

    Returns (objects, "<name> <version>", where it stands in its package). ``table`` is the settings' table that names
    it, which messages point to.

    Raises:
        SetupError: it is not installed, is there in another version, or cannot be imported.
    """
    match = _NAMED.fullmatch(named)
    if match is None:
        raise SetupError(f'[{table}]: {named!r} names no {table}; expected a name and its version, acme = "1.4.0".')
    name, version = match.groups()
    entry = _find(table, name)
    installed = entry.dist.version if entry.dist else ""
    if installed != version:
        raise SetupError(
            f"[{table}] names {named}, and {name} is installed in version {installed or 'unknown'}. Look at what "
            f"changed, then name {installed} or install {version}."
        )
    try:
        loaded = entry.load()
    except Exception as error:
        raise SetupError(f"[{table}]: {named} cannot be imported ({type(error).__name__}: {error}).") from error
    found = list(loaded) if isinstance(loaded, Iterable) else [loaded]
    return found, f"{name} {version}", entry.value


def _find(table: str, name: str) -> EntryPoint:
    there = list(entry_points(group=f"perdure.{table}"))
    found = [entry for entry in there if entry.name == name]
    if not found:
        names = suggest(name, {entry.name for entry in there}, "entry points")
        raise SetupError(f"[{table}]: no installed package brings {table} called {name!r}.{names}")
    if len(found) > 1:
        packages = ", ".join(sorted(entry.dist.name for entry in found if entry.dist))
        raise SetupError(f"[{table}]: several packages bring {table} called {name!r} ({packages}). Remove all but one.")
    return found[0]
