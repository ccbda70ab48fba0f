"""What every part of the template language is made of."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field

from perdure.contracts.base import Contract

_NAME = r"^[a-z][a-z0-9_]{0,39}$"

Name = Annotated[str, Field(pattern=_NAME)]
"""A name that expressions use: lower case, digits, ``_``."""


class Part(Contract):
    """What every part of a template shares: frozen, and an unknown field is refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")
