"""Expressions in templates: ``{{ … }}`` over plain data, rendered once. Pure; the caller limits time and memory.

A string that is one expression from end to end keeps the expression's type. Any other string with ``{{`` or ``{%``
becomes text. What comes out is never rendered again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from jinja2 import Template, Undefined, meta, nodes
from jinja2.environment import TemplateExpression
from jinja2.exceptions import SecurityError, TemplateError, UndefinedError

from perdure.contracts.base import JsonDict
from perdure.errors import UserError
from perdure.policy.names import suggest
from perdure.policy.sandbox import (
    DATA_LIMIT_BYTES,
    FORBIDDEN_NODES,
    OUTPUT_LIMIT_BYTES,
    TESTS,
    PlainEnvironment,
    describe,
    make_environment,
)

SOURCE_LIMIT_CHARACTERS = 20_000
DEPTH_LIMIT = 60
MAX_INTEGER = 2**53 - 1
_MARKS = re.compile(r"\{\{|\{%|\{#")
_UNDEFINED_NAME = re.compile(r"'([^']+)' is undefined")
_FAULTS = (TypeError, ValueError, ArithmeticError, LookupError, AttributeError, RecursionError)


class ExpressionError(UserError):
    """An expression cannot be read or has no value."""


@dataclass(frozen=True)
class Compiled:
    """A string made ready: exactly one of the two is set."""

    whole: TemplateExpression | None
    text: Template | None
    blanks: tuple[str, str] = ("", "")
    """Around ``whole``: they count where its value is a text."""


def has_expression(value: str) -> bool:
    """Whether rendering would look into ``value`` at all."""
    return _MARKS.search(value) is not None


def render(value: Any, context: Mapping[str, Any]) -> Any:
    """Return ``value`` with every expression in its strings replaced; keys of objects stay as they are.

    ``context`` holds plain JSON data. Text that is made is at most 1 MiB in sum; lists and objects that are passed on
    may hold 64 MiB.

    Raises:
        UserError: an expression is wrong, names something that is not there, or makes too much.
    """
    return _render(value, context, Budget(OUTPUT_LIMIT_BYTES))


class Budget:
    """How much text may still be made."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit = self._left = limit_bytes

    def spend(self, text: str) -> str:
        """Return ``text``, or raise ``ExpressionError`` when it is more than what is left."""
        self._left -= len(text.encode("utf-8", "surrogatepass"))
        if self._left < 0:
            raise ExpressionError(f"The expressions make more than {self._limit} bytes of text. Make less of it.")
        return text


def _render(value: Any, context: Mapping[str, Any], budget: Budget) -> Any:
    if isinstance(value, str):
        return _render_string(value, context, budget) if has_expression(value) else value
    if isinstance(value, Mapping):
        return {key: _render(inner, context, budget) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_render(inner, context, budget) for inner in value]
    return value


def _render_string(source: str, context: Mapping[str, Any], budget: Budget) -> Any:
    compiled = compile_source(source)
    try:
        if compiled.whole is not None:
            value = to_plain(_evaluate(compiled.whole, context), budget)
            return value.join(compiled.blanks) if isinstance(value, str) else value
        assert compiled.text is not None
        return "".join(budget.spend(part) for part in compiled.text.generate(**context))
    except UndefinedError as error:
        raise ExpressionError(_say_undefined(source, error, context)) from error
    except SecurityError as error:
        raise ExpressionError(f"{_quote(source)}: {error.message}") from error
    except (TemplateError, *_FAULTS) as error:
        raise ExpressionError(f"{_quote(source)} has no value: {error}") from error


def _evaluate(expression: TemplateExpression, context: Mapping[str, Any]) -> Any:
    value = expression(**context)
    return value._fail_with_undefined_error() if isinstance(value, Undefined) else value


def to_plain(value: Any, budget: Budget) -> Any:
    """Return plain JSON data for what an expression gave; iterators become lists.

    Raises:
        TypeError: a fraction, or something that is no JSON.
        ValueError: a number that JSON does not carry exactly.
    """
    if isinstance(value, Undefined):
        return value._fail_with_undefined_error()
    if isinstance(value, str):
        return budget.spend(str(value))
    if isinstance(value, int) and abs(value) > MAX_INTEGER:
        raise ValueError(f"it gives a number beyond {MAX_INTEGER}; write it as text")
    if value is None or isinstance(value, bool | int):
        return value
    return _to_plain_inside(value, Budget(DATA_LIMIT_BYTES))


def _to_plain_inside(value: Any, budget: Budget) -> Any:
    if isinstance(value, Mapping):
        return {str(key): to_plain(inner, budget) for key, inner in value.items()}
    if isinstance(value, list | tuple | Iterator):
        return [to_plain(inner, budget) for inner in value]
    raise TypeError(f"it gives {describe(value)}; expected text, a whole number, a boolean, null, a list or an object")


@lru_cache(maxsize=1)
def _environment() -> PlainEnvironment:
    return make_environment()


@lru_cache(maxsize=1024)
def compile_source(source: str) -> Compiled:
    """Make a string ready; the same string twice is compiled once.

    Raises:
        ExpressionError: a syntax error, something the language does not have, or more than 20,000 characters.
    """
    tree = parse_source(source)
    whole = whole_expression(tree)
    try:
        if whole is None:
            return Compiled(whole=None, text=_environment().from_string(source))
        result = nodes.Assign(nodes.Name("result", "store", lineno=1), whole, lineno=1)
        template = _environment().from_string(nodes.Template([result], lineno=1))
    except (TemplateError, SyntaxError, RecursionError, MemoryError) as error:
        raise ExpressionError(f"{_quote(source)} cannot be read: {error}") from error
    return Compiled(TemplateExpression(template, undefined_to_none=False), None, _blanks_around(tree, whole))


def parse_source(source: str) -> nodes.Template:
    """Return the syntax tree of a string with expressions. Evaluates nothing.

    Raises:
        ExpressionError: as for :func:`compile_source`.
    """
    if len(source) > SOURCE_LIMIT_CHARACTERS:
        raise ExpressionError(
            f"{_quote(source)} has {len(source)} characters; at most {SOURCE_LIMIT_CHARACTERS} may be."
        )
    try:
        tree = _environment().parse(source)
    except (TemplateError, RecursionError) as error:
        raise ExpressionError(f"{_quote(source)} cannot be read: {error}") from error
    if _depth(tree) > DEPTH_LIMIT:
        raise ExpressionError(f"{_quote(source)} is nested more than {DEPTH_LIMIT} deep. Make it simpler.")
    for problem in _find_strangers(tree):
        raise ExpressionError(f"{_quote(source)} uses {problem}")
    return tree


def _depth(tree: nodes.Template) -> int:
    # Level by level: a tree of thousands of levels is what every recursive walk below would choke on.
    depth, level = 0, list(tree.iter_child_nodes())
    while level and depth <= DEPTH_LIMIT:
        depth, level = depth + 1, [child for node in level for child in node.iter_child_nodes()]
    return depth


def _find_strangers(tree: nodes.Template) -> Iterator[str]:
    for kind, called in FORBIDDEN_NODES.items():
        if tree.find(kind) is not None:
            yield f"{called}, which expressions do not have; use names, operators and filters."
    for node in tree.find_all(nodes.Filter):
        if node.name not in _environment().filters:
            yield f"a filter {node.name!r} that does not exist.{suggest(node.name, _environment().filters, 'filters')}"
    for test in tree.find_all(nodes.Test):
        if test.name not in _environment().tests:
            yield f"a test {test.name!r} that does not exist.{suggest(test.name, TESTS, 'tests')}"


def whole_expression(tree: nodes.Template) -> nodes.Expr | None:
    """Return the expression when the whole string is one (blanks around it do not count), else ``None``."""
    solid = [part for part in _parts(tree) if not (isinstance(part, nodes.TemplateData) and not part.data.strip())]
    only = solid[0] if len(solid) == 1 else None
    return only if isinstance(only, nodes.Expr) and not isinstance(only, nodes.TemplateData) else None


def _blanks_around(tree: nodes.Template, whole: nodes.Expr) -> tuple[str, str]:
    parts = _parts(tree)
    place = parts.index(whole)
    before, after = (
        "".join(getattr(part, "data", "") for part in side) for side in (parts[:place], parts[place + 1 :])
    )
    return before, after


def _parts(tree: nodes.Template) -> list[nodes.Node]:
    return [part for node in tree.body for part in (node.nodes if isinstance(node, nodes.Output) else [node])]


def used_paths(source: str) -> set[tuple[str, ...]]:
    """Return what a string reads: ``("inputs", "repo")`` for ``inputs.repo.slug``, ``("gather",)`` for all of it.

    Two names deep at most. Names that the string sets by itself are not listed.
    """
    tree = parse_source(source)
    free = _find_free_names(tree, source)
    chains = [*_attribute_chains(tree), *_item_chains(tree)]
    found: set[tuple[str, ...]] = {(name.name, key) for name, key in chains if name.name in free}
    inside = {id(name) for name, _ in chains}
    return found | {(name.name,) for name in tree.find_all(nodes.Name) if name.name in free and id(name) not in inside}


def _find_free_names(tree: nodes.Template, source: str) -> set[str]:
    # As `meta.find_undeclared_variables`, but that one folds constants: a replace of a replace ran for 100 s.
    tracker = meta.TrackingCodeGenerator(_environment())
    tracker.optimizer = None
    try:
        tracker.visit(tree)
    except TemplateError as error:
        raise ExpressionError(f"{_quote(source)} cannot be read: {error}") from error
    return tracker.undeclared_identifiers


def _attribute_chains(tree: nodes.Template) -> Iterator[tuple[nodes.Name, str]]:
    for node in tree.find_all(nodes.Getattr):
        if isinstance(node.node, nodes.Name):
            yield node.node, node.attr


def _item_chains(tree: nodes.Template) -> Iterator[tuple[nodes.Name, str]]:
    for node in tree.find_all(nodes.Getitem):
        constant = isinstance(node.arg, nodes.Const) and isinstance(node.arg.value, str)
        if constant and isinstance(node.node, nodes.Name):
            yield node.node, node.arg.value  # type: ignore[attr-defined]


def prune(context: Mapping[str, Any], value: Any) -> JsonDict:
    """Return the part of ``context`` that the expressions in ``value`` can read; other names stay, emptied."""
    paths = {path for source in find_sources(value) for path in used_paths(source)}
    return {name: _prune_one(inner, {path[1:] for path in paths if path[0] == name}) for name, inner in context.items()}


def _prune_one(value: Any, wanted: set[tuple[str, ...]]) -> Any:
    keys = {rest[0] for rest in wanted if rest}
    if not wanted:
        return {} if isinstance(value, Mapping) else None
    # Read whole, or naming a key that is not there: the message then needs to know the keys that are.
    if () in wanted or not isinstance(value, Mapping) or not keys <= set(value):
        return value
    return {key: value[key] for key in keys}


def find_sources(value: Any) -> Iterator[str]:
    """Give every string with an expression inside ``value``, in order."""
    if isinstance(value, str) and has_expression(value):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from find_sources(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from find_sources(inner)


def _say_undefined(source: str, error: UndefinedError, context: Mapping[str, Any]) -> str:
    message = error.message or str(error)
    missing = _UNDEFINED_NAME.fullmatch(message)
    if missing:
        message = f"There is no {missing.group(1)!r}.{suggest(missing.group(1), context)}"
    return f"{_quote(source)} has no value: {message}"


def _quote(source: str) -> str:
    text = " ".join(source.split())
    return f"Expression `{text if len(text) <= 120 else text[:119] + '…'}`"
