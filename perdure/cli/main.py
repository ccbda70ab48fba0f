"""The entry of the ``perdure`` command. Nothing slow is imported before a command needs it."""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn, TextIO

import click

from perdure.cli import codes
from perdure.cli.catalog import COMMANDS
from perdure.cli.lazy import CONTEXT, LazyGroup, ReaderLeft
from perdure.contracts.visible import visible
from perdure.errors import PerdureError, SetupError

EPILOG = """\b
A job is named by its number (3), its name (release-orders/3) or @last.
A plan is named by its digest: eight digits of it are enough.
Exit codes: 0 done or nothing to do, 1 failed, 2 `run --plan` would change
something, 3 waiting for a decision, 64 wrong call, 66 not found, 69 no server,
75 too late, 77 refused, 130 detached by Ctrl-C (`perdure help exit-codes`).
"""


@click.group(
    "perdure",
    cls=LazyGroup,
    sections=COMMANDS,
    context_settings=CONTEXT,
    invoke_without_command=True,
    epilog=EPILOG,
    examples=[
        ("cd ~/src/orders && perdure run release", "plan a release, look at it, decide"),
        ("perdure review 1", "everything the plan would do, and how it is undone"),
        ("perdure approve 7f3a91c2", "let exactly that happen, once"),
        ("perdure undo 1", "take it back, today or next week"),
    ],
)
@click.option("--data", type=click.Path(file_okay=False, path_type=Path), help="Folder of the installation.")
@click.version_option(package_name="perdure", prog_name="perdure", message="%(prog)s %(version)s")
@click.pass_context
def perdure(ctx: click.Context, data: Path | None) -> int:
    """Jobs that plan, wait for your decision, and then happen once or are taken back.

    Perdure drafts what is to change as a plan. You review exactly that, approve it by its digest, and it is applied:
    through crashes and restarts, at most once, with a way back.
    """
    ctx.obj = data
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
    return codes.OK


_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and end the process with its exit code."""
    sys.exit(run_line(list(sys.argv[1:] if args is None else args)))


def run_line(args: list[str]) -> int:
    """Run one command line and return its exit code; every expected error becomes one message on stderr."""
    _open_closed_output()
    _keep_output_printable()
    try:
        code = _invoke(args)
        sys.stdout.flush()
    except (ReaderLeft, BrokenPipeError) as left:
        # `perdure logs 3 | head`: the reader has what it wanted.
        _drop_output()
        return left.code if isinstance(left, ReaderLeft) else codes.OK
    except OSError as error:
        if error.errno not in _FULL or error.filename is not None:
            raise
        _drop_output()
        return _say_error(_output_lost(error), as_json="--json" in args)
    return code


def _output_lost(error: OSError) -> PerdureError:
    """`perdure logs 3 > file` on a full disk."""
    return SetupError(
        f"The output could not be written to its end ({error.strerror}). Free some space where it goes to, then look "
        "again: a job that was begun goes on, and `perdure jobs` lists it."
    )


def _drop_output() -> None:
    """Send what is still to be written nowhere: Python would complain again when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _open_closed_output() -> None:
    """`perdure jobs >&-`: a stream that was closed from outside takes everything and shows nothing."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - open to the end


def _invoke(args: list[str]) -> int:
    try:
        result = perdure.main(args, prog_name="perdure", standalone_mode=False)
    except click.ClickException as error:
        return _say_usage(error, as_json="--json" in args)
    except click.Abort:
        click.echo("Stopped.", err=True)
        return codes.DETACHED
    except PerdureError as error:
        return _say_error(error, as_json="--json" in args)
    return result if isinstance(result, int) else codes.OK


def _say_usage(error: click.ClickException, *, as_json: bool) -> int:
    if as_json:
        _write_problem("UserError", error.format_message(), codes.USAGE)
        return codes.USAGE
    context = getattr(error, "ctx", None)
    click.echo(_mark() + visible(error.format_message(), keep_lines=True), err=True)
    if context is not None:
        click.echo(f"See `{context.command_path} --help`.", err=True)
    return codes.USAGE


def _say_error(error: PerdureError, *, as_json: bool) -> int:
    if as_json:
        _write_problem(type(error).__name__, error.message, error.exit_code)
    else:
        click.echo(_mark() + visible(error.message, keep_lines=True), err=True)
    return error.exit_code


def _write_problem(kind: str, message: str, code: int) -> None:
    click.echo(json.dumps({"kind": kind, "message": message, "exit_code": code}), err=True)


def _mark() -> str:
    """The red cross before an error, on a terminal that shows colours."""
    if not sys.stderr.isatty():
        return "✗ "
    from perdure.cli.paper import open_paper

    return open_paper(sys.stderr).paint(("✗ ", "bad"))


def _keep_output_printable() -> None:
    """A terminal that is not UTF-8 shows ``\\u2713`` rather than ending the command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIO) or hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
