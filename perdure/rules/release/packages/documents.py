"""Manifests and settings of a workspace, read whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from perdure.errors import UserError
from perdure.rules.release.files.tree import CommitFiles


def read_document(files: CommitFiles, path: str, parse: Callable[[str], dict[str, Any]]) -> dict[str, Any]:
    """Return a file as ``parse`` reads it; empty when there is none.

    Raises:
        UserError: ``parse`` raised ``ValueError``, or the file is no UTF-8.
    """
    if not files.has(path):
        return {}
    try:
        return parse(files.read(path).decode("utf-8-sig"))
    except ValueError as error:
        raise UserError(f"{path} cannot be read: {error}. Repair the file and commit it.") from None


def list_texts(value: Any) -> list[str]:
    """Return the texts of a list; empty for anything else."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
