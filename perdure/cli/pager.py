"""Shows a long text through the reader's own pager, a short one at once."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterable, Iterator

import click

from perdure.cli.paper import Paper


def show_lines(paper: Paper, lines: Iterable[str], *, pager: bool = True) -> None:
    """Write painted lines; on a terminal, more than a screen of them goes through ``PAGER`` (default ``less``).

    The lines are read as they are shown, so that a diff of any size starts at once.
    """
    height = shutil.get_terminal_size().lines - 2 if paper.is_terminal and pager else 0
    given = iter(lines)
    first = list(itertools.islice(given, height + 1)) if height else []
    if height and len(first) > height:
        click.echo_via_pager(_ended(itertools.chain(first, given)), color=None if paper.color else False)
        return
    for line in itertools.chain(first, given):
        paper.write(line + "\n")


def _ended(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield line + "\n"
