"""``perdure completion``: tab completion for a shell."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from perdure.cli.session import Session, command
from perdure.errors import SetupError

_PLACES = {
    "bash": "~/.local/share/bash-completion/completions/perdure",
    "zsh": "a folder of your $fpath, as _perdure",
    "fish": "~/.config/fish/completions/perdure.fish",
}


@command(
    "completion",
    examples=[
        ("perdure completion bash > ~/.local/share/bash-completion/completions/perdure", "for every new shell"),
        ("source <(perdure completion zsh)", "for this one"),
    ],
)
@click.argument("shell", type=click.Choice(list(_PLACES)))
def completion(session: Session, shell: str) -> None:
    """Print the script that completes commands and options in SHELL."""
    from perdure.cli.main import perdure

    kind = get_completion_class(shell)
    if kind is None:
        raise SetupError(f"No completion for {shell}. Known: {', '.join(_PLACES)}.")
    script = kind(perdure, {}, "perdure", "_PERDURE_COMPLETE").source()
    if session.as_json:
        session.answer({"shell": shell, "script": script})
    else:
        click.echo(script)
    if session.paper.is_terminal:
        session.notes.line((f"Write it to {_PLACES[shell]}.", "dim"))
