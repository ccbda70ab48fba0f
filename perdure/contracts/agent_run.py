"""How an agent's workflow and its activities speak: what to do next, by id and number; text stays in the store."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from perdure.contracts.agent import AgentEnd, CallVerdict, Dial, Limits, Permission, Spent, Usage
from perdure.contracts.base import BlobRef, Contract, Digest, JsonDict, UtcTime
from perdure.contracts.job import StepInput, StepResult
from perdure.contracts.messages import OutcomeStatus
from perdure.contracts.names import job_of
from perdure.contracts.plan import ReviewRule

MOST_CALLS = 32
"""Calls of one answer that run; the rest are answered with an error, so that no payload grows without end."""


class Lean(Contract):
    """Written without what is as it always is: an agent's history holds a thousand of these."""

    @model_serializer(mode="wrap")
    def _leave_out_defaults(self, write: SerializerFunctionWrapHandler) -> JsonDict:
        fields = type(self).model_fields
        written: JsonDict = write(self)
        return {name: value for name, value in written.items() if getattr(self, name) != fields[name].default}


class AgentSpec(Contract):
    """What an agent is made from, pinned in a blob when it starts."""

    agent_id: str
    job_id: str
    step: StepInput
    """The job's round and results so far: what its checks and its template are read from."""
    draft_step: int = 0
    """Position of the agent's step in the template's draft."""
    prompt: str = ""
    """Name of the analysis step whose prompt this is: no tools, one typed answer. Empty: an agent of the draft."""
    refines: BlobRef | None = None
    """With ``prompt``: the value of the step's rule, whose words the answer chooses."""
    parent: str = ""
    """Id of the agent that started this one; empty: its job did."""
    depth: int = 0
    """How many agents stand above it."""
    charter: str
    """The system message."""
    goal: str
    model: str = ""
    tools: tuple[str, ...]
    tool_digests: dict[str, Digest] = {}
    """Definition of each tool when the agent began: another one by now is a new tool."""
    paths: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    permissions: tuple[Permission, ...] = ()
    above: tuple[tuple[Permission, ...], ...] = ()
    """Further lists, of the agents above it: the strictest answer of all holds."""
    dial: Dial = Dial.propose
    ceiling: Dial = Dial.delegate
    """The highest position of the dial that counts, whoever turns it."""
    done_when: tuple[str, ...] = ()
    """Names of checks."""
    answer: JsonDict = {}
    """Closed JSON schema of what it must say in the end; empty: any text."""
    repairs: int = 0
    """So often it is told what is wrong with its answer."""
    limits: Limits = Limits()
    refused: AgentEnd | None = None
    """Why it may not even begin: nothing is left of the job's budget."""
    on_limit: Literal["end", "ask"] = "end"
    """``ask``: where a limit is met it parks and a person may give more."""
    base_commit: str = ""
    repository: str = ""
    """Place of the repository that has the base; empty with no workspace."""
    requester: str
    template: str
    template_digest: Digest
    review: ReviewRule
    """Who decides on calls that ask."""


class AgentState(Contract):
    """What an agent's workflow carries over continue-as-new; its input too. Numbers and ids, never text."""

    agent_id: str
    job_id: str
    spec: BlobRef
    turn: int = 1
    """The next one."""
    number: int = 2
    """Number of the next message in the transcript; 0 and 1 are the charter and the goal."""
    waiting: tuple[CallHeader, ...] = ()
    """Calls of the turn before that wait for a person; the others of it have ended."""
    parent: str = ""
    """Workflow id of the agent that started it, which hears of its end; empty: its job does."""
    running: tuple[CallHeader, ...] = ()
    """Calls that go on beside the turns."""


class CallHeader(Lean):
    """One call of a turn."""

    turn: int
    position: int
    number: int
    """Where its result goes in the transcript."""
    answer: int
    """Number of the message that asks for it."""
    limit: int = 120
    """Seconds that the tool may take."""


class OfAgent(Lean):
    """A question about one agent."""

    agent_id: str = ""
    """Empty on its way: the activity knows which workflow asks."""

    @property
    def job_id(self) -> str:
        """The job that it works on."""
        return job_of(self.agent_id)


class TurnInput(OfAgent):
    """Ask the model once. The same again finds its own answer in the store."""

    turn: int
    number: int


class TurnResult(Lean):
    """What came of a turn."""

    number: int
    """Of the next message, results of ``calls`` counted."""
    calls: tuple[CallHeader, ...] = ()
    end: AgentEnd | None = None
    """It stops here; nobody was asked."""
    parked: str = Field(default="", max_length=500)
    """Why it waits for a person ("paused by ana"); nobody was asked, and the same turn is asked for again."""
    summarize: int = 0
    """A summary of the messages before this number should be made beside the loop; 0: none is needed."""


class SummaryInput(OfAgent):
    """Summarize the messages before number ``until``. The same again finds its own summary in the store."""

    until: int


class SummaryResult(Lean):
    """Whether there is one now; else why not."""

    made: bool = True
    why: str = Field(default="", max_length=500)


class CallInput(OfAgent):
    """Run one call. The same again finds its own answer, or says what became of it."""

    call: CallHeader
    late: bool = False
    """It outlasted its grace and the model was told so: wait for its end."""


class CallResult(Lean):
    """What became of a call; the text is in the transcript."""

    status: OutcomeStatus | Literal["waits"]
    """``waits``: a person must decide on it first · ``running``: it goes on, and is waited for beside the turns."""
    until: UtcTime | None = None
    """With ``waits``: when nobody has to be waited for any more."""
    pause: bool = False
    """It insists on what a person denied."""
    child: AgentState | None = None
    """An agent that this call started and that has not ended: it is to work, then the call is run again."""


class AnalysisInput(Contract):
    """Conclude on from template step ``part``: rules run at once, until a prompt's turn comes or nothing is left."""

    step: StepInput
    part: int = 0
    kept: BlobRef | None = None
    """What the steps before came to."""


class AnalysisResult(Contract):
    """The analysis, or the prompt that is asked next."""

    analysis: StepResult | None = None
    agent: AgentState | None = None
    part: int = 0
    """Where to go on once the prompt has ended."""
    kept: BlobRef | None = None


class WorkspaceInput(Contract):
    """Draft on from template step ``part``: rules run at once, until an agent's turn comes or nothing is left."""

    step: StepInput
    attempt: int = 0
    """Which draft of the round, from 0: a red check sends back to draft."""
    part: int = 0
    findings: BlobRef | None = None
    """Of the steps before (a JSON list of text)."""
    answers: dict[str, BlobRef] = {}
    """Typed answers of agents before, by the names that their steps gave them."""


class WorkspaceResult(Contract):
    """The draft, or the agent that works on it next."""

    draft: StepResult | None = None
    agent: AgentState | None = None
    part: int = 0
    """Where to go on once the agent has ended."""
    findings: BlobRef | None = None
    answers: dict[str, BlobRef] = {}


class CloseAgentInput(OfAgent):
    """Look whether the agent is done, or end it for ``end``."""

    turn: int
    """The last one that was asked for."""
    number: int
    end: AgentEnd | None = None
    """``None``: the model stopped asking for calls; the checks say whether that is the end."""
    for_good: bool = False
    """Nobody is asked for more."""


class CloseAgentResult(Contract):
    """What comes next: ``goes_on`` when checks are red or a message came, ``parked`` when a person may give more."""

    state: Literal["ended", "goes_on", "parked"]
    number: int
    until: UtcTime | None = None
    """With ``parked``: when nobody is waited for any more."""
    end: AgentEnd | None = None
    """With ``parked``: what it stops for, where the question named no end."""


class AgentQuestion(Contract):
    """How does an agent stand, by the ledger?"""

    agent_id: str


class AgentStanding(Contract):
    """How an agent stands. ``end`` is ``None`` while it works."""

    agent_id: str = ""
    end: AgentEnd | None = None
    spent: Spent = Spent()
    result: BlobRef | None = None


# Rows of the store


class TurnRecord(Contract):
    """One model call that was answered."""

    turn: int
    number: int
    """Of the answer."""
    sent: int
    """How many messages were in the request."""
    estimate: int = 0
    """Tokens of the request by our own estimate."""
    scale: int = 8
    """See ``ContextInput.scale``: as it was for this request."""
    model: str
    finish: str
    usage: Usage
    cost_microdollars: int | None
    notes: tuple[str, ...] = ()
    delivered: tuple[str, ...] = ()
    """Ids of people's messages that were in a request for the first time."""
    result: TurnResult


class SummaryRecord(Contract):
    """One summary, with what stands beside it word for word. The messages that it covers stay as they are."""

    until: int
    """The number of the first message that it does not cover."""
    text: str
    records: tuple[str, ...] = ()
    """What people said, decided and were asked before ``until``, and the thread's notes."""
    model: str = ""
    usage: Usage = Usage()
    cost_microdollars: int | None = None


class CallRecord(Contract):
    """One call, from before it begins until it has ended."""

    key: str
    turn: int
    position: int
    tool: str
    tool_digest: str = ""
    effect_class: str = "external"
    target: str = ""
    """As it is shown; a long one is cut and ends with its digest."""
    marks: tuple[str, ...] = ()
    """A digest of each target, whole (``policy.targets.marks_of``)."""
    arguments_hash: str = ""
    verdict: CallVerdict | None = None
    attempts: int = 0
    digest: str = ""
    """Plan that a person decides on, where one must."""
    asked: int = 0
    """How many plans there were of it: an edited call is another one."""
    arguments: JsonDict | None = None
    """What runs instead of what the model wrote, as ``edited_by`` has it."""
    edited_by: str = ""
    previous: str = ""
    """Plan that was asked about before somebody edited the call."""
    note: str = ""
    """For who decides next: why somebody's edit could not be taken."""
    given_up: bool = False
    """The model asked it to end."""
    late: BlobRef | None = None
    """What it came to, where the model was told "running" before."""
    status: OutcomeStatus | Literal["waits", ""] = ""
    answer_hash: str = ""
    changed: bool = False
    summary: str = ""
    degraded: str = ""
    """Why it is not the tool's own best answer; the review says so."""
    began_at: UtcTime | None = None
    ended_at: UtcTime | None = None

    @property
    def has_ended(self) -> bool:
        """Whether it is known what became of it, or that nobody knows."""
        return self.status not in ("", "waits", "running")


AgentState.model_rebuild()
CallResult.model_rebuild()
AnalysisResult.model_rebuild()
WorkspaceResult.model_rebuild()
