"""Finds plans and jobs by what people type, and sends decisions on exactly one digest."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal, TypeVar

import click

from perdure.cli.door import Door
from perdure.cli.words import new_id
from perdure.contracts.base import JsonDict
from perdure.contracts.http import DecideAnswer, DecideRequest, JobView, Review
from perdure.errors import Refused, UserError

T = TypeVar("T")
Kind = Literal["approve", "reject", "request_changes", "withdraw", "break_glass"]

_DIGEST = re.compile(r"[0-9a-f]{8,64}")
SHORTEST = 8


def is_digest(text: str) -> bool:
    """Whether the text can only be (the beginning of) a plan's digest, and no job's name."""
    return _DIGEST.fullmatch(text) is not None


def read_plan_of(door: Door, ref: str) -> Review:
    """Return the plan that a digest names, or a job's newest one.

    Raises:
        NotFound: there is no such plan or job, or the job has no plan yet.
    """
    return read_plan(door, ref) if is_digest(ref) else door.get("/v1/review", Review, ref=ref)


def read_plan(door: Door, digest: str) -> Review:
    """Return the one plan whose digest begins with ``digest``.

    Raises:
        UserError: not a digest, too short, or more than one plan begins like that.
        NotFound: no plan does.
    """
    text = digest.strip().lower()
    if not is_digest(text):
        raise UserError(
            f"{digest!r} is not a plan's digest; expected at least {SHORTEST} of its digits (0-9, a-f), "
            "for example 7f3a91c2. `perdure review JOB` shows it: a decision names exactly one plan, never the latest."
        )
    return door.get("/v1/review", Review, digest=text)


def read_job(door: Door, ref: str) -> JobView:
    """Return the job that a number, a name or ``@last`` names."""
    return door.get("/v1/job", JobView, ref=ref)


def decide(
    door: Door,
    digest: str,
    kind: Kind,
    *,
    comment: str = "",
    changes: JsonDict | None = None,
    since: str = "",
    passphrase: str = "",
    may_ask: bool = False,
) -> DecideAnswer:
    """Sign and send a decision on the whole digest; asks for the decision key's passphrase when it has one.

    ``since``: the plan from which the difference was shown; it is kept in the decision.
    """

    def send(opened_by: str) -> DecideAnswer:
        request = DecideRequest(
            kind=kind,
            decision_id=decision_id,
            comment=comment,
            changes=changes or {},
            since=since or None,
            passphrase=opened_by,
        )
        return door.post(f"/v1/plans/{digest}/decisions", request, DecideAnswer)

    decision_id = new_id()
    return with_passphrase(send, passphrase=passphrase, may_ask=may_ask)


def with_passphrase(send: Callable[[str], T], *, passphrase: str, may_ask: bool) -> T:
    """Call ``send`` with the passphrase; where the key wants one that was not given, ask for it once, unseen."""
    try:
        return send(passphrase)
    except Refused as refused:
        if passphrase or not may_ask or "passphrase" not in refused.message:
            raise
    return send(click.prompt("Passphrase of the decision key", hide_input=True, err=True))
