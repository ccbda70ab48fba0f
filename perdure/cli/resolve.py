"""``perdure resolve``: a person says what became of an effect."""

from __future__ import annotations

from typing import Literal

import click

from perdure.cli import codes
from perdure.cli.attend import Attendant
from perdure.cli.decide import comment_option, detach_option, passphrase_option, read_passphrase
from perdure.cli.follow import last_position
from perdure.cli.plans import read_job, read_plan, with_passphrase
from perdure.cli.session import Session, command
from perdure.cli.starting import door_to_jobs, no_start_option
from perdure.cli.words import new_id
from perdure.contracts.http import JobView, ResolveRequest, Review
from perdure.errors import Conflict, NotFound, UserError

Answer = Literal["done", "not_done", "stop"]


@command(
    "resolve",
    unread=codes.WAITING,
    examples=[
        ("perdure resolve 3 2 --done", "effect 2 of job 3 did happen: go on after it"),
        ("perdure resolve 3 push --not-done", "it did not happen: try it again"),
        ("perdure resolve 3 push --stop", "go no further; take back what is done"),
    ],
)
@click.argument("job")
@click.argument("effect")
@click.option("--done", is_flag=True, help="It happened; go on after it.")
@click.option("--not-done", is_flag=True, help="It did not happen; do it again.")
@click.option("--stop", is_flag=True, help="Go no further; take back what was done.")
@comment_option
@passphrase_option
@detach_option
@no_start_option
def resolve(
    session: Session,
    job: str,
    effect: str,
    done: bool,
    not_done: bool,
    stop: bool,
    comment: str,
    passphrase_stdin: bool,
    detach: bool,
    no_start: bool,
) -> int:
    """Say what became of EFFECT (its number or id in the plan) whose fate nobody can tell.

    Perdure never tries such an effect again by itself: it would perhaps happen twice. Look at the world first.
    """
    answer = one_answer(done=done, not_done=not_done, stop=stop)
    with door_to_jobs(session, no_start=no_start) as door:
        view = read_job(door, job)
        if not view.digest:
            raise Conflict(f"{view.name} has no plan yet ({view.phase.value}): there is nothing to resolve.")
        review = read_plan(door, view.digest)
        number = find_effect(review, effect)
        seen = last_position(door, view.job_id)
        decision_id = new_id()

        def send(passphrase: str) -> JobView:
            request = ResolveRequest(
                decision_id=decision_id,
                digest=review.digest,
                effect=number,
                answer=answer,
                comment=comment,
                passphrase=passphrase,
            )
            return door.post("/v1/resolve", request, JobView, ref=view.job_id)

        given = read_passphrase() if passphrase_stdin else ""
        view = with_passphrase(send, passphrase=given, may_ask=session.may_ask)
        said = f"Effect {number + 1} ({review.effects[number].effect.summary}): {answer.replace('_', ' ')}."
        session.progress.line(said)
        if detach:
            if session.as_json:
                session.answer(view)
            return 0
        attendant = Attendant(session, door, view)
        attendant.own.add(decision_id)
        return attendant.attend(after=seen, moved=False)


def one_answer(*, done: bool, not_done: bool, stop: bool) -> Answer:
    """Return the one answer that was given.

    Raises:
        UserError: none was, or more than one.
    """
    options: dict[Answer, bool] = {"done": done, "not_done": not_done, "stop": stop}
    given = [answer for answer, is_given in options.items() if is_given]
    if len(given) != 1:
        raise UserError("Say one thing about the effect: --done, --not-done or --stop.")
    return given[0]


def find_effect(review: Review, text: str) -> int:
    """Return the index of the effect that a number from 1 or an id names.

    Raises:
        NotFound: the plan has no such effect.
    """
    ids = [view.effect.id for view in review.effects]
    if text in ids:
        return ids.index(text)
    if text.isdigit() and 1 <= int(text) <= len(ids):
        return int(text) - 1
    known = ", ".join(f"{number} {name}" for number, name in enumerate(ids, 1))
    raise NotFound(f"Plan {review.digest[:8]} has no effect {text!r}. Its effects: {known}.")
