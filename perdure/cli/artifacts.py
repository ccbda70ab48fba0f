"""``perdure artifacts``: what a job's stages gave."""

from __future__ import annotations

import difflib
import json
import sys
from pathlib import Path

import click

from perdure.cli.pager import show_lines
from perdure.cli.paper import Row
from perdure.cli.plans import read_job
from perdure.cli.session import Session, command
from perdure.contracts.http import ArtifactView
from perdure.errors import NotFound, UserError


@command(
    "artifacts",
    examples=[
        ("perdure artifacts 3", "names and sizes"),
        ("perdure artifacts 3 gather.history", "one of them, on the screen"),
        ("perdure artifacts 3 verify.tests.log -o tests.log", "into a file, byte for byte"),
    ],
)
@click.argument("job", default="@last")
@click.argument("name", required=False)
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write the bytes to this file.")
def artifacts(session: Session, job: str, name: str | None, output: Path | None) -> None:
    """List what a job's stages stored, or fetch one by NAME.

    On a terminal it is shown readable; in a pipe or with -o it comes byte for byte.
    """
    with session.door() as door:
        view = read_job(door, job)
        found = door.get("/v1/artifacts", list[ArtifactView], ref=view.job_id)
        if name is None:
            _list(session, found)
            return
        artifact = find(found, name)
        ref = artifact.ref
        data = door.read_bytes(f"/v1/blobs/{ref.sha256}", size=ref.size_bytes, ref=view.job_id)
    if output is not None:
        _write(output, data)
        session.notes.line(f"Wrote {len(data)} bytes to {output}.")
    elif session.paper.is_terminal:
        show_lines(session.paper, [session.paper.code(line) for line in readable(data, name).splitlines()])
    else:
        sys.stdout.buffer.write(data)


def _write(path: Path, data: bytes) -> None:
    try:
        path.write_bytes(data)
    except OSError as error:
        raise UserError(f"{path} cannot be written ({error.strerror}). Give another file: -o FILE.") from error


def find(found: list[ArtifactView], name: str) -> ArtifactView:
    """Return the artifact of that name.

    Raises:
        NotFound: there is none; the nearest name is in the message.
    """
    for artifact in found:
        if artifact.name == name:
            return artifact
    names = [artifact.name for artifact in found]
    near = difflib.get_close_matches(name, names, n=1)
    raise NotFound(
        f"No artifact {name!r}." + (f" Did you mean {near[0]}?" if near else f" There are: {', '.join(names)}.")
    )


def readable(data: bytes, name: str) -> str:
    """Return the bytes as text to read, JSON indented.

    Raises:
        UserError: they are no text.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"{name} is no text ({len(data)} bytes). Write it to a file: -o FILE.") from error
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except ValueError:
        return text


def _list(session: Session, found: list[ArtifactView]) -> None:
    if session.as_json:
        session.answer(found)
        return
    rows: list[Row] = [[one.name, f"{one.ref.size_bytes:>9} bytes", (one.ref.sha256[:12], "dim")] for one in found]
    session.paper.table(rows, header=("NAME", "     SIZE", "SHA-256"))
