"""What a commit's type says: where the change is listed, and how far it moves the version by itself."""

from __future__ import annotations

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

_DEPENDENCIES = frozenset({"deps", "dependencies", "deps-prod"})


def is_shipped(kind: str, scope: str) -> bool:
    """Whether a change of an unlisted type reaches users: ``refactor``, ``build``, ``chore(deps)``."""
    return kind in SHIPPED or (kind in UNSEEN and scope.lower() in _DEPENDENCIES)


def is_known(kind: str) -> bool:
    """Whether a type is one of a convention; ``server: text`` is prose."""
    return kind in LISTED or kind in SHIPPED or kind in UNSEEN
