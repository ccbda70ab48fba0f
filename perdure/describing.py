"""Asks a process of its own what users' packages bring: they never enter the API's, which holds the decision key."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from perdure.contracts.base import Contract
from perdure.contracts.http import Problem
from perdure.errors import SetupError

View = TypeVar("View", bound=Contract)

_LIMIT_SECONDS = 25


def describe_apart(module: str, table: str, kind: type[View], named: Sequence[str]) -> list[View]:
    """Return what ``python -m <module> name@version …`` lists.

    Raises:
        SetupError: an entry point cannot be loaded; says which and what to do.
    """
    argv = [sys.executable, "-P", "-E", "-m", module, *named]
    try:
        ended = subprocess.run(argv, env={}, cwd="/", capture_output=True, timeout=_LIMIT_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise SetupError(
            f"Loading {table} did not end within {_LIMIT_SECONDS} s. Look at [{table}] in the settings file."
        ) from None
    try:
        if ended.returncode == 0:
            return TypeAdapter(list[kind]).validate_json(ended.stdout)  # type: ignore[valid-type]
        problem = Problem.model_validate_json(ended.stdout)
    except ValidationError:
        said = ended.stderr.decode("utf-8", "replace").strip()[-500:]
        raise SetupError(
            f"{table.capitalize()} could not be described (exit code {ended.returncode}): {said}"
        ) from None
    raise SetupError(problem.message)


def write_description(kind: type[View], list_all: Callable[[], list[View]]) -> int:
    """The other side: write the listing to the real stdout; what a package prints while imported goes to stderr."""
    answer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    with answer:
        try:
            answer.write(TypeAdapter(list[kind]).dump_json(list_all()))  # type: ignore[valid-type]
        except SetupError as error:
            problem = Problem(kind="SetupError", message=error.message, exit_code=error.exit_code)
            answer.write(problem.model_dump_json().encode())
            return 1
    return 0
