"""A decided plan of two real effects, and the applier's and the ledger's activities as the worker builds them."""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from temporalio.testing import ActivityEnvironment

from activities.applying import Applier
from activities.effects import EffectActivities
from activities.ledger import Decisions, LedgerActivities
from perdure.contracts.application import CloseApplicationInput, EffectInput, EffectOutcome, Receipt
from perdure.contracts.decisions import CloseGateInput, Decision, GateInput
from perdure.contracts.job import AdmitInput, JobPhase, JobSpec, NoteInput, PlanRef
from perdure.contracts.names import JobId, application_id, gate_id
from perdure.contracts.plan import ApprovalRule, Envelope, PlannedEffect, ReviewRule, content_digest, freeze
from perdure.effects.base import Effect, EffectContext, EffectRequest
from perdure.effects.registry import default_effects
from perdure.store.blobs import BlobStore
from perdure.store.ledger import Ledger
from perdure.store.rows import BeginEffect
from perdure.store.signing import DecisionKey, public_keys
from perdure.workspace.processes import GroupRunner
from tests.support.outside import ANNOUNCE

RULE = ReviewRule(approvals=[ApprovalRule(group="maintainers")])


def now() -> datetime:
    return datetime.now(UTC)


@dataclass
class Bench:
    """One job on a real ledger; ``folder`` holds everything, also the witness (see ``ANNOUNCE``)."""

    folder: Path
    job_id: str = "job/bench/one"
    effects: dict[str, Effect] = field(default_factory=default_effects)

    def __post_init__(self) -> None:
        self.ledger = Ledger.open(f"sqlite:///{self.folder / 'ledger.db'}")
        self.blobs = BlobStore(self.folder / "blobs")
        self.key = DecisionKey.create(self.folder / "keys")
        self.decisions = Decisions(self.ledger, functools.partial(public_keys, self.folder / "keys"))
        self.applier = Applier(
            self.ledger,
            self.blobs,
            self.decisions,
            self.effects,
            self.folder / "locks",
            self.folder / "scratch",
            lambda _wanted: {},
        )
        self.words = LedgerActivities(self.ledger, self.blobs, self.decisions)
        self.applying = EffectActivities(self.ledger, self.blobs, self.decisions, self.effects, self.applier)
        self.witness = self.folder / "witness"
        self.witness.mkdir()
        (self.witness / "announce").write_text(ANNOUNCE)

    async def ask(self, activity: Any, question: Any) -> Any:
        """Run one activity as a worker would."""
        return await ActivityEnvironment().run(activity, question)

    def spec(self, **more: Any) -> JobSpec:
        """The job's pinned template."""
        digest = hashlib.sha256(b"").hexdigest()
        values: dict[str, Any] = {"template": "bench", "template_source": "", "template_digest": digest}
        return JobSpec.model_validate({**values, "inputs": {}, "requester": "ada", **more})

    def admit(self, **more: Any) -> AdmitInput:
        """Ask for the job, and admit it."""
        job = AdmitInput(
            job_id=self.job_id,
            spec=self.blobs.put(self.spec(**more).model_dump_json().encode()),
            template="bench",
            requester="ada",
        )
        self.ledger.request_job(job, at=now())
        self.ledger.admit_job(job, at=now())
        return job

    def planned(self) -> list[PlannedEffect]:
        """Write a file, then say a word."""
        say = [*("sh", str(self.witness / "announce"))]
        note = {"root": str(self.witness), "path": "NOTE", "content": "word"}
        return [
            self._plan("files.write", EffectRequest(id="note", arguments=note)),
            self._plan(
                "shell.run",
                EffectRequest(
                    id="say",
                    arguments={"run": [*say, "do", "word"]},
                    probe=[*say, "probe", "word"],
                    undo=[*say, "undo", "word"],
                    runs_on="worker",
                ),
            ),
        ]

    def _plan(self, kind: str, request: EffectRequest) -> PlannedEffect:
        scratch = self.folder / "planning"
        scratch.mkdir(exist_ok=True)
        runner = GroupRunner(scratch / "lock", lambda _pgid, _mark: None)
        draft = self.effects[kind].plan(request, EffectContext(self.blobs, scratch, runner, now()))
        return PlannedEffect(
            id=request.id,
            kind=kind,
            version=self.effects[kind].version,
            summary=draft.summary,
            body=draft.body,
            target=draft.target,
            inverse=draft.inverse,
        )

    def freeze(
        self, effects: list[PlannedEffect] | None = None, *, rule: ReviewRule = RULE, expires: datetime | None = None
    ) -> PlanRef:
        """Store the plan and write it down."""
        effects = self.planned() if effects is None else effects
        created = now()
        envelope = Envelope(
            job_id=self.job_id,
            thread=JobId.parse(self.job_id).thread,
            round=1,
            requester="ada",
            template="bench",
            template_digest=hashlib.sha256(b"").hexdigest(),
            rule=rule,
            created_at=created,
            expires_at=expires or created + timedelta(days=7),
        )
        digest, data = freeze(envelope, effects)
        self.plan = PlanRef(
            digest=digest,
            content=content_digest(effects),
            ref=self.blobs.put(data),
            effects=len(effects),
            round=1,
            expires_at=envelope.expires_at,
            needs_gate=bool(rule.approvals),
        )
        self.ledger.record_plan(job_id=self.job_id, plan=self.plan, envelope=envelope, at=created)
        return self.plan

    def open_gate(self) -> None:
        """Let people decide."""
        about = {"gate_id": gate_id(self.job_id, 1), "job_id": self.job_id, "digest": self.plan.digest}
        gate = GateInput.model_validate({**about, "ref": self.plan.ref, "expires_at": self.plan.expires_at})
        self.ledger.open_gate(gate, at=now())

    def decide(self, kind: str, **more: Any) -> None:
        """Sign a decision and write it down; ``key`` instead of the right one."""
        key: DecisionKey = more.pop("key", self.key)
        said = {"id": f"{kind}-{now().timestamp()}", "kind": kind, "job_id": self.job_id, "by": "bo", "at": now()}
        draft = {**said, "digest": self.plan.digest, "groups": ["maintainers"], "head": self.ledger.head(), **more}
        decision = Decision.model_validate(draft)
        self.ledger.record_decision(key.sign(decision), thread="bench", at=decision.at)

    def close_gate_only(self, outcome: Any = "satisfied") -> None:
        """Write the gate's end."""
        weighed = len(self.ledger.decisions(digest=self.plan.digest))
        about = {"gate_id": gate_id(self.job_id, 1), "job_id": self.job_id, "digest": self.plan.digest}
        closing = CloseGateInput.model_validate({**about, "outcome": outcome})
        self.ledger.close_gate(closing, at=now(), weighed=weighed)

    def close_gate(self) -> None:
        """Write that the gate was satisfied, and grant the permit."""
        self.close_gate_only()
        self.ledger.grant_permit(digest=self.plan.digest, job_id=self.job_id, application_id=self.application, at=now())

    def close_application(self, state: Any) -> None:
        """Write the application's end."""
        closing = CloseApplicationInput(
            application_id=self.application, job_id=self.job_id, digest=self.plan.digest, state=state
        )
        self.ledger.close_application(closing, at=now())

    def approve(self, effects: list[PlannedEffect] | None = None) -> None:
        """Bring the job to where its first effect may start."""
        self.admit()
        self.freeze(effects)
        self.open_gate()
        self.decide("approve")
        self.close_gate()

    @property
    def application(self) -> str:
        """Id of the first application."""
        return application_id(self.job_id, 1)

    def question(self, index: int, direction: Any = "do") -> EffectInput:
        """What the applier is asked about one effect."""
        return EffectInput(
            application_id=self.application,
            job_id=self.job_id,
            digest=self.plan.digest,
            ref=self.plan.ref,
            index=index,
            direction=direction,
        )

    def beginning(self, index: int) -> BeginEffect:
        """What the arbiter is asked about one effect."""
        planned = self.planned()[index]
        return BeginEffect(
            application_id=self.application,
            job_id=self.job_id,
            thread="bench",
            digest=self.plan.digest,
            index=index,
            direction="do",
            effect_id=planned.id,
            kind=planned.kind,
            target=planned.target,
            irreversible=False,
        )

    def finish(self, index: int, state: Any, detail: str = "") -> None:
        """Write how an effect ended."""
        kind, body = self.planned()[index].kind, {"any": "body"}
        receipt = Receipt(
            application_id=self.application,
            index=index,
            direction="do",
            state=state,
            kind=kind,
            body=body,
            detail=detail,
        )
        self.ledger.finish_effect(receipt, self.blobs.put(receipt.model_dump_json().encode()), at=now())

    def apply(self, index: int, direction: Any = "do") -> EffectOutcome:
        """Apply or take back one effect."""
        return self.applier.apply(self.question(index, direction))

    def note(self, phase: JobPhase, step: int = 9, said_by: str = "") -> NoteInput:
        """A note of a phase."""
        return NoteInput(job_id=self.job_id, step=step, phase=phase, said_by=said_by)

    def lines(self, name: str) -> list[str]:
        """What the witness has counted."""
        path = self.witness / name
        return path.read_text().splitlines() if path.exists() else []
