"""The part of the template language in which models work: prompts in the analysis, agents in the draft, budgets."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

from pydantic import Field, model_validator

from perdure.contracts.base import JsonDict
from perdure.contracts.template_base import Name, Part
from perdure.contracts.values import Duration, Money

Repairs = Field(default=2, ge=0, le=10, strict=True)


def is_prompt_file(prompt: str) -> bool:
    """Whether a prompt is the name of a file beneath the templates folder; else it is the text itself."""
    return prompt.endswith(".j2") and not any(character.isspace() for character in prompt)


class JobBudget(Part):
    """What all agents and prompts of a job may use together, whatever the limits of each say."""

    cost_microdollars: Money | None = Field(default=None, alias="cost")
    tokens: int | None = Field(default=None, ge=1, strict=True)
    """In and out, over all turns of all of them."""


class AgentLimits(Part):
    """Where an agent stops whatever it has done."""

    turns: int = Field(default=12, ge=1, le=1000, strict=True)
    calls: int = Field(default=200, ge=1, le=20_000, strict=True)
    """Tool calls."""
    tokens: int = Field(default=2_000_000, ge=1, strict=True)
    """In and out, over all turns."""
    cost_microdollars: Money = Field(default=500_000, alias="cost")
    """A model without a known price stops here at once: unknown counts as too much."""
    wall: Duration = timedelta(minutes=10)
    """Time parked for a person is not counted."""
    idle: Duration = timedelta(days=7)
    """How long it waits for a person."""


class AnalyzeStep(Part):
    """A rule, a prompt with a typed answer, or a rule whose words a prompt refines."""

    use: str = ""
    arguments: JsonDict = Field(default={}, alias="with")
    prompt: str = ""
    """File with the prompt beneath the templates folder, `prompts/….md.j2`; or the prompt itself, on several lines."""
    answer: JsonDict = {}
    """JSON schema of the prompt's answer, an object; the step's value. Not with `use`: the rule says what it takes."""
    optional: bool = Field(default=False, strict=True)
    """The prompt is skipped, and said so, where no model is configured."""
    model: str = ""
    """Name of a configured model; empty: the default one."""
    repairs: int = Repairs
    """So often a model is told what is wrong with its answer; then the step ends as `answer`."""
    limits: AgentLimits = AgentLimits()
    on_failure: Literal["fail", "keep_rule_result", "ask"] = "fail"
    """``keep_rule_result``: the value is the rule's own; without a rule it is null. ``ask``: the job pauses."""

    @model_validator(mode="after")
    def _check(self) -> AnalyzeStep:
        if not self.use and not self.prompt:
            raise ValueError("a step needs `use: <rule>` or `prompt: <file>`")
        return self


class StepPermission(Part):
    """May an agent call a tool on a target? Denials go first; what no rule speaks about is denied."""

    decision: Literal["allow", "ask", "deny"]
    tool: str = "*"
    """Glob over the tool's name."""
    target: str = "*"
    """Glob over what the call touches: "file:src/**", "command:git push*", "https://example.org/**"."""
    arguments: dict[str, str] = {}
    """Argument name to a glob over its text."""
    reason: str = ""
    """Told to the model and to people."""


class DraftStep(Part):
    """A rule, or an agent, that changes the private workspace."""

    use: str = ""
    arguments: JsonDict = Field(default={}, alias="with")
    agent: str = ""
    """File with the agent's prompt beneath the templates folder; or the prompt itself, on several lines."""
    optional: bool = Field(default=False, strict=True)
    """Skipped, and said so, where no model is configured."""
    tools: list[str] = []
    paths: list[str] | str = []
    """Globs of what an agent may change, or one expression that gives them; empty: everything in the workspace."""
    hosts: list[str] = []
    """Hosts that an agent's `http.get` may reach."""
    done_when: list[Name] = []
    """Checks that end the agent's work; never its own word."""
    name: Name | None = None
    """With `answer`: where it is found, `draft.answers.NAME`."""
    answer: JsonDict = {}
    """JSON schema of what an agent says in the end, an object."""
    repairs: int = Repairs
    """So often an agent is told what is wrong with its answer; then it ends as `answer`."""
    limits: AgentLimits = AgentLimits()
    on_failure: Literal["fail", "keep_rule_result", "ask"] = "fail"
    """``ask``: where a limit is met the job pauses, and a person may give more."""
    model: str = ""
    """Name of a configured model; empty: the default one."""
    dial: Literal["observe", "confirm", "propose", "delegate"] = "propose"
    """How much it may do alone at the start; `perdure dial` turns it while it works."""
    permissions: list[StepPermission] = []
    """Before what `tools` allows."""

    @model_validator(mode="after")
    def _check(self) -> DraftStep:
        if bool(self.use) == bool(self.agent):
            raise ValueError("a step needs exactly one of `use: <rule>` and `agent: <prompt file>`")
        if bool(self.answer) != (self.name is not None):
            raise ValueError("`answer` and `name` belong together: the answer is found as draft.answers.<name>")
        return self
