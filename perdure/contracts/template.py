"""The language of job templates: what a YAML file may say, as types. Read by ``perdure.policy.templates``."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PrivateAttr, WithJsonSchema, model_validator

from perdure.contracts.base import JsonDict
from perdure.contracts.template_agents import AnalyzeStep, DraftStep, JobBudget
from perdure.contracts.template_base import Name, Part
from perdure.contracts.template_review import Review
from perdure.contracts.values import Command, Condition, Duration, ListExpression

LANGUAGE = 1
"""The only language version there is; a template of another one is refused."""

JOB_NAMES = ("id", "thread", "round", "fire", "since", "until")
"""What expressions find in ``job``: an id that is one path component, the thread, the number of the draft from 1.

In a scheduled job also the nominal local time of its fire, and the span that it is to handle (UTC); else null.
"""

Place = tuple[str | int, ...]
"""Where a value stands in a template: ``("apply", 2, "effect")``."""

InputType = Literal["git-repository", "path", "string", "choice", "version", "command", "secret", "boolean", "integer"]


class InputSpec(Part):
    """One input of a template."""

    type: InputType
    default: Any = None
    """Used when nothing is given; read like a given value."""
    optional: bool = Field(default=False, strict=True)
    """May be left out; is null then."""
    of: list[str] = []
    """With ``choice``: the values there are."""
    help: str = ""
    needs: list[Name] = []
    """Inputs that must be given when this one is."""

    @model_validator(mode="after")
    def _check(self) -> InputSpec:
        if (self.type == "choice") != bool(self.of):
            raise ValueError("`of: [one, two]` belongs to an input of type choice, and a choice needs it")
        if self.optional and self.default is not None:
            raise ValueError("an input with a default is never missing; leave out `optional` or `default`")
        return self


class Source(Part):
    """One named read of the world."""

    use: str
    arguments: JsonDict = Field(default={}, alias="with")
    optional: bool = Field(default=False, strict=True)
    """A failure is listed for the reviewer and the job goes on."""
    attempts: int | None = Field(default=None, ge=1, le=20, strict=True)
    attempt_limit: Duration | None = None


class Gather(Part):
    """Reads of the world, in parallel."""

    attempt_limit: Duration = timedelta(minutes=2)
    attempts: int = Field(default=3, ge=1, le=20, strict=True)
    sources: dict[Name, Source] = {}


class Analyze(Part):
    """Conclusions from what was gathered, in the order written."""

    steps: dict[Name, AnalyzeStep] = {}
    finish_when: Condition = False
    """Ends the job as having nothing to do."""
    finish_message: str = "Nothing to do."


class Draft(Part):
    """What is written in the private workspace."""

    message: str = ""
    """Message of the commit that is built from the draft."""
    steps: list[DraftStep] = []
    attempt_limit: Duration = timedelta(minutes=10)


class Redraft(Part):
    """Send a red check back to draft so many times, then fail. Written ``fail`` for: not once."""

    redraft: int = Field(ge=0, le=20, strict=True)
    then: Literal["fail"] = "fail"


def _read_on_red(value: object) -> object:
    return {"redraft": 0} if value == "fail" else value


OnRed = Annotated[
    Redraft,
    BeforeValidator(_read_on_red),
    WithJsonSchema(
        {
            "anyOf": [
                {"const": "fail"},
                {
                    "type": "object",
                    "properties": {"redraft": {"type": "integer", "minimum": 0}, "then": {"const": "fail"}},
                    "required": ["redraft"],
                    "additionalProperties": False,
                },
            ]
        }
    ),
]
"""``fail``, or ``{redraft: 2, then: fail}``."""


class Check(Part):
    """One verdict on exactly the drafted content: by a rule, a command, an expression or an HTTP answer."""

    use: str = ""
    arguments: JsonDict = Field(default={}, alias="with")
    run: Command | None = None
    expect: Condition | None = None
    http: str = ""
    status: int = Field(default=200, ge=100, le=599, strict=True)
    within: Duration | None = None
    when: Condition = True
    """Not run, and said so, when this is no."""
    baseline: bool = Field(default=False, strict=True)
    """Also on the untouched base: was it red before?"""
    network: list[str] = []
    """Hosts that the sandbox opens."""
    judges: Command | None = None
    """Globs of files that judge: a command runs with those of the base, whatever the draft did to them.

    Left out, or null: none; for a check that ends an agent's work tests, and what says how they are run.
    """
    attempt_limit: Duration = timedelta(minutes=10)

    @model_validator(mode="after")
    def _check(self) -> Check:
        given = [bool(self.use), self.run is not None, self.expect is not None, bool(self.http)]
        if sum(given) != 1:
            raise ValueError("a check needs exactly one of `use`, `run`, `expect` and `http`")
        return self


class Verify(Part):
    """Checks, in parallel."""

    on_failure: OnRed = Redraft(redraft=0)
    checks: dict[Name, Check] = {}

    @property
    def redrafts(self) -> int:
        """How often a red check goes back to draft."""
        return self.on_failure.redraft


class StepVerify(Part):
    """How an apply step looks whether all is well once its effect is done."""

    run: Command | None = None
    """Ends with 0 when all is well; runs where the step does."""
    http: str = ""
    """URL that answers with ``status`` when all is well."""
    status: int = Field(default=200, ge=100, le=599, strict=True)
    within: Duration | None = None
    """Asked again for so long."""

    @model_validator(mode="after")
    def _check(self) -> StepVerify:
        if (self.run is None) == (not self.http):
            raise ValueError("it looks by exactly one of `run` and `http`")
        return self


class ApplyStep(Part):
    """One effect, or one for each item. ``undo`` and ``probe`` have the shape that the kind of effect wants."""

    id: str = Field(pattern=r"^[a-z][a-z0-9_-]{0,39}$")
    effect: str
    arguments: JsonDict = Field(default={}, alias="with")
    when: Condition = True
    """The step is left out of the plan when this is no."""
    for_each: ListExpression | None = None
    """A list of objects with an ``id``: one effect for each, in order, ``each`` in its expressions."""
    probe: Any = None
    undo: Any = None
    """``none_needed``, or how to take it back; not for kinds whose undo is built in."""
    irreversible: str = ""
    """Why it cannot be taken back."""
    require: Any = None
    """What must still hold just before the effect, else drift; in the shape that the kind of effect wants."""
    settle: Command | None = None
    """Command that may run again: after the effect, and after it was taken back."""
    verify: StepVerify | None = None
    """Once it is done; when not all is well, ``on_failure`` says what comes."""
    on_failure: Literal["undo_all", "pause", "report"] = "undo_all"
    pause: bool = Field(default=False, strict=True)
    """Begun only once a person says go on (``perdure resume``); of ``for_each`` before its first item."""
    runs_on: Literal["", "sandbox", "worker"] = ""
    """Empty: as the template says."""
    attempt_limit: Duration = timedelta(minutes=10)

    @model_validator(mode="after")
    def _check(self) -> ApplyStep:
        if self.irreversible and self.undo is not None:
            raise ValueError("a step has `undo` or `irreversible`, not both")
        return self


class Template(Part):
    """A kind of job, whole."""

    language: Literal[1] = Field(alias="perdure")
    name: str = Field(pattern=r"^[a-z][a-z0-9-]{0,63}$")
    summary: str = ""
    thread: str = ""
    """Name of the lasting workspace; may use ``inputs``. See :meth:`thread_name`."""
    lock: str = ""
    """Target that is never applied twice at once; may use ``inputs``. Empty: each effect's own target."""
    runs_on: Literal["sandbox", "worker"] = "sandbox"
    inputs: dict[Name, InputSpec] = {}
    budget: JobBudget = JobBudget()
    gather: Gather = Gather()
    analyze: Analyze = Analyze()
    draft: Draft | None = None
    verify: Verify = Verify()
    review: Review = Review()
    apply: list[ApplyStep] = []

    _path: str = PrivateAttr(default="")
    _lines: dict[Place, int] = PrivateAttr(default_factory=dict)

    @property
    def thread_name(self) -> str:
        """The thread's expression; without one of its own: one thread per template and repository."""
        if self.thread:
            return self.thread
        for name, spec in self.inputs.items():
            if spec.type == "git-repository":
                return f"{self.name}-{{{{ inputs.{name}.slug }}}}"
        return self.name

    @property
    def asks_models(self) -> tuple[bool, bool]:
        """Whether (the analysis, the draft) asks models."""
        draft = self.draft.steps if self.draft else []
        return any(step.prompt for step in self.analyze.steps.values()), any(step.agent for step in draft)

    def place_of(self, step: ApplyStep) -> Literal["sandbox", "worker"]:
        """Where a step's command runs: as the step says, else as the template says."""
        return step.runs_on or self.runs_on

    def locate(self, place: Place) -> str:
        """Return ``path:line`` of a place, or of the nearest place around it that stands in the file."""
        for end in range(len(place), -1, -1):
            if place[:end] in self._lines:
                return f"{self._path}:{self._lines[place[:end]]}"
        return self._path or self.name

    def set_places(self, path: str, lines: dict[Place, int]) -> None:
        """Remember where the text stands; called once by the reader."""
        self._path, self._lines = path, lines
