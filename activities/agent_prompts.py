"""The texts that an agent begins with: files beneath the templates folder, or text of the template itself.

Rendered in the killable child; what comes out is pinned in the agent's specification when it starts.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from activities.jobs import JobReader
from perdure.contracts.base import JsonDict
from perdure.contracts.template_agents import AnalyzeStep, DraftStep, is_prompt_file
from perdure.errors import UserError
from perdure.models.typed import plea

CHARTER = "prompts/agent.md.j2"
PROMPT_CHARTER = "prompts/prompt.md.j2"
CHILD_CHARTER = "prompts/child.md.j2"


class Prompts:
    """Reads and renders prompts."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def for_agent(self, reader: JobReader, step: DraftStep, answer: JsonDict) -> tuple[str, str]:
        """Return (goal, charter) of a draft's agent. Raises ``UserError``: no such file, or it leaves the folder."""
        about = {
            "tools": ", ".join(step.tools) or "none",
            "paths": ", ".join(reader.render(step.paths)) or "everything in the workspace",
            "checks": ", ".join(step.done_when),
            "requester": reader.spec.requester,
        }
        charter = self._render(reader, self._read(CHARTER), about)
        return self._render(reader, self._text(step.agent), about), _ask_for(answer, charter)

    def for_prompt(self, reader: JobReader, step: AnalyzeStep) -> tuple[str, str]:
        """Return (question, charter) of an analysis' prompt; how to answer is the model client's to say."""
        about = {"repairs": step.repairs, "requester": reader.spec.requester}
        return self._render(reader, self._text(step.prompt), about), self._render(
            reader, self._read(PROMPT_CHARTER), about
        )

    def for_child(self, reader: JobReader, tools: Sequence[str], paths: Sequence[str], answer: JsonDict) -> str:
        """Return the charter of an agent that another one starts."""
        about = {
            "tools": ", ".join(tools) or "none",
            "paths": ", ".join(paths) or "everything in the workspace",
        }
        return _ask_for(answer, self._render(reader, self._read(CHILD_CHARTER), about))

    def _render(self, reader: JobReader, text: str, about: JsonDict) -> str:
        comments = [{"by": edit.by, "text": edit.comment} for edit in reader.edits if edit.comment.strip()]
        return str(reader.renderer.render(text, {**reader.variables, "agent": about, "comments": comments})).strip()

    def _text(self, prompt: str) -> str:
        return self._read(prompt) if is_prompt_file(prompt) else prompt

    def _read(self, name: str) -> str:
        path = (self._folder / name).resolve()
        if not path.is_relative_to(self._folder.resolve()) or not path.is_file():
            raise UserError(
                f"There is no prompt {name!r} beneath the templates folder: prompt files are shipped ones. Write a "
                "prompt of your own into the template, on several lines."
            )
        return path.read_text(encoding="utf-8")


def _ask_for(answer: JsonDict, charter: str) -> str:
    return f"{charter}\n\nWhen you are done: {plea(answer)}" if answer else charter
