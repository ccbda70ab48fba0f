"""git.head: the branch that a change starts from, and where it is now."""

from __future__ import annotations

from perdure.contracts.base import JsonDict
from perdure.rules.base import Rule, RuleContext, RuleResult
from perdure.rules.git_branch import find_branch, refuse_unready
from perdure.rules.git_tree import open_input
from perdure.workspace.refs import short_ref

NAME = "git.head"


def gather_head(arguments: JsonDict, context: RuleContext) -> RuleResult:
    """Return repository, branch, ref and head.

    Raises:
        UserError: there is no such branch, or the repository is not ready for a commit; says what to do.
    """
    repository = open_input(arguments["repo"])
    ref, head = find_branch(repository, str(arguments.get("branch") or ""))
    refuse_unready(repository)
    branch = short_ref(ref)
    value: JsonDict = {"rule": NAME, "repository": str(repository.place), "branch": branch, "ref": ref, "head": head}
    return RuleResult(value, f"{branch} at {head[:7]}", findings=[])


RULE = Rule(
    name=NAME,
    rule_class="source",
    run=gather_head,
    needs=frozenset({"repo"}),
    takes=frozenset({"branch"}),
    about="The branch that a change starts from, and where it is now.",
)
