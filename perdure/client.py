"""All that a front door can ask for, typed: on Temporal and the store. Who is asking was proven by the door."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import TypeVar

from perdure.approving import Approvals
from perdure.auditing import Auditor
from perdure.contracts import names
from perdure.contracts.base import BlobRef
from perdure.contracts.canonical import canonical_bytes
from perdure.contracts.http import (
    AgentView,
    AuditReport,
    CancelRequest,
    DecideAnswer,
    DecideRequest,
    EffectKindView,
    EventPage,
    Health,
    JobView,
    KeyView,
    PassphraseRequest,
    ResolveRequest,
    SteerRequest,
    SubmitRequest,
    TemplateView,
    TokenView,
    ToolView,
    TrustRequest,
    UndoRequest,
)
from perdure.contracts.job import AdmitInput, JobPhase, JobSpec
from perdure.contracts.watching import LiveView
from perdure.deciding import Decider
from perdure.delegating import Delegations
from perdure.effect_listing import describe_effects
from perdure.errors import Conflict, NotFound, SetupError, UserError
from perdure.intake import Intake
from perdure.policy.authorize import Principal, Right, authorize
from perdure.recovering import recover
from perdure.runtime.messenger import Messenger
from perdure.scheduling import Scheduler
from perdure.snapshots import Snapshots
from perdure.steering import Steerer
from perdure.store.account import Accounts
from perdure.store.blobs import BlobStore
from perdure.store.checkpoints import CheckpointLog
from perdure.store.ledger import Ledger
from perdure.store.live import LiveTexts
from perdure.store.reading import Reader
from perdure.store.trouble import StoreTrouble
from perdure.store.turns import TurnReader
from perdure.telling import Telling
from perdure.thread_views import ThreadReader
from perdure.tool_listing import describe_tools
from perdure.watching import AgentWatch

Answer = TypeVar("Answer")

LOOK_SECONDS = 0.1
"""How often a long poll looks into the ledger; the writer is another process."""

HEALTH_SECONDS = 0.7
"""Within this a health answer is given, whatever is down."""

LONG = timedelta(seconds=3)
"""A job that was in one phase for so long may be held up: only then is Temporal asked why."""

_APPLYING = {JobPhase.applying, JobPhase.undoing}
_AT_WORK = {JobPhase.gathering, JobPhase.analyzing, JobPhase.drafting, JobPhase.verifying, *_APPLYING}

UNDO = "undo"
"""Stands as the template of a job that takes another one back."""


class Client:
    """One installation as the front doors see it. Lives on one event loop; the store is asked in threads."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        blobs: BlobStore,
        reader: Reader,
        intake: Intake,
        decider: Decider,
        auditor: Auditor,
        messenger: Messenger,
        texts: LiveTexts,
        telling: Telling,
        tools: Callable[[], list[ToolView]] = describe_tools,
        kinds: Callable[[], list[EffectKindView]] = describe_effects,
        is_embedded: bool = True,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.ledger = ledger
        self.reader = reader
        self.intake = intake
        self.messenger = messenger
        self.tools = tools
        self.kinds = kinds
        self.now = now
        self._blobs = blobs
        self._decider = decider
        self.steerer = Steerer(ledger, blobs, decider)
        self.delegations = Delegations(ledger, reader, decider)
        self.accounts = Accounts(ledger.database)
        self.turns = TurnReader(ledger.database)
        self.snapshots = Snapshots(CheckpointLog(ledger.database), blobs)
        self._texts, self.telling = texts, telling
        self.approvals = Approvals(ledger, reader, decider)
        self.threads = ThreadReader(ledger, self.now)
        self.scheduler = Scheduler(ledger, blobs, intake, decider, messenger, now)
        self._auditor = auditor
        self._is_embedded = is_embedded
        self._undoing = asyncio.Lock()

    async def submit(self, principal: Principal, request: SubmitRequest) -> JobView:
        """Start a job; the same request again is the same job.

        Raises:
            NotFound, Refused, UserError: as :meth:`Intake.prepare` says.
            Conflict: the request id was used for something else.
            SetupError: no worker answers; the request may be sent again.
        """
        authorize(principal, "submit")
        requester = (await asyncio.to_thread(self._decider.who, principal)).person
        prepared = await asyncio.to_thread(self.intake.prepare, request, requester)
        return await self._admit(prepared.job_id, prepared.spec)

    async def undo(self, principal: Principal, ref: str, request: UndoRequest) -> JobView:
        """Start a job that takes another one back; its plan asks for approval like any other.

        Raises:
            Conflict: the job has not ended, left nothing to take back, or is being taken back already.
        """
        authorize(principal, "submit")
        job = await asyncio.to_thread(self.ledger.job, ref)
        requester = (await asyncio.to_thread(self._decider.who, principal)).person
        undoing = str(names.JobId(job.thread, request.request_id))
        spec = JobSpec(
            template=UNDO,
            template_source="",
            template_digest=hashlib.sha256(b"").hexdigest(),
            inputs={},
            requester=requester,
            undoes=job.job_id,
        )
        async with self._undoing:  # two requests at once would each find no other
            await asyncio.to_thread(self._check_undo, job, undoing)
            return await self._admit(undoing, spec)

    async def decide(self, principal: Principal, digest: str, request: DecideRequest) -> DecideAnswer:
        """Decide on exactly one plan. The same decision again is the same decision.

        Raises:
            NotFound: no such plan.
            Conflict: its gate is not open; says how it ended.
            Refused: no right to decide (or to break glass), or the passphrase does not open the decision key.
            SetupError: recorded, but the gate could not be told yet.
        """
        authorize(principal, "break_glass" if request.kind == "break_glass" else "decide")
        weighing = await self._decider.decide(principal, digest, request)
        row = await asyncio.to_thread(self.ledger.plan, digest)
        job = await self.job(principal, row.job_id)
        return DecideAnswer(decision_id=request.decision_id, weighing=weighing, job=job)

    async def resolve(self, principal: Principal, ref: str, request: ResolveRequest) -> JobView:
        """Say what became of an effect in doubt. Raises ``Conflict`` when it is not in doubt."""
        authorize(principal, "decide")
        job = await asyncio.to_thread(self.ledger.job, ref)
        await self._decider.resolve(principal, job, request)
        return await self.job(principal, job.job_id)

    async def cancel(self, principal: Principal, ref: str, request: CancelRequest) -> JobView:
        """Stop a job at its next boundary. Whoever asked for it may, and whoever may decide.

        Raises:
            Conflict: it has ended.
        """
        job = await asyncio.to_thread(self.ledger.job, ref)
        is_own = job.requester == principal.name and "submit" in principal.may
        authorize(principal, "submit" if is_own else "decide")
        await self._decider.cancel(principal, job, request)
        return await self.job(principal, job.job_id)

    async def look(self, principal: Principal, ref: str) -> JobView:
        """Have a job that waits for a merge look at once whether it has happened; any other is left alone."""
        job = await self.job(principal, ref)
        await self._decider.look(job.job_id)
        return job

    async def steer(self, principal: Principal, ref: str, request: SteerRequest) -> list[AgentView]:
        """Say something to the agent at work on a job, pause it, turn its dial, give it more; return the job's agents.

        Whoever asked for the job may, and whoever may decide; the dial is lowered by anybody who may see the job.
        ``resume`` without an agent lets a plan go on that waits. Raises ``Conflict``: nobody would hear it.
        """
        job = await asyncio.to_thread(self.ledger.job, ref)
        await self.steerer.steer(principal, job, request)
        return await asyncio.to_thread(self.steerer.views, job.job_id)

    async def trust(self, principal: Principal, request: TrustRequest) -> TemplateView:
        """Let a repository's template run, by the digest of the text that the person has read.

        Raises:
            Conflict: the text is another one by now.
        """
        authorize(principal, "decide")
        view = await asyncio.to_thread(self.intake.show, request.name, request.folder)
        if view.digest != request.digest:
            raise Conflict(
                f"Template {request.name!r} has the digest {view.digest[:12]} by now, not {request.digest[:12]}. "
                f"Read it again: `perdure templates show {request.name}`."
            )
        await asyncio.to_thread(
            self._decider.trust, principal, view.digest, request.decision_id, view.path, request.passphrase
        )
        return await asyncio.to_thread(self.intake.show, request.name, request.folder)

    async def job(self, principal: Principal, ref: str) -> JobView:
        """Return one job; while it waits, with who is still needed; while it is held up, with what holds it up."""
        job = await self.read(principal, lambda: self.reader.job(ref, now=self.now()))
        if job.phase not in _AT_WORK or self.now() - job.updated_at < LONG:
            return job
        return job.model_copy(update={"trouble": await self._find_trouble(job)})

    async def _find_trouble(self, job: JobView) -> str:
        application = names.application_id(job.job_id, job.round) if job.round else ""
        applying = [application, f"{application}/undo"] if application and job.phase in _APPLYING else []
        try:
            async with asyncio.timeout(HEALTH_SECONDS):
                for workflow_id in (*applying, job.job_id):
                    with contextlib.suppress(NotFound):
                        if said := await self.messenger.find_trouble(workflow_id):
                            return said
        except (TimeoutError, SetupError):
            return "Temporal does not answer. `perdure status` shows what runs."
        return ""

    async def follow(self, principal: Principal, ref: str, *, after: int, wait_seconds: float) -> EventPage:
        """Return a job's events after a position; while there is none, wait for one so long."""
        authorize(principal, "read")
        clock = asyncio.get_running_loop().time
        deadline = clock() + wait_seconds
        job_id = (await asyncio.to_thread(self.ledger.job, ref)).job_id
        while True:
            events = await asyncio.to_thread(self.ledger.events, job_id=job_id, after=after)
            if events or clock() >= deadline:
                return EventPage(events=events, job=await self.job(principal, job_id))
            await asyncio.sleep(LOOK_SECONDS)

    async def watch(self, principal: Principal, ref: str, since: datetime | None) -> AsyncIterator[LiveView]:
        """Yield what a job's agents do, until the job ends: turns answered after ``since``, and text while it comes."""
        authorize(principal, "read")
        job_id = (await asyncio.to_thread(self.ledger.job, ref)).job_id
        with contextlib.closing(AgentWatch(self.ledger, self._texts, job_id, since)) as watch:
            while not watch.is_over:
                for view in await asyncio.to_thread(watch.look):
                    yield view
                await asyncio.sleep(LOOK_SECONDS)

    async def read(self, principal: Principal, question: Callable[[], Answer], right: Right = "read") -> Answer:
        """Return what the store answers to ``question``, asked in a thread, when ``principal`` has the right."""
        authorize(principal, right)
        return await asyncio.to_thread(question)

    async def audit(self, principal: Principal, ref: str) -> AuditReport:
        """Compare the ledger with itself and everything around it; with ``ref``: what concerns that job."""
        authorize(principal, "read")
        job = await asyncio.to_thread(self.ledger.job, ref) if ref else None
        return await self._auditor.audit(job, now=self.now())

    async def export(self, principal: Principal, path: str, ref: str) -> tuple[str, str, dict[str, str]]:
        """Write a bundle of evidence to a new file; return (path, head, public keys in hex by key id).

        Raises:
            Conflict: the file exists.
            Refused: the evidence does not hold; an audit says where.
        """
        authorize(principal, "own")
        job = await asyncio.to_thread(self.ledger.job, ref) if ref else None
        head = await asyncio.to_thread(self._auditor.export, path, job)
        return path, head, self._auditor.public_keys

    async def health(self, principal: Principal) -> Health:
        """Return how the installation is; soon, and without raising for what is down."""
        authorize(principal, "read")
        temporal, has_worker, detail = "unreachable", False, ""
        try:
            async with asyncio.timeout(HEALTH_SECONDS):
                temporal = (await self.messenger.client()).service_client.config.target_host
                has_worker = await self.messenger.has_worker()
        except TimeoutError:
            detail = "Temporal does not answer."
        except SetupError as error:
            detail = error.message
        return Health(
            ok=has_worker and not detail,
            version=installed_version(),
            temporal=f"embedded {temporal}" if self._is_embedded else temporal,
            worker=has_worker,
            detail=detail,
        )

    def key(self) -> KeyView:
        """Return what may be seen of the key that signs decisions."""
        return KeyView(has_passphrase=self._decider.key.needs_passphrase, public_keys=self._auditor.public_keys)

    async def change_passphrase(self, principal: Principal, request: PassphraseRequest) -> KeyView:
        """Encrypt the decision key anew. Raises ``Refused`` when the old passphrase does not open it."""
        change = partial(self._decider.key.change_passphrase, request.passphrase, request.new_passphrase)
        await self.read(principal, change, right="own")
        return await asyncio.to_thread(self.key)

    async def revoke_token(self, principal: Principal, token_id: str) -> TokenView:
        """End a token at once; return what it was. Raises ``NotFound``."""
        await self.read(principal, lambda: self.ledger.revoke_token(token_id, at=self.now()), right="own")
        tokens = await asyncio.to_thread(self.ledger.tokens)
        return next(token for token in tokens if token.id == token_id)

    async def retell(self) -> int:
        """Pass on decisions that nobody may have heard of; return how many."""
        return await self._decider.retell() + await self.scheduler.retell()

    async def recover(self) -> int:
        """Start again what Temporal lost of open jobs, and put its schedules right; return of how many."""
        return await recover(self.ledger, self.messenger) + await self.scheduler.recover()

    async def _admit(self, job_id: str, spec: JobSpec) -> JobView:
        try:
            ref = await asyncio.to_thread(self._pin, spec)
        except StoreTrouble as trouble:
            raise SetupError(f"{trouble.message} There is no job; ask for it again then.") from trouble
        job = AdmitInput(job_id=job_id, spec=ref, template=spec.template, requester=spec.requester)
        await asyncio.to_thread(self.ledger.request_job, job, at=self.now())
        await self.messenger.admit(job)
        return await asyncio.to_thread(self.reader.job, job_id, now=self.now())

    def _pin(self, spec: JobSpec) -> BlobRef:
        try:
            return self._blobs.put(canonical_bytes(spec.model_dump(mode="json")))
        except ValueError as error:
            raise UserError(f"The inputs cannot be pinned: {error}") from error

    def _check_undo(self, job: JobView, undoing: str) -> None:
        if self._is_admitted(undoing):
            return  # the same request again
        if not job.phase.is_final:
            raise Conflict(
                f"{job.name} has not ended: it is {job.phase}. `perdure cancel {job.number}` stops it first."
            )
        if job.undone_by:
            raise Conflict(f"{job.name} is taken back by {job.undone_by}. `perdure show {job.undone_by}` follows it.")
        fates = {(row.digest, row.index, row.direction): row.state for row in self.ledger.intents(job_id=job.job_id)}
        done = [key[:2] for key, state in fates.items() if key[2] == "do" and state == "done"]
        if all(fates.get((*key, "undo")) in {"done", "already"} for key in done):
            raise Conflict(f"{job.name} ({job.phase}) left nothing in the world that could be taken back.")
        if other := self._open_undo_of(job):
            raise Conflict(
                f"{other.name} is already taking {job.name} back: it is {other.phase}. "
                f"`perdure show {other.number}` follows it, `perdure cancel {other.number}` ends it."
            )

    def _open_undo_of(self, job: JobView) -> JobView | None:
        """The job that is to take ``job`` back, whether or not it has a plan yet."""
        for other in self.ledger.jobs(thread=job.thread, open_only=True, limit=500):
            if other.template == UNDO and self._undone_by(other) == job.job_id:
                return other
        return None

    def _undone_by(self, undoing: JobView) -> str:
        """Id of the job that ``undoing`` takes back, as it was pinned when that was asked for."""
        asked = self.ledger.events(job_id=undoing.job_id, after=0)[0].body.get("spec")
        spec = self._blobs.get_json(BlobRef.model_validate(asked)) if asked else {}  # empty when it was erased
        return str(spec.get("undoes", ""))

    def _is_admitted(self, job_id: str) -> bool:
        try:
            self.ledger.job(job_id)
        except NotFound:
            return False
        return True


def installed_version() -> str:
    """Return the version of this package; ``0`` when it runs from a folder that was never installed."""
    try:
        return version("perdure")
    except PackageNotFoundError:
        return "0"
