"""What a template's parts say about each other: names in expressions, checks, inputs that need inputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from perdure.contracts.base import JsonDict
from perdure.contracts.template import JOB_NAMES, Place, Template
from perdure.errors import UserError
from perdure.policy.expressions import ExpressionError, has_expression, parse_source, used_paths, whole_expression
from perdure.policy.for_each import EACH
from perdure.policy.inputs import read_default
from perdure.policy.names import suggest

Problem = tuple[Place, str]
"""Where, and what is wrong there."""

_ANY = "*"
_RENDERED: tuple[tuple[tuple[str, ...], tuple[str, ...], bool], ...] = (
    # (place, names that exist there, a string right there must be one expression: text is no command and never a no)
    (("thread",), ("inputs",), False),
    (("lock",), ("inputs",), False),
    (("gather", "sources", _ANY, "with"), ("inputs", "job"), False),
    (("analyze", "steps", _ANY, "with"), ("inputs", "job", "gather", "analyze"), False),
    (("analyze", "steps", _ANY, "prompt"), ("inputs", "job", "gather", "analyze", "comments"), False),
    (("analyze", "finish_when"), ("inputs", "job", "gather", "analyze"), True),
    (("analyze", "finish_message"), ("inputs", "job", "gather", "analyze"), False),
    (("draft", "message"), ("inputs", "job", "gather", "analyze", "draft"), False),
    (("draft", "steps", _ANY, "with"), ("inputs", "job", "gather", "analyze"), False),
    (("draft", "steps", _ANY, "agent"), ("inputs", "job", "gather", "analyze", "agent", "comments"), False),
    (("draft", "steps", _ANY, "paths"), ("inputs", "job", "gather", "analyze"), True),
    (("verify", "checks", _ANY, "judges"), ("inputs", "job", "gather", "analyze"), True),
    (("verify", "checks", _ANY, "with"), ("inputs", "job", "gather", "analyze", "draft"), False),
    (("verify", "checks", _ANY, "run"), ("inputs", "job", "gather", "analyze", "draft"), True),
    (("verify", "checks", _ANY, "http"), ("inputs", "job", "gather", "analyze", "draft"), False),
    (("verify", "checks", _ANY, "expect"), ("inputs", "job", "gather", "analyze", "draft"), True),
    (("verify", "checks", _ANY, "when"), ("inputs", "job", "gather", "analyze", "draft"), True),
    (("review", "requester_may_approve"), ("inputs", "job", "gather", "analyze", "draft", "verify"), True),
    (("review", "authors_may_approve"), ("inputs", "job", "gather", "analyze", "draft", "verify"), True),
    (("apply", _ANY, "for_each"), ("inputs", "job", "gather", "analyze", "draft", "verify"), True),
    (("apply", _ANY, "when"), ("inputs", "job", "gather", "analyze", "draft", "verify"), True),
    *(
        (("apply", _ANY, key), ("inputs", "job", "gather", "analyze", "draft", "verify"), False)
        for key in ("with", "probe", "undo", "require", "settle", "verify")
    ),
)
"""Every place where expressions are read, in the order of the stages: a stage sees what came before it."""

_PROSE = ("summary", "help")


def find_problems(template: Template, raw: JsonDict) -> list[Problem]:
    """Return what is wrong inside a template whose fields are well formed; ``raw`` is what the YAML said."""
    return [
        *_check_expressions(template, raw),
        *_check_inputs(template),
        *_check_agents(template),
        *_check_steps(template),
    ]


def _check_expressions(template: Template, raw: JsonDict) -> Iterator[Problem]:
    for place, source in _strings(raw, ()):
        if not has_expression(source) or place[-1] in _PROSE:
            continue
        found = next((rule for rule in _RENDERED if _fits(rule[0], place)), None)
        if found is None:
            yield place, f"Expressions are not read in {str(place[-1])!r}; write the value out."
        else:
            whole = found[2] and len(place) == len(found[0])
            names = (*found[1], EACH) if _has_item(template, place) else found[1]
            yield from _check_source(template, place, source, names=names, must_be_whole=whole)


def _has_item(template: Template, place: Place) -> bool:
    """Whether expressions at this place see an item of the step's ``for_each``."""
    if place[0] != "apply" or not isinstance(place[1], int) or place[2] == "for_each":
        return False
    return template.apply[place[1]].for_each is not None


def _check_source(
    template: Template, place: Place, source: str, *, names: Sequence[str], must_be_whole: bool
) -> Iterator[Problem]:
    try:
        paths = sorted(used_paths(source))
        if must_be_whole and whole_expression(parse_source(source)) is None:
            yield place, f"{source!r} makes text; expected one {{{{ expression }}}} from end to end."
    except ExpressionError as error:
        yield place, error.message
        return
    for path in paths:
        if path[0] not in names:
            where = "here: it needs a `for_each` in its apply step" if path[0] == EACH else "at this stage"
            yield place, f"There is no {path[0]!r} {where}.{suggest(path[0], names)}"
            continue
        known = _known_inside(template, place, path[0])
        if len(path) > 1 and known is not None and path[1] not in known:
            yield place, f"There is no {'.'.join(path)!r}.{suggest(path[1], known, f'names in {path[0]}')}"


def _known_inside(template: Template, place: Place, name: str) -> list[str] | None:
    """Return what ``name`` has inside at this place; ``None`` when a template does not say."""
    if name == "inputs":
        return list(template.inputs)
    if name == "gather":
        return list(template.gather.sources)
    if name == "job":
        return list(JOB_NAMES)
    if name == "verify":
        return list(template.verify.checks)
    if name == "analyze":
        return _steps_before(template, place)
    return None


def _steps_before(template: Template, place: Place) -> list[str]:
    """The analysis' steps that have a value by then; a prompt sees what the rule of its own step gave."""
    steps = list(template.analyze.steps)
    if place[:2] != ("analyze", "steps"):
        return steps
    name = str(place[2])
    sees_own = place[3:] == ("prompt",) and bool(template.analyze.steps[name].use)
    return steps[: steps.index(name) + sees_own]


def _fits(pattern: tuple[str, ...], place: Place) -> bool:
    return len(place) >= len(pattern) and all(
        wanted in (_ANY, part) for wanted, part in zip(pattern, place, strict=False)
    )


def _strings(value: Any, place: Place) -> Iterator[tuple[Place, str]]:
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _strings(inner, (*place, key))
    elif isinstance(value, list):
        for position, inner in enumerate(value):
            yield from _strings(inner, (*place, position))


def _check_inputs(template: Template) -> Iterator[Problem]:
    for name, spec in template.inputs.items():
        for needed in spec.needs:
            if needed not in template.inputs:
                known = suggest(needed, template.inputs, "inputs")
                yield ("inputs", name, "needs"), f"There is no input {needed!r}.{known}"
        try:
            read_default(name, spec)
        except UserError as error:
            yield ("inputs", name, "default"), error.message


def _check_agents(template: Template) -> Iterator[Problem]:
    for position, step in enumerate(template.draft.steps if template.draft else []):
        for name in step.done_when:
            if name not in template.verify.checks:
                known = suggest(name, template.verify.checks, "checks")
                yield ("draft", "steps", position, "done_when"), f"There is no check {name!r}.{known}"


def _check_steps(template: Template) -> Iterator[Problem]:
    seen: set[str] = set()
    for position, step in enumerate(template.apply):
        if step.id in seen:
            yield ("apply", position, "id"), f"Two apply steps are called {step.id!r}; each needs an id of its own."
        seen.add(step.id)
        if step.pause and position == 0:
            text = "`pause` waits between steps, and this is the first: the review stands before it. Leave it out."
            yield ("apply", position, "pause"), text
        undo = step.undo
        if isinstance(undo, str) and undo != "none_needed" and not has_expression(undo):
            yield ("apply", position, "undo"), f"undo is {undo!r}; expected none_needed, a command or fields."
