"""Whether a ``package.json`` uses a tool: as a dependency, or by its name in a script."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perdure.rules.release.settings.files import table

_DEPENDENCIES = ("devDependencies", "dependencies")


def find_use(package: dict[str, Any], tools: Sequence[str]) -> str:
    """Return the key that shows it (``devDependencies.semantic-release``); empty when nothing does."""
    for group in _DEPENDENCIES:
        for tool in tools:
            if tool in table(package, group):
                return f"{group}.{tool}"
    for name, script in table(package, "scripts").items():
        words = script.split() if isinstance(script, str) else []
        if any(tool in words for tool in tools):
            return f"scripts.{name}"
    return ""
