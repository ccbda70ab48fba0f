"""Paths in the workspace as arguments: text in, checked bytes out, and whether the job may change them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from perdure.contracts.agent_ports import ToolContext
from perdure.contracts.base import path_bytes, path_text
from perdure.errors import ToolFault, UserError
from perdure.policy.patterns import glob_matches
from perdure.workspace.reading import split_beneath


def workspace_of(context: ToolContext) -> Path:
    """Return the job's private workspace. Raises ``ToolFault`` when it has none."""
    if context.workspace is None:
        raise ToolFault("This job has no workspace: there are no files to work on.")
    return context.workspace


def place_of(text: str) -> bytes:
    """Return a path in the workspace, written one way only; the root is empty.

    Raises:
        ToolFault: it leaves the workspace, leads into a ``.git`` or is no path.
    """
    try:
        return b"/".join(split_beneath(path_bytes(text.removeprefix("./"))))
    except (UserError, ValueError) as error:
        raise ToolFault(str(error)) from None


def target_of(text: str) -> str:
    """``file:`` and the path, as permissions see it."""
    return f"file:{escape(path_text(place_of(text) or b'.'))}"


def escape(text: str) -> str:
    """Return a target without line ends of its own: each line is a target."""
    return text.replace("\\", "\\\\").replace("\n", "\\n") if "\n" in text else text


def refuse_foreign(place: bytes, context: ToolContext) -> None:
    """Raise ``ToolFault`` when the job may not change ``place``."""
    text = path_text(place)
    if context.paths and not any(glob_matches(pattern, text) for pattern in context.paths):
        raise ToolFault(f"{text!r} may not be changed here; this step may change {', '.join(context.paths)}.")


@contextmanager
def explained() -> Iterator[None]:
    """Turn what the workspace refuses into what a model is told."""
    try:
        yield
    except UserError as error:
        raise ToolFault(error.message) from None
