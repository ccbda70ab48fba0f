"""``perdure logs``: a job's records as the ledger has them, with its agents' turns between them."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack

import click

from perdure.cli import codes
from perdure.cli.door import Door
from perdure.cli.follow import Watch
from perdure.cli.listening import Listener
from perdure.cli.paper import Paper
from perdure.cli.plans import read_job
from perdure.cli.session import Session, command
from perdure.cli.turns import one_turn, read_transcript, write_message, write_turn
from perdure.contracts.base import JsonDict
from perdure.contracts.http import EventView, JobView
from perdure.contracts.visible import visible
from perdure.contracts.watching import LiveView, TurnView

_LONG = 72
_LAST_WORDS_SECONDS = 3.0
"""How long the end of an agent's turns is waited for when the job has ended."""


@command(
    "logs",
    examples=[
        ("perdure logs 3", "every record of job 3, its agents' turns and calls"),
        ("perdure logs 3 -f", "and those to come, text while a model says it; Ctrl-C ends it"),
        ("perdure logs 3 --turn 12", "one turn, every word of it"),
        ("perdure logs 3 --transcript", "all that an agent said and heard"),
        ("perdure logs 3 --json | jq .kind", "one JSON object a line"),
    ],
)
@click.argument("job", default="@last")
@click.option("-f", "--follow", is_flag=True, help="Wait for more until the job ends.")
@click.option("--turn", type=click.IntRange(min=1), metavar="N", help="One turn of an agent, whole.")
@click.option("--transcript", is_flag=True, help="All messages of an agent, whole.")
@click.option("--agent", type=click.IntRange(min=1), default=1, show_default=True, help="Which agent of the job.")
def logs(session: Session, job: str, follow: bool, turn: int | None, transcript: bool, agent: int) -> int:
    """Print what was recorded about a job, oldest first: stages, decisions, effects, agents' turns and calls.

    With --json one object a line, whole.
    """
    with session.door() as door:
        view = read_job(door, job)
        if turn is not None or transcript:
            return _write_messages(session, door, view, agent, turn)
        watch = Watch(door, view.job_id, lambda text: session.notes.line((text, "warn")))
        teller = _Teller(session)
        try:
            teller.tell_all(list(watch.rest()), door.get("/v1/turns", list[TurnView], ref=view.job_id))
            if follow and not view.phase.is_final:
                _follow(door, view, watch, teller)
        except KeyboardInterrupt:
            return codes.DETACHED
    return codes.OK


def _follow(door: Door, view: JobView, watch: Watch, teller: _Teller) -> None:
    with ExitStack() as stack:
        listener = stack.enter_context(Listener(door, view.job_id, teller.hear, since=teller.since))
        while not view.phase.is_final:
            page = watch.page()
            for event in page.events:
                teller.tell(event)
            view = page.job or view
        listener.close(wait=_LAST_WORDS_SECONDS)
        for event in watch.rest():
            teller.tell(event)


def _write_messages(session: Session, door: Door, job: JobView, agent: int, turn: int | None) -> int:
    lines = read_transcript(door, job.job_id, agent)
    for line in one_turn(lines, turn) if turn is not None else lines:
        if session.as_json:
            click.echo(line.model_dump_json())
        else:
            write_message(session.paper, line)
    return codes.OK


class _Teller:
    """Writes records and turns. Two threads tell: lines never mix, and text that comes is ended by a line's end."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._lock = threading.Lock()
        self._saying = (0, 0)
        self.since = ""
        """Time of the last turn that was told."""

    def tell_all(self, events: list[EventView], turns: list[TurnView]) -> None:
        """Tell what there is already, by time."""
        for item in _by_time(events, turns):
            if isinstance(item, EventView):
                self.tell(item)
            elif item.is_over:
                self._tell_turn(item)

    def tell(self, event: EventView) -> None:
        """Tell one record."""
        with self._lock:
            self._end_saying()
            if self._session.as_json:
                click.echo(json.dumps(event.model_dump(mode="json")))
            else:
                write_event(self._session.paper, event)

    def hear(self, view: LiveView) -> None:
        """Tell what an agent does now."""
        if view.view is not None:
            self._tell_turn(view.view)
        elif self._session.as_json:
            with self._lock:
                click.echo(json.dumps({"kind": f"agent.{view.kind}", **view.model_dump(exclude={"kind", "view"})}))
        else:
            self._say(view)

    def _tell_turn(self, view: TurnView) -> None:
        with self._lock:
            self._end_saying()
            self.since = view.at.isoformat()
            if self._session.as_json:
                click.echo(json.dumps({"kind": "agent.turn", **view.model_dump(mode="json")}))
            else:
                write_turn(self._session.paper, view)

    def _say(self, view: LiveView) -> None:
        with self._lock:
            who = (view.agent, view.turn)
            if view.kind == "again" or who != self._saying:
                self._end_saying()
            if view.kind == "again":
                return
            if who != self._saying:
                self._session.paper.write(f"  agent {view.agent} turn {view.turn} says: ")
            self._saying = who
            self._session.paper.write(visible(view.text, keep_lines=True))
            sys.stdout.flush()

    def _end_saying(self) -> None:
        if self._saying != (0, 0):
            self._saying = (0, 0)
            self._session.paper.write("\n")


def _by_time(events: list[EventView], turns: list[TurnView]) -> Iterator[EventView | TurnView]:
    """Records in the ledger's order, each turn before the first record that is younger."""
    left = list(turns)
    for event in events:
        while left and left[0].at < event.at:
            yield left.pop(0)
        yield event
    yield from left


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
