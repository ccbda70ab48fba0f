"""Delegations in the ledger: signed records of the installation's own thread, for every job."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, select

from perdure.contracts.decisions import SignedDecision
from perdure.errors import Conflict, NotFound, UserError
from perdure.policy.people import delegation_of, stands
from perdure.store import schema
from perdure.store.decisions import insert_decision, is_recorded
from perdure.store.events import INSTALLATION, bodies_of

KINDS = ("delegate", "undelegate")


def record_delegation(connection: Connection, signed: SignedDecision, at: datetime) -> bool:
    """Write one; see ``Ledger.record_delegation``."""
    if is_recorded(connection, signed):
        return False
    if signed.decision.kind == "delegate":
        _check_delegate(signed, at)
    elif signed.decision.kind == "undelegate":
        _check_undelegate(connection, signed, at)
    else:
        raise UserError(f"A {signed.decision.kind!r} delegates nothing. Nothing was recorded.")
    insert_decision(connection, signed, thread=INSTALLATION, job_id="", at=at, told=True)
    return True


def list_delegations(connection: Connection) -> list[SignedDecision]:
    """Return every delegation and every end of one, oldest first."""
    decisions = schema.decisions
    query = select(decisions.c.position).where(decisions.c.kind.in_(KINDS)).order_by(decisions.c.position)
    positions = list(connection.execute(query).scalars())
    bodies = bodies_of(connection, positions)
    return [SignedDecision.model_validate(bodies[position]) for position in positions if position in bodies]


def _check_delegate(signed: SignedDecision, at: datetime) -> None:
    given = delegation_of(signed.decision)
    if given is None or given.to == signed.decision.by:
        raise UserError("A delegation names somebody else, at least one group, and its end. Nothing was recorded.")
    if at >= given.until:
        raise UserError(f"The delegation would end {given.until.isoformat()}, before it begins. Give a later end.")


def _check_undelegate(connection: Connection, signed: SignedDecision, at: datetime) -> None:
    words = [word.decision for word in list_delegations(connection)]
    wanted = signed.decision.comment
    found = next((word for word in words if word.kind == "delegate" and word.id == wanted), None)
    if found is None:
        raise NotFound(f"There is no delegation {wanted!r}. `perdure people list` shows them.")
    if found.by != signed.decision.by:
        raise Conflict(f"Delegation {wanted} is {found.by}'s to end, not {signed.decision.by}'s. Nothing was recorded.")
    if not stands(found, words, at):
        raise Conflict(f"Delegation {wanted} has ended already. Nothing was recorded.")
