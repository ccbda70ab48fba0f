"""files.link: point a symbolic link at something else, in one step, while it points where the plan saw it."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

from perdure.contracts.base import JsonDict, path_bytes, path_text
from perdure.contracts.plan import Inverse
from perdure.effects.arguments import know_arguments, text_argument
from perdure.effects.base import EffectContext, EffectDraft, EffectRequest, Found, Probe, problems_of
from perdure.errors import EffectFailed, UserError
from perdure.workspace.beneath import Entry, read_entry, remove_entry, write_entry

_LINK = "120000"


class FilesLink:
    """Undone by pointing it where it pointed before, or removing it, while it still is ours."""

    kind: ClassVar[str] = "files.link"
    version: ClassVar[int] = 1
    always_reversible: ClassVar[bool] = True
    settle: ClassVar[timedelta] = timedelta(0)

    def plan(self, request: EffectRequest, context: EffectContext) -> EffectDraft:
        """``with``: path (the link, absolute), to (its target; a relative one is read from the link's folder).

        ``require``: target, where it must point now.
        """
        know_arguments(request, self.kind, ("path", "to"))
        folder, name = _place(request)
        new = text_argument(request, "to")
        old = _target(read_entry(folder, os.fsencode(name)), name)
        _refuse_other(request, old)
        if not (folder / new).exists():
            raise UserError(f"Step {request.id!r}: `to` is {new!r}, and there is nothing. A link would lead nowhere.")
        body: JsonDict = {
            "folder": str(folder),
            "name": path_text(os.fsencode(name)),
            "old": None if old is None else path_text(old),
            "new": path_text(os.fsencode(new)),
        }
        return EffectDraft(
            body=body,
            summary=f"{folder / name} {_shown(body['old'])} → {new}",
            target=f"files:{folder}/{name}",
            inverse=Inverse(
                summary="remove while ours" if old is None else f"→ {_shown(body['old'])} again, while ours",
                kind=self.kind,
                version=self.version,
                body={**body, "old": body["new"], "new": body["old"]},
            ),
            requires=[
                f"{folder / name} {'is absent' if old is None else 'points to ' + _shown(body['old'])}",
                f"{new} is there",
            ],
        )

    def check(self, body: JsonDict, context: EffectContext) -> list[str]:
        """The link is as it was or as it shall be, and what it shall lead to is there."""
        probe = self.probe(body, context)
        if probe.found is not Found.not_done:
            return [] if probe.found is Found.done else [probe.detail]
        leads_to = Path(body["folder"]) / os.fsdecode(path_bytes(body["new"])) if body["new"] is not None else None
        return [f"{leads_to} is not there: the link would lead nowhere."] if leads_to and not leads_to.exists() else []

    def probe(self, body: JsonDict, context: EffectContext) -> Probe:
        """Read where the link points."""
        where = f"{body['folder']}/{body['name']}"
        try:
            found = _target(read_entry(_same_folder(body), path_bytes(body["name"])), body["name"])
        except UserError as error:
            return Probe(Found.foreign, error.message)
        except OSError as error:
            return Probe(Found.unknown, f"{where} cannot be read: {error.strerror}")
        detail = f"{where} {'is absent' if found is None else f'points to {os.fsdecode(found)}'}"
        for side, answer in (("new", Found.done), ("old", Found.not_done)):
            if found == (None if body[side] is None else path_bytes(body[side])):
                return Probe(answer, detail)
        return Probe(Found.foreign, f"{detail}; somebody else pointed it there.")

    def do(self, body: JsonDict, context: EffectContext) -> JsonDict:
        """Rename a new link over the old one; whoever follows it meets the old target or the new one, never neither."""
        try:
            folder, name = _same_folder(body), path_bytes(body["name"])
            found = read_entry(folder, name)
            if _target(found, body["name"]) != (None if body["old"] is None else path_bytes(body["old"])):
                raise EffectFailed(f"{folder}/{body['name']} is not as it was planned for; it was left alone.")
            if not _replace(body, folder, name, found):
                raise EffectFailed(f"{folder}/{body['name']} was changed just now; it was left alone.")
        except UserError as error:
            raise EffectFailed(error.message) from None
        return {"path": f"{body['folder']}/{body['name']}", "was": body["old"]}

    def verify(self, body: JsonDict, context: EffectContext) -> list[str]:
        """The link points where it shall."""
        return problems_of(self.probe(body, context))


def _replace(body: JsonDict, folder: Path, name: bytes, found: Entry | None) -> bool:
    if body["new"] is not None:
        return write_entry(folder, name, _LINK, path_bytes(body["new"]), expected=found)
    return found is None or remove_entry(folder, name, expected=found)


def _place(request: EffectRequest) -> tuple[Path, str]:
    """(the folder that holds the link, without any link on its way; the link's name)."""
    given = Path(text_argument(request, "path"))
    if not given.is_absolute() or not given.parent.is_dir() or given.name in ("", ".."):
        raise UserError(
            f"Step {request.id!r}: `path` is {str(given)!r}; expected the absolute path of a link in a folder that is "
            "there."
        )
    return given.parent.resolve(), given.name


def _same_folder(body: JsonDict) -> Path:
    folder = Path(body["folder"])
    if folder.resolve() != folder:
        raise UserError(f"{folder} leads through a link now (to {folder.resolve()}). Nothing was changed.")
    return folder


def _target(found: Entry | None, name: str) -> bytes | None:
    if found is not None and found.mode != _LINK:
        raise UserError(f"{name} is a file or folder, no link; files.link only moves links.")
    return found.data if found else None


def _refuse_other(request: EffectRequest, old: bytes | None) -> None:
    """``require: {target: …}``: what was read earlier in the job must still be so."""
    wanted: Any = request.require or {}
    if not isinstance(wanted, dict) or not set(wanted) <= {"target"}:
        raise UserError(f"Step {request.id!r}: `require` is {wanted!r}; expected `target`, where the link points now.")
    if "target" in wanted and wanted["target"] != (None if old is None else os.fsdecode(old)):
        raise UserError(
            f"Step {request.id!r}: the link points to {os.fsdecode(old or b'nothing')}; expected {wanted['target']}. "
            "It moved since it was looked at."
        )


def _shown(path: str | None) -> str:
    return "absent" if path is None else path
