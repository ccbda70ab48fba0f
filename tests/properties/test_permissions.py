"""Permissions, patterns and the dial under any rules and calls: nothing that should narrow ever widens."""

from __future__ import annotations

import re

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perdure.contracts.agent import CallQuestion, Denial, Permission, ToolSpec
from perdure.policy.dial import POSITIONS, effective, turn_dial
from perdure.policy.patterns import matches
from perdure.policy.permissions import decide_call

STRICT = ("allow", "ask", "deny")
CLASSES = ("read", "workspace", "external")
TARGETS = ("file:a", "file:src/a", "command:git push", "https://x.test/a/b")
PATTERNS = ("**", "*", "file:*", "file:**", "command:git*", "https://x.test/*", "files.*", "shell.run", *TARGETS)
TOOLS = [
    ToolSpec(name=name, description="", parameters={}, effect_class=effect_class)
    for name in ("files.read", "files.write", "shell.run")
    for effect_class in CLASSES
]

calm = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""Other work on the machine is no failure."""

rules = st.builds(
    Permission,
    id=st.sampled_from(("r1", "r2", "r3")),
    decision=st.sampled_from(STRICT),
    tool=st.sampled_from(PATTERNS),
    target=st.sampled_from(PATTERNS),
    arguments=st.dictionaries(st.sampled_from(("argv", "path")), st.sampled_from(PATTERNS), max_size=1),
)
lists = st.lists(rules, max_size=4).map(tuple)
classes = st.sampled_from(CLASSES)
targets = st.lists(st.sampled_from(TARGETS), min_size=1, max_size=3).map("\n".join)
denials = st.builds(
    Denial, effect_class=classes, target=st.sampled_from(TARGETS), reason=st.just("no"), times=st.integers(1, 4)
)
dials = st.sampled_from(POSITIONS)
questions = st.builds(
    CallQuestion,
    tool=st.sampled_from(TOOLS),
    arguments=st.dictionaries(
        st.sampled_from(("argv", "path")),
        st.one_of(st.sampled_from(TARGETS), st.lists(st.sampled_from(TARGETS), max_size=3)),
        max_size=2,
    ),
    target=targets,
    dial=dials,
    permissions=lists,
    denials=st.lists(denials, max_size=2).map(tuple),
    reversible=st.booleans(),
    budget_left=st.booleans(),
    above=st.lists(lists, max_size=2).map(tuple),
    ceiling=dials,
    has_sandbox=st.booleans(),
)


def strictness(question: CallQuestion, **changed: object) -> int:
    """How strict the verdict is once some fields are others."""
    return STRICT.index(decide_call(question.model_copy(update=changed)).decision)


@calm
@given(questions, lists)
def test_another_list_never_loosens(question, more):
    """Whatever a template or a parent adds beside the thread's rules, the verdict is as strict or stricter."""
    assert strictness(question, above=(*question.above, more)) >= strictness(question)


@calm
@given(questions, rules)
def test_another_denial_or_a_removed_allowance_never_loosens(question, rule):
    """More rules that deny and fewer that allow make no verdict looser; an ask does not undo a denial."""
    before = strictness(question)
    denial, guard = (rule.model_copy(update={"decision": decision}) for decision in ("deny", "ask"))
    assert strictness(question, permissions=(*question.permissions, denial)) >= before
    if decide_call(question).rule != "default":
        assert strictness(question, permissions=(*question.permissions, guard)) >= before
    assert strictness(question, permissions=tuple(r for r in question.permissions if r.decision != "allow")) >= before


@calm
@given(questions)
def test_a_covered_denial_always_denies_and_counts(question):
    """What a person denied is denied, whatever rules and dial say, and the third try pauses."""
    met = [
        denial
        for denial in question.denials
        if denial.target in question.target.split("\n")
        and CLASSES.index(question.tool.effect_class) >= CLASSES.index(denial.effect_class)
    ]
    verdict = decide_call(question)
    assert verdict.decision == "deny" or not met
    assert verdict.pause is (bool(met) and met[0].times >= 2)


@calm
@given(questions)
def test_the_order_of_rules_changes_no_decision(question):
    """A list of permissions is a set of sentences: turned round it says the same."""
    assert strictness(question, permissions=tuple(reversed(question.permissions))) == strictness(question)


@calm
@given(questions, dials, dials)
def test_turning_the_dial_down_never_loosens(question, one, other):
    """A lower position, or a lower ceiling, decides as strictly or more strictly, for every call."""
    low, high = sorted((one, other), key=POSITIONS.index)
    assert strictness(question, dial=low) >= strictness(question, dial=high)
    assert strictness(question, ceiling=low) >= strictness(question, ceiling=high)


@calm
@given(questions)
def test_external_calls_run_unseen_only_when_delegated_and_reversible(question):
    """No rule and no position lets an external call run by itself that cannot be taken back."""
    if question.tool.effect_class == "external" and decide_call(question).decision == "allow":
        assert question.reversible and question.budget_left and question.has_sandbox
        assert effective(question.dial, question.ceiling, has_sandbox=True) == "delegate"


@calm
@given(dials, dials, dials, st.booleans())
def test_the_dial_rises_only_by_a_decision_and_under_its_bounds(current, wanted, ceiling, has_sandbox):
    """Without a decision it never rises; with one it never passes ceiling or sandbox."""
    for decided in (False, True):
        turned = turn_dial(current, wanted, ceiling, has_sandbox=has_sandbox, decided=decided).dial
        if POSITIONS.index(turned) > POSITIONS.index(current):
            assert decided and effective(turned, ceiling, has_sandbox=has_sandbox) is turned


@calm
@given(st.text(alphabet="ab/*?", max_size=8), st.text(alphabet="ab/", max_size=12), st.booleans())
def test_patterns_match_as_their_signs_say(pattern, text, broad):
    """The matcher agrees with the same pattern written as a regular expression, and broad matches what narrow does."""
    one = "." if broad or pattern == "*" else "[^/]"
    parts = re.findall(r"\*\*|\*|\?|.", pattern, re.DOTALL)
    written = "".join({"**": ".*", "*": f"{one}*", "?": one}.get(part, re.escape(part)) for part in parts)
    assert matches(pattern, text, broad=broad) == (re.fullmatch(written, text, re.DOTALL) is not None)
    assert not matches(pattern, text) or matches(pattern, text, broad=True)
