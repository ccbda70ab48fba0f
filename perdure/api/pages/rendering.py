"""Pages as text: templates/pages, escaped, with every character visible that would hide or steer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perdure import reviewing
from perdure.contracts.visible import visible

if TYPE_CHECKING:
    from jinja2 import Environment

_NEVER = 2100
"""A plan that is parked has a deadline that nobody will see."""


class Pages:
    """The templates of the pages. Jinja is loaded when the first one is asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def stream(self, name: str, facts: Mapping[str, Any]) -> Iterator[str]:
        """Give a page piece by piece; what is an iterator among the facts is taken as it is written."""
        return self._environment.get_template(f"{name}.html.j2").generate(facts)

    def render(self, name: str, facts: Mapping[str, Any]) -> str:
        """Return a page."""
        return "".join(self.stream(name, facts))

    @cached_property
    def stylesheet(self) -> str:
        """The one stylesheet."""
        return (self._folder / "page.css").read_text(encoding="utf-8")

    @cached_property
    def _environment(self) -> Environment:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
        from markupsafe import Markup

        def shown(value: Any) -> Any:
            return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value

        environment = Environment(
            loader=FileSystemLoader(self._folder), undefined=StrictUndefined, autoescape=True, finalize=shown
        )
        environment.trim_blocks = environment.lstrip_blocks = True
        environment.filters |= {"code": _code, "clock": _clock, "until": _until, "tone": _tone}
        environment.globals["words"] = reviewing
        return environment


def _code(text: str) -> Any:
    """Source text with its tabs and line ends, made visible and escaped."""
    from markupsafe import escape

    return escape(visible(text, keep_lines=True))


def _clock(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _until(at: datetime) -> str:
    return f"until {_clock(at)}" if at.year < _NEVER else "without a deadline"


def _tone(line: str) -> str:
    """The class of a diff's line."""
    if line.startswith(("+++", "---", "diff ", "index ")):
        return "head"
    if line.startswith("@@"):
        return "hunk"
    return {"+": "added", "-": "removed"}.get(line[:1], "same")
