"""``@tool``: a function becomes a tool. Its parameters are the arguments, its docstring is what the model reads."""

from __future__ import annotations

import hashlib
import inspect
import json
import typing
from collections.abc import Callable, Sequence
from typing import Any

from pydantic import BaseModel, create_model

from perdure.contracts.agent import EffectClass, ToolOutcome, ToolSpec
from perdure.contracts.agent_ports import ToolContext
from perdure.errors import SetupError, ToolFault
from perdure.tools.base import Arguments, ModelTool, Traffic, schema_of
from perdure.tools.output import give

Function = Callable[..., Any]
Touch = Callable[..., str | Sequence[str]]


def tool(
    name: str,
    *,
    effect: EffectClass = "external",
    version: str = "1",
    touches: Touch | None = None,
    probe: Callable[..., ToolOutcome | None] | None = None,
    host: Callable[..., str] | None = None,
    traffic: Traffic | None = None,
    secrets: Sequence[str] = (),
    output_limit_bytes: int = 16_000,
    limit_seconds: int = 120,
    grace_seconds: int = 0,
    may_repeat: bool = False,
) -> Callable[[Function], ModelTool[Any]]:
    """Make a tool of a function; whatever does not say what it changes counts as ``external``.

    A parameter annotated :class:`ToolContext` gets the context, all others are arguments with types that pydantic
    reads. The function gives text, bytes, plain JSON, a pydantic model or a :class:`ToolOutcome`; it raises
    ``ToolFault`` with what happened, what was expected and what to do, and ``ToolUnavailable`` when nobody answers.

    ``touches``, ``probe`` and ``host`` take the same arguments by name: what a call touches (``ticket:42``; several in
    a list), what became of an earlier attempt, which host it reaches. Without ``touches`` it touches the tool's name.

    Raises:
        SetupError: the function has no docstring, or parameters that cannot be arguments.
    """

    def wrap(function: Function) -> ModelTool[Any]:
        model, context_name = _arguments_of(name, function)
        spec = ToolSpec(
            name=name,
            version=f"{version}+{_source_hash(function)}",
            description=_about(name, function),
            parameters=schema_of(model),
            effect_class=effect,
            output_limit_bytes=output_limit_bytes,
            limit_seconds=limit_seconds,
            grace_seconds=grace_seconds,
            may_repeat=may_repeat or effect == "read",
        )
        call = _Call(spec, function, context_name)
        return ModelTool(
            spec,
            model,
            call.run,
            _touch(name, touches),
            look=lambda arguments, context: probe(**_named(arguments)) if probe else None,
            host=lambda arguments: host(**_named(arguments)) if host else "",
            traffic=traffic or Traffic(),
            secrets=tuple(secrets),
            origin=function.__module__.split(".")[0],
        )

    return wrap


class _Call:
    """Calls a user's function and makes an outcome of what it gives."""

    def __init__(self, spec: ToolSpec, function: Function, context_name: str) -> None:
        self._spec = spec
        self._function = function
        self._context_name = context_name

    def run(self, arguments: BaseModel, context: ToolContext) -> ToolOutcome:
        given = _named(arguments)
        if self._context_name:
            given[self._context_name] = context
        value = self._function(**given)
        if isinstance(value, ToolOutcome):
            return value
        changed = self._spec.effect_class != "read"
        return give(self._spec, context, _bytes_of(self._spec.name, value), changed=changed)


def _named(arguments: BaseModel) -> dict[str, Any]:
    return {name: getattr(arguments, name) for name in type(arguments).model_fields}


def _bytes_of(name: str, value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode("utf-8", "replace")
    if isinstance(value, BaseModel):
        value = value.model_dump(mode="json")
    try:
        return json.dumps(value, ensure_ascii=False, indent=1).encode("utf-8", "replace")
    except (TypeError, ValueError) as error:
        raise ToolFault(f"{name} gave {type(value).__name__}, which is no plain JSON ({error}).") from None


def _arguments_of(name: str, function: Function) -> tuple[type[BaseModel], str]:
    """The model of a function's parameters, and the name of the one that gets the context."""
    hints = typing.get_type_hints(function, include_extras=True)
    fields: dict[str, Any] = {}
    context_name = ""
    for parameter in inspect.signature(function).parameters.values():
        kind = hints.get(parameter.name)
        if kind is ToolContext:
            context_name = parameter.name
            continue
        if kind is None or parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise SetupError(
                f"Tool {name!r}: parameter {parameter.name!r} cannot be an argument; give it a type, and no *, ** or /."
            )
        default = ... if parameter.default is parameter.empty else parameter.default
        fields[parameter.name] = (kind, default)
    return create_model(f"{function.__name__}_arguments", __base__=Arguments, **fields), context_name


def _about(name: str, function: Function) -> str:
    text = inspect.getdoc(function)
    if not text:
        raise SetupError(f"Tool {name!r} has no docstring; the model reads it to know what the tool is for.")
    return text


def _touch(name: str, touches: Touch | None) -> Callable[[BaseModel], str]:
    if touches is None:
        return lambda _arguments: f"tool:{name}"

    def touch(arguments: BaseModel) -> str:
        found = touches(**_named(arguments))
        targets = [found] if isinstance(found, str) else list(found)
        # A line end inside would make two targets of one.
        return "\n".join(target.replace("\n", "\\n") for target in targets)

    return touch


def _source_hash(function: Function) -> str:
    """Eight digits over the function's text: a changed function is a changed definition, even in the same version."""
    try:
        text = inspect.getsource(function)
    except (OSError, TypeError):
        text = repr(getattr(getattr(function, "__code__", None), "co_code", function.__qualname__))
    return hashlib.sha256(text.encode()).hexdigest()[:8]
