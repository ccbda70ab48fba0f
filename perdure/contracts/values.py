"""Values that templates write in a form of their own: durations, amounts, commands, conditions."""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal
from typing import Annotated

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

from perdure.contracts.base import JsonDict

_EXPRESSION = re.compile(r"\s*\{\{.*\}\}\s*", re.DOTALL)
_DURATION = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?")
_MONEY = re.compile(r"(\d{1,9}(?:\.\d{1,6})?) USD")


def is_expression(value: object) -> bool:
    """Whether ``value`` is text that is one ``{{ expression }}`` from end to end (two in a row look the same here)."""
    return isinstance(value, str) and _EXPRESSION.fullmatch(value) is not None


def parse_duration(value: object) -> timedelta:
    """Read ``90s``, ``2m``, ``4h``, ``7d`` or a sum like ``1h30m``.

    Raises:
        ValueError: anything else, zero, or more than 400 days.
    """
    if isinstance(value, timedelta):
        return value
    match = _DURATION.fullmatch(value) if isinstance(value, str) and value else None
    if match is None or any(len(part or "") > 9 for part in match.groups()):
        raise ValueError(f"{value!r} is no duration; expected a number and a unit: 90s, 2m, 4h, 7d or 1h30m")
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    total = days * 86400 + hours * 3600 + minutes * 60 + seconds
    if not 0 < total <= 400 * 86400:
        raise ValueError(f"{value!r} is out of range; expected more than nothing and at most 400d")
    return timedelta(seconds=total)


def format_duration(value: timedelta) -> str:
    """Return the text that :func:`parse_duration` reads: ``1h30m``."""
    rest, parts = int(value.total_seconds()), []
    for unit, seconds in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        count, rest = divmod(rest, seconds)
        parts += [f"{count}{unit}"] if count else []
    return "".join(parts)


def parse_money(value: object) -> int:
    """Read ``0.50 USD`` as microdollars.

    Raises:
        ValueError: anything else.
    """
    match = _MONEY.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError(f"{value!r} is no amount; expected one like 0.50 USD")
    return int(Decimal(match.group(1)) * 1_000_000)


def _read_command(value: object) -> list[str] | str:
    if isinstance(value, str) and is_expression(value):
        return value
    if not isinstance(value, list) or not value:
        raise ValueError(f"{value!r} is no command; expected a list like [make, test], or one {{{{ expression }}}}")
    return [_read_word(word) for word in value]


def _read_word(word: object) -> str:
    # `[sleep, 3]` and `[true]` read as a number and a boolean in YAML; in a command they are words.
    if isinstance(word, bool):
        return "true" if word else "false"
    if isinstance(word, str | int):
        return str(word)
    raise ValueError(f"{word!r} is no word of a command; expected text")


def _read_condition(value: object) -> bool | str:
    if isinstance(value, bool) or (isinstance(value, str) and is_expression(value)):
        return value
    raise ValueError(f"{value!r} is no condition; expected true, false or one {{{{ expression }}}}")


def _read_expression(value: object) -> str:
    if isinstance(value, str) and is_expression(value):
        return value
    raise ValueError(f"{value!r} is no expression; expected one {{{{ expression }}}} that gives a list")


_DURATION_PATTERN = r"^(?=.)(\d+d)?(\d+h)?(\d+m)?(\d+s)?$"
_WORD_SCHEMA: JsonDict = {"type": ["string", "integer", "boolean"]}
_EXPRESSION_SCHEMA: JsonDict = {"type": "string", "pattern": r"^\s*\{\{[\s\S]*\}\}\s*$"}
Duration = Annotated[
    timedelta,
    BeforeValidator(parse_duration),
    PlainSerializer(format_duration, when_used="json"),
    WithJsonSchema({"type": "string", "pattern": _DURATION_PATTERN, "examples": ["90s", "2m", "7d"]}),
]
"""Written ``2m``; a ``timedelta`` once read."""
Command = Annotated[
    list[str] | str,
    BeforeValidator(_read_command),
    WithJsonSchema({"anyOf": [{"type": "array", "items": _WORD_SCHEMA}, _EXPRESSION_SCHEMA]}),
]
"""An argv list, or one expression that gives such a list (or null)."""
Condition = Annotated[
    bool | str, BeforeValidator(_read_condition), WithJsonSchema({"anyOf": [{"type": "boolean"}, _EXPRESSION_SCHEMA]})
]
"""``true``, ``false`` or one expression. An expression counts as Jinja counts it: null, empty and 0 are no."""

ListExpression = Annotated[str, BeforeValidator(_read_expression), WithJsonSchema(_EXPRESSION_SCHEMA)]
"""One expression that gives a list."""

Money = Annotated[int, BeforeValidator(parse_money), WithJsonSchema({"type": "string", "examples": ["0.50 USD"]})]
"""Written ``0.50 USD``; microdollars once read."""
