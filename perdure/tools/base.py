"""A tool made of a pydantic model and a function: typed schema, targets, and errors that a model can act on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from perdure.contracts.agent import ToolOutcome, ToolSpec
from perdure.contracts.agent_ports import ToolContext
from perdure.contracts.base import JsonDict
from perdure.errors import ToolFault


class Arguments(BaseModel):
    """What a tool's arguments share: frozen, and an unknown one is refused with the names that there are."""

    model_config = ConfigDict(frozen=True, extra="forbid")


@dataclass(frozen=True)
class Traffic:
    """How hard a tool may be used, for each host it reaches on its own."""

    concurrency: int = 8
    """Calls at once."""
    per_minute: int = 0
    """Calls a minute; 0: any number."""
    failures: int = 5
    """So many in a row that found nobody answering, and it is left alone for ``rest``."""
    rest: timedelta = timedelta(seconds=30)
    fallback: str = ""
    """A tool that takes the same arguments and stands in meanwhile; the review says so."""


A = TypeVar("A", bound=BaseModel)


@dataclass(frozen=True)
class ModelTool(Generic[A]):
    """Implements ``agent_ports.Tool`` on a pydantic model of the arguments."""

    spec: ToolSpec
    model: type[A]
    do: Callable[[A, ToolContext], ToolOutcome]
    touch: Callable[[A], str]
    """What a call touches; see ``Tool.target``."""
    look: Callable[[A, ToolContext], ToolOutcome | None] = lambda _arguments, _context: None
    host: Callable[[A], str] = lambda _arguments: ""
    """The host that a call reaches: traffic is counted for each."""
    traffic: Traffic = field(default_factory=Traffic)
    secrets: tuple[str, ...] = ()
    """Names of the secrets that it is given."""
    origin: str = "perdure"
    """Who ships it: ``perdure``, or a package and its version."""

    def target(self, arguments: JsonDict) -> str:
        """What a call touches. Raises ``ToolFault`` when the arguments are wrong."""
        return self.touch(read_arguments(self.spec, self.model, arguments))

    def run(self, arguments: JsonDict, context: ToolContext) -> ToolOutcome:
        """Do it. Raises ``ToolFault`` when it failed in a way the model can react to."""
        return self.do(read_arguments(self.spec, self.model, arguments), context)

    def probe(self, arguments: JsonDict, context: ToolContext) -> ToolOutcome | None:
        """What became of an earlier attempt; ``None``: it cannot be told."""
        return self.look(read_arguments(self.spec, self.model, arguments), context)

    def host_of(self, arguments: JsonDict) -> str:
        """The host that a call reaches; empty when it reaches none."""
        return self.host(read_arguments(self.spec, self.model, arguments))


def read_arguments(spec: ToolSpec, model: type[A], arguments: JsonDict) -> A:
    """Return the arguments as the tool's model.

    Raises:
        ToolFault: they do not fit; names each that is wrong and what was expected.
    """
    try:
        return model.model_validate(arguments)
    except ValidationError as error:
        raise ToolFault(f"{spec.name} was not run: {explain(error, model)}") from None


def explain(error: ValidationError, model: type[BaseModel]) -> str:
    """Return every problem with its place, and the names that there are when one is unknown."""
    problems = []
    for problem in error.errors(include_url=False, include_input=True)[:8]:
        place = ".".join(str(part) for part in problem["loc"]) or "arguments"
        if problem["type"] == "extra_forbidden":
            problems.append(f"`{place}` is not an argument; it takes {', '.join(model.model_fields) or 'none'}")
        elif problem["type"] == "missing":
            problems.append(f"`{place}` is missing")
        else:
            given = repr(problem["input"])
            problems.append(f"`{place}`: {problem['msg']}, got {given if len(given) <= 80 else given[:79] + '…'}")
    return "; ".join(problems) + "."


def schema_of(model: type[BaseModel]) -> JsonDict:
    """Return the JSON schema of a model's object, without pydantic's titles: they cost a model tokens every turn."""
    schema: JsonDict = _without_titles(model.model_json_schema())
    schema.pop("description", None)
    schema.setdefault("properties", {})
    return schema


def _without_titles(value: Any, *, is_names: bool = False) -> Any:
    """``is_names``: the keys are names of ours (an argument may be called ``title``), not words of the schema."""
    if isinstance(value, Mapping):
        kept = {key: inner for key, inner in value.items() if is_names or key != "title"}
        return {
            key: _without_titles(inner, is_names=not is_names and key in ("properties", "$defs"))
            for key, inner in kept.items()
        }
    return [_without_titles(inner) for inner in value] if isinstance(value, list) else value


def make_tool(
    name: str,
    model: type[A],
    do: Callable[[A, ToolContext], ToolOutcome],
    *,
    touch: Callable[[A], str],
    about: str,
    look: Callable[[A, ToolContext], ToolOutcome | None] = lambda _arguments, _context: None,
    host: Callable[[A], str] = lambda _arguments: "",
    traffic: Traffic | None = None,
    **spec: Any,
) -> ModelTool[A]:
    """Put a shipped tool together; ``spec``: further fields of its :class:`ToolSpec`."""
    parts = {"name": name, "description": about, "parameters": schema_of(model), **spec}
    return ModelTool(ToolSpec.model_validate(parts), model, do, touch, look, host, traffic or Traffic())
