"""What an agent's parts say to each other: models, tools, policy and the loop. The ports are in ``agent_ports``."""

from __future__ import annotations

import hashlib
import json
from enum import StrEnum
from typing import Literal

from pydantic import Field

from perdure.contracts.base import BlobRef, Contract, JsonDict
from perdure.contracts.messages import CallPart, Message, OutcomeStatus, TextPart

EffectClass = Literal["read", "workspace", "external"]
"""``read``: changes nothing, may run twice · ``workspace``: changes the job's private workspace only · ``external``:
anything else, and whatever did not say."""

# Models


class Usage(Contract):
    """Tokens of one call as the provider counted them; ``None``: it did not say."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    """How many of the input tokens came from the provider's cache."""


class ModelFacts(Contract):
    """What is known about a model before it is asked. Prices in microdollars a million tokens; ``None``: unknown."""

    name: str
    window_tokens: int
    max_output_tokens: int
    input_price: int | None = None
    output_price: int | None = None

    def cost(self, input_tokens: int, output_tokens: int) -> int | None:
        """Microdollars, rounded up; ``None`` when a price is unknown."""
        if self.input_price is None or self.output_price is None:
            return None
        return -(-(input_tokens * self.input_price + output_tokens * self.output_price) // 1_000_000)


class ToolSpec(Contract):
    """A tool as a model and policy see it."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*$", max_length=64)
    """``files.read``. Adapters turn the dot into what their protocol allows, and back."""
    version: str = "1"
    description: str
    parameters: JsonDict
    """JSON schema of an object."""
    effect_class: EffectClass = "external"
    output_limit_bytes: int = 16_000
    """The most of its output that a model sees at once."""
    limit_seconds: int = 120
    """After so long a call is ended."""
    grace_seconds: int = 0
    """After so long the model is told "running" and goes on; 0: it waits for the end."""
    may_repeat: bool = False
    """A call whose end is unknown may simply run again. Always so for ``read``."""

    def digest(self) -> str:
        """Hash of the whole definition, in each call's record: a changed definition is a new tool. 64 hex digits."""
        text = json.dumps(self.model_dump(mode="json"), sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(b"perdure.tool/1\n" + text.encode()).hexdigest()


class ModelRequest(Contract):
    """One question to a model. ``messages`` are the same objects from turn to turn: convert only the new ones."""

    agent: str
    """Agent id, or the job's id and step for a single prompt; for logs."""
    turn: int
    model: str
    """Name of a configured model; empty: the default one. Fallbacks are the client's business."""
    messages: tuple[Message, ...]
    """System messages first. Every call has its result; results follow the message that called."""
    tools: tuple[ToolSpec, ...] = ()
    answer_schema: JsonDict | None = None
    """Ask for one JSON object of this schema as text (`prompt:` steps), by the best means the provider has."""
    max_output_tokens: int | None = None
    limit_seconds: int = 600


FinishReason = Literal["stop", "calls", "length", "filtered"]


class ModelAnswer(Contract):
    """What a model answered, whole. Malformed calls are inside as calls with a ``fault``."""

    parts: tuple[TextPart | CallPart, ...]
    """May be empty: the loop tells the model that it said nothing."""
    finish: FinishReason
    usage: Usage = Usage()
    cost_microdollars: int | None = None
    """``None``: price or usage unknown, which counts as a stop where a cost limit is set."""
    model: str
    """Who answered, ``provider/model``."""
    notes: tuple[str, ...] = ()
    """What a person should know: "fell back from a to b: 429", one line each."""


# Tools


class ToolOutcome(Contract):
    """What a call came to."""

    status: OutcomeStatus
    text: str
    """For the model, at most the tool's output limit. Of an error: what happened, what was expected, what to do."""
    blob: BlobRef | None = None
    """The whole output where ``text`` is cut."""
    summary: str = Field(default="", max_length=300)
    """One line for people."""
    changed: bool = False
    """It changed the workspace (or the world)."""
    options: tuple[str, ...] = ()
    """With ``asks``: what a person may answer, empty for free text. The question is ``text``."""
    degraded: str = Field(default="", max_length=300)
    """Why this is not the tool's own best answer (its host was left alone, another tool stood in). For the review."""


# Policy


class Dial(StrEnum):
    """How much an agent may do alone, from least to most (design: the dial)."""

    observe = "observe"
    confirm = "confirm"
    propose = "propose"
    delegate = "delegate"


class Permission(Contract):
    """One rule. The first matching ``deny`` decides, then ``ask``, then ``allow``; no match is a denial."""

    id: str
    """Named in every decision that it made: "template.3", "thread.deny.1"."""
    decision: Literal["allow", "ask", "deny"]
    tool: str = "*"
    """Glob over the tool's name."""
    target: str = "*"
    """Glob over what the tool says it touches: "file:src/a.py", "https://example.org/x", "command:git push"."""
    arguments: dict[str, str] = {}
    """Argument name to a glob over its text; all must match."""
    reason: str = ""


class Denial(Contract):
    """A person's no, remembered by target and effect."""

    effect_class: EffectClass
    target: str
    """As it is shown; what is compared are ``marks``."""
    marks: tuple[str, ...] = ()
    """A digest of each target; empty: of those that ``target`` names."""
    reason: str
    times: int = 1
    """How often it was wanted since, this one included."""


class CallQuestion(Contract):
    """May this call run?"""

    tool: ToolSpec
    arguments: JsonDict
    target: str
    """What the tool says it touches; several targets stand on lines of their own."""
    dial: Dial
    permissions: tuple[Permission, ...] = ()
    denials: tuple[Denial, ...] = ()
    reversible: bool = False
    """An external call that declares how to take it back (``delegate`` lets only such ones go by themselves)."""
    budget_left: bool = True
    above: tuple[tuple[Permission, ...], ...] = ()
    """Further lists (the thread's, a parent agent's), each judged for itself: the strictest answer of all holds."""
    ceiling: Dial = Dial.delegate
    """The highest position of the dial that counts: the thread's charter."""
    has_sandbox: bool = False
    """A sandbox was seen to work; ``delegate`` counts only then."""


class CallVerdict(Contract):
    """The answer, recorded with each call."""

    decision: Literal["allow", "ask", "deny"]
    rule: str
    """Id of the permission, or "dial.<dial>", "default", "denied.before"."""
    reason: str
    """A sentence for model and person."""
    pause: bool = False
    """The third try at what a person denied: the job pauses."""


class CallTrace(Contract):
    """What loop detection sees of one finished call, oldest first in a list."""

    turn: int
    tool: str
    arguments_hash: str
    answer_hash: str
    status: OutcomeStatus
    changed: bool


class LoopFinding(Contract):
    """An agent goes round in circles."""

    kind: Literal["same_call", "alternation", "same_failure", "no_change"]
    sentence: str
    """For the model at first, then for a person: what was repeated, how often."""
    since_turn: int


class Spent(Contract):
    """What an agent has used, children included. Grows only."""

    turns: int = 0
    calls: int = 0
    tokens: int = 0
    cost_microdollars: int = 0
    unknown_cost: bool = False
    """A call's price or usage was not known: counts as a stop where a cost limit is set."""


class Limits(Contract):
    """Where an agent stops. 0: not limited by this."""

    turns: int = 12
    calls: int = 200
    tokens: int = 2_000_000
    cost_microdollars: int = 500_000
    wall_seconds: int = 600
    """Since its start, time parked for a person not counted."""
    idle_seconds: int = 0
    """Waiting for a person's answer."""


EndReason = Literal[
    "done", "answered", "turns", "calls", "tokens", "cost", "wall", "idle", "loop", "denied", "answer", "model",
    "cancelled", "failed",
]  # fmt: skip
"""``done``: the named checks are green · ``answered``: a typed result fits its schema · ``answer``: none did, however
often it was told what is wrong · ``model``: no model answers any more · ``denied``: it insists on what a person
denied."""

MORE_HELPS = ("turns", "calls", "tokens", "cost", "wall", "idle", "loop", "denied", "answer", "model")
"""Ends after which a person may give more, and it goes on from there."""


class AgentEnd(Contract):
    """Why an agent stopped."""

    reason: EndReason
    sentence: str = Field(max_length=500)
    """For people: "Stopped after 12 of 12 turns; check tests is red."."""


# Context


class ContextInput(Contract):
    """All that may go into a request. ``messages`` is the whole transcript, oldest first, each once."""

    charter: tuple[Message, ...] = ()
    """System messages: charter and prohibitions. Always there."""
    goal: Message
    records: tuple[Message, ...] = ()
    """What people said, decided and were asked before ``summarized``, and notes: word for word, always there."""
    summary: Message | None = None
    """Stands for the messages before ``summarized``."""
    summarized: int = 0
    """How many of ``messages`` the summary covers."""
    messages: tuple[Message, ...] = ()
    window_tokens: int
    reserved_tokens: int
    """Kept free for the answer and the tools' schemas."""
    scale: int = 8
    """What the provider counts over our estimates, in eighths (``policy.context.next_scale``)."""


class Assembled(Contract):
    """What goes into the request."""

    messages: tuple[Message, ...]
    tokens: int
    """Estimated, by the provider's scale."""
    estimate: int = 0
    """The same by our own estimate alone: what the provider's count is compared with."""
    shortened: int = 0
    """How many results were shortened to a reference."""
    left_out: int = 0
    wants_summary: bool = False
    """Over two thirds of the window: compaction should begin beside the loop."""
