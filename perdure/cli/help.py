"""``perdure help``: the help of a command, and what the exit codes mean."""

from __future__ import annotations

import click

from perdure.cli import codes
from perdure.cli.session import Session, command
from perdure.errors import NotFound

TOPIC = "exit-codes"


@command(
    "help",
    examples=[
        ("perdure help run", "as `perdure run --help`"),
        ("perdure help exit-codes", "what a script can rely on"),
    ],
)
@click.argument("words", nargs=-1, metavar="[COMMAND|exit-codes]")
def show_help(session: Session, words: tuple[str, ...]) -> None:
    """Explain a command, or the exit codes."""
    if words == (TOPIC,):
        _write_codes(session)
        return
    click.echo(help_of(words))


def help_of(words: tuple[str, ...]) -> str:
    """Return the help text of a command.

    Raises:
        NotFound: there is no such command.
    """
    from perdure.cli.main import perdure

    found: click.Command = perdure
    context = perdure.make_context("perdure", [], resilient_parsing=True)
    for word in words:
        inner = found.get_command(context, word) if isinstance(found, click.Group) else None
        if inner is None:
            raise NotFound(f"No command {' '.join(words)!r}. `perdure --help` lists them; there is also: {TOPIC}.")
        found, context = inner, inner.make_context(word, [], parent=context, resilient_parsing=True)
    return found.get_help(context)


def _write_codes(session: Session) -> None:
    if session.as_json:
        session.answer({str(code): meaning for code, meaning in codes.MEANINGS.items()})
    else:
        session.paper.table([[(f"{code:>3}", "title"), meaning] for code, meaning in codes.MEANINGS.items()])
