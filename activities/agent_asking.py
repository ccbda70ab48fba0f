"""A call that a person must decide on: a plan with one effect, decided by signed decisions, like any other plan."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from activities.agent_desk import AgentDesk, now
from perdure.contracts import names
from perdure.contracts.agent import CallVerdict, ToolOutcome
from perdure.contracts.agent_ports import Tool
from perdure.contracts.agent_run import AgentSpec, CallInput, CallRecord
from perdure.contracts.application import CloseApplicationInput, EffectState, Receipt
from perdure.contracts.base import BlobRef
from perdure.contracts.decisions import Edits, GateEnd, GateInput, WeighInput
from perdure.contracts.job import JobPhase, PlanRef
from perdure.contracts.messages import CallPart
from perdure.contracts.plan import Envelope, Inverse, PlannedEffect, content_digest, freeze, read_plan
from perdure.policy.permissions import BY_PERSON
from perdure.policy.targets import targets_of
from perdure.store.rows import BeginEffect, CallEnding, PlanRow

KIND = "agent.call"
VERSION = 1

EndGate = Callable[[WeighInput], GateEnd]
"""Weighs what lies in the ledger and closes a gate that can be closed, as every gate is."""

_ENDS: dict[str, EffectState] = {"ok": "done", "error": "failed", "unknown": "unknown"}


@dataclass(frozen=True)
class Answer:
    """Whether a call may run."""

    record: CallRecord
    """With the plan that was asked about."""
    waits: bool = False
    until: datetime | None = None
    """When nobody is waited for any more."""
    allowed: bool = False
    edits: Edits | None = None
    """Somebody changed the call: it is judged and asked about again as this has it."""
    rule: str = "gate"
    """What a "no" is recorded under: only a person's own is remembered."""
    reason: str = ""


class CallAsker:
    """Asks people about calls. Everything may be asked again: a call has one plan at a time, its gate in the ledger."""

    def __init__(self, desk: AgentDesk, end_gate: EndGate) -> None:
        self._desk = desk
        self._end_gate = end_gate

    def look(
        self, question: CallInput, spec: AgentSpec, part: CallPart, record: CallRecord, verdict: CallVerdict, tool: Tool
    ) -> Answer:
        """What people say to a call by now, or said to such calls beforehand; the first time, they are asked."""
        if not record.digest:
            if self._is_amended(question):
                why = "The goal was changed meanwhile; ask for what it needs now."
                return Answer(record, rule="goal.changed", reason=why)
            record = self._ask(question, spec, part, record, verdict, tool)
        plan = self._desk.ledger.plan(record.digest)
        if not plan.gate_id:  # just asked, or an earlier attempt died before this
            plan = self._open_gate(question, record, plan)
        if plan.state == "superseded":
            reason = "The goal was changed since; ask anew for what is still needed."
            return Answer(record, rule="gate.superseded", reason=reason)
        end = self._end_gate(WeighInput(gate_id=plan.gate_id, job_id=question.job_id, digest=plan.digest, ref=plan.ref))
        if end.outcome == "open":
            key = question.call.turn * 100 + question.call.position  # once a call; an attempt before may have died
            self._desk.agents.park(question.agent_id, JobPhase.waiting, plan.title, key, at=now())
            return Answer(record, waits=True, until=plan.expires_at)
        if end.outcome != "satisfied":
            return self._refused(record, end)
        if self._approved(plan).digest() != _planned(part, record, tool).digest():
            return Answer(record, reason="The tool is not the one that was approved any more; ask anew.")
        return Answer(record, allowed=True)

    def _refused(self, record: CallRecord, end: GateEnd) -> Answer:
        edits = Edits.model_validate(self._desk.blobs.get_json(end.edits)) if end.edits else None
        if (
            end.outcome == "changes_requested"
            and edits is not None
            and isinstance(edits.changes.get("arguments"), dict)
        ):
            return Answer(record, edits=edits)
        rule = BY_PERSON if end.outcome == "denied" else f"gate.{end.outcome}"
        return Answer(record, rule=rule, reason=end.detail or end.outcome)

    def _is_amended(self, question: CallInput) -> bool:
        """Whether the goal was changed and no request has said so yet: the call is for what it was before."""
        words = self._desk.steering(question.job_id).words
        changes = {word.id for word in words if word.kind == "amend"}
        return bool(changes) and not changes.isdisjoint(self._desk.agents.undelivered(question.job_id))

    def ending(self, question: CallInput, record: CallRecord, outcome: ToolOutcome) -> CallEnding | None:
        """The receipt of a call that was approved and began, written with its end; ``None``: nobody was asked."""
        if not record.digest or not record.attempts:
            return None
        state = _ENDS.get(outcome.status, "failed")
        plan = self._desk.ledger.plan(record.digest)
        receipt = Receipt(
            application_id=plan.gate_id,
            index=0,
            direction="do",
            state=state,
            kind=KIND,
            body=self._approved(plan).body,
            result={},
            detail=outcome.summary,
        )
        closing = CloseApplicationInput(
            application_id=plan.gate_id,
            job_id=question.job_id,
            digest=record.digest,
            state="applied" if state == "done" else "stuck",
            detail=outcome.summary,
        )
        return CallEnding(receipt, self._desk.blobs.put(receipt.model_dump_json().encode()), closing)

    def beginning(self, question: CallInput, record: CallRecord, tool: Tool) -> BeginEffect | None:
        """What the ledger is asked before the call begins, in the same transaction; ``None``: nobody was asked."""
        if not record.digest:
            return None
        return BeginEffect(
            application_id=self._desk.ledger.plan(record.digest).gate_id,
            job_id=question.job_id,
            thread=names.JobId.parse(question.job_id).thread,
            digest=record.digest,
            index=0,
            direction="do",
            effect_id="call",
            kind=KIND,
            target=record.target or f"agent:{record.key}",
            irreversible=tool.spec.effect_class == "external",
        )

    def _approved(self, plan: PlanRow) -> PlannedEffect:
        """The call as people saw it, its bytes hashed again."""
        return read_plan(plan.digest, self._desk.blobs.get(plan.ref)).effects[0]

    def _ask(
        self, question: CallInput, spec: AgentSpec, part: CallPart, record: CallRecord, verdict: CallVerdict, tool: Tool
    ) -> CallRecord:
        """Freeze the call as a plan; the record then names it."""
        desk = self._desk
        plan, envelope = self._freeze(question, spec, part, record, verdict, tool)
        desk.ledger.record_plan(job_id=question.job_id, plan=plan, envelope=envelope, at=now())
        asked = record.model_copy(update={"digest": plan.digest, "asked": record.asked + 1, "status": "waits"})
        desk.agents.ask_about(question.agent_id, asked, at=now())
        return asked

    def _open_gate(self, question: CallInput, record: CallRecord, plan: PlanRow) -> PlanRow:
        gate = GateInput(
            gate_id=_gate_id(question, record),
            job_id=question.job_id,
            digest=plan.digest,
            ref=plan.ref,
            expires_at=plan.expires_at,
        )
        self._desk.ledger.open_gate(gate, at=now())
        return self._desk.ledger.plan(plan.digest)

    def _freeze(
        self, question: CallInput, spec: AgentSpec, part: CallPart, record: CallRecord, verdict: CallVerdict, tool: Tool
    ) -> tuple[PlanRef, Envelope]:
        effect = _planned(part, record, tool)
        created = now()
        ordinal = self._desk.row(question.agent_id).ordinal
        envelope = Envelope(
            job_id=question.job_id,
            thread=names.JobId.parse(question.job_id).thread,
            round=names.CALL_ROUNDS * ordinal + question.call.number,
            requester=spec.requester,
            template=spec.template,
            template_digest=spec.template_digest,
            rule=spec.review.model_copy(update={"editable": ["arguments"]}),
            authors=[record.edited_by] if record.edited_by else [],
            findings=[f"Asked because of {verdict.rule}: {verdict.reason}", *([record.note] if record.note else [])],
            previous=record.previous,
            base_commit=spec.base_commit,
            title=f"An agent wants: {effect.summary}"[:200],
            created_at=created,
            expires_at=created + timedelta(seconds=spec.limits.idle_seconds or spec.review.expires_after_seconds),
        )
        digest, data = freeze(envelope, [effect])
        ref: BlobRef = self._desk.blobs.put(data)
        plan = PlanRef(
            digest=digest,
            content=content_digest([effect]),
            ref=ref,
            effects=1,
            round=envelope.round,
            expires_at=envelope.expires_at,
            title=envelope.title,
        )
        return plan, envelope


def _gate_id(question: CallInput, record: CallRecord) -> str:
    """The gate's name, and its application's. Of a call that was edited each plan has one of its own."""
    first = f"{question.agent_id}/{question.call.number}"
    return first if record.asked == 1 else f"{first}.{record.asked}"


def _planned(part: CallPart, record: CallRecord, tool: Tool) -> PlannedEffect:
    if tool.spec.effect_class == "external":
        inverse = Inverse(irreversible="The tool declares no way back.")
    else:
        inverse = Inverse(none_needed="It stays in the job's private workspace.")
    arguments = json.dumps(part.arguments, sort_keys=True, ensure_ascii=False, indent=1)
    return PlannedEffect(
        id="call",
        kind=KIND,
        version=VERSION,
        summary=f"{tool.spec.name} on {record.target or 'nothing named'}"[:300],
        body={
            "key": record.key,
            "tool": tool.spec.name,
            "tool_digest": record.tool_digest,
            "arguments": arguments,  # as text: a plan holds no floats
            "targets": sorted(targets_of(tool.target(part.arguments))),
        },
        target=record.target or f"agent:{record.key}",
        inverse=inverse,
        runs_on="worker" if tool.spec.effect_class == "external" else "sandbox",
        attempt_limit_seconds=tool.spec.limit_seconds,
        on_failure="report",
    )
