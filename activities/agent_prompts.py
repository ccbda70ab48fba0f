"""The texts that an agent begins with, from files beneath the templates folder, rendered in the killable child."""

from __future__ import annotations

from pathlib import Path

from activities.jobs import JobReader
from perdure.contracts.template import DraftStep
from perdure.errors import UserError

CHARTER = "prompts/agent.md.j2"


class Prompts:
    """Reads prompt files. Their rendered text is pinned in the agent's specification when it starts."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def render(self, reader: JobReader, step: DraftStep) -> tuple[str, str]:
        """Return (goal, charter). Raises ``UserError`` when a file is not there or leaves the folder."""
        variables = {
            **reader.variables,
            "agent": {
                "tools": ", ".join(step.tools) or "none",
                "paths": ", ".join(reader.render(step.paths)) or "everything in the workspace",
                "checks": ", ".join(step.done_when),
                "requester": reader.spec.requester,
            },
        }
        goal = reader.renderer.render(self._read(step.agent), variables)
        charter = reader.renderer.render(self._read(CHARTER), variables)
        return str(goal).strip(), str(charter).strip()

    def _read(self, name: str) -> str:
        path = (self._folder / name).resolve()
        if not path.is_relative_to(self._folder.resolve()) or not path.is_file():
            raise UserError(f"There is no prompt {name!r} beneath the templates folder. Prompts are shipped files.")
        return path.read_text(encoding="utf-8")
