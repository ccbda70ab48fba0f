"""A whole installation for tests: real keys, ledger, blobs, doors and HTTP; Temporal only where a test brings it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from starlette.types import ASGIApp

from perdure import application
from perdure.api.app import build_app
from perdure.api.building import make_client
from perdure.api.doors import TcpDoor, UnixDoor
from perdure.api.pages.app import build_pages
from perdure.client import Client
from perdure.contracts.base import BlobRef
from perdure.contracts.decisions import GateInput
from perdure.contracts.job import AdmitInput, JobPhase, NoteInput, PlanRef
from perdure.contracts.names import JobId, gate_id
from perdure.contracts.plan import (
    ApprovalRule,
    Envelope,
    FileChange,
    Inverse,
    PlannedEffect,
    ReviewRule,
    freeze,
    read_plan,
)
from perdure.effects.registry import default_effects
from perdure.policy.authorize import local_owner
from perdure.rules.registry import default_rules
from perdure.runtime.installation import prepare
from perdure.runtime.renderer import Renderer
from perdure.settings import Settings
from perdure.store.blobs import BlobStore
from perdure.store.ledger import Ledger
from perdure.store.signing import DecisionKey
from tests.api.serving import Listening, serving

OWNER = "ada"
PATIENCE = timedelta(seconds=20)


@dataclass(frozen=True)
class Installed:
    """A running API, and the ledger and blobs beneath it as its worker would have them."""

    settings: Settings
    ledger: Ledger
    blobs: BlobStore
    http: Listening
    client: Client

    def token(self, principal: str, *may: str, groups: tuple[str, ...] = ()) -> str:
        """A token's text."""
        return self.ledger.add_token(principal, groups, may, at=now()).text

    def admit(self, request: str, thread: str = "releases", requester: str = OWNER) -> str:
        """A job in the ledger, as its thread would have admitted it."""
        job_id = str(JobId(thread, request))
        spec = self.blobs.put_json({"job": job_id})
        self.ledger.admit_job(AdmitInput(job_id=job_id, spec=spec, template="release", requester=requester), at=now())
        return job_id

    def note(self, job_id: str, step: int, phase: JobPhase, summary: str = "") -> None:
        """A change of phase, as the job would note it."""
        note = NoteInput(job_id=job_id, step=step, phase=phase, summary=summary)
        self.ledger.note_job(note, workflow_id=job_id, at=now())

    def keep_result(self, job_id: str, stage: str, name: str, data: bytes) -> BlobRef:
        """A stage's result, as its activity would record it."""
        ref = self.blobs.put(data)
        body = {"stage": stage, "name": name, "status": "ok", "summary": "", "result": ref.model_dump(mode="json")}
        thread = JobId.parse(job_id).thread
        self.ledger.append(thread=thread, kind="stage", actor="perdure", body=body, job_id=job_id, at=now())
        return ref

    def freeze(self, job_id: str, *, round_number: int = 1, opened: bool = True, **more: object) -> str:
        """A plan of one job with two effects, waiting at its gate; returns its digest."""
        digest, data = freeze(self.envelope(job_id, round_number, **more), [effect("commit"), effect("tag")])
        plan = self._record(job_id, digest, data, round_number)
        if opened:
            self.open_gate(job_id, digest, plan)
            self.note(job_id, 100 + round_number, JobPhase.waiting)
        return digest

    def open_gate(self, job_id: str, digest: str, plan: PlanRef) -> None:
        """Let people decide, as the gate's activity would."""
        gate = gate_id(job_id, plan.round)
        opening = GateInput(gate_id=gate, job_id=job_id, digest=digest, ref=plan.ref, expires_at=plan.expires_at)
        self.ledger.open_gate(opening, at=now())

    def envelope(self, job_id: str, round_number: int, **more: object) -> Envelope:
        """What surrounds a plan's effects; ``more`` goes over the defaults."""
        created = now()
        values: dict[str, object] = {
            "job_id": job_id,
            "thread": JobId.parse(job_id).thread,
            "round": round_number,
            "requester": OWNER,
            "template": "release",
            "template_digest": "0" * 64,
            "rule": ReviewRule(approvals=[ApprovalRule(group="maintainers")], editable=["version"]),
            "title": "1.2.0 → 1.3.0",
            "changes": [self.change()],
            "created_at": created,
            "expires_at": created + timedelta(days=7),
        }
        return Envelope.model_validate({**values, **more})

    def change(self) -> FileChange:
        """A changed file whose content is in the blob store."""
        old, new = self.blobs.put(b"1.2.0\n"), self.blobs.put(b"1.3.0\n")
        return FileChange(path="VERSION", old=old, new=new, old_mode="100644", new_mode="100644")

    def _record(self, job_id: str, digest: str, data: bytes, round_number: int) -> PlanRef:
        plan = read_plan(digest, data)
        ref = PlanRef(
            digest=digest,
            content=plan.content,
            ref=self.blobs.put(data),
            effects=len(plan.effects),
            round=round_number,
            expires_at=plan.envelope.expires_at,
        )
        self.ledger.record_plan(job_id=job_id, plan=ref, envelope=plan.envelope, at=now())
        return ref


def effect(name: str) -> PlannedEffect:
    """A planned effect with an inverse."""
    inverse = Inverse(kind="git.tag", version=1, body={"back": name}, summary="delete while ours")
    return PlannedEffect(
        id=name, kind="git.tag", version=1, summary=name, body={"n": name}, target="t", inverse=inverse
    )


def now() -> datetime:
    """The time, as our processes take it."""
    return datetime.now(UTC)


@contextmanager
def installed(folder: Path, *, address: str = "127.0.0.1:1", passphrase: str = "") -> Iterator[Installed]:
    """Run an API on a new installation beneath ``folder``; ``address`` is Temporal's (nobody's, unless given).

    ``passphrase``: of the decision key. Templates of a folder ``templates`` beside the data are configured ones.
    """
    data = folder / "data"
    settings = Settings(data=data, temporal_address=address, templates_folder=folder / "templates")
    prepare(settings)
    if passphrase:
        DecisionKey.create(settings.keys, passphrase)
    with closing(Ledger.open(settings.ledger)) as ledger, Renderer() as renderer:
        client = make_client(
            settings, ledger, renderer, rules=default_rules(), effects=default_effects(), patience=PATIENCE
        )
        app = build_app(client, retell_seconds=0.2)

        pages = build_pages(client, application.root() / "templates" / "pages")

        def make_doors(address: str) -> tuple[ASGIApp, ASGIApp]:
            return UnixDoor(app, ledger, local_owner(OWNER)), TcpDoor(app, ledger, [address], pages)

        with serving(settings.data, app, make_doors) as listening:
            yield Installed(settings, ledger, BlobStore(settings.blobs), listening, client)
