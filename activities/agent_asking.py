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
from perdure.contracts.decisions import GateEnd, GateInput, WeighInput
from perdure.contracts.job import JobPhase, PlanRef
from perdure.contracts.messages import CallPart
from perdure.contracts.plan import Envelope, Inverse, PlannedEffect, content_digest, freeze, read_plan
from perdure.errors import Refused
from perdure.policy.permissions import BY_PERSON
from perdure.store.rows import BeginEffect

KIND = "agent.call"
VERSION = 1

EndGate = Callable[[WeighInput], GateEnd]
"""Weighs what lies in the ledger and closes a gate that can be closed, as every gate is."""

_ENDS: dict[str, EffectState] = {"ok": "done", "error": "failed", "unknown": "unknown"}


@dataclass(frozen=True)
class Answer:
    """Whether a call may run."""

    digest: str
    waits: bool = False
    until: datetime | None = None
    """When nobody is waited for any more."""
    allowed: bool = False
    rule: str = "gate"
    """What a "no" is recorded under: only a person's own is remembered."""
    reason: str = ""


class CallAsker:
    """Asks people about calls. Everything may be asked again: a call has one plan, whose gate stands in the ledger."""

    def __init__(self, desk: AgentDesk, end_gate: EndGate) -> None:
        self._desk = desk
        self._end_gate = end_gate

    def look(
        self, question: CallInput, spec: AgentSpec, part: CallPart, record: CallRecord, verdict: CallVerdict, tool: Tool
    ) -> Answer:
        """What people say to a call by now; the first time, they are asked."""
        if not record.digest:
            return self._ask(question, spec, part, record, verdict, tool)
        plan = self._desk.ledger.plan(record.digest)
        if plan.state == "superseded":
            return Answer(record.digest, reason="The goal was changed since; ask anew for what is still needed.")
        end = self._end_gate(
            WeighInput(gate_id=_gate_id(question), job_id=question.job_id, digest=plan.digest, ref=plan.ref)
        )
        if end.outcome == "open":
            return Answer(record.digest, waits=True, until=plan.expires_at)
        if end.outcome != "satisfied":
            rule = BY_PERSON if end.outcome == "denied" else f"gate.{end.outcome}"
            return Answer(record.digest, rule=rule, reason=end.detail or end.outcome)
        approved = self._approved(record)
        if approved.digest() != _planned(part, record, tool).digest():
            return Answer(record.digest, reason="The tool is not the one that was approved any more; ask anew.")
        return self._begin(question, record, tool)

    def finish(self, question: CallInput, record: CallRecord, outcome: ToolOutcome) -> None:
        """Write the receipt of a call that was approved."""
        state = _ENDS.get(outcome.status, "failed")
        body = self._approved(record).body
        receipt = Receipt(
            application_id=_gate_id(question),
            index=0,
            direction="do",
            state=state,
            kind=KIND,
            body=body,
            result={},
            detail=outcome.summary,
        )
        ref = self._desk.blobs.put(receipt.model_dump_json().encode())
        self._desk.ledger.finish_effect(receipt, ref, at=now())
        closing = CloseApplicationInput(
            application_id=_gate_id(question),
            job_id=question.job_id,
            digest=record.digest,
            state="applied" if state == "done" else "stuck",
            detail=outcome.summary,
        )
        self._desk.ledger.close_application(closing, at=now())

    def _approved(self, record: CallRecord) -> PlannedEffect:
        """The call as people saw it, its bytes hashed again."""
        return read_plan(record.digest, self._desk.blobs.get(self._desk.ledger.plan(record.digest).ref)).effects[0]

    def _ask(
        self, question: CallInput, spec: AgentSpec, part: CallPart, record: CallRecord, verdict: CallVerdict, tool: Tool
    ) -> Answer:
        desk = self._desk
        plan, envelope = self._freeze(question, spec, part, record, verdict, tool)
        desk.ledger.record_plan(job_id=question.job_id, plan=plan, envelope=envelope, at=now())
        asked = record.model_copy(update={"digest": plan.digest, "status": "waits"})
        desk.agents.ask_about(question.agent_id, asked, at=now())
        gate = GateInput(
            gate_id=_gate_id(question),
            job_id=question.job_id,
            digest=plan.digest,
            ref=plan.ref,
            expires_at=plan.expires_at,
        )
        desk.ledger.open_gate(gate, at=now())
        key = question.call.turn * 100 + question.call.position
        desk.agents.park(question.agent_id, JobPhase.waiting, plan.title, key, at=now())
        return Answer(plan.digest, waits=True, until=plan.expires_at)

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
            rule=spec.review,
            findings=[f"Asked because of {verdict.rule}: {verdict.reason}"],
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

    def _begin(self, question: CallInput, record: CallRecord, tool: Tool) -> Answer:
        """The ledger lets it start once: the permit is spent, a withdrawn approval or an unheard message stops it."""
        begin = BeginEffect(
            application_id=_gate_id(question),
            job_id=question.job_id,
            thread=names.JobId.parse(question.job_id).thread,
            digest=record.digest,
            index=0,
            direction="do",
            effect_id="call",
            kind=KIND,
            target=record.target,
            irreversible=tool.spec.effect_class == "external",
        )
        try:
            self._desk.ledger.begin_effect(begin, at=now())
        except Refused as refusal:
            return Answer(record.digest, reason=refusal.message)
        return Answer(record.digest, allowed=True)


def _gate_id(question: CallInput) -> str:
    return f"{question.agent_id}/{question.call.number}"


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
        },
        target=record.target or f"agent:{record.key}",
        inverse=inverse,
        runs_on="worker" if tool.spec.effect_class == "external" else "sandbox",
        attempt_limit_seconds=tool.spec.limit_seconds,
        on_failure="report",
    )
