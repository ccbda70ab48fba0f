"""Reading a step's ``with``: wrong, missing and unknown arguments are named with what was expected."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from perdure.contracts.base import BlobRef, JsonDict
from perdure.effects.base import EffectRequest
from perdure.errors import UserError
from perdure.workspace.git import Repository, open_repository
from perdure.workspace.refs import is_object_id


def know_arguments(request: EffectRequest, kind: str, known: Collection[str]) -> None:
    """Raise ``UserError`` for an argument that ``kind`` does not take, with the nearest one it does."""
    for name in request.arguments:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise UserError(
                f"Step {request.id!r}: {kind} takes no {name!r}.{hint} It takes: {', '.join(sorted(known))}."
            )


def text_argument(request: EffectRequest, name: str) -> str:
    """Return an argument that must be a text and not empty."""
    value = request.arguments.get(name)
    if not isinstance(value, str) or not value.strip():
        raise UserError(f"Step {request.id!r}: `{name}` is {value!r}; expected a text.")
    return value


def object_argument(request: EffectRequest, name: str) -> str:
    """Return an argument that must be a whole object id."""
    value = text_argument(request, name)
    if not is_object_id(value):
        raise UserError(f"Step {request.id!r}: `{name}` is {value!r}; expected a whole commit id in hex.")
    return value


def command_argument(request: EffectRequest, name: str, value: Any) -> list[str]:
    """Return a command as a list of words.

    Raises:
        UserError: it is a text (no shell takes it apart) or no list of texts.
    """
    if (
        not isinstance(value, list)
        or not value
        or not all(isinstance(word, str) and "\0" not in word for word in value)
    ):
        raise UserError(
            f"Step {request.id!r}: `{name}` is {value!r}; expected a list of words: [program, argument, …]."
        )
    return [str(word) for word in value]


def repository_of(request: EffectRequest) -> Repository:
    """The repository that a git step works on: the draft's, or its ``repo`` argument."""
    given: Any = request.arguments.get("repo") or request.draft.get("repository")
    path = given.get("path") if isinstance(given, Mapping) else given
    if not isinstance(path, str) or not Path(path).is_absolute():
        raise UserError(f"Step {request.id!r}: no repository. Give the template a draft stage, or the step `repo`.")
    return open_repository(Path(path))


def repository_in(body: JsonDict) -> Repository:
    """Open the repository that a body names.

    Raises:
        UserError: it is not there any more.
    """
    return open_repository(Path(body["repository"]))


def blob_in(body: JsonDict, key: str) -> BlobRef | None:
    """The blob that a body names under ``key``."""
    return BlobRef.model_validate(body[key]) if body.get(key) else None


def content_of(request: EffectRequest) -> JsonDict | None:
    """The drafted content that a step's commands see; ``None`` without a draft."""
    return {key: request.draft[key] for key in ("repository", "commit", "pack")} if request.draft else None


def moved_away(repository: Repository, body: JsonDict) -> list[str]:
    """Say so when another repository lies where the planned one was."""
    if repository.identity == body["identity"]:
        return []
    return [f"{body['repository']} is another repository now ({repository.identity} instead of {body['identity']})."]
