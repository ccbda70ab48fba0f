"""The composition root: settings → stores, ports, activities → Worker. Nothing else builds adapters."""

from __future__ import annotations

import asyncio
import fcntl
import functools
import logging
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import Worker
from temporalio.worker.workflow_sandbox import SandboxRestrictions

from activities.agent_asking import CallAsker
from activities.agent_closing import ClosingActivities
from activities.agent_desk import AgentDesk
from activities.agent_prompts import Prompts
from activities.agents import AgentActivities
from activities.analysis import AnalysisActivities
from activities.applying import Applier
from activities.checkpointing import CheckpointKeeper
from activities.claims import ClaimActivities
from activities.delegating import Delegator
from activities.effects import EffectActivities
from activities.fires import FireActivities
from activities.histories import HistoryActivities
from activities.ledger import Decisions, LedgerActivities
from activities.memory import ThreadMemory
from activities.models import ModelActivities, ModelLoop
from activities.notify import Channels, Courier
from activities.plans import PlanActivities
from activities.preflight import Preflight
from activities.rules import RuleActivities, StageTools
from activities.summaries import SummaryActivities
from activities.tools import ToolActivities
from activities.undoing import UndoPlanner
from activities.workspaces import WorkspaceActivities, sweep
from perdure.contracts import names
from perdure.contracts.agent_ports import Tool
from perdure.contracts.template import Template
from perdure.effects.registry import default_effects
from perdure.errors import PerdureError, SetupError
from perdure.models.client import Models
from perdure.people import channels_of, policies_of, read_today, today_of
from perdure.rules.registry import default_rules
from perdure.runtime.connect import connect
from perdure.runtime.doorkeeper import Doorkeeper
from perdure.runtime.imports import Late
from perdure.runtime.journal import JournalInterceptor, fail_predecessors
from perdure.runtime.renderer import Renderer
from perdure.runtime.state import has_died, process_name
from perdure.runtime.workflow_runner import SandboxRunner
from perdure.scratch import sweep_scratch
from perdure.settings import Settings, read_config, read_named, read_secret
from perdure.store.agents import Agents
from perdure.store.blobs import BlobStore
from perdure.store.checkpoints import CheckpointLog
from perdure.store.ledger import Ledger
from perdure.store.live import LiveTexts
from perdure.store.schedule_ledger import Schedules
from perdure.store.signing import public_keys
from perdure.tools.registry import open_tools
from perdure.workspace.sandbox import Sandbox
from workflows.agent import AgentWorkflow
from workflows.apply import ApplyWorkflow
from workflows.fire import FireWorkflow
from workflows.gate import GateWorkflow
from workflows.job import JobWorkflow
from workflows.thread import ThreadWorkflow

WORKFLOWS: list[type] = [ThreadWorkflow, JobWorkflow, GateWorkflow, ApplyWorkflow, AgentWorkflow, FireWorkflow]
SUPPORTED_GENERATIONS = (names.CODE_GENERATION,)
RULES = Late(default_rules)
"""Their modules are a tenth of all that a worker imports; what a dead one left in flight seldom needs them."""

_DYING_SECONDS = 2.0
_SETTLING_SECONDS = 5.0
"""After the start, until the rules are loaded when no job has asked for them: work that was left goes first."""

log = logging.getLogger("perdure.worker")


def build_activities(
    client: Client, settings: Settings, ledger: Ledger, renderer: Renderer
) -> list[Callable[..., Any]]:
    """Every activity, with its ports."""
    blobs, rules = BlobStore(settings.blobs), RULES
    effects = default_effects(read_named(settings, "effects"))  # what they name and is not there, is said now
    agent_tools: Late[Tool] = Late(functools.partial(open_tools, settings))
    if read_named(settings, "tools"):
        agent_tools.load()  # what settings name and is not there, is said at the start

    def check(template: Template) -> None:
        from perdure.policy.templates import check_template  # with YAML and Jinja

        check_template(
            template,
            rules={name: rule.shape for name, rule in rules.items()},
            effects={kind: effect.always_reversible for kind, effect in effects.items()},
            tools=agent_tools,
            policies=policies_of(settings),
        )

    decisions = Decisions(ledger, functools.partial(public_keys, settings.keys), today_of(settings))
    models = Models.of(settings)
    tools = StageTools(
        ledger,
        blobs,
        renderer,
        rules,
        check,
        ThreadMemory(ledger, blobs, decisions),
        policies=functools.partial(policies_of, settings),
        secrets=functools.partial(_read_secrets, settings),
        has_model=lambda: bool(models.configured.models),
    )
    undo = UndoPlanner(ledger, blobs)
    applier = Applier(
        ledger,
        blobs,
        decisions,
        effects,
        settings.locks,
        settings.workspaces,
        functools.partial(_read_secrets, settings),
    )
    gates, sandbox = LedgerActivities(ledger, blobs, decisions), functools.cache(Sandbox.find)
    drafts = WorkspaceActivities(tools, settings.workspaces, sandbox)
    desk = AgentDesk(ledger, blobs, decisions, Agents(ledger.database), models, agent_tools, settings.workspaces)
    rooms = [
        gates,
        RuleActivities(tools),
        drafts,
        *_agents_rooms(settings, desk, tools, drafts, gates, sandbox),
        PlanActivities(tools, effects, undo, settings.workspaces),
        EffectActivities(ledger, blobs, decisions, effects, applier, preflight=Preflight(tools, drafts).find_red),
        HistoryActivities(client, ledger, blobs),
        ClaimActivities(client),
        FireActivities(client, Schedules(ledger.database), blobs, decisions),
    ]
    found = [getattr(room, name) for room in rooms for name in dir(room)]
    return [method for method in found if hasattr(method, "__temporal_activity_definition")]


def _agents_rooms(
    settings: Settings,
    desk: AgentDesk,
    tools: StageTools,
    drafts: WorkspaceActivities,
    gates: LedgerActivities,
    sandbox: Callable[[], Sandbox],
) -> list[object]:
    """What agents do: turns, calls, summaries, their beginning and their end."""
    keeper, texts = CheckpointKeeper(desk, CheckpointLog(desk.ledger.database)), LiveTexts(settings.live)
    texts.sweep()
    loop, templates = ModelLoop(), Path(__file__).parent / "templates"
    prompts = Prompts(templates)
    return [
        AnalysisActivities(desk, tools, prompts),
        AgentActivities(desk, drafts, prompts),
        ClosingActivities(desk, drafts),
        ModelActivities(desk, loop, texts.begin, keeper),
        SummaryActivities(desk, loop, templates),
        ToolActivities(
            desk,
            CallAsker(desk, gates.end_gate),
            Delegator(desk, tools, prompts),
            keeper,
            sandbox,
            functools.partial(_tool_secrets, settings),
        ),
    ]


def workflow_options() -> dict[str, Any]:
    """How workflows run, also when recorded histories are replayed: sandboxed; the library is passed through."""
    restrictions = SandboxRestrictions.default.with_passthrough_modules("perdure", "rfc8785", "annotated_types")
    return {
        "workflows": WORKFLOWS,
        "workflow_runner": SandboxRunner(restrictions=restrictions),
        "workflow_failure_exception_types": [PerdureError],
        "interceptors": [Doorkeeper()],
    }


def build_worker(client: Client, settings: Settings, ledger: Ledger, renderer: Renderer, **options: Any) -> Worker:
    """A worker on the one queue."""
    how = workflow_options()
    how["interceptors"] = [*how["interceptors"], JournalInterceptor(settings.journal)]
    return Worker(
        client,
        task_queue=names.QUEUE,
        activities=build_activities(client, settings, ledger, renderer),
        **how,
        build_id=names.CODE_GENERATION,  # else the SDK reads and hashes every module that is loaded, at each start
        sticky_queue_schedule_to_start_timeout=timedelta(seconds=1),
        max_heartbeat_throttle_interval=timedelta(seconds=1),
        graceful_shutdown_timeout=timedelta(seconds=10),
        **options,
    )


def build_courier(settings: Settings, ledger: Ledger) -> Courier:
    """What tells people on the channels of the settings, as they are at each look."""

    def channels() -> Channels:
        page = str(read_config(settings, "messages").get("page", "")).rstrip("/")
        return Channels(channels_of(settings), read_today(settings).people, page)

    return Courier(
        ledger,
        BlobStore(settings.blobs),
        Decisions(ledger, functools.partial(public_keys, settings.keys), today_of(settings)),
        channels,
        functools.partial(read_secret, settings),
        Path(__file__).parent / "templates" / "messages",
        process_name(os.getpid()),
        has_died,
    )


async def refuse_stranded(client: Client) -> None:
    """Do not poll where open work was started by workflow code that this build does not have.

    Raises:
        SetupError: names that work and how to carry on.
    """
    known = ", ".join(f"'{generation}'" for generation in SUPPORTED_GENERATIONS)
    attribute = names.CODE_ATTRIBUTE
    query = f"ExecutionStatus = 'Running' AND {attribute} IS NOT NULL AND {attribute} NOT IN ({known})"
    try:
        stranded = [execution.id async for execution in client.list_workflows(query, limit=20)]
    except RPCError as error:
        if error.status is not RPCStatusCode.INVALID_ARGUMENT:
            raise
        raise SetupError(
            f"Temporal does not know the search attribute {attribute} ({error.message}). Make it: `temporal operator "
            f"search-attribute create -n {client.namespace} --name {attribute} --type Keyword`."
        ) from error
    if stranded:
        raise SetupError(
            f"This build would strand {len(stranded)} open executions of other workflow code: {', '.join(stranded)}. "
            "Start the build they came from (pip install perdure==<that version>), let them end or cancel them, then "
            "start this one."
        )


async def run(settings: Settings, ready: Callable[[], None] = lambda: None) -> None:
    """Poll until SIGTERM or SIGINT. ``ready`` is called once, when polling has begun."""
    client = await connect(settings, role="worker")
    await refuse_stranded(client)
    with _alone(settings) as alone:
        if alone:
            sweep(settings.workspaces)
            await fail_predecessors(client, settings.journal)
        ledger, renderer = Ledger.open(settings.ledger), Renderer()
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        try:
            async with build_worker(client, settings, ledger, renderer):
                ready()
                telling = asyncio.create_task(build_courier(settings, ledger).run(stop))
                if alone:  # may take long where much was left, and hinders nobody at work
                    await asyncio.to_thread(sweep_scratch)
                with suppress(TimeoutError):
                    await asyncio.wait_for(stop.wait(), _SETTLING_SECONDS)
                if not stop.is_set():
                    await asyncio.to_thread(RULES.load)
                await stop.wait()
                await telling
        finally:
            renderer.close()
            ledger.close()


def main(settings: Settings, ready: Callable[[], None] = lambda: None) -> None:
    """Run the worker process."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    asyncio.run(run(settings, ready))


@contextmanager
def _alone(settings: Settings) -> Iterator[bool]:
    """Hold the data folder's worker lock; whether this is the only worker there (pollers would not tell)."""
    settings.data.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = os.open(settings.data / "worker.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if _take(lock):
            yield True
        else:
            log.warning("another worker runs on %s; its activities in flight are left to it", settings.data)
            yield False
    finally:
        os.close(lock)


def _take(lock: int) -> bool:
    """Whether the lock could be had: a predecessor that is just dying may hold it for a moment longer."""
    deadline = time.monotonic() + _DYING_SECONDS
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)
        else:
            return True


def _read_secrets(settings: Settings, wanted: list[str]) -> Mapping[str, str]:
    """Values of the secrets that an effect names (``secret:<name>`` among its ways out), from 0600 files."""
    values: dict[str, str] = {}
    for way in wanted:
        kind, _, name = way.partition(":")
        value = read_secret(settings, name) if kind == "secret" else None
        if value is not None:
            values[name] = value
    return values


def _tool_secrets(settings: Settings, wanted: Sequence[str]) -> Mapping[str, str]:
    """Values of the secrets that a tool names. Raises ``SetupError`` naming the file of one that is missing."""
    values = {name: read_secret(settings, name) for name in wanted}
    missing = sorted(name for name, value in values.items() if value is None)
    if missing:
        raise SetupError(
            f"The tool needs the secret {missing[0]!r}, and there is none. Write it into secrets/{missing[0]} of the "
            "data folder, mode 0600; until then it cannot be called."
        )
    return {name: value for name, value in values.items() if value is not None}
