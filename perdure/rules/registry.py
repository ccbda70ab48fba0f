"""Every rule by its name in templates."""

from __future__ import annotations

from perdure.rules import git_history
from perdure.rules.base import Rule
from perdure.rules.release import checks, drafting, propose, sources


def default_rules() -> dict[str, Rule]:
    """Return the rules that come with Perdure, by name."""
    rules = (
        git_history.RULE,
        sources.FILES_RULE,
        sources.CHANGES_RULE,
        propose.RULE,
        drafting.VERSIONS_RULE,
        drafting.CHANGELOG_RULE,
        checks.VERSION_RULE,
        checks.ENTRIES_RULE,
    )
    return {rule.name: rule for rule in rules}
