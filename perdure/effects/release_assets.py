"""The files of a release: from the drafted content, made by a build in the sandbox, or given by absolute path."""

from __future__ import annotations

import mimetypes
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Any

from perdure.contracts.base import BlobRef, JsonDict
from perdure.effects.arguments import command_argument, repository_of
from perdure.effects.base import EffectContext, EffectRequest
from perdure.errors import UserError
from perdure.workspace.copies import export_tree
from perdure.workspace.sandbox import Sandbox

SIZE_LIMIT_BYTES = 256 << 20
"""Of one file: it is kept as a blob and read whole."""

_BUILD_LIMIT = timedelta(minutes=9)


def read_assets(request: EffectRequest, context: EffectContext) -> list[JsonDict]:
    """Return ``[{"name", "media_type", "blob"}]``, sorted by name; every file is in the blob store then.

    ``assets`` are paths and patterns (``dist/*.whl``) in the drafted content, or absolute paths. ``build`` is run in
    the sandbox on a throwaway copy of it first; what it leaves is looked at once, here, and is what is uploaded.

    Raises:
        UserError: a pattern finds nothing, two files have one name, one is too large, or the build fails.
    """
    given: Any = request.arguments.get("assets") or []
    patterns = command_argument(request, "assets", given) if given else []
    if not patterns:
        if request.arguments.get("build"):
            raise UserError(f"Step {request.id!r}: `build` makes files, and `assets` names none of them.")
        return []
    relative = [pattern for pattern in patterns if not Path(pattern).is_absolute()]
    folder = _content(request, context) if relative else None
    found: dict[str, Path] = {}
    for pattern in patterns:
        for path in _match(request, folder, pattern):
            if path.name in found and found[path.name] != path:
                raise UserError(f"Step {request.id!r}: two assets are called {path.name!r}. Give one another name.")
            found[path.name] = path
    return [_read(request, found[name], context) for name in sorted(found)]


def _content(request: EffectRequest, context: EffectContext) -> Path:
    """A throwaway copy of the drafted content, after the build."""
    if not request.draft:
        raise UserError(f"Step {request.id!r}: assets are paths in the drafted content, and there is no draft.")
    folder = Path(tempfile.mkdtemp(prefix="assets-", dir=context.scratch)) / "tree"
    pack = BlobRef.model_validate(request.draft["pack"])
    export_tree(repository_of(request), request.draft["commit"], pack, context.blobs, folder, with_git=True)
    if build := request.arguments.get("build"):
        _build(request, command_argument(request, "build", build), folder)
    return folder


def _build(request: EffectRequest, argv: list[str], folder: Path) -> None:
    ended = Sandbox.find().run(argv, workspace=folder, limit=_BUILD_LIMIT)
    if ended.code:
        said = ended.output[-500:].decode("utf-8", "replace").strip() or "nothing"
        raise UserError(f"Step {request.id!r}: `{' '.join(argv)}` ended with {ended.code}. It wrote: {said}")


def _match(request: EffectRequest, folder: Path | None, pattern: str) -> list[Path]:
    if folder is None or Path(pattern).is_absolute():
        found = [Path(pattern)]
    elif ".." in Path(pattern).parts:
        raise UserError(f"Step {request.id!r}: the asset {pattern!r} leaves the repository.")
    else:
        found = sorted(folder.glob(pattern))
    files = [path for path in found if path.is_file() and not path.is_symlink()]
    if folder is not None:
        root = folder.resolve()
        files = [path for path in files if Path(pattern).is_absolute() or path.resolve().is_relative_to(root)]
    if not files:
        raise UserError(f"Step {request.id!r}: no file is {pattern!r}, so there is nothing to attach.")
    return files


def _read(request: EffectRequest, path: Path, context: EffectContext) -> JsonDict:
    size = path.stat().st_size
    if size > SIZE_LIMIT_BYTES:
        raise UserError(f"Step {request.id!r}: {path.name} has {size:,} bytes; expected at most {SIZE_LIMIT_BYTES:,}.")
    media_type = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    return {"name": path.name, "media_type": media_type, "blob": context.blobs.put(path.read_bytes()).model_dump()}
