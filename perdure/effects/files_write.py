"""files.write: put a file beneath a folder, following no link, while it is as the plan saw it."""

from __future__ import annotations

import difflib
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

from perdure.contracts.base import BlobRef, JsonDict, path_bytes, path_text
from perdure.contracts.plan import Inverse
from perdure.effects.arguments import blob_in, know_arguments, text_argument
from perdure.effects.base import Blobs, EffectContext, EffectDraft, EffectRequest, Found, Probe, problems_of
from perdure.errors import EffectFailed, UserError
from perdure.workspace.beneath import Entry, read_entry, remove_entry, write_entry

_REGULAR = ("100644", "100755")


class FilesWrite:
    """Undone by putting the old content back while the file still holds ours."""

    kind: ClassVar[str] = "files.write"
    version: ClassVar[int] = 1
    always_reversible: ClassVar[bool] = True
    settle: ClassVar[timedelta] = timedelta(0)

    def plan(self, request: EffectRequest, context: EffectContext) -> EffectDraft:
        """``with``: root (absolute folder), path (relative), content (text; ``null`` removes), executable (bool)."""
        know_arguments(request, self.kind, ("root", "path", "content", "executable"))
        root = _root(request)
        path = text_argument(request, "path").encode("utf-8", "surrogateescape")
        found = _regular(read_entry(root, path), path)
        new = _wanted(request, found)
        old_ref = context.blobs.put(found.data) if found else None
        new_ref = context.blobs.put(new.data) if new else None
        body: JsonDict = {
            "root": str(root),
            "path": path_text(path),
            "old": old_ref.model_dump() if old_ref else None,
            "old_mode": found.mode if found else "",
            "new": new_ref.model_dump() if new_ref else None,
            "new_mode": new.mode if new else "",
        }
        back = {**body, **{f"{a}{tail}": body[f"{b}{tail}"] for a, b in _SWAP for tail in ("", "_mode")}}
        return EffectDraft(
            body=body,
            summary=f"{body['path']} {_size(found, new)}",
            target=f"files:{root}/{body['path']}",
            inverse=Inverse(
                summary="remove while ours" if found is None else "put the old content back while ours",
                kind=self.kind,
                version=self.version,
                body=back,
            ),
            requires=[f"{root}/{body['path']} is {'absent' if found is None else 'as it was read'}"],
            artifacts=[ref for ref in (old_ref, new_ref) if ref],
        )

    def check(self, body: JsonDict, context: EffectContext) -> list[str]:
        """The file is as it was, or already as it should be."""
        probe = self.probe(body, context)
        return [] if probe.found in (Found.not_done, Found.done) else [probe.detail]

    def probe(self, body: JsonDict, context: EffectContext) -> Probe:
        """Compare the file's bytes and mode with both contents."""
        where = f"{body['root']}/{body['path']}"
        try:
            found = read_entry(_same_root(body), path_bytes(body["path"]))
        except UserError as error:
            return Probe(Found.foreign, str(error))
        except OSError as error:
            return Probe(Found.unknown, f"{where} cannot be read: {error.strerror}")
        for side, answer in (("new", Found.done), ("old", Found.not_done)):
            if _is(body, side, found, context.blobs):
                return Probe(answer, f"{where} is {'absent' if found is None else 'there'}")
        return Probe(Found.foreign, f"{where} holds something else than was planned for.")

    def do(self, body: JsonDict, context: EffectContext) -> JsonDict:
        """Replace the file in one step; at any moment it holds the old content or the new one."""
        try:
            root, path = _same_root(body), path_bytes(body["path"])
            found = read_entry(root, path)
            if not _is(body, "old", found, context.blobs):
                raise EffectFailed(f"{body['root']}/{body['path']} is not as it was planned for; it was left alone.")
            if not self._replace(body, root, path, found, context.blobs):
                raise EffectFailed(f"{body['root']}/{body['path']} was changed just now; it was left alone.")
        except UserError as error:
            raise EffectFailed(str(error)) from None
        return {"path": f"{body['root']}/{body['path']}"}

    @staticmethod
    def _replace(body: JsonDict, root: Path, path: bytes, found: Entry | None, blobs: Blobs) -> bool:
        new = blob_in(body, "new")
        if new is not None:
            return write_entry(root, path, body["new_mode"], blobs.get(new), expected=found)
        return found is None or remove_entry(root, path, expected=found)

    def verify(self, body: JsonDict, context: EffectContext) -> list[str]:
        """The file holds exactly the new content."""
        return problems_of(self.probe(body, context))


_SWAP = (("old", "new"), ("new", "old"))


def _root(request: EffectRequest) -> Path:
    given = Path(text_argument(request, "root"))
    if not given.is_absolute() or not given.is_dir():
        raise UserError(f"Step {request.id!r}: `root` is {str(given)!r}; expected the absolute path of a folder.")
    return given.resolve()


def _same_root(body: JsonDict) -> Path:
    """The planned root, while no part of it became a link since."""
    root = Path(body["root"])
    if root.resolve() != root:
        raise UserError(f"{root} leads through a link now (to {root.resolve()}). Nothing was written.")
    return root


def _regular(found: Entry | None, path: bytes) -> Entry | None:
    if found is not None and found.mode not in _REGULAR:
        raise UserError(f"{path_text(path)} is a link, folder or device; files.write replaces regular files only.")
    return found


def _wanted(request: EffectRequest, found: Entry | None) -> Entry | None:
    content: Any = request.arguments.get("content")
    executable: Any = request.arguments.get("executable")
    if content is None:
        return None
    if not isinstance(content, str):
        raise UserError(f"Step {request.id!r}: `content` is {content!r}; expected a text, or null to remove the file.")
    kept = found.mode if found else "100644"
    mode = kept if executable is None else ("100755" if executable else "100644")
    return Entry(mode, content.encode("utf-8", "surrogateescape"))


def _is(body: JsonDict, side: str, found: Entry | None, blobs: Blobs) -> bool:
    ref: BlobRef | None = blob_in(body, side)
    if found is None or ref is None:
        return found is None and ref is None
    return found.mode == body[f"{side}_mode"] and len(found.data) == ref.size_bytes and found.data == blobs.get(ref)


def _size(old: Entry | None, new: Entry | None) -> str:
    if new is None:
        return "removed"
    before = (old.data if old else b"").decode("utf-8", "replace").splitlines()
    after = new.data.decode("utf-8", "replace").splitlines()
    if len(before) * len(after) > 4_000_000:
        return f"{len(new.data)} bytes"  # counting lines of two large files takes too long
    lines = list(difflib.unified_diff(before, after, lineterm="", n=0))[2:]
    added = sum(line.startswith("+") for line in lines)
    return f"+{added} −{sum(line.startswith('-') for line in lines)}"
