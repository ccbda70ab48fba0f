"""The only strings that rooms share: queues, workflows, updates, signals, activities, ids both ways."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

QUEUE = "perdure"
"""Workflows, ledger and (until hosts are split) everything else."""

# Workflows
THREAD_WORKFLOW = "perdure.thread"
JOB_WORKFLOW = "perdure.job"
GATE_WORKFLOW = "perdure.gate"
APPLY_WORKFLOW = "perdure.apply"
AGENT_WORKFLOW = "perdure.agent"
FIRE_WORKFLOW = "perdure.fire"
"""Started by a Temporal Schedule; tells the thread, and ends."""

# Updates and signals
ADMIT_UPDATE = "admit"
DECIDE_UPDATE = "decide"
CHILD_SIGNAL = "child_event"
POKE_SIGNAL = "poke"
"""Says "look at the ledger again"; carries no authority."""
REVIVE_SIGNAL = "revive"
"""Tells a thread that one of its jobs may be lost; carries no authority."""
FIRE_SIGNAL = "fire"
"""Tells a thread that a schedule of it is due; carries no authority."""
STATE_QUERY = "state"

# Activities
ADMIT_JOB = "admit_job"
OPEN_JOB = "open_job"
GATHER_SOURCE = "gather_source"
ANALYZE = "analyze"
CONCLUDE = "conclude"
DRAFT = "draft"
RUN_CHECK = "run_check"
FREEZE_PLAN = "freeze_plan"
OPEN_GATE = "open_gate"
CLOSE_GATE = "close_gate"
READ_GATE = "read_gate"
OPEN_APPLICATION = "open_application"
APPLY_EFFECT = "apply_effect"
CLOSE_APPLICATION = "close_application"
READ_APPLICATION = "read_application"
NOTE_JOB = "note_job"
READ_JOB = "read_job"
ARCHIVE_JOB = "archive_job"
CLAIM_ID = "claim_id"
WEIGH_REQUESTS = "weigh_requests"
OPEN_WORKSPACE = "open_workspace"
ASK_MODEL = "ask_model"
RUN_TOOL = "run_tool"
SUMMARIZE = "summarize_agent"
CLOSE_AGENT = "close_agent"
READ_AGENT = "read_agent"
HAND_FIRE = "hand_fire"
LOOK_AT_SCHEDULE = "look_at_schedule"
LOCAL_ACTIVITIES = frozenset(
    {
        ADMIT_JOB,
        OPEN_GATE,
        CLOSE_GATE,
        READ_GATE,
        CLOSE_APPLICATION,
        READ_APPLICATION,
        NOTE_JOB,
        READ_JOB,
        WEIGH_REQUESTS,
        READ_AGENT,
        LOOK_AT_SCHEDULE,
    }
)
"""What asks the ledger and nothing else takes milliseconds, less than the way over the server and back: it runs inside
the workflow task, where nobody but the worker itself can answer in its place."""
"""Activities are registered under these names; a test checks that each one is."""

STORE_TROUBLE = "StoreTrouble"
"""Error type of an activity that could not use the ledger or the blob store: nobody's fault, and it passes."""

CODE_ATTRIBUTE = "PerdureCode"
"""Search attribute (keyword) on every execution: the generation of workflow code that started it."""
CODE_GENERATION = "1"

CALL_ROUNDS = 1_000_000
"""Rounds from here on are no drafts of a job: each is one call of an agent, which a person decides on."""

_SAFE = re.compile(r"[^a-z0-9._-]+")
_FIRE = re.compile(r"^fire/([^/]+)/([^/]+)-(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)$")


def slug(text: str) -> str:
    """Return ``text`` in lower case with everything else than ``a-z0-9._-`` turned into single dashes."""
    return _SAFE.sub("-", text.lower()).strip("-.") or "unnamed"


def thread_id(thread: str) -> str:
    """Workflow id of a thread."""
    return f"thread/{thread}"


def fire_id(thread: str, schedule: str) -> str:
    """Workflow id that a schedule's fires begin with; the server adds the nominal time."""
    return f"fire/{thread}/{schedule}"


def parse_fire(workflow_id: str) -> tuple[str, str, datetime]:
    """Return (thread, schedule, nominal time) of the workflow id of one fire.

    Raises:
        ValueError: not of the form ``fire/<thread>/<schedule>-<time>``.
    """
    found = _FIRE.match(workflow_id)
    if found is None:
        raise ValueError(f"{workflow_id!r} is not a fire's id; expected fire/<thread>/<schedule>-<time in UTC>.")
    return found[1], found[2], datetime.fromisoformat(found[3])


@dataclass(frozen=True)
class JobId:
    """``job/<thread>/<client's request id>``."""

    thread: str
    request: str

    def __str__(self) -> str:
        return f"job/{self.thread}/{self.request}"

    @classmethod
    def parse(cls, text: str) -> JobId:
        """Read a job's workflow id.

        Raises:
            ValueError: not of the form ``job/<thread>/<request>``.
        """
        kind, _, rest = text.partition("/")
        thread, _, request = rest.partition("/")
        if kind != "job" or not thread or not request or "/" in request:
            raise ValueError(f"{text!r} is not a job's id; expected job/<thread>/<request>.")
        return cls(thread, request)


def gate_id(job_id: str, round_number: int) -> str:
    """Workflow id of the gate of one round of a job."""
    job = JobId.parse(job_id)
    return f"gate/{job.thread}/{job.request}/{round_number}"


def application_id(job_id: str, round_number: int) -> str:
    """Workflow id of the application of one round's plan."""
    job = JobId.parse(job_id)
    return f"apply/{job.thread}/{job.request}/{round_number}"


def agent_id(job_id: str, round_number: int, attempt: int, step: int) -> str:
    """Workflow id of the agent of one draft step, in one attempt (from 0) at the draft of one round."""
    job = JobId.parse(job_id)
    return f"agent/{job.thread}/{job.request}/{round_number}.{attempt}.{step}"


def prompt_id(job_id: str, round_number: int, step: str) -> str:
    """Workflow id of the prompt of one analysis step, in one round."""
    job = JobId.parse(job_id)
    return f"agent/{job.thread}/{job.request}/{round_number}.analyze.{step}"


def child_id(parent: str, turn: int, position: int) -> str:
    """Workflow id of the agent that a call of agent ``parent`` starts."""
    return f"{parent}/{turn}.{position}"


def first_agent(agent_id: str) -> str:
    """Id of the agent that stands above all others of this one's family: its job started it."""
    return "/".join(agent_id.split("/")[:4])


def job_of(workflow_id: str) -> str:
    """The job's id that a gate, agent or application belongs to; a job's own id is returned as it is."""
    kind, thread, request, *_ = workflow_id.split("/")
    if kind not in {"job", "gate", "apply", "agent"}:
        raise ValueError(f"{workflow_id!r} belongs to no job.")
    return str(JobId(thread, request))
