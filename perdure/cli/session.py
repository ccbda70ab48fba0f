"""What every command is given: settings, the door, paper to write on; and the decorator that gives it."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, update_wrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from perdure.cli.lazy import CONTEXT, Example, ReaderLeft, TeachingCommand
from perdure.cli.paper import LONGEST_LINE, Paper, open_paper

if TYPE_CHECKING:
    from pydantic import BaseModel

    from perdure.cli.door import Door
    from perdure.settings import Settings

DATA_HELP = "Folder of the installation; default: PERDURE_DATA, else your user data folder."
JSON_HELP = "One JSON document on stdout, for scripts; errors as JSON on stderr."


@dataclass
class Session:
    """One call of the command line."""

    data: Path | None
    as_json: bool

    @cached_property
    def settings(self) -> Settings:
        """Settings from the environment and ``--data``."""
        from perdure.settings import read_settings

        return read_settings(data=self.data)

    def private_settings(self, data: Path) -> Settings:
        """Settings of an installation of its own beneath ``data``; the environment reaches none of its processes."""
        from perdure.settings import forget_environment, read_settings

        forget_environment()
        return read_settings(data=data)

    @cached_property
    def paper(self) -> Paper:
        """Standard output."""
        return open_paper(sys.stdout)

    @cached_property
    def notes(self) -> Paper:
        """Standard error: what is said beside the answer."""
        return open_paper(sys.stderr)

    @cached_property
    def progress(self) -> Paper:
        """Where progress goes: standard output, or nowhere with ``--json``."""
        if self.as_json:
            return Paper(io.StringIO(), columns=LONGEST_LINE)
        return self.paper

    @property
    def may_ask(self) -> bool:
        """Whether a person sits there who can be asked."""
        return not self.as_json and sys.stdin.isatty() and sys.stdout.isatty()

    @contextmanager
    def door(self) -> Iterator[Door]:
        """The connection to the API."""
        from perdure.cli.door import open_door

        with open_door(self.settings) as door:
            yield door

    def answer(self, value: BaseModel | Sequence[BaseModel] | dict[str, Any]) -> None:
        """Write one JSON document; ASCII only, so that nothing in it can steer a terminal."""
        self.paper.write(json.dumps(_plain(value), indent=2) + "\n")


def command(
    name: str, *, examples: Sequence[Example] = (), unread: int = 0, **attrs: Any
) -> Callable[[Callable[..., int | None]], click.Command]:
    """Make a command of a function that takes a :class:`Session` first and returns its exit code, ``None`` for 0.

    ``unread``: its exit code when whoever reads its output leaves before the end.
    """

    def wrap(function: Callable[..., int | None]) -> click.Command:
        @click.pass_context
        def call(ctx: click.Context, /, data: Path | None, as_json: bool, **given: Any) -> int | None:
            try:
                return function(Session(data or ctx.obj, as_json), **given)
            except BrokenPipeError as error:
                raise ReaderLeft(unread) from error

        update_wrapper(call, function)
        made = click.command(name, cls=TeachingCommand, examples=examples, context_settings=CONTEXT, **attrs)(call)
        made.params += _common_options()
        return made

    return wrap


def _common_options() -> list[click.Parameter]:
    return [
        click.Option(["--json", "as_json"], is_flag=True, help=JSON_HELP),
        click.Option(["--data"], type=click.Path(file_okay=False, path_type=Path), help=DATA_HELP),
    ]


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value.model_dump(mode="json") if hasattr(value, "model_dump") else value
