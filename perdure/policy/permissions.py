"""May this call run? Deny by default, denials first, under the dial; the rule that decided is named."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Sequence
from typing import Any, Literal, get_args

from perdure.contracts.agent import CallQuestion, CallVerdict, Denial, EffectClass, Permission
from perdure.contracts.agent_run import CallRecord
from perdure.contracts.base import JsonDict
from perdure.policy.dial import answer_of, effective, explain
from perdure.policy.patterns import matches
from perdure.policy.targets import marks_of, shorten, targets_of

TRIES = 3
"""The try at which an agent that does not let go of a denied thing pauses its job."""

BY_DEFAULT = "default"
DENIED_BEFORE = "denied.before"
BY_PERSON = "person"
"""The rule of a verdict that a person gave."""

_DECISIONS: tuple[Literal["allow", "ask", "deny"], ...] = ("allow", "ask", "deny")
"""From loosest to strictest."""
_CLASSES: tuple[EffectClass, ...] = get_args(EffectClass)


def decide_call(question: CallQuestion) -> CallVerdict:
    """Return the verdict on a call: the strictest of every list of permissions and the dial.

    In each list denials go before asks and asks before allowances, whatever their order; a call that no rule speaks
    about is denied. What a person denied is denied again whatever the rules say, by its target and effect, and the
    third try pauses the job. Of equally strict answers the permissions' is told, not the dial's.
    """
    for denial in question.denials:
        if covers(denial, question):
            return _recall(denial)
    lists = (question.permissions, *question.above)
    return _strictest([*(_judge(permissions, question) for permissions in lists), _weigh_dial(question)])


def covers(denial: Denial, question: CallQuestion) -> bool:
    """Whether the call would do what was denied: to the same target, with the same effect or a stronger one."""
    wanted, denied = question.tool.effect_class, denial.effect_class
    return _CLASSES.index(wanted) >= _CLASSES.index(denied) and _touches(denial, marks_of(question.target))


def remember(calls: Sequence[CallRecord]) -> tuple[Denial, ...]:
    """Return what people denied, with how often it was wanted since. ``calls``: the denied ones, oldest first.

    A try counts for every denial that it runs into, also when it touches more than was denied.
    """
    found: list[Denial] = []
    for call in calls:
        rule = call.verdict.rule if call.verdict else ""
        marks = call.marks or marks_of(call.target)
        if rule == BY_PERSON and call.verdict:
            about = {"effect_class": call.effect_class, "target": call.target, "marks": marks}
            found.append(Denial.model_validate({**about, "reason": call.verdict.reason}))
        elif rule == DENIED_BEFORE:
            found = [_count(denial) if _touches(denial, marks) else denial for denial in found]
    return tuple(found)


def _count(denial: Denial) -> Denial:
    return denial.model_copy(update={"times": denial.times + 1})


def _touches(denial: Denial, marks: Sequence[str]) -> bool:
    return not set(denial.marks or marks_of(denial.target)).isdisjoint(marks)


def speaks_about(permission: Permission, question: CallQuestion) -> bool:
    """Whether a rule matches a call.

    An allowance must match every target, read narrowly. A denial or an ask matches when one target does, read broadly:
    whoever guards something would rather be asked too often. An argument that is not there matches nothing.
    """
    return matches_call(permission, question.tool.name, targets_of(question.target), question.arguments)


def matches_call(permission: Permission, tool: str, targets: Iterable[str], arguments: JsonDict) -> bool:
    """See :func:`speaks_about`; of a call that is known by its parts alone."""
    guards = permission.decision != "allow"
    of_all = any if guards else all
    return (
        matches(permission.tool, tool, broad=True)
        and of_all(matches(permission.target, target, broad=guards) for target in targets)
        and all(
            name in arguments and matches(pattern, argument_text(arguments[name]), broad=guards)
            for name, pattern in permission.arguments.items()
        )
    )


def argument_text(value: Any) -> str:
    """Return an argument as patterns see it: a command as a shell would read it, an object as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return shlex.join(value)
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def _recall(denial: Denial) -> CallVerdict:
    """The verdict on what a person denied before."""
    insists = denial.times + 1 >= TRIES
    advice = "The job pauses for a person." if insists else "Do something else, or ask."
    reason = f"A person denied {denial.effect_class} on {_shown(denial.target)}: {denial.reason or 'no reason given'}."
    return CallVerdict(decision="deny", rule=DENIED_BEFORE, reason=f"{reason} {advice}", pause=insists)


def _judge(permissions: Sequence[Permission], question: CallQuestion) -> CallVerdict:
    for decision in reversed(_DECISIONS):
        for permission in permissions:
            if permission.decision == decision and speaks_about(permission, question):
                reason = permission.reason or _explain(permission, question)
                return CallVerdict(decision=decision, rule=permission.id, reason=reason)
    reason = f"No permission speaks about {question.tool.name} on {_shown(question.target)}, so it is denied."
    return CallVerdict(decision="deny", rule=BY_DEFAULT, reason=reason)


def _weigh_dial(question: CallQuestion) -> CallVerdict:
    dial = effective(question.dial, question.ceiling, has_sandbox=question.has_sandbox)
    decision = answer_of(
        dial, question.tool.effect_class, reversible=question.reversible, budget_left=question.budget_left
    )
    return CallVerdict(decision=decision, rule=f"dial.{dial}", reason=explain(dial, question, decision))


def _strictest(verdicts: Sequence[CallVerdict]) -> CallVerdict:
    return max(verdicts, key=lambda verdict: _DECISIONS.index(verdict.decision))


def _explain(permission: Permission, question: CallQuestion) -> str:
    does = {"allow": "allows", "ask": "asks about", "deny": "denies"}[permission.decision]
    return f"{permission.id} {does} {question.tool.name} on {_shown(question.target)}."


def _shown(target: str) -> str:
    return shorten(target.replace("\n", ", "), 200)
