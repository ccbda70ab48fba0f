"""``perdure help``: the help of a command, and what the exit codes mean."""

from __future__ import annotations

import inspect

import click

from perdure.cli import codes
from perdure.cli.lazy import LazyGroup
from perdure.cli.session import Session, command
from perdure.contracts.base import JsonDict
from perdure.errors import NotFound

TOPIC = "exit-codes"


@command(
    "help",
    examples=[
        ("perdure help run", "as `perdure run --help`"),
        ("perdure help exit-codes", "what a script can rely on"),
        ("perdure help run --json", "options, defaults and examples, for another program"),
    ],
)
@click.argument("words", nargs=-1, metavar="[COMMAND|exit-codes]")
def show_help(session: Session, words: tuple[str, ...]) -> None:
    """Explain a command, or the exit codes."""
    if words == (TOPIC,):
        _write_codes(session)
        return
    context = find_command(words)
    if session.as_json:
        session.answer(describe(context))
    else:
        session.paper.write(context.get_help() + "\n")


def find_command(words: tuple[str, ...]) -> click.Context:
    """Return the context of a command; without words that of ``perdure`` itself.

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
    return context


def describe(context: click.Context) -> JsonDict:
    """Return a command's help as plain JSON: what it does, its examples, parameters, and commands of its own."""
    command = context.command
    examples = getattr(command, "examples", ())
    described: JsonDict = {
        "name": context.command_path,
        "help": inspect.cleandoc(command.help or ""),
        "usage": context.command_path + " " + " ".join(command.collect_usage_pieces(context)),
        "examples": [{"line": line, "does": does} for line, does in examples],
        "parameters": [_describe_parameter(parameter) for parameter in command.params],
    }
    if isinstance(command, LazyGroup):
        described["commands"] = [
            {"name": name, "section": title, "help": entry.help}
            for title, part in command.sections.items()
            for name, entry in part.items()
        ]
    return described


def _describe_parameter(parameter: click.Parameter) -> JsonDict:
    default = parameter.default if isinstance(parameter.default, str | int | bool) else None
    return {
        "names": [*parameter.opts, *parameter.secondary_opts],
        "kind": parameter.param_type_name,
        "help": getattr(parameter, "help", None) or "",
        "required": parameter.required,
        "default": default,
        "takes_value": not getattr(parameter, "is_flag", False),
        "may_repeat": parameter.multiple or parameter.nargs == -1,
    }


def _write_codes(session: Session) -> None:
    if session.as_json:
        session.answer({str(code): meaning for code, meaning in codes.MEANINGS.items()})
    else:
        session.paper.table([[(f"{code:>3}", "title"), meaning] for code, meaning in codes.MEANINGS.items()])
