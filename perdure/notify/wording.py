"""The words of a message: templates/messages, one file for each thing that is told, its first line the title."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from perdure.contracts.notify import About
from perdure.contracts.visible import visible

_MOST_TITLE = 200


def write_message(folder: Path, about: About, facts: Mapping[str, Any]) -> tuple[str, str]:
    """Return (title, body). Text among ``facts`` comes from jobs and people: what hides or steers is made visible."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    # Plain text: whoever shows it as HTML escapes it.
    environment = Environment(loader=FileSystemLoader(folder), undefined=StrictUndefined, autoescape=False)
    environment.trim_blocks = environment.lstrip_blocks = True
    text = environment.get_template(f"{about}.txt.j2").render({name: _shown(value) for name, value in facts.items()})
    title, _, body = text.strip().partition("\n")
    return title[:_MOST_TITLE], body.strip()


def _shown(value: Any) -> Any:
    if isinstance(value, str):
        return visible(value)
    return [_shown(one) for one in value] if isinstance(value, list) else value
