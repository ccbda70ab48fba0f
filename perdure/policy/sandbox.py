"""The Jinja environment of templates: plain data only, no calls, no attributes, nothing that grows without bound."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

from jinja2 import StrictUndefined, Undefined, nodes, pass_context
from jinja2.exceptions import SecurityError
from jinja2.runtime import LoopContext
from jinja2.sandbox import ImmutableSandboxedEnvironment

from perdure.policy.names import suggest

OUTPUT_LIMIT_BYTES = 1 << 20
"""Text that expressions make, over one whole value."""
DATA_LIMIT_BYTES = 64 << 20
"""Text inside lists and objects that an expression passes on."""

FILTERS = (
    "abs",
    "count",
    "d",
    "default",
    "first",
    "int",
    "join",
    "last",
    "length",
    "list",
    "lower",
    "map",
    "max",
    "min",
    "reject",
    "rejectattr",
    "replace",
    "reverse",
    "select",
    "selectattr",
    "sort",
    "string",
    "sum",
    "trim",
    "unique",
    "upper",
)
"""Jinja's own filters that templates may use; ``json`` is ours."""

TESTS = (
    "boolean",
    "defined",
    "divisibleby",
    "eq",
    "equalto",
    "even",
    "false",
    "ge",
    "greaterthan",
    "gt",
    "in",
    "integer",
    "le",
    "lessthan",
    "lt",
    "mapping",
    "ne",
    "none",
    "number",
    "odd",
    "sequence",
    "string",
    "true",
    "undefined",
)
_OPERATORS = {"==", "!=", "<", "<=", ">", ">="}

FORBIDDEN_NODES: Mapping[type[nodes.Node], str] = {
    nodes.Call: "a call",
    nodes.CallBlock: "{% call %}",
    nodes.Macro: "{% macro %}",
    nodes.Include: "{% include %}",
    nodes.Import: "{% import %}",
    nodes.FromImport: "{% from %}",
    nodes.Extends: "{% extends %}",
    nodes.Block: "{% block %}",
    nodes.FilterBlock: "{% filter %}",
    nodes.AssignBlock: "{% set %} with a block",
    nodes.EvalContextModifier: "{% autoescape %}",
    nodes.Pow: "**",
}
"""What the language does not have, and how a reader would call it."""

_TYPE_NAMES: Mapping[type, str] = {
    bool: "a boolean",
    int: "a whole number",
    float: "a fraction",
    str: "text",
    list: "a list",
    tuple: "a list",
    Mapping: "an object",
    type(None): "null",
    Iterator: "a list",
}
_LOOP_NAMES = {"index", "index0", "first", "last", "length"}


class PlainEnvironment(ImmutableSandboxedEnvironment):
    """Reads keys and positions of plain data; whatever else a value could do is not there."""

    intercepted_binops = frozenset({"*", "**", "%"})

    def getattr(self, obj: Any, attribute: str) -> Any:
        """``a.b`` is the key ``b`` of ``a``: never a method or attribute of a Python object."""
        if isinstance(obj, LoopContext) and attribute in _LOOP_NAMES:
            return getattr(obj, attribute)
        return self._look_up(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        """``a[b]`` is a key of an object, or a position or slice of a list or text."""
        if isinstance(obj, list | tuple | str) and isinstance(argument, int | slice):
            try:
                return obj[argument]
            except IndexError:
                return self.undefined(f"There is no position {argument} in a list of {len(obj)}.")
        return self._look_up(obj, argument)

    def _look_up(self, obj: Any, key: Any) -> Any:
        if isinstance(obj, Undefined):
            return obj._fail_with_undefined_error()
        if not isinstance(obj, Mapping):
            return self.undefined(f"There is no {key!r} in {describe(obj)}; only objects have names.")
        if key in obj:
            return obj[key]
        return self.undefined(f"There is no {key!r} here.{suggest(str(key), map(str, obj))}")

    def call(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Nothing can be called, whatever way it was reached."""
        raise SecurityError("Expressions cannot call anything; use a filter.")

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """``*`` and ``%`` are for integers: on text and lists they make much out of little."""
        if operator != "**" and isinstance(left, int) and isinstance(right, int):
            return super().call_binop(context, operator, left, right)
        found = f"{describe(left)} and {describe(right)}"
        raise SecurityError(f"`{operator}` works on whole numbers only; found {found}.")


def make_environment() -> PlainEnvironment:
    """Return a fresh environment with the language's filters and tests, and no globals.

    Nothing is evaluated while compiling (``optimized=False`` and a finalizer that wants the context): a constant
    expression would otherwise run in whoever only reads a template.
    """
    environment = PlainEnvironment(
        undefined=StrictUndefined, finalize=finalize, optimized=False, autoescape=False, keep_trailing_newline=True
    )
    environment.filters = {name: environment.filters[name] for name in FILTERS} | {"json": to_json}
    environment.tests = {name: environment.tests[name] for name in (*TESTS, *_OPERATORS)}
    environment.globals.clear()
    return environment


@pass_context
def finalize(_context: Any, value: Any) -> Any:
    """Return what a value looks like inside text.

    Raises:
        TypeError: null, a list or an object: inside text they are mistakes that nobody would notice.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float | Undefined):
        return value
    raise TypeError(
        f"it gives {describe(value)}, which cannot stand inside text; "
        "use `| default('…', true)`, `| join(', ')` or `| json`"
    )


def to_json(value: Any) -> str:
    """Return ``value`` as JSON with sorted keys."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def describe(value: Any) -> str:
    """Return what people call a value's type, with its article."""
    return next((name for kind, name in _TYPE_NAMES.items() if isinstance(value, kind)), type(value).__name__)
