"""Every rule by its name in templates."""

from __future__ import annotations

from perdure.rules.base import Rule


def default_rules() -> dict[str, Rule]:
    """Return the rules that come with Perdure, by name. Their modules are imported here: they are many."""
    from perdure.rules import files_link, git_head, git_history, http_get, sql_query
    from perdure.rules.release import checks, drafting, propose, sources
    from perdure.rules.release.packages import checking as package_checking
    from perdure.rules.release.packages import gather as package_gather
    from perdure.rules.release.packages import propose as package_propose
    from perdure.rules.release.packages import writing as package_writing

    rules = (
        files_link.RULE,
        sql_query.RULE,
        http_get.RULE,
        git_head.RULE,
        git_history.RULE,
        sources.FILES_RULE,
        sources.CHANGES_RULE,
        propose.RULE,
        drafting.VERSIONS_RULE,
        drafting.CHANGELOG_RULE,
        checks.VERSION_RULE,
        checks.ENTRIES_RULE,
        package_gather.RULE,
        package_propose.RULE,
        package_writing.RULE,
        package_checking.RULE,
    )
    return {rule.name: rule for rule in rules}
