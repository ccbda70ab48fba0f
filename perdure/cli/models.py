"""``perdure models``: which models are named in the settings, whether they answer, and a server that plays one."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from perdure.cli.catalog import MODELS
from perdure.cli.lazy import CONTEXT, LazyGroup
from perdure.cli.session import Session, command


@click.group(
    "models",
    cls=LazyGroup,
    sections=MODELS,
    context_settings=CONTEXT,
    examples=[
        ("perdure models serve-script answers.yaml", "a model server that answers what a file says"),
    ],
)
def models() -> None:
    """The models that agents and prompts ask. They are named in config.toml in the data folder."""


@command(
    "serve-script",
    examples=[
        ("perdure models serve-script answers.yaml", "on a free port; its addresses are printed"),
        ("perdure models serve-script answers.yaml --port 8099 --record asked.jsonl", "and keep what is asked"),
    ],
)
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port on loopback; default: a free one.")
@click.option(
    "--record",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Append every request to this file, as JSON lines.",
)
def serve_script(session: Session, file: Path, port: int, record: Path | None) -> None:
    """Answer as a model would, by the script in FILE: real HTTP on loopback, until Ctrl-C.

    OpenAI's chat completions and Anthropic's messages, whole and streamed, tool calls, errors, delays. What was asked
    is under /requests.
    """
    import asyncio

    from perdure.testing.model_server import serve

    def say(url: str) -> None:
        if session.as_json:
            click.echo(f'{{"url": "{url}"}}')
        else:
            session.paper.line(f"Listening on {url} (OpenAI: {url}/v1, Anthropic: {url}). Ctrl-C ends it.")
        sys.stdout.flush()

    try:
        asyncio.run(serve(file, port=port, record=record, ready=say))
    except KeyboardInterrupt:
        session.notes.line("Stopped.")
