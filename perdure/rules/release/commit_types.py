"""What a commit's type says: where the change is listed, and how far it moves the version by itself."""

from __future__ import annotations

import re
from collections.abc import Mapping

from perdure.rules.release.versions import Bump

LISTED: Mapping[str, tuple[str, Bump]] = {
    "feat": ("Added", "minor"),
    "feature": ("Added", "minor"),
    "fix": ("Fixed", "patch"),
    "bugfix": ("Fixed", "patch"),
    "hotfix": ("Fixed", "patch"),
    "perf": ("Changed", "patch"),
    "change": ("Changed", "patch"),
    "revert": ("Changed", "patch"),
    "security": ("Security", "patch"),
    "deprecate": ("Deprecated", "minor"),
}
"""Section and step by type. Of other types only breaking changes are listed, while anything else is."""

SHIPPED = frozenset({"refactor", "build", "deps"})
"""Types that reach users although they see nothing of it: a release that holds nothing else is a patch."""

UNSEEN = frozenset("chore ci doc docs release style test tests wip".split())  # noqa: SIM905
"""Types that do not reach users. A release of nothing else is made only where the project made such ones before."""

PIPELINE = frozenset("ci cd ci/cd ci-cd cicd".split())  # noqa: SIM905
"""Scopes of changes to what builds and delivers the project: ``feat(cd): publish there too`` is no feature of it."""

_DEPENDENCIES = frozenset({"deps", "dependencies", "deps-prod"})


_UPDATE = re.compile(
    r"(?:(?:up|down)grade|bump)s? \S.*"
    r"|(?:update|pin)s? (?:.*\b(?:dependenc(?:y|ies)|deps)\b.*|.* to (?:version )?v?\d.*|@?\w+[-/][\w./-]+)",
    re.IGNORECASE,
)
"""What says that a dependency moved: "upgrade x", "update x to version 2", "update x-y"; not "update the words"."""


def is_shipped(kind: str, scope: str, text: str = "") -> bool:
    """Whether a change of an unlisted type reaches users: ``refactor``, ``build``, ``chore(deps)``, ``chore: bump x``.

    ``text`` is its description.
    """
    if kind in SHIPPED or (kind in UNSEEN and scope.lower() in _DEPENDENCIES):
        return True
    return kind == "chore" and _UPDATE.fullmatch(text) is not None


def is_known(kind: str) -> bool:
    """Whether a type is one of a convention; ``server: text`` is prose."""
    return kind in LISTED or kind in SHIPPED or kind in UNSEEN
