"""People's signed decisions in the ledger. Recording one is the moment at which it counts."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import Connection, Row, Select, bindparam, insert, select, update

from perdure.contracts.decisions import STEERING, Decision, SignedDecision
from perdure.contracts.names import CALL_ROUNDS
from perdure.errors import Conflict, NotFound, UserError
from perdure.policy.standing import revoked_by, scope_of
from perdure.store import permits, schema
from perdure.store.agent_rows import has_open_agent
from perdure.store.approvals import standing_words
from perdure.store.chain import time_text
from perdure.store.events import INSTALLATION, append_event, bodies_of
from perdure.store.jobs import is_final, job_row
from perdure.store.plans import OPEN, describe_end, plan_row, void_calls
from perdure.store.rows import PlanRow


def record_decision(connection: Connection, signed: SignedDecision, thread: str, at: datetime) -> bool:
    """Write a decision; ``False`` when exactly this one was written before.

    Raises:
        Conflict: its id was used for another decision; or what it decides on is past deciding, with how it ended.
        NotFound: no such plan, job or effect.
    """
    decision = signed.decision
    if decision.kind in ("trust", "schedule", "delegate", "undelegate"):
        raise UserError(f"A {decision.kind!r} is recorded with a call of its own, not as a job's decision.")
    if is_recorded(connection, signed):
        return False
    job = job_row(connection, decision.job_id)
    if job.thread != thread:
        raise Conflict(f"{decision.job_id} belongs to thread {job.thread!r}, not to {thread!r}. Nothing was recorded.")
    _check(connection, decision, job, at)
    position = insert_decision(connection, signed, thread=thread, job_id=decision.job_id, at=at)
    _take_effect(connection, decision, position)
    return True


def trust_template(connection: Connection, digest: str, by: str, signed: SignedDecision, at: datetime) -> None:
    """Allow a template's text to run; a no-op when it is trusted already."""
    decision = signed.decision
    if (decision.kind, decision.digest, decision.by) != ("trust", digest, by):
        raise Conflict(f"Decision {decision.id} is no trust in template {digest[:8]} by {by}. Nothing was recorded.")
    if is_trusted(connection, digest) or is_recorded(connection, signed):
        return
    insert_decision(connection, signed, thread=INSTALLATION, job_id="", at=at, told=True)
    values = {"digest": digest, "by": by, "at": time_text(at), "decision_id": decision.id}
    connection.execute(insert(schema.trusted_templates).values(**values))


def is_trusted(connection: Connection, digest: str) -> bool:
    """Whether a template's text may run."""
    trusted = schema.trusted_templates
    return connection.execute(select(trusted.c.digest).where(trusted.c.digest == digest)).first() is not None


def was_trusted(connection: Connection, path: str) -> bool:
    """Whether a text that lay at ``path`` was ever trusted, whatever lies there now."""
    decisions = schema.decisions
    rows = connection.execute(select(decisions).where(decisions.c.kind == "trust")).all()
    return any(signed.decision.comment == path for signed in _signed(connection, rows))


def find_decision(connection: Connection, decision_id: str) -> SignedDecision | None:
    """Return the decision of that id, if it was recorded."""
    decisions = schema.decisions
    rows = connection.execute(select(decisions).where(decisions.c.id == decision_id)).all()
    return next(iter(_signed(connection, rows)), None)


def list_decisions(
    connection: Connection, *, digest: str | None = None, job_id: str | None = None, untold: bool = False
) -> list[SignedDecision]:
    """Return decisions oldest first; those whose thread was erased are not there any more."""
    asked = {"digest": digest, "job_id": job_id, "told": False if untold else None}
    about = {name: value for name, value in asked.items() if value is not None}
    return _signed(connection, connection.execute(_listing(*about), about).all())


@cache
def _listing(*columns: str) -> Select[Any]:
    """Made once: building a statement costs more than asking it, and every call of an agent asks one of these."""
    decisions = schema.decisions
    wanted = (decisions.c[name] == bindparam(name) for name in columns)
    return select(decisions).where(*wanted).order_by(decisions.c.position)


def mark_told(connection: Connection, decision_id: str) -> None:
    """Remember that the workflow was told about a decision."""
    decisions = schema.decisions
    connection.execute(update(decisions).where(decisions.c.id == decision_id).values(told=True))


def resolution_after(connection: Connection, digest: str, index: int, position: int) -> SignedDecision | None:
    """Return the newest ``resolve`` for one effect recorded after ``position``, if any."""
    decisions = schema.decisions
    query = select(decisions).where(
        decisions.c.digest == digest, decisions.c.kind == "resolve", decisions.c.position > position
    )
    rows = connection.execute(query.order_by(decisions.c.position)).all()
    found = [signed for signed in _signed(connection, rows) if signed.decision.effect == index]
    return found[-1] if found else None


def is_recorded(connection: Connection, signed: SignedDecision) -> bool:
    """Whether exactly this decision was written before. Raises ``Conflict`` when another one has its id."""
    decisions = schema.decisions
    row = connection.execute(select(decisions).where(decisions.c.id == signed.decision.id)).one_or_none()
    if row is None:
        return False
    if _signed(connection, [row]) != [signed]:
        raise Conflict(
            f"Decision {signed.decision.id} was recorded before with other content ({row.kind} by {row.by}). "
            "A new decision needs a new id. Nothing was recorded."
        )
    return True


def _check(connection: Connection, decision: Decision, job: Row[Any], at: datetime) -> None:
    if decision.kind == "cancel":
        if is_final(job):
            raise Conflict(f"Job {job.number} cannot be cancelled any more: it ended as {job.phase!r}.")
        return
    if decision.kind in STEERING:
        _check_word(connection, decision, job)
        return
    if decision.kind == "revoke":
        _check_revoke(connection, decision, str(job.thread))
        return
    plan = plan_row(connection, decision.digest)
    if plan.job_id != decision.job_id:
        raise Conflict(f"Plan {plan.digest[:8]} belongs to {plan.job_id}, not to {decision.job_id}.")
    if decision.kind == "standing":
        _check_standing(decision, plan, str(job.thread), at)
    elif decision.kind == "resolve":
        _check_resolve(connection, decision)
    elif decision.kind == "go_on":
        _check_go_on(connection, decision, plan, job)
    elif decision.kind == "withdraw":
        permits.refuse_late_withdrawal(connection, plan, decision.by)
    elif plan.state != OPEN:
        raise _too_late(decision, plan, describe_end(plan), job.number)
    elif at >= plan.expires_at:
        raise _too_late(decision, plan, f"it expired {plan.expires_at}", job.number)


def _check_word(connection: Connection, decision: Decision, job: Row[Any]) -> None:
    """Nobody is told "accepted" while there is no agent that could hear it."""
    if is_final(job) or not has_open_agent(connection, decision.job_id):
        raise Conflict(
            f"No agent works on job {job.number} (it is {job.phase!r}), so nobody would hear it. While its plan waits, "
            "`perdure request-changes` sends it back with your words. Nothing was recorded."
        )


def _check_standing(decision: Decision, plan: PlanRow, thread: str, at: datetime) -> None:
    scope = scope_of(decision)
    if scope is None or scope.thread != thread:
        raise UserError(f"Decision {decision.id} does not say what stands approved in {thread}. Nothing was recorded.")
    if plan.round < CALL_ROUNDS:
        raise UserError(
            f"Plan {plan.digest[:8]} is no single call of an agent; only such calls are approved beforehand. "
            "Nothing was recorded."
        )
    if at >= scope.until:
        raise UserError(
            f"The standing approval would end {scope.until.isoformat()}, before it begins. Give a later end."
        )


def _check_revoke(connection: Connection, decision: Decision, thread: str) -> None:
    words = [signed.decision for signed in standing_words(connection, thread)]
    wanted = revoked_by(decision)
    if wanted not in {word.id for word in words if word.kind == "standing"}:
        raise NotFound(f"There is no standing approval {wanted!r} in {thread}. `perdure approvals list` shows them.")
    if wanted in {revoked_by(word) for word in words}:
        raise Conflict(f"Standing approval {wanted} is revoked already.")


def _too_late(decision: Decision, plan: PlanRow, why: str, number: int) -> Conflict:
    wish = decision.kind.replace("_", " ")
    return Conflict(
        f"Nobody can {wish} plan {plan.digest[:8]} any more: {why}. `perdure show {number}` tells how its job went on."
    )


def _check_resolve(connection: Connection, decision: Decision) -> None:
    if decision.effect is None or not decision.answer:
        raise UserError("A resolve names an effect and says done, not_done or stop.")
    intents = schema.intents
    query = select(intents.c.state).where(
        intents.c.digest == decision.digest, intents.c.effect_index == decision.effect
    )
    states = list(connection.execute(query).scalars())
    what = f"Effect {decision.effect + 1} of plan {decision.digest[:8]}"
    if not states:
        raise NotFound(f"{what} was never begun; there is nothing to resolve.")
    if "unknown" not in states:
        raise Conflict(f"{what} is not in doubt (it is {states[-1]!r}); there is nothing to resolve.")


def _check_go_on(connection: Connection, decision: Decision, plan: PlanRow, job: Row[Any]) -> None:
    permit = permits.find_permit(connection, plan.digest)
    if decision.effect is None or not 0 <= decision.effect < plan.effects:
        raise UserError(f"A word to go on names an effect of the plan, from 0 to {plan.effects - 1}.")
    if permit is None or permit.closed or is_final(job):
        raise Conflict(f"Plan {plan.digest[:8]} is not being applied; nothing of it waits for a word to go on.")


def insert_decision(
    connection: Connection, signed: SignedDecision, *, thread: str, job_id: str, at: datetime, told: bool = False
) -> int:
    """Write a checked decision; return the position of its record."""
    decision = signed.decision
    position, _ = append_event(
        connection,
        thread=thread,
        kind=f"decision.{decision.kind}",
        actor=decision.by,
        body=signed.model_dump(mode="json"),
        job_id=job_id,
        at=at,
    )
    connection.execute(
        insert(schema.decisions).values(
            id=decision.id,
            kind=decision.kind,
            job_id=job_id,
            digest=decision.digest,
            by=decision.by,
            position=position,
            told=told,
        )
    )
    return position


def _take_effect(connection: Connection, decision: Decision, position: int) -> None:
    """What counts at once, in the same transaction: the arbiter asks for it before the workflow has heard."""
    if decision.kind == "cancel":
        jobs = schema.jobs
        connection.execute(update(jobs).where(jobs.c.job_id == decision.job_id).values(cancelled_by=decision.by))
    elif decision.kind in ("amend", "rewind"):
        void_calls(connection, decision.job_id)
    elif decision.kind == "withdraw":
        permits.withdraw_permit(connection, decision.digest, decision.by)


def _signed(connection: Connection, rows: Iterable[Row[Any]]) -> list[SignedDecision]:
    positions = [row.position for row in rows]
    if not positions:
        return []
    bodies = bodies_of(connection, positions)
    return [SignedDecision.model_validate(bodies[position]) for position in positions if position in bodies]
