"""Reading SQL as far as a plan must know it: one statement, no transaction words, whether it runs outside of one."""

from __future__ import annotations

import re
from typing import Any

from perdure.contracts.base import JsonDict
from perdure.errors import UserError

_TOKEN = re.compile(
    r"""(?P<text>'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|\$(?P<tag>[A-Za-z_]*)\$.*?\$(?P=tag)\$)"""
    r"""|(?P<comment>--[^\n]*|/\*.*?\*/)|(?P<end>;)""",
    re.DOTALL,
)
_TRANSACTION = re.compile(
    r"\s*(begin|commit|end|rollback|abort|savepoint|release|start\s+transaction|prepare\s+transaction|set\s+transaction"
    r"|attach|detach)\b",
    re.IGNORECASE,
)
_ALONE = re.compile(
    r"\s*(vacuum\b|(create|drop)\s+database\b|(create|drop)\s+tablespace\b|alter\s+system\b"
    r"|(create|drop|reindex)\b[^;]*\bconcurrently\b|alter\s+table\b[^;]*\bdetach\s+partition\b[^;]*\bconcurrently\b)",
    re.IGNORECASE,
)
_TRIGGER = re.compile(r"\s*create\s+(temp\w*\s+)?trigger\b.*\bbegin\b", re.IGNORECASE | re.DOTALL)
_MOST_CHARACTERS = 16_384
_Value = str | int | bool | None


def read_statement(step: str, name: str, given: object) -> str:
    """Return a statement, without the ``;`` at its end.

    Raises:
        UserError: it is empty, more than one, or opens or ends a transaction.
    """
    if not isinstance(given, str) or not given.strip():
        raise UserError(f"Step {step!r}: `{name}` is {given!r}; expected one SQL statement.")
    if len(given) > _MOST_CHARACTERS:
        raise UserError(f"Step {step!r}: `{name}` has {len(given)} characters; at most {_MOST_CHARACTERS} are read.")
    bare = _bare(given)
    parts = [part for part in bare.split(";") if part.strip()]
    if len(parts) != 1 and not _TRIGGER.match(bare):
        raise UserError(
            f"Step {step!r}: `{name}` holds {len(parts)} statements; expected one. Make a step of each: then it is "
            "known which of them are committed."
        )
    if _TRANSACTION.match(bare):
        raise UserError(
            f"Step {step!r}: `{name}` begins with {bare.split()[0].upper()}. Each step is a transaction of its own; "
            "leave it out."
        )
    return given.strip().rstrip(";").rstrip() if not _TRIGGER.match(bare) else given.strip()


def runs_alone(statement: str) -> bool:
    """Whether PostgreSQL refuses it inside a transaction: then nothing can roll it back when it fails half way."""
    return _ALONE.match(_bare(statement)) is not None


def read_parameters(step: str, name: str, given: object) -> list[_Value]:
    """Return the values of ``$1``, ``$2``, … in order."""
    if given is None:
        return []
    if not isinstance(given, list) or not all(isinstance(one, str | int | None) for one in given):
        raise UserError(
            f"Step {step!r}: `{name}` is {given!r}; expected a list of texts, whole numbers, true, false or null, the "
            "values of $1, $2, …"
        )
    return list(given)


def read_query(step: str, name: str, given: object, *, keys: tuple[str, ...] = ()) -> JsonDict:
    """Return ``{query, parameters}`` and ``expect`` or ``before`` where they are given.

    A text alone is a query. Without ``expect`` the first value of the first row says yes or no.
    """
    if isinstance(given, str):
        given = {"query": given}
    known = ("query", "parameters", "expect", *keys)
    if not isinstance(given, dict) or not given.get("query") or not set(given) <= set(known):
        raise UserError(f"Step {step!r}: `{name}` is {given!r}; expected a query, or {', '.join(known)}.")
    found: JsonDict = {
        "query": read_statement(step, f"{name}.query", given["query"]),
        "parameters": read_parameters(step, f"{name}.parameters", given.get("parameters")),
    }
    for key in ("expect", "before"):
        if key in given:
            if not isinstance(given[key], str | int | None):
                raise UserError(f"Step {step!r}: `{name}.{key}` is {given[key]!r}; expected one value.")
            found[key] = given[key]
    return found


def holds(query: JsonDict, rows: list[list[Any]], key: str = "expect") -> bool:
    """Whether the rows say yes: the first value is as expected, or, when nothing is, there is one and it is no "no"."""
    first = rows[0][0] if rows and rows[0] else None
    if key in query:
        return bool(rows) and _plain(first) == _plain(query[key])
    return first not in (None, False, 0, "", "f", "false", "0")


def _plain(value: object) -> str:
    return {True: "true", False: "false", None: "null"}[value] if isinstance(value, bool | None) else str(value)


def _bare(statement: str) -> str:
    """The statement with its texts blanked and without its comments."""
    return _TOKEN.sub(lambda found: ";" if found["end"] else " " if found["comment"] else "''", statement).strip()
