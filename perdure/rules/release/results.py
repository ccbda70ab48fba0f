"""Finding what an earlier step gave: every value names the rule that made it."""

from __future__ import annotations

from typing import Any

from perdure.contracts.base import JsonDict
from perdure.errors import StageFailed, UserError
from perdure.rules.base import DraftSpace, RuleContext

PROPOSE = "release.propose"
"""The rule whose value is a release."""

PROPOSE_PACKAGES = "release.propose_packages"
"""The rule whose value is a release of several packages."""


def find_value(values: Any, rule: str) -> JsonDict | None:
    """Return the first value in ``values`` (step name → value) that ``rule`` made; ``None`` when there is none."""
    for value in values.values() if isinstance(values, dict) else ():
        if isinstance(value, dict) and value.get("rule") == rule:
            return value
    return None


def require_value(context: RuleContext, stage: str, rule: str) -> JsonDict:
    """Return what ``rule`` gave in an earlier ``stage`` (``gather``, ``analyze``).

    Raises:
        UserError: the template has no such step before this one.
    """
    found = find_value(context.results.get(stage), rule)
    if found is None:
        raise UserError(f"This step needs what {rule!r} gives, but no {stage} step uses it. Add one to the template.")
    return found


def require_space(context: RuleContext) -> DraftSpace:
    """Return the private workspace; a rule of this class always has one."""
    if context.space is None:
        raise StageFailed("This step needs a workspace. Use it in a draft or a verify stage.")
    return context.space
