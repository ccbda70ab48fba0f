"""One tool call as an activity: decided, begun, run, kept. A later attempt finds the end, or says that nobody knows."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from temporalio import activity

from activities.agent_asking import CallAsker
from activities.agent_desk import AgentDesk, asked, now
from activities.call_secrets import with_secrets, without_secrets
from activities.call_stops import AgentCalls, stop_watch
from activities.call_threads import CallThreads, Working
from activities.call_words import find_fault, find_misfit, find_out, say_denied, say_edited, say_failed, say_running
from activities.checkpointing import CheckpointKeeper
from activities.delegating import Delegator
from activities.running import again_later, in_thread, until_stored
from perdure.contracts import names
from perdure.contracts.agent import CallQuestion, CallVerdict, Dial, ToolOutcome
from perdure.contracts.agent_ports import Tool, ToolContext
from perdure.contracts.agent_run import AgentSpec, AgentState, CallInput, CallRecord, CallResult
from perdure.contracts.messages import CallPart, ResultPart
from perdure.errors import PerdureError, Refused, SetupError, ToolFault
from perdure.policy.delegation import DELEGATE
from perdure.policy.permissions import DENIED_BEFORE, decide_call
from perdure.policy.targets import hash_arguments, marks_of, shorten
from perdure.store.notes import ThreadNotes
from perdure.store.transcripts import Line, make_message
from perdure.store.trouble import StoreTrouble

ReadSecrets = Callable[[Sequence[str]], Mapping[str, str]]
"""Gives the values of named secrets. Raises ``SetupError`` naming the file of one that is missing."""

_TURN_SECONDS = 60.0
"""How long a call that writes waits for another one of its agent that does."""


class ToolActivities:
    """Runs the calls of agents."""

    def __init__(
        self,
        desk: AgentDesk,
        asker: CallAsker,
        delegator: Delegator,
        keeper: CheckpointKeeper,
        sandbox: Any,
        read_secrets: ReadSecrets,
    ) -> None:
        self._desk = desk
        self._keeper = keeper
        self._asker = asker
        self._delegator = delegator
        self._sandbox = sandbox
        self._read_secrets = read_secrets
        self._threads = CallThreads()
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
        if prior is not None and (prior.has_ended or (prior.status == "running" and not question.late)):
            return _result_of(prior)
        spec = desk.spec(question.agent_id)
        part = desk.agents.transcripts.read(question.agent_id, header.answer + 1)[-1].calls[header.position]
        record = prior or CallRecord(key=key, turn=header.turn, position=header.position, tool=part.name[:80])
        tool = desk.tools.get(part.name) if part.name in spec.tools else None
        fault = find_fault(part, tool, spec)
        if fault or tool is None:
            return self._end(question, part, record, ToolOutcome(status="error", text=fault))
        if record.attempts == 0:  # an attempt that began was allowed to
            return self._decide_and_run(question, part, record, tool, spec)
        return self._attempt(question, _as_edited(part, record), record, tool, spec)

    def _decide_and_run(
        self, question: CallInput, part: CallPart, record: CallRecord, tool: Tool, spec: AgentSpec
    ) -> CallResult:
        """Ask the permissions, then people where they say so; what somebody edited is asked about like a new call."""
        while True:
            call = _as_edited(part, record)
            fault = find_misfit(tool, call.arguments)  # only an edit: what the model wrote was looked at before
            if fault:
                record = _take_back(record, fault)
                continue
            record = _describe(record, call, tool)
            verdict = self._decide(question, call, record, tool, spec)
            record = record.model_copy(update={"verdict": verdict})
            if verdict.decision == "deny" and record.edited_by:
                record = _take_back(record, f"{verdict.rule}: {verdict.reason}")
                continue
            if verdict.decision == "deny":
                return self._deny(question, call, record, verdict)
            # Once it was asked about, people decide: a dial that was raised since runs nothing behind their backs.
            if verdict.decision == "allow" and not (record.asked or record.digest):
                return self._attempt(question, call, record, tool, spec)
            answer = self._asker.look(question, spec, call, record, verdict, tool)
            record = answer.record
            if answer.waits:
                return CallResult(status="waits", until=answer.until)
            if answer.edits is not None:
                changed = {"arguments": answer.edits.changes["arguments"], "edited_by": answer.edits.by}
                record = record.model_copy(update={**changed, "previous": record.digest, "digest": "", "note": ""})
                continue
            if not answer.allowed:
                no = CallVerdict(decision="deny", rule=answer.rule, reason=answer.reason)
                return self._deny(question, call, record.model_copy(update={"verdict": no}), no)
            return self._attempt(question, call, record, tool, spec)

    def _deny(self, question: CallInput, part: CallPart, record: CallRecord, verdict: CallVerdict) -> CallResult:
        if record.digest:
            self._desk.ledger.void_call(record.digest)
        return self._end(question, part, record, say_denied(verdict))

    def _decide(
        self, question: CallInput, part: CallPart, record: CallRecord, tool: Tool, spec: AgentSpec
    ) -> CallVerdict:
        known = spec.tool_digests.get(tool.spec.name)
        if known is not None and known != record.tool_digest:
            reason = f"The definition of {tool.spec.name} changed since this agent began; a changed tool is a new one."
            self._desk.lower_dial(spec, reason, record.key)
            return CallVerdict(decision="ask", rule="tool.changed", reason=reason)
        dial = self._desk.dial(spec, self._desk.steering(question.job_id))
        verdict = decide_call(
            CallQuestion(
                tool=tool.spec,
                arguments=part.arguments,
                target=tool.target(part.arguments),  # whole: the record's is short
                dial=dial,
                ceiling=spec.ceiling,
                permissions=spec.permissions,
                above=spec.above,
                denials=self._desk.denials(question.job_id),
                has_sandbox=dial is Dial.delegate and self._has_sandbox(),
            )
        )
        if verdict.rule == DENIED_BEFORE:
            self._desk.lower_dial(spec, f"It wanted what a person denied: {record.target}", record.key)
        return verdict

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
        """Begin it, or join it where it works already; what outlasts its grace goes on beside the agent."""
        if tool.spec.name == DELEGATE:
            return self._delegate(question, part, record, tool, spec)

        def perform(working: Working) -> CallResult:
            return self._perform(question, part, record, tool, spec, working)

        working = self._threads.join(record.key, perform, is_beside=record.status == "running")
        grace = float(tool.spec.grace_seconds) if tool.spec.grace_seconds and not question.late else None
        if working.wait(grace):
            return working.result()
        with working.lock:
            if working.has_ended():
                return working.result()
            if grace is None:
                raise again_later("nobody waits for this attempt any more; the call goes on", "LeftRunning")
            working.is_beside = True
            text = say_running(record, tool)
            line = self._line(question, part, ResultPart(call_id=part.id, name=part.name, status="running", text=text))
            return _result_of(self._desk.agents.leave_running(question.agent_id, record, line, at=now()))

    def _perform(
        self,
        question: CallInput,
        part: CallPart,
        record: CallRecord,
        tool: Tool,
        spec: AgentSpec,
        working: Working,
    ) -> CallResult:
        context = self._context(question, record, tool, spec)
        if tool.spec.effect_class == "read" and not record.digest:
            return self._finish(question, part, record, self._call(tool, part, context), working)
        # Calls of one answer run beside each other; those that write do it one after the other.
        turn = self._writing.setdefault(str(self._desk.folder(question.agent_id)), threading.Lock())
        if not turn.acquire(timeout=_TURN_SECONDS):
            text = "Another call of yours still writes to the workspace. Wait for its end, or end it with calls.cancel."
            return self._finish(question, part, record, ToolOutcome(status="error", text=text), working)
        try:
            begun = self._begin(question, record, tool)
            if begun.has_ended:
                return _result_of(begun)
            if begun.attempts > 1 and not tool.spec.may_repeat:
                outcome = find_out(tool, part.arguments, context)
            else:
                outcome = self._call(tool, part, context)
            if outcome.changed or outcome.status == "unknown":
                self._keeper.keep(spec, begun)
        except Refused as refusal:  # the approval was withdrawn just now, a word is undelivered, the job cancelled
            no = CallVerdict(decision="deny", rule="gate", reason=refusal.message)
            return self._deny(question, part, record.model_copy(update={"verdict": no}), no)
        finally:
            turn.release()
        # What this process alone knows is written, however long the store cannot be used.
        return until_stored(lambda: self._finish(question, part, begun, outcome, working))

    def _begin(self, question: CallInput, record: CallRecord, tool: Tool) -> CallRecord:
        """Count the attempt; of a call that people decided on only as the ledger lets an approved effect begin."""
        beginning = self._asker.beginning(question, record, tool) if record.attempts == 0 else None
        return self._desk.agents.begin_call(question.agent_id, record, beginning, at=now())

    def _delegate(
        self, question: CallInput, part: CallPart, record: CallRecord, tool: Tool, spec: AgentSpec
    ) -> CallResult:
        """Have another agent work, and run again once it has ended: then its answer is this call's."""
        try:
            begun = record if record.attempts else self._begin(question, record, tool)
        except Refused as refusal:
            no = CallVerdict(decision="deny", rule="gate", reason=refusal.message)
            return self._deny(question, part, record.model_copy(update={"verdict": no}), no)
        try:
            found = self._delegator.run(question, part, spec)
        except ToolFault as fault:
            found = ToolOutcome(status="error", text=fault.message, summary=fault.message[:300])
        if isinstance(found, AgentState):
            return CallResult(status="waits", child=found)
        return self._end(question, part, begun, found)

    def _call(self, tool: Tool, part: CallPart, context: ToolContext) -> ToolOutcome:
        """What it came to. What a tool raises is told to the model; what says nothing about it is tried again."""
        try:
            secrets = self._read_secrets(getattr(tool, "secrets", ()))
            given = with_secrets(context, secrets)
            return without_secrets(self._run_tool(tool, part, given), secrets)
        except StoreTrouble:
            raise
        except PerdureError as error:
            return ToolOutcome(status="error", text=error.message, summary=error.message[:300])

    @staticmethod
    def _run_tool(tool: Tool, part: CallPart, context: ToolContext) -> ToolOutcome:
        try:
            return tool.run(part.arguments, context)
        except StoreTrouble:
            raise
        except PerdureError as error:
            return ToolOutcome(status="error", text=error.message, summary=error.message[:300])
        except Exception as error:
            # Where there are secrets without its text: a library's error may hold what the tool was given.
            trace = None if context.secrets else error
            activity.logger.error("tool %s failed: %s", tool.spec.name, type(error).__name__, exc_info=trace)
            return say_failed(tool, error)

    def _context(self, question: CallInput, record: CallRecord, tool: Tool, spec: AgentSpec) -> ToolContext:
        desk = self._desk
        return ToolContext(
            agent=question.agent_id,
            key=record.key,
            blobs=desk.blobs,
            now=now(),
            limit=timedelta(seconds=tool.spec.limit_seconds),
            is_stopped=stop_watch(desk, question.agent_id, question.job_id, record.key),
            workspace=desk.folder(question.agent_id) / "tree",
            paths=spec.paths,
            base_commit=spec.base_commit,
            git_dir=desk.folder(question.agent_id) / "git",
            sandbox=self._sandbox,
            notes=ThreadNotes(desk.ledger.database, names.JobId.parse(question.job_id).thread),
            hosts=spec.hosts,
            calls=AgentCalls(desk, question.agent_id),
        )

    def _finish(
        self, question: CallInput, part: CallPart, record: CallRecord, outcome: ToolOutcome, working: Working
    ) -> CallResult:
        """Write the end: as the call's result, or as news where the model was told that it goes on."""
        with working.lock:
            if not working.is_beside:
                return self._end(question, part, record, outcome)
            text = say_edited(record, outcome.text)
            late = self._desk.blobs.put_json({"text": text, "blob": outcome.blob and outcome.blob.model_dump()})
            ended = _ended(record, outcome).model_copy(update={"late": late})
            ending = self._asker.ending(question, record, outcome)
            return _result_of(self._desk.agents.end_late(question.agent_id, ended, ending, at=now()))

    def _end(self, question: CallInput, part: CallPart, record: CallRecord, outcome: ToolOutcome) -> CallResult:
        """Write the end, its message and the receipt of what people approved in one transaction."""
        text = outcome.text if outcome.status == "denied" else say_edited(record, outcome.text)
        result = ResultPart(call_id=part.id, name=part.name, status=outcome.status, text=text, blob=outcome.blob)
        line, ending = self._line(question, part, result), self._asker.ending(question, record, outcome)
        ended = self._desk.agents.end_call(question.agent_id, _ended(record, outcome), line, ending, at=now())
        return _result_of(ended)

    @staticmethod
    def _line(question: CallInput, part: CallPart, result: ResultPart) -> Line:
        key = f"call/{question.call.turn}/{question.call.position}"
        message = make_message(f"{question.agent_id}#{key}", result, role="tool", source="tool")
        return Line(question.call.number, key, message)


def _result_of(record: CallRecord) -> CallResult:
    assert record.status not in ("", "waits")  # it was just written
    return CallResult(status=record.status, pause=bool(record.verdict and record.verdict.pause))


def _ended(record: CallRecord, outcome: ToolOutcome) -> CallRecord:
    return record.model_copy(
        update={
            "status": outcome.status,
            "answer_hash": hashlib.sha256(outcome.text.encode("utf-8", "replace")).hexdigest()[:32],
            "changed": outcome.changed,
            "summary": outcome.summary or outcome.text[:200],
            "degraded": outcome.degraded,
        }
    )


def _describe(record: CallRecord, part: CallPart, tool: Tool) -> CallRecord:
    """The record with what the call is: by which tool, on what."""
    target = tool.target(part.arguments)
    return record.model_copy(
        update={
            "tool_digest": tool.spec.digest(),
            "effect_class": tool.spec.effect_class,
            "target": shorten(target),
            "marks": marks_of(target),
            "arguments_hash": hash_arguments(part.arguments),
        }
    )


def _as_edited(part: CallPart, record: CallRecord) -> CallPart:
    """The call as it is to run: a person's arguments, where one changed it."""
    return part if record.arguments is None else part.model_copy(update={"arguments": record.arguments})


def _take_back(record: CallRecord, why: str) -> CallRecord:
    """The call as the model wrote it, which is asked about again: somebody's edit of it cannot be."""
    note = f"{record.edited_by} changed this call, and the change cannot be: {why}"
    return record.model_copy(update={"arguments": None, "edited_by": "", "digest": "", "note": note})
