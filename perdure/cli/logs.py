"""``perdure logs``: a job's records as the ledger has them."""

from __future__ import annotations

import json

import click

from perdure.cli import codes
from perdure.cli.follow import Watch
from perdure.cli.paper import Paper
from perdure.cli.plans import read_job
from perdure.cli.session import Session, command
from perdure.contracts.base import JsonDict
from perdure.contracts.http import EventView

_LONG = 72


@command(
    "logs",
    examples=[
        ("perdure logs 3", "every record of job 3"),
        ("perdure logs 3 -f", "and those to come; Ctrl-C ends it"),
        ("perdure logs 3 --json | jq .kind", "one JSON object a line"),
    ],
)
@click.argument("job", default="@last")
@click.option("-f", "--follow", is_flag=True, help="Wait for more until the job ends.")
def logs(session: Session, job: str, follow: bool) -> int:
    """Print what the ledger recorded about a job, oldest first: stages, decisions, effects.

    With --json one object a line, whole.
    """
    with session.door() as door:
        view = read_job(door, job)
        watch = Watch(door, view.job_id, lambda text: session.notes.line((text, "warn")))
        try:
            for event in watch.rest():
                _write(session, event)
            while follow and not view.phase.is_final:
                page = watch.page()
                for event in page.events:
                    _write(session, event)
                view = page.job or view
            for event in watch.rest() if follow else ():
                _write(session, event)
        except KeyboardInterrupt:
            return codes.DETACHED
    return codes.OK


def _write(session: Session, event: EventView) -> None:
    if session.as_json:
        click.echo(json.dumps(event.model_dump(mode="json")))
    else:
        write_event(session.paper, event)


def write_event(paper: Paper, event: EventView) -> None:
    """Write one record as one line."""
    at = event.at.astimezone()
    paper.line((f"{at:%Y-%m-%d %H:%M:%S}  ", "dim"), (f"{event.kind:<18}", "title"), f"  {say_body(event)}")


def say_body(event: EventView) -> str:
    """What the record says, in one line: first what people look for, then the rest as key=value."""
    if not event.body:
        return "(content erased)"
    body = dict(event.body)
    decision = body.pop("decision", None)
    if isinstance(decision, dict):
        body = {key: decision[key] for key in ("by", "digest", "comment", "answer", "effect") if decision.get(key)}
    return " ".join(f"{key}={_value(value)}" for key, value in body.items() if value not in ("", None, [], {}))


def _value(value: object) -> str:
    if isinstance(value, dict) and "sha256" in value:
        return str(_blob(value))
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if len(text) == 64 and not set(text) - set("0123456789abcdef"):
        return text[:12]
    text = text if len(text) <= _LONG else text[: _LONG - 1] + "…"
    return json.dumps(text, ensure_ascii=False) if " " in text and isinstance(value, str) else text


def _blob(value: JsonDict) -> str:
    return f"{str(value['sha256'])[:12]}({value.get('size_bytes', '?')} bytes)"
