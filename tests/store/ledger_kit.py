"""The steps of a job as the ledger sees them, one call each, with names that tests can read."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from itertools import count

from perdure.contracts.application import CloseApplicationInput, Receipt
from perdure.contracts.decisions import CloseGateInput, Decision, GateInput
from perdure.contracts.job import AdmitInput, JobPhase, NoteInput, PlanRef
from perdure.contracts.names import application_id, gate_id
from perdure.contracts.plan import ApprovalRule, Envelope, Inverse, PlannedEffect, ReviewRule, content_digest, freeze
from perdure.store.ledger import BeginEffect

AT = datetime(2026, 11, 30, 10, 12, tzinfo=UTC)
RULE = ReviewRule(approvals=[ApprovalRule(group="maintainers")])
NO_GATE = ReviewRule(approvals=[])
TARGET = "git:/srv/orders/.git"


def make_effect(number: int = 0, target: str = TARGET) -> PlannedEffect:
    """A reversible effect; ``number`` makes it another one."""
    inverse = Inverse(summary="delete", kind="files.write", version=1, body={"path": f"f{number}", "new": None})
    body = {"path": f"f{number}", "new": "text"}
    return PlannedEffect(
        id=f"write-{number}", kind="files.write", version=1, summary="write", body=body, target=target, inverse=inverse
    )


class Scene:
    """A ledger with its blobs and key, and short ways to bring a job to where a test starts."""

    def __init__(self, ledger, blobs, key):
        self.ledger = ledger
        self.blobs = blobs
        self.key = key
        self._ids = count(1)

    def admit(self, request="one", thread="releases"):
        """Admit a job; returns its id."""
        job_id = f"job/{thread}/{request}"
        spec = self.blobs.put(job_id.encode())
        self.ledger.admit_job(AdmitInput(job_id=job_id, spec=spec, template="release", requester="ada"), at=AT)
        return job_id

    def freeze(self, job_id, *, round_number=1, effects=2, rule=RULE, target=TARGET, undoes="", title="1.2.0 → 1.3.0"):
        """Freeze a plan; returns its PlanRef."""
        expires_at = AT + timedelta(days=7)
        envelope = Envelope(
            job_id=job_id,
            thread=job_id.split("/")[1],
            round=round_number,
            requester="ada",
            template="release",
            template_digest=hashlib.sha256(b"template").hexdigest(),
            rule=rule,
            title=title,
            created_at=AT,
            expires_at=expires_at,
            undoes=undoes,
        )
        planned = [make_effect(number, target) for number in range(effects)]
        digest, data = freeze(envelope, planned)
        plan = PlanRef(
            digest=digest,
            content=content_digest(planned),
            ref=self.blobs.put(data),
            effects=effects,
            round=round_number,
            expires_at=expires_at,
            needs_gate=bool(rule.approvals),
        )
        self.ledger.record_plan(job_id=job_id, plan=plan, envelope=envelope, at=AT)
        return plan

    def open_gate(self, job_id, plan):
        """Open the plan's gate."""
        gate = GateInput(
            gate_id=gate_id(job_id, plan.round),
            job_id=job_id,
            digest=plan.digest,
            ref=plan.ref,
            expires_at=plan.expires_at,
        )
        self.ledger.open_gate(gate, at=AT)

    def sign(self, kind, job_id, plan=None, *, by="bo", groups=("maintainers",), id=None, head=None, **more):
        """Sign a decision without recording it."""
        decision = Decision(
            id=id or f"d-{next(self._ids)}",
            kind=kind,
            job_id=job_id,
            digest=plan.digest if plan else "",
            by=by,
            groups=list(groups),
            at=more.pop("at", AT),
            head=self.ledger.head() if head is None else head,
            **more,
        )
        return self.key.sign(decision)

    def decide(self, kind, job_id, plan=None, *, recorded_at=AT, **more):
        """Sign and record a decision; returns whether it was new."""
        signed = self.sign(kind, job_id, plan, **more)
        return self.ledger.record_decision(signed, thread=job_id.split("/")[1], at=recorded_at)

    def close_gate(self, job_id, plan, outcome="satisfied", *, weighed=None):
        """Write how the plan's gate ended."""
        close = CloseGateInput(gate_id=gate_id(job_id, plan.round), job_id=job_id, digest=plan.digest, outcome=outcome)
        self.ledger.close_gate(close, at=AT, weighed=weighed)

    def grant(self, job_id, plan, *, weighed=None):
        """Grant the permit; returns the application's id."""
        application = application_id(job_id, plan.round)
        self.ledger.grant_permit(digest=plan.digest, job_id=job_id, application_id=application, at=AT, weighed=weighed)
        return application

    def approved(self, request="one", *, thread="releases", **more):
        """Bring a job to where its first effect may start; returns (job id, plan, application id)."""
        job_id = self.admit(request, thread)
        plan = self.freeze(job_id, **more)
        if plan.needs_gate:
            self.open_gate(job_id, plan)
            self.decide("approve", job_id, plan)
            self.close_gate(job_id, plan)
        return job_id, plan, self.grant(job_id, plan)

    def begin(self, job_id, plan, index=0, direction="do", at=AT, **more):
        """Ask the arbiter for one effect."""
        values = {
            "application_id": application_id(job_id, plan.round),
            "job_id": job_id,
            "thread": job_id.split("/")[1],
            "digest": plan.digest,
            "index": index,
            "direction": direction,
            "effect_id": f"write-{index}",
            "kind": "files.write",
            "target": TARGET,
            "irreversible": False,
        } | more
        return self.ledger.begin_effect(BeginEffect(**values), at=at)

    def finish(self, job_id, plan, index=0, state="done", direction="do", body=None):
        """Write how one effect ended."""
        effect = make_effect(index)
        planned = effect.body if direction == "do" else effect.inverse.body
        receipt = Receipt(
            application_id=application_id(job_id, plan.round),
            index=index,
            direction=direction,
            state=state,
            kind="files.write",
            body=planned if body is None else body,
        )
        self.ledger.finish_effect(receipt, self.blobs.put_json(receipt.model_dump(mode="json")), at=AT)

    def apply(self, job_id, plan):
        """Begin and finish what is left of the plan's effects, and close the application."""
        for index in range(plan.effects):
            if self.ledger.intent(application_id(job_id, plan.round), index, "do") is None:
                self.begin(job_id, plan, index)
            self.finish(job_id, plan, index)
        self.close(job_id, plan)

    def close(self, job_id, plan, state="applied"):
        """Close the application."""
        application = application_id(job_id, plan.round)
        close = CloseApplicationInput(application_id=application, job_id=job_id, digest=plan.digest, state=state)
        self.ledger.close_application(close, at=AT)

    def note(self, job_id, step, phase, summary="", workflow_id=None):
        """Note a change of phase."""
        note = NoteInput(job_id=job_id, step=step, phase=JobPhase(phase), summary=summary)
        self.ledger.note_job(note, workflow_id=workflow_id or job_id, at=AT)

    def kinds(self, job_id=None):
        """Kinds of all records, oldest first."""
        return [event.kind for event in self.ledger.events(job_id=job_id)]
