"""What a stage step reads of its job: the pinned template, inputs, results so far, reviewers' edits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from perdure.contracts.base import BlobRef, JsonDict
from perdure.contracts.decisions import Edits
from perdure.contracts.job import JobSpec, StepInput
from perdure.contracts.names import JobId
from perdure.contracts.plan import ReviewRule
from perdure.contracts.template import Template
from perdure.contracts.template_agents import JobBudget
from perdure.effects.base import Blobs
from perdure.policy.for_each import EACH


class JsonBlobs(Blobs, Protocol):
    """Blobs with JSON on top."""

    def has(self, ref: BlobRef) -> bool:
        """Whether it is there: what was erased is not."""
        ...

    def put_json(self, value: Any) -> BlobRef:
        """Store plain JSON."""
        ...

    def get_json(self, ref: BlobRef) -> Any:
        """Read it back, verified."""
        ...


class Rendering(Protocol):
    """Resolves expressions in a process that can be killed."""

    def render(self, value: Any, context: JsonDict) -> Any:
        """Return ``value`` with every expression in it resolved. Raises ``UserError``."""
        ...


Policies = Callable[[], Mapping[str, ReviewRule]]
"""Reads the policies of today by name."""


@dataclass(frozen=True)
class JobReader:
    """Reads one step's job; nothing is read before it is asked for."""

    step: StepInput
    blobs: JsonBlobs
    renderer: Rendering
    policies: Policies = dict

    @cached_property
    def spec(self) -> JobSpec:
        """The job as pinned at submission."""
        return JobSpec.model_validate(self.blobs.get_json(self.step.spec))

    @cached_property
    def template(self) -> Template:
        """The template as pinned."""
        from perdure.policy.templates import parse_template  # with YAML and Jinja: no worker needs them at its start

        return parse_template(self.spec.template_source, path=self.spec.template)

    @cached_property
    def edits(self) -> list[Edits]:
        """Reviewers' edits, oldest first."""
        return [Edits.model_validate(self.blobs.get_json(ref)) for ref in self.step.edits]

    @cached_property
    def results(self) -> JsonDict:
        """``{"gather": {source: value}, "analyze": {step: value}, "draft": value, "verify": {check: value}}``."""
        # A source that gave nothing (optional, and out of attempts) is null, not a name that nobody knows.
        sources = dict.fromkeys(self.template.gather.sources) if self.spec.template_source else {}
        nested: JsonDict = {"gather": sources, "analyze": {}, "draft": {}, "verify": {}}
        for key, ref in self.step.results.items():
            stage, _, name = key.partition(".")
            value = self.blobs.get_json(ref)["value"]
            if name:
                nested[stage][name] = value
            else:
                nested[stage] = value
        return nested

    @cached_property
    def findings(self) -> list[str]:
        """What the stages found that a reviewer should know, in stage order."""
        return [text for ref in self.step.results.values() for text in self.blobs.get_json(ref)["findings"]]

    @property
    def variables(self) -> JsonDict:
        """What expressions see."""
        job = JobId.parse(self.step.job_id)
        about = {"id": f"{job.thread}-{job.request}", "thread": job.thread, "round": self.step.round}
        return {"inputs": self.spec.inputs, "job": {**about, **_span(self.spec)}, **self.results}

    @property
    def budget(self) -> JobBudget:
        """What all models of the job may use: the template's budget, and no more than the job's own cap."""
        budget, cap = self.template.budget, self.spec.cost_cap_microdollars
        if cap is None:
            return budget
        return budget.model_copy(update={"cost_microdollars": min(cap, budget.cost_microdollars or cap)})

    def render(self, value: Any, each: JsonDict | None = None) -> Any:
        """Resolve expressions with :attr:`variables` and, in a step with ``for_each``, its item.

        What has no expression is returned as it is, without a process.
        """
        if not _has_expression(value):
            return value
        return self.renderer.render(value, self.variables if each is None else {**self.variables, EACH: each})

    def keep(self, value: Any, findings: list[str]) -> BlobRef:
        """Store one step's result the way :attr:`results` reads it."""
        return self.blobs.put_json({"value": value, "findings": findings})


def _span(spec: JobSpec) -> JsonDict:
    fire = spec.fire
    if fire is None:
        return {"fire": None, "since": None, "until": None}
    return {"fire": fire.key, "since": fire.since.isoformat(), "until": fire.until.isoformat()}


def _has_expression(value: Any) -> bool:
    if isinstance(value, str):
        return "{{" in value or "{%" in value or "{#" in value
    if isinstance(value, dict):
        return any(_has_expression(inner) for inner in value.values())
    return isinstance(value, list) and any(_has_expression(inner) for inner in value)
