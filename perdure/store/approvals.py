"""Standing approvals in the ledger: said, taken back, and each use counted in the transaction that it opens."""

from __future__ import annotations

from collections import Counter
from datetime import datetime

from sqlalchemy import Connection, select

from perdure.contracts.decisions import SignedDecision
from perdure.errors import Conflict
from perdure.policy.standing import STANDING_KINDS, revoked_by, scope_of
from perdure.store import schema
from perdure.store.events import append_event, bodies_of

USED = "approval.used"
_STEP = "used."


class ApprovalGone(Conflict):
    """A standing approval that was there when it was weighed is used up or taken back by now: weigh again."""


def standing_words(connection: Connection, thread: str | None) -> list[SignedDecision]:
    """Return the standing approvals of a thread (``None``: of all) and what takes them back, oldest first.

    Their signatures are not checked here.
    """
    decisions, events = schema.decisions, schema.events
    query = select(decisions.c.position).where(decisions.c.kind.in_(STANDING_KINDS))
    if thread is not None:
        query = query.join(events, events.c.position == decisions.c.position).where(events.c.thread == thread)
    positions = list(connection.execute(query.order_by(decisions.c.position)).scalars())
    bodies = bodies_of(connection, positions)
    return [SignedDecision.model_validate(bodies[position]) for position in positions if position in bodies]


def count_uses(connection: Connection, thread: str | None) -> dict[str, int]:
    """Return how often each standing approval of a thread (``None``: of all) was used, by its id."""
    events = schema.events
    query = select(events.c.step).where(events.c.kind == USED)
    if thread is not None:
        query = query.where(events.c.thread == thread)
    return Counter(map(use_of, connection.execute(query).scalars()))


def used_at(connection: Connection, gate_id: str) -> list[str]:
    """Return the ids of the standing approvals that a gate was satisfied by."""
    events = schema.events
    query = select(events.c.step).where(events.c.workflow_id == gate_id, events.c.kind == USED)
    return [use_of(step) for step in connection.execute(query.order_by(events.c.position)).scalars()]


def use_of(step: str) -> str:
    """Return the id of the standing approval whose use a record's step counts."""
    return step.removeprefix(_STEP)


def use_approval(
    connection: Connection, approval_id: str, *, thread: str, job_id: str, gate_id: str, digest: str, at: datetime
) -> None:
    """Count one use, for the gate on ``digest``; a no-op when this gate has used it before.

    Raises:
        ApprovalGone: it was taken back, its time is over, or it was used as often as it says.
    """
    words = [signed.decision for signed in standing_words(connection, thread)]
    scope = next((scope_of(word) for word in words if word.id == approval_id), None)
    used = count_uses(connection, thread).get(approval_id, 0)
    is_gone = scope is None or at >= scope.until or approval_id in {revoked_by(word) for word in words}
    if (
        scope is None
        or is_gone
        or (scope.uses and used >= scope.uses and approval_id not in used_at(connection, gate_id))
    ):
        raise ApprovalGone(f"Standing approval {approval_id} does not let plan {digest[:8]} go any more. Weigh again.")
    append_event(
        connection,
        thread=thread,
        kind=USED,
        actor="perdure",
        body={"approval": approval_id, "digest": digest, "gate_id": gate_id},
        job_id=job_id,
        workflow_id=gate_id,
        step=f"{_STEP}{approval_id}",
        at=at,
    )
