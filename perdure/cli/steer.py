"""``say``, ``amend``, ``pause``, ``resume``, ``dial``, ``more``: an agent is steered while it works."""

from __future__ import annotations

import json
from typing import Literal

import click

from perdure.cli import codes
from perdure.cli.agents import write_agents
from perdure.cli.decide import passphrase_option, read_passphrase
from perdure.cli.plans import read_job, with_passphrase
from perdure.cli.session import Session, command
from perdure.cli.words import new_id
from perdure.contracts.http import AgentView, SteerRequest
from perdure.errors import UserError

Kind = Literal["say", "interrupt", "amend", "rewind", "pause", "resume", "dial", "more"]


@command(
    "say",
    examples=[
        ("perdure say 3 'keep the old flag'", "the model reads it with its next turn"),
        ("perdure say 3 --now 'stop, wrong file'", "the turn in flight is given up and asked again"),
    ],
)
@click.argument("job")
@click.argument("text")
@click.option("--now", is_flag=True, help="Do not wait for the turn that is being asked.")
@passphrase_option
def say(session: Session, job: str, text: str, now: bool, passphrase_stdin: bool) -> int:
    """Say something to the agent that works on a job; `perdure show` tells which turn it was in."""
    return send_word(session, job, "interrupt" if now else "say", text, passphrase_stdin)


@command("amend", examples=[("perdure amend 3 'only Python 3.12 and later'", "what is open about its calls is void")])
@click.argument("job")
@click.argument("text")
@passphrase_option
def amend(session: Session, job: str, text: str, passphrase_stdin: bool) -> int:
    """Change what the agent is to do. Open questions about its calls are void: they were about another goal."""
    return send_word(session, job, "amend", text, passphrase_stdin)


@command("pause", examples=[("perdure pause 3", "no further turn is asked; `perdure resume 3` goes on")])
@click.argument("job")
@passphrase_option
def pause(session: Session, job: str, passphrase_stdin: bool) -> int:
    """Let the agent of a job wait. Time that it waits for people is not counted."""
    return send_word(session, job, "pause", "", passphrase_stdin)


@command(
    "resume",
    examples=[
        ("perdure resume 3", "the agent goes on where it was; a plan with its next step, or the one that failed"),
    ],
)
@click.argument("job")
@passphrase_option
def resume(session: Session, job: str, passphrase_stdin: bool) -> int:
    """Let a paused agent go on, or a plan that waits between two steps or at one that failed.

    A step that failed is looked at first, and tried again when it did not happen; the steps before it must still be as
    they were left. `perdure cancel` takes back what was applied instead.
    """
    return send_word(session, job, "resume", "", passphrase_stdin)


@command(
    "dial",
    examples=[
        ("perdure dial 3 confirm", "each change of it asks from now on"),
        ("perdure dial 3 propose", "raising it needs the right to decide"),
    ],
)
@click.argument("job")
@click.argument("place", metavar="observe|confirm|propose|delegate")
@passphrase_option
def dial(session: Session, job: str, place: str, passphrase_stdin: bool) -> int:
    """Turn how much the agent of a job may do alone. Lowering it is anybody's right who may see the job."""
    return send_word(session, job, "dial", place, passphrase_stdin)


@command(
    "more",
    examples=[
        ("perdure more 3 --turns 10", "it goes on where it stopped"),
        ("perdure more 3 --cost 0.50", "half a dollar more"),
    ],
)
@click.argument("job")
@click.option("--turns", type=click.IntRange(min=1))
@click.option("--calls", type=click.IntRange(min=1))
@click.option("--tokens", type=click.IntRange(min=1))
@click.option("--cost", type=click.FloatRange(min=0, min_open=True), help="In US dollars.")
@click.option("--minutes", type=click.IntRange(min=1), help="Of working time.")
@passphrase_option
def more(
    session: Session,
    job: str,
    turns: int | None,
    calls: int | None,
    tokens: int | None,
    cost: float | None,
    minutes: int | None,
    passphrase_stdin: bool,
) -> int:
    """Give the agent of a job more than its limits; one that stopped there goes on."""
    given = {
        "turns": turns,
        "calls": calls,
        "tokens": tokens,
        "cost_microdollars": round(cost * 1_000_000) if cost else None,
        "wall_seconds": minutes * 60 if minutes else None,
    }
    amounts = {name: amount for name, amount in given.items() if amount}
    if not amounts:
        raise UserError("More of what? Give --turns, --calls, --tokens, --cost or --minutes.")
    return send_word(session, job, "more", json.dumps(amounts, sort_keys=True), passphrase_stdin)


def send_word(session: Session, job: str, kind: Kind, text: str, passphrase_stdin: bool) -> int:
    """Say one word to the agent of a job, and show where it is."""
    with session.door() as door:
        target = read_job(door, job)
        decision_id = new_id()

        def send(passphrase: str) -> list[AgentView]:
            request = SteerRequest(decision_id=decision_id, kind=kind, text=text, passphrase=passphrase)
            return door.post("/v1/steer", request, list[AgentView], ref=target.job_id)

        given = read_passphrase() if passphrase_stdin else ""
        agents = with_passphrase(send, passphrase=given, may_ask=session.may_ask)
    if session.as_json:
        session.answer(agents)
    else:
        session.paper.line(("✓ ", "good"), f"Accepted for {target.name}.")
        write_agents(session.paper, agents[-1:])
    return codes.OK
