"""``perdure models``: which models are named in the settings, whether they answer, and a server that plays one."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from perdure.cli.catalog import MODELS
from perdure.cli.lazy import CONTEXT, LazyGroup
from perdure.cli.live import LiveLine
from perdure.cli.paper import Row, Span
from perdure.cli.session import Session, command


@click.group(
    "models",
    cls=LazyGroup,
    sections=MODELS,
    context_settings=CONTEXT,
    examples=[
        ("perdure models list", "which models there are, what they cost, whether their keys are there"),
        ("perdure models test fast", "ask it one tiny question"),
        ("perdure models serve-script answers.yaml", "a model server that answers what a file says"),
    ],
)
def models() -> None:
    """The models that agents and prompts ask, named in config.toml of this machine's data folder.

    Rules need no model. docs/how-to/use-a-model.md says how to name one.
    """


@command("list", examples=[("perdure models list", "the default one is marked")])
def list_models(session: Session) -> None:
    """List the models of the settings: where they are, what they cost, how much fits into them. Nothing is asked."""
    from perdure.trying import EXAMPLE, list_models_of

    found = list_models_of(session.settings)
    if session.as_json:
        session.answer({"models": found})
    elif not found:
        session.paper.line(("No models. Rules work without. Name one in ", "dim"), str(session.settings.config), ":")
        session.paper.lines(EXAMPLE)
    else:
        header = ("", "NAME", "MODEL", "AT", "INPUT", "OUTPUT", "WINDOW", "KEY", "FALLBACKS")
        session.paper.table([_row(one) for one in found], header=header)


@command(
    "test",
    examples=[
        ("perdure models test", "the default model"),
        ("perdure models test fast --json", "for a script; exit code 69 when the settings are wrong"),
    ],
)
@click.argument("name", default="")
def test_model(session: Session, name: str) -> None:
    """Ask the model NAME one tiny question and print how long it took, what it said and what it cost."""
    import asyncio

    from perdure.trying import try_model

    with LiveLine(session.notes if session.as_json else session.paper) as live:
        live.busy("asking")
        tried = asyncio.run(try_model(session.settings, name))
    if session.as_json:
        session.answer(tried)
        return
    session.paper.line(("✓ ", "good"), f"{tried['model']} answered in {tried['seconds']:.1f} s: ", tried["text"])
    session.paper.line("  ", (f"{_usage(tried)}; {_cost(tried['cost_microdollars'])}", "dim"))
    for note in tried["notes"]:
        session.paper.line("  ", (note, "warn"))


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


def _row(one: dict[str, Any]) -> Row:
    key: Span = one["key"] or "none"
    return [
        ("★" if one["is_default"] else "", "good"),
        one["name"],
        one["model"],
        one["host"],
        _price(one["input_price"]),
        _price(one["output_price"]),
        f"{one['window_tokens']:,}",
        key if one["key_is_there"] else (f"{one['key']} is missing", "bad"),
        ", ".join(one["fallbacks"]),
    ]


def _price(microdollars: int | None) -> Span:
    """Of a million tokens."""
    if microdollars is None:
        return ("unknown", "warn")
    return f"{microdollars / 1_000_000:.2f} USD" if microdollars else "free"


def _usage(tried: dict[str, Any]) -> str:
    counts = tried["input_tokens"], tried["output_tokens"]
    return "usage unknown" if None in counts else f"{counts[0]} tokens in, {counts[1]} out"


def _cost(microdollars: int | None) -> str:
    if microdollars is None:
        return "cost unknown: where a cost limit is set, an agent stops. Set `price` of the model"
    return f"{microdollars / 1_000_000:.6f} USD" if microdollars else "free"
