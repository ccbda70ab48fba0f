"""People and agents as the settings name them: ``[people]`` of ``config.toml``."""

from __future__ import annotations

from pydantic import Field

from perdure.contracts.base import Contract

GROUP_NAME = r"^(\*|[a-z0-9][a-z0-9-]{0,63})$"


class Person(Contract):
    """One principal: somebody, or with ``for`` an agent of somebody."""

    groups: list[str] = []
    """Groups that it decides for; ``*`` stands for every group."""
    acts_for: str = Field(default="", alias="for")
    """Set: an agent. The person behind it asks for what it asks for; it decides nothing, whatever its groups."""
