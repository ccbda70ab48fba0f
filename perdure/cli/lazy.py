"""Click groups that import a command when it is called, and commands whose help teaches by examples."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import click

from perdure.cli.catalog import Entry, Sections

HELP_WIDTH = 100
"""Help is never wider: long lines are hard to read."""

CONTEXT: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": HELP_WIDTH}

Example = tuple[str, str]
"""A command line and what it does."""


class ReaderLeft(Exception):
    """Whoever read our output went away. Not an ``OSError``: click would end the process with 1 for that."""

    def __init__(self, code: int = 0) -> None:
        super().__init__()
        self.code = code
        """What the process ends with."""


def load(target: str) -> Any:
    """Return what ``module:attribute`` names."""
    module, _, attribute = target.partition(":")
    return getattr(import_module(module), attribute)


class TeachingCommand(click.Command):
    """A command that shows ``examples`` before its options."""

    def __init__(self, *args: Any, examples: Sequence[Example] = (), **attrs: Any) -> None:
        super().__init__(*args, **attrs)
        self.examples = tuple(examples)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples, then the options."""
        _write_examples(self.examples, formatter)
        super().format_options(ctx, formatter)


class LazyGroup(click.Group):
    """A group that knows its commands' short help without importing them.

    ``default`` names the command that is meant when the first word is none of the group's: ``audit 3`` is
    ``audit check 3``.
    """

    def __init__(
        self, *args: Any, sections: Sections, examples: Sequence[Example] = (), default: str = "", **attrs: Any
    ) -> None:
        super().__init__(*args, **attrs)
        self.sections = sections
        self.examples = tuple(examples)
        self.default = default

    def entries(self) -> dict[str, Entry]:
        """All commands by name, in the order of the help."""
        return {name: entry for part in self.sections.values() for name, entry in part.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order of the help."""
        return list(self.entries())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command; ``None`` when there is no such name."""
        entry = self.entries().get(cmd_name)
        if entry is None:
            return None
        command: click.Command = load(entry.target)
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the default command's name before what is none of the group's."""
        if self.default and not self._is_ours(args) and "-h" not in args[:1] and "--help" not in args[:1]:
            args = [self.default, *args]
        return super().parse_args(ctx, args)

    def _is_ours(self, args: list[str]) -> bool:
        """Whether the first word is a command of this group, or was probably meant to be one."""
        return bool(args) and bool(difflib.get_close_matches(args[0], self.entries(), n=1))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or say which name was near."""
        known = self.list_commands(ctx)
        if args[0] in known or ctx.resilient_parsing:
            return super().resolve_command(ctx, args)
        near = difflib.get_close_matches(args[0], known, n=1)
        meant = f" Did you mean `{ctx.command_path} {near[0]}`?" if near else f" Known: {', '.join(known)}."
        raise click.UsageError(f"{ctx.command_path} has no command {args[0]!r}.{meant}", ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write examples and commands first: they are what one looks for."""
        _write_examples(self.examples, formatter)
        self.format_commands(ctx, formatter)
        click.Command.format_options(self, ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sections, aligned with each other."""
        width = max(len(name) for name in self.entries())
        for title, part in self.sections.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), entry.help) for name, entry in part.items()])


def _write_examples(examples: Sequence[Example], formatter: click.HelpFormatter) -> None:
    """Write command lines and what they do side by side, or beneath each other where one would not fit."""
    if not examples:
        return
    widest = max(len(line) for line, _ in examples)
    fits = all(4 + widest + len(meaning) <= formatter.width for _, meaning in examples)
    with formatter.section("Examples"):
        for line, meaning in examples:
            gap = " " * (widest - len(line) + 2) if fits else "\n      "
            formatter.write(f"  {line}{gap}{meaning}\n")
