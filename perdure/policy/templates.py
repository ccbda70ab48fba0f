"""Reading and checking job templates. Pure: text in, a :class:`Template` or every problem with its line out."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Set
from functools import lru_cache
from typing import Any

from pydantic import ValidationError

from perdure.contracts.base import JsonDict
from perdure.contracts.job import JobOutline, JobSpec, SourceOutline
from perdure.contracts.plan import ReviewRule
from perdure.contracts.template import Check, Source, Template
from perdure.contracts.template_agents import DraftStep
from perdure.errors import UserError
from perdure.policy.names import suggest
from perdure.policy.review_rules import pinned_rule
from perdure.policy.template_faults import describe_fault
from perdure.policy.template_models import find_model_problems
from perdure.policy.template_names import Problem, find_problems
from perdure.policy.template_tools import check_tools
from perdure.policy.yaml_text import YamlProblem, read_yaml

RuleShape = tuple[str, Set[str], Set[str], bool]
"""A rule as far as templates go: (class: source, analysis, draft or check; keys it needs; keys it may take; whether a
prompt may refine what it gives)."""


_NO_POLICIES: Mapping[str, ReviewRule] = {}


class TemplateError(UserError):
    """A template cannot be used; ``problems`` are its lines, each ``path:line: what, what was expected``."""

    def __init__(self, name: str, problems: list[str]) -> None:
        self.problems = problems
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        super().__init__("\n  ".join([f"Template {name!r} has {count}:", *problems]))


def parse_template(text: str, *, path: str) -> Template:
    """Read a template; what it says is checked except for the names of rules and effects (:func:`check_template`).

    Each stage of a job reads its pinned template again, so the last few are kept (reading the release template
    takes 80 ms); every caller gets a copy of its own.

    Raises:
        TemplateError: every problem found, with ``path:line``, what was expected and the nearest name.
    """
    return _parse(text, path).model_copy(deep=True)


@lru_cache(maxsize=32)
def _parse(text: str, path: str) -> Template:
    try:
        read = read_yaml(text)
    except YamlProblem as problem:
        raise TemplateError(path, [f"{path}:{problem.line}: {problem.message}"]) from problem
    name = read.value.get("name") if isinstance(read.value, dict) else None
    try:
        template = Template.model_validate(read.value)
    except ValidationError as error:
        faults = [describe_fault(fault, path, read.lines) for fault in error.errors(include_url=False)]
        raise TemplateError(str(name or path), faults) from None
    template.set_places(path, read.lines)
    _raise_problems(template, find_problems(template, read.value))
    return template


def check_template(
    template: Template,
    *,
    rules: Mapping[str, RuleShape],
    effects: Mapping[str, bool],
    tools: Collection[str],
    policies: Mapping[str, ReviewRule] = _NO_POLICIES,
) -> None:
    """Check a template against what is installed.

    ``effects`` says of each kind whether it always has an inverse of its own.

    Raises:
        TemplateError: a rule, effect, tool or policy that does not exist (with the nearest one), a wrong key of
            ``with``, a part of the language that this version cannot run, or an irreversible effect that no approval
            stands before.
    """
    refined = {name for name, shape in rules.items() if shape[3]}
    problems = [
        *_check_rules(template, rules),
        *_check_effects(template, effects, is_gated=_is_gated(template, policies)),
        *_check_policy(template, policies),
        *find_model_problems(template, refined),
        *check_tools(template, tools),
        *_check_unsupported(template),
    ]
    _raise_problems(template, problems)


def _raise_problems(template: Template, problems: list[Problem]) -> None:
    if problems:
        lines = [f"{template.locate(place)}: {message}" for place, message in problems]
        raise TemplateError(template.name, lines)


def _check_rules(template: Template, rules: Mapping[str, RuleShape]) -> list[Problem]:
    draft = template.draft.steps if template.draft else []
    parts: list[tuple[tuple[str | int, ...], str, Any]] = [
        *((("gather", "sources", name), "source", part) for name, part in template.gather.sources.items()),
        *((("analyze", "steps", name), "analysis", part) for name, part in template.analyze.steps.items()),
        *((("draft", "steps", position), "draft", part) for position, part in enumerate(draft)),
        *((("verify", "checks", name), "check", part) for name, part in template.verify.checks.items()),
    ]
    problems: list[Problem] = []
    for place, wanted, part in parts:
        if part.use:
            problems += _check_rule(place, wanted, part.use, part.arguments, rules)
    return problems


def _check_rule(
    place: tuple[str | int, ...], wanted: str, name: str, arguments: JsonDict, rules: Mapping[str, RuleShape]
) -> list[Problem]:
    fitting = [rule for rule, (rule_class, _, _, _) in rules.items() if rule_class == wanted]
    if name not in rules:
        return [((*place, "use"), f"There is no rule {name!r}.{suggest(name, fitting, f'{wanted} rules')}")]
    rule_class, needs, takes, _ = rules[name]
    if rule_class != wanted:
        text = f"The rule {name!r} is for {rule_class}, not for {wanted}.{suggest(name, fitting, f'{wanted} rules')}"
        return [((*place, "use"), text)]
    known = set(needs) | set(takes)
    unknown: list[Problem] = [
        ((*place, "with", key), f"The rule {name!r} takes no {key!r}.{suggest(key, known, 'keys')}")
        for key in arguments
        if key not in known
    ]
    missing = sorted(set(needs) - set(arguments))
    return unknown + [((*place, "use"), f"The rule {name!r} needs {key!r} in `with`.") for key in missing]


def _is_gated(template: Template, policies: Mapping[str, ReviewRule]) -> bool:
    """Whether somebody surely has to approve: the template says so itself, or the policy does that it names."""
    policy = policies.get(template.review.policy)
    by_itself = "review" in template.model_fields_set and bool(template.review.approvals)
    return bool(policy.approvals) if policy and "approvals" not in template.review.model_fields_set else by_itself


def _check_policy(template: Template, policies: Mapping[str, ReviewRule]) -> list[Problem]:
    try:
        pinned_rule(template.review, policies)
    except UserError as error:
        return [(("review", "policy"), error.message)]
    return []


def _check_effects(template: Template, effects: Mapping[str, bool], *, is_gated: bool) -> list[Problem]:
    problems: list[Problem] = []
    for position, step in enumerate(template.apply):
        place = ("apply", position)
        if step.effect not in effects:
            problems.append(
                ((*place, "effect"), f"There is no effect {step.effect!r}.{suggest(step.effect, effects, 'effects')}")
            )
            continue
        built_in = effects[step.effect]
        if built_in and step.undo is not None:
            text = f"The undo of {step.effect!r} is built in; leave `undo` out, or say `irreversible: <why>`."
            problems.append(((*place, "undo"), text))
        if not built_in and step.undo is None and not step.irreversible:
            text = f"{step.effect!r} needs its way back: `undo: …`, `undo: none_needed` or `irreversible: <why>`."
            problems.append((place, text))
        elif step.irreversible and not is_gated:
            text = (
                f"The step {step.id!r} is irreversible and no approval stands before it. "
                "Write a `review` with at least one entry in `approvals`."
            )
            problems.append(((*place, "irreversible"), text))
    return problems


def _check_unsupported(template: Template) -> Iterator[Problem]:
    """What the language has and this version does not run is refused, never left out in silence."""
    later = "is not run by this version yet; leave it out."
    yield from _check_checks(template, later)


def _check_checks(template: Template, later: str) -> Iterator[Problem]:
    for name, check in template.verify.checks.items():
        place = ("verify", "checks", name)
        if check.network:
            yield (*place, "network"), f"Opening hosts to the sandbox {later} Write `network: []`."
        if check.run is not None and template.draft is None and (check.baseline or check.judges):
            yield place, "`baseline` and `judges` compare with drafted content, and this template has no `draft`."


def template_schema() -> JsonDict:
    """Return the JSON schema (2020-12) of templates, for editors."""
    schema = Template.model_json_schema(by_alias=True, mode="validation")
    title = {"title": "Perdure job template", "description": "One kind of job. See `perdure templates validate`."}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, **title}


def outline(template: Template | None, spec: JobSpec, inputs: JsonDict, *, has_model: bool = False) -> JobOutline:
    """Return the shape of a job's stages for its workflow; ``template`` is ``None`` for a job that takes one back.

    ``inputs`` decides nothing yet: a check whose ``when`` is no answers "skipped" by itself. Without a model every
    agent is skipped, and a red check would stay as red as it is: such a draft counts as having no agent.
    """
    if template is None:
        return JobOutline(plan_only=spec.plan_only, undoes=spec.undoes)
    analyze, draft = template.analyze, template.draft
    in_analysis, in_draft = template.asks_models if has_model else (False, False)
    return JobOutline(
        sources=[_outline_source(template, name, source) for name, source in template.gather.sources.items()],
        has_analysis=bool(analyze.steps) or analyze.finish_when is not False,
        has_draft=draft is not None,
        checks=[_outline_check(name, check) for name, check in template.verify.checks.items()],
        redraft=template.verify.redrafts,
        draft_has_agent=in_draft,
        analysis_has_prompt=in_analysis,
        draft_limit_seconds=_draft_limit(template),
        plan_only=spec.plan_only,
        undoes=spec.undoes,
    )


def _outline_source(template: Template, name: str, source: Source) -> SourceOutline:
    return SourceOutline(
        name=name,
        attempts=source.attempts or template.gather.attempts,
        attempt_limit_seconds=int((source.attempt_limit or template.gather.attempt_limit).total_seconds()),
        optional=source.optional,
    )


def _outline_check(name: str, check: Check) -> SourceOutline:
    # A baseline is the same command once more, on the untouched base.
    runs = 2 if check.baseline else 1
    return SourceOutline(name=name, attempts=1, attempt_limit_seconds=int(check.attempt_limit.total_seconds()) * runs)


def _draft_limit(template: Template) -> int:
    if template.draft is None:
        return 600
    agents: list[DraftStep] = [step for step in template.draft.steps if step.agent]
    walls = sum(int(step.limits.wall.total_seconds()) for step in agents)
    return int(template.draft.attempt_limit.total_seconds()) + walls
