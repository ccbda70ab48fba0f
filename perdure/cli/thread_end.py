"""``perdure threads export|delete``: keeping what a thread tells, and erasing what its records say."""

from __future__ import annotations

import os
from pathlib import Path

import click

from perdure.cli import codes
from perdure.cli.session import Session, command
from perdure.cli.words import counted
from perdure.contracts.threads import ThreadErased, ThreadView
from perdure.errors import Conflict, SetupError, UserError


@command(
    "export",
    examples=[("perdure threads export release-orders orders.json", "its history as JSON, before it is deleted")],
)
@click.argument("thread")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
def export_thread(session: Session, thread: str, file: Path) -> None:
    """Write what `threads show` tells of THREAD into a new FILE, as JSON: its newest fifty jobs, its notes.

    It is for reading, and proves nothing: signed evidence is `perdure audit export`.
    """
    with session.door() as door:
        found = door.get(f"/v1/threads/{thread}", ThreadView)
    _write_new(file, found.model_dump_json(indent=2) + "\n")
    if session.as_json:
        session.answer({"path": str(file.absolute()), "jobs": len(found.jobs), "of": found.about.jobs})
    else:
        told = f"{len(found.jobs)} of {counted(found.about.jobs, 'job')}"
        session.paper.line(("✓ ", "good"), f"Wrote {file}: {told}, {counted(len(found.notes), 'note')}.")


@command(
    "delete",
    examples=[
        ("perdure threads delete release-orders", "says what goes, and asks"),
        ("perdure threads delete release-orders --yes", "without asking"),
    ],
)
@click.argument("thread")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
def delete_thread(session: Session, thread: str, yes: bool) -> int:
    """Erase what the records of THREAD say, with their salts, its agents' transcripts and its notes. For good.

    That there were jobs, when, and who acted stays, and `perdure audit` still verifies. Refused while a job of it is
    open or a schedule may start one. What jobs wrote as blobs stays there: specs, plans, results, histories.
    """
    with session.door() as door:
        found = door.get(f"/v1/threads/{thread}", ThreadView)
        if not yes and not _may_go(session, found):
            session.notes.line("Nothing was erased.")
            return codes.OK
        gone = door.delete(f"/v1/threads/{thread}", ThreadErased)
    if session.as_json:
        session.answer(gone)
    else:
        session.paper.line((gone.thread, "title"), f" is deleted: {counted(gone.contents, 'record')} erased.")
        session.notes.line(("Its blobs stay in the data folder: ", "warn"), "specs, plans, results, histories.")
    return codes.OK


def _may_go(session: Session, found: ThreadView) -> bool:
    thread = found.about.thread
    if not session.may_ask:
        raise UserError(f"Nobody can be asked here. Look with `perdure threads show {thread}`, then give --yes.")
    what = f"{counted(found.about.jobs, 'job')} and {counted(len(found.notes), 'note')}"
    return click.confirm(f"Erase what is recorded of {thread} ({what}), for good?", default=False, err=True)


def _write_new(file: Path, text: str) -> None:
    """Write a file that only its owner reads. Raises ``Conflict`` where there is one already."""
    try:
        # Not Path.open, which takes no opener: the file must be private before anything is in it.
        with open(file, "x", encoding="utf-8", opener=_open_private) as out:
            out.write(text)
    except FileExistsError:
        raise Conflict(f"{file} exists already; name a file that does not. Nothing was written.") from None
    except OSError as error:
        raise SetupError(
            f"{file} cannot be written ({error.strerror}). Name a folder that you may write to."
        ) from error


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
