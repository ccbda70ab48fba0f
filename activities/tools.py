"""One tool call as an activity: decided, begun, run, kept. A later attempt finds the end, or says that nobody knows."""

from __future__ import annotations

import hashlib
import json
import threading
from datetime import timedelta
from typing import Any

from temporalio import activity

from activities.agent_asking import CallAsker
from activities.agent_desk import AgentDesk, asked, now
from activities.checkpointing import CheckpointKeeper
from activities.running import in_thread, is_stopped
from perdure.contracts import names
from perdure.contracts.agent import CallQuestion, CallVerdict, Dial, ToolOutcome
from perdure.contracts.agent_ports import Tool, ToolContext
from perdure.contracts.agent_run import AgentSpec, CallInput, CallRecord, CallResult
from perdure.contracts.base import JsonDict
from perdure.contracts.messages import CallPart, ResultPart
from perdure.errors import PerdureError, SetupError, ToolFault
from perdure.policy.names import suggest
from perdure.policy.permissions import decide_call
from perdure.policy.targets import marks_of, shorten
from perdure.store.notes import ThreadNotes
from perdure.store.transcripts import Line, make_message
from perdure.store.trouble import StoreTrouble
from perdure.tools.guard import Guard


class ToolActivities:
    """Runs the calls of agents."""

    def __init__(self, desk: AgentDesk, asker: CallAsker, keeper: CheckpointKeeper, sandbox: Any) -> None:
        self._desk = desk
        self._keeper = keeper
        self._asker = asker
        self._sandbox = sandbox
        self._guard = Guard(desk.tools)
        self._writing: dict[str, threading.Lock] = {}

    @activity.defn(name=names.RUN_TOOL)
    async def run_tool(self, question: CallInput) -> CallResult:
        """Run one call, told apart by (agent, turn, position). The same again finds its own answer."""
        return await in_thread(lambda: self._run(asked(question)))

    def _run(self, question: CallInput) -> CallResult:
        desk = self._desk
        header = question.call
        key = f"{question.agent_id}/{header.turn}/{header.position}"
        prior = desk.agents.transcripts.call(key)
        if prior is not None and prior.status not in ("", "waits"):
            return CallResult(status=prior.status, pause=bool(prior.verdict and prior.verdict.pause))
        spec = desk.spec(question.agent_id)
        part = desk.agents.transcripts.read(question.agent_id, question.call.answer + 1)[-1].calls[
            question.call.position
        ]
        record = prior or CallRecord(key=key, turn=header.turn, position=header.position, tool=part.name[:80])
        tool = desk.tools.get(part.name) if part.name in spec.tools else None
        fault = _fault(part, tool, spec)
        if fault or tool is None:
            return self._end(question, part, record, ToolOutcome(status="error", text=fault))
        return self._decide_and_run(question, part, record, tool, spec)

    def _decide_and_run(
        self, question: CallInput, part: CallPart, record: CallRecord, tool: Tool, spec: AgentSpec
    ) -> CallResult:
        record = record.model_copy(
            update={
                "tool_digest": tool.spec.digest(),
                "effect_class": tool.spec.effect_class,
                "target": shorten(tool.target(part.arguments)),
                "marks": marks_of(tool.target(part.arguments)),
                "arguments_hash": _hash(part.arguments),
            }
        )
        if record.attempts == 0:  # an attempt that began was allowed to
            verdict = self._decide(question, part, record, tool, spec)
            record = record.model_copy(update={"verdict": verdict})
            if verdict.decision == "deny":
                return self._end(question, part, record, _denied(verdict))
            if verdict.decision == "ask":
                answer = self._asker.look(question, spec, part, record, verdict, tool)
                if answer.waits:
                    return CallResult(status="waits", until=answer.until)
                record = record.model_copy(update={"digest": answer.digest})
                if not answer.allowed:
                    no = CallVerdict(decision="deny", rule=answer.rule, reason=answer.reason)
                    return self._end(question, part, record.model_copy(update={"verdict": no}), _denied(no))
        return self._attempt(question, part, record, tool, spec)

    def _decide(
        self, question: CallInput, part: CallPart, record: CallRecord, tool: Tool, spec: AgentSpec
    ) -> CallVerdict:
        known = spec.tool_digests.get(tool.spec.name)
        if known is not None and known != record.tool_digest:
            reason = f"The definition of {tool.spec.name} changed since this agent began; a changed tool is a new one."
            return CallVerdict(decision="ask", rule="tool.changed", reason=reason)
        dial = self._desk.steering(question.job_id).dial(spec.dial)
        return decide_call(
            CallQuestion(
                tool=tool.spec,
                arguments=part.arguments,
                target=tool.target(part.arguments),  # whole: the record's is short
                dial=dial,
                permissions=spec.permissions,
                denials=self._desk.denials(question.job_id),
                has_sandbox=dial is Dial.delegate and self._has_sandbox(),
            )
        )

    def _has_sandbox(self) -> bool:
        """Whether commands can be held here; asked only where it decides."""
        try:
            self._sandbox()
        except SetupError:
            return False
        return True

    def _attempt(
        self, question: CallInput, part: CallPart, record: CallRecord, tool: Tool, spec: AgentSpec
    ) -> CallResult:
        context = self._context(question, record, tool, spec)
        if tool.spec.effect_class == "read" and not record.digest:
            return self._end(question, part, record, self._call(tool, part, context))
        begun = self._desk.agents.begin_call(question.agent_id, record, at=now())
        # Calls of one answer run beside each other; those that write do it one after the other.
        lock = self._writing.setdefault(question.agent_id, threading.Lock())
        with lock:
            if begun.attempts > 1 and not tool.spec.may_repeat:
                outcome = _find_out(tool, part.arguments, context)
            else:
                outcome = self._call(tool, part, context)
            if outcome.changed or outcome.status == "unknown":
                self._keeper.keep(spec, begun)
        return self._end(question, part, begun, outcome)

    def _call(self, tool: Tool, part: CallPart, context: ToolContext) -> ToolOutcome:
        """What it came to. What a tool raises is told to the model; what says nothing about it is tried again."""
        try:
            return self._guard.run(tool.spec.name, part.arguments, context)
        except StoreTrouble:
            raise
        except (ToolFault, SetupError, PerdureError) as error:
            return ToolOutcome(status="error", text=error.message, summary=error.message[:300])
        except Exception as error:
            activity.logger.exception("tool %s failed", tool.spec.name)
            text = f"{tool.spec.name} failed: {type(error).__name__}: {error}. This is a fault of the tool."
            return ToolOutcome(status="error", text=text[:4000], summary=text[:300])

    def _context(self, question: CallInput, record: CallRecord, tool: Tool, spec: AgentSpec) -> ToolContext:
        return ToolContext(
            agent=question.agent_id,
            key=record.key,
            blobs=self._desk.blobs,
            now=now(),
            limit=timedelta(seconds=tool.spec.limit_seconds),
            is_stopped=is_stopped,
            workspace=self._desk.folder(question.agent_id) / "tree",
            paths=spec.paths,
            base_commit=spec.base_commit,
            git_dir=self._desk.folder(question.agent_id) / "git",
            sandbox=self._sandbox,
            notes=ThreadNotes(self._desk.ledger.database, names.JobId.parse(question.job_id).thread),
            hosts=spec.hosts,
        )

    def _end(self, question: CallInput, part: CallPart, record: CallRecord, outcome: ToolOutcome) -> CallResult:
        """Write the end and its message in one transaction."""
        result = ResultPart(
            call_id=part.id, name=part.name, status=outcome.status, text=outcome.text, blob=outcome.blob
        )
        key = f"call/{question.call.turn}/{question.call.position}"
        message = make_message(f"{question.agent_id}#{key}", result, role="tool", source="tool")
        ended = record.model_copy(
            update={
                "status": outcome.status,
                "answer_hash": _hash(outcome.text),
                "changed": outcome.changed,
                "summary": outcome.summary or outcome.text[:200],
                "degraded": outcome.degraded,
            }
        )
        line = Line(question.call.number, key, message)
        if record.digest and record.attempts:
            self._asker.finish(question, record, outcome)
        kept = self._desk.agents.end_call(question.agent_id, ended, line, at=now())
        assert kept.status != ""
        return CallResult(status=kept.status, pause=bool(kept.verdict and kept.verdict.pause))


def _fault(part: CallPart, tool: Tool | None, spec: AgentSpec) -> str:
    """Why a call cannot run at all, for the model; empty when it can."""
    if tool is None:
        return f"There is no tool {part.name!r} here.{suggest(part.name, spec.tools, 'tools')}"
    if part.fault:
        return f"The arguments could not be read: {part.fault}. Send one JSON object that fits the tool's schema."
    try:
        tool.target(part.arguments)
    except ToolFault as fault:
        return fault.message
    return ""


def _find_out(tool: Tool, arguments: JsonDict, context: ToolContext) -> ToolOutcome:
    """An earlier attempt began and told no end: look what became of it, and never simply run it again."""
    try:
        found = tool.probe(arguments, context)
    except PerdureError as error:
        activity.logger.warning("probing %s failed: %s", tool.spec.name, error.message)
        found = None
    if found is not None:
        return found
    text = (
        f"The worker that ran this call of {tool.spec.name} died before it ended. Whether it happened, or how much of "
        "it, is not known; it was not run again. Look at what is there before you do anything else."
    )
    return ToolOutcome(status="unknown", text=text, summary="its end is not known; not run again")


def _denied(verdict: CallVerdict) -> ToolOutcome:
    text = f"Not allowed ({verdict.rule}): {verdict.reason} Do not try to reach the same by another way."
    return ToolOutcome(status="denied", text=text, summary=verdict.reason[:300])


def _hash(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]
