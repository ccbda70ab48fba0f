"""What a template says to models, checked when it is loaded: prompts, their answers, where agents stop."""

from __future__ import annotations

from collections.abc import Iterator, Set

from perdure.contracts.base import JsonDict
from perdure.contracts.template import Place, Template
from perdure.contracts.template_agents import AnalyzeStep, DraftStep
from perdure.policy.answers import check_schema
from perdure.policy.names import suggest
from perdure.policy.template_names import Problem


def find_model_problems(template: Template, refined: Set[str]) -> Iterator[Problem]:
    """Find what is wrong with a template's prompts and agents; ``refined``: the rules that a prompt may refine."""
    for name, step in template.analyze.steps.items():
        place: Place = ("analyze", "steps", name)
        yield from _check_prompt(place, step, refined) if step.prompt else _check_rule_alone(place, step)
    for position, part in enumerate(template.draft.steps if template.draft else []):
        if part.agent:
            yield from _check_agent(("draft", "steps", position), part)


def _check_prompt(place: Place, step: AnalyzeStep, refined: Set[str]) -> Iterator[Problem]:
    if "on_failure" not in step.model_fields_set:
        yield (*place, "prompt"), "A prompt says what happens when no answer of a model fits: `on_failure`."
    if step.use and step.answer:
        yield (*place, "answer"), f"What {step.use!r} takes of an answer it says itself; leave `answer` out."
    elif step.use and step.use not in refined:
        known = suggest(step.use, refined, "rules that a prompt may refine")
        yield (*place, "prompt"), f"What {step.use!r} gives cannot be refined by a prompt.{known}"
    elif not step.use:
        yield from _check_answer(place, step.answer)


def _check_rule_alone(place: Place, step: AnalyzeStep) -> Iterator[Problem]:
    for key in sorted({"answer", "model", "repairs", "limits", "on_failure"} & step.model_fields_set):
        yield (*place, key), f"`{key}` is said of a prompt, and this step has none."


def _check_agent(place: Place, step: DraftStep) -> Iterator[Problem]:
    needed = ("done_when", "limits", "on_failure")
    missing = [key for key in needed if key not in step.model_fields_set or not getattr(step, key)]
    if missing:
        text = f"An agent says when it is done, where it stops and what happens then: `{'`, `'.join(missing)}`."
        yield (*place, "agent"), text
    if step.answer:
        yield from _check_answer(place, step.answer)


def _check_answer(place: Place, schema: JsonDict) -> Iterator[Problem]:
    if not schema:
        yield place, "A prompt says what it wants to be answered: `answer`, the JSON schema of an object."
    for problem in check_schema(schema) if schema else []:
        yield (*place, "answer"), problem
