"""One model call as an activity: what is new goes into the transcript, the model is asked, its answer is kept."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any, TypeVar

from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.agent_context import fit
from activities.agent_desk import AgentDesk, Steering, now
from activities.running import again_later, in_thread, to_application_error
from perdure.contracts import names
from perdure.contracts.agent import AgentEnd, LoopFinding, ModelAnswer, ModelRequest, ToolSpec
from perdure.contracts.agent_ports import ModelClient, OnText
from perdure.contracts.agent_run import MOST_CALLS, AgentSpec, CallHeader, TurnInput, TurnRecord, TurnResult
from perdure.contracts.decisions import MESSAGES
from perdure.contracts.job import JobPhase
from perdure.contracts.messages import CallPart, Message, ResultPart, TextPart
from perdure.errors import Conflict, ModelFailed, ModelTrouble
from perdure.policy.budgets import find_stop, may_ask
from perdure.policy.loops import find_loop, next_step
from perdure.store.agents import AgentRow
from perdure.store.transcripts import Line, make_message

Answer = TypeVar("Answer")

_BEAT_SECONDS = 1.0
_RETRIES = 8
"""Attempts at a model that answers "not now"; waits between them come from the provider, else they double."""
_LOOKED_AT = 40
"""Calls that loop detection looks at."""

Watch = Callable[[str, int], OnText | None]
"""Gives, for (agent, turn), where streamed text goes for whoever watches; ``None``: nobody does."""


class ModelLoop:
    """An event loop in a thread of its own, on which models are asked: a long conversation holds up nobody else."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = threading.Lock()

    async def run(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        """Run ``work`` there, heartbeating; when the activity is cancelled it is cancelled too, and waited for."""
        future = asyncio.run_coroutine_threadsafe(work, self._started())
        task = asyncio.wrap_future(future)
        try:
            while not task.done():
                await asyncio.wait({task}, timeout=_BEAT_SECONDS)
                if not task.done():
                    activity.heartbeat()
            return task.result()
        finally:
            future.cancel()

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, name="models", daemon=True).start()
            return self._loop


class Prepared:
    """What a turn needs before its model is asked; or its result, when nobody has to be asked."""

    def __init__(self, *, result: TurnResult | None = None) -> None:
        self.result = result
        self.request: ModelRequest | None = None
        self.number = 0
        """Of the answer."""
        self.delivered: tuple[str, ...] = ()


class ModelActivities:
    """Asks models for agents. A second run of a turn that was answered gives the answer of the first."""

    def __init__(self, desk: AgentDesk, loop: ModelLoop, watch: Watch) -> None:
        self._desk = desk
        self._loop = loop
        self._watch = watch
        self._asking: dict[str, asyncio.Task[ModelAnswer]] = {}

    @activity.defn(name=names.ASK_MODEL)
    async def ask_model(self, question: TurnInput) -> TurnResult:
        """Ask once. Told apart by (agent, turn): an answer that is in the store is given again, and nobody is asked."""
        try:
            return await self._ask_once(question)
        except ApplicationError as error:
            if error.type != Conflict.__name__:
                raise
            # An attempt that was given up wrote its answer just now; it is found there.
            raise again_later(error.message, "AnsweredMeanwhile") from error

    async def _ask_once(self, question: TurnInput) -> TurnResult:
        await self._give_up(question.agent_id)
        prepared = await in_thread(lambda: self._prepare(question))
        if prepared.result is not None:
            return prepared.result
        assert prepared.request is not None  # or there is a result
        try:
            answer = await self._await_answer(self._desk.models, prepared.request)
        except ModelTrouble as trouble:
            return self._again_or_end(question, trouble)
        except ModelFailed as failed:
            return _ended(question, AgentEnd(reason="model", sentence=failed.message[:500]))
        except Exception as error:
            raise to_application_error(error) from error
        return await in_thread(lambda: self._keep(question, prepared, answer))

    async def _give_up(self, agent_id: str) -> None:
        """End a question of this agent's that is still in flight here: nobody waits for its answer any more.

        Temporal tells an activity of its cancelling with its next heartbeat; whoever interrupts need not wait for that.
        """
        task = self._asking.pop(agent_id, None)
        if task is not None:
            task.cancel()
            await asyncio.wait({task})

    async def _await_answer(self, client: ModelClient, request: ModelRequest) -> ModelAnswer:
        task = asyncio.ensure_future(self._loop.run(self._ask(client, request)))
        self._asking[request.agent] = task
        try:
            return await task
        except asyncio.CancelledError:
            me = asyncio.current_task()
            if me is not None and me.cancelling():
                raise
            raise again_later("given up: the same turn is asked again", "GivenUp") from None
        finally:
            task.cancel()
            if self._asking.get(request.agent) is task:
                del self._asking[request.agent]

    async def _ask(self, client: ModelClient, request: ModelRequest) -> ModelAnswer:
        return await client.ask(request, self._watch(request.agent, request.turn))

    @staticmethod
    def _again_or_end(question: TurnInput, trouble: ModelTrouble) -> TurnResult:
        """A model that is busy is asked again by Temporal, for a while; then a person is told."""
        attempt = activity.info().attempt
        if attempt >= _RETRIES:
            sentence = f"No model answered in {attempt} attempts: {trouble.message}"[:500]
            return _ended(question, AgentEnd(reason="model", sentence=sentence))
        seconds = trouble.retry_after_seconds
        delay = timedelta(seconds=min(seconds, 3600) if seconds is not None else min(0.5 * 2**attempt, 60))
        raise ApplicationError(trouble.message, type="ModelTrouble", next_retry_delay=delay) from trouble

    def _prepare(self, question: TurnInput) -> Prepared:
        desk = self._desk
        found = desk.agents.transcripts.turn(question.agent_id, question.turn)
        if found is not None:
            return Prepared(result=found.result)
        row, spec, steering = desk.row(question.agent_id), desk.spec(question.spec), desk.steering(question.job_id)
        stopped = self._why_not(question, row, spec, steering)
        if stopped is not None:
            return Prepared(result=stopped)
        if row.parked_at is not None:
            desk.agents.unpark(row.agent_id, question.turn * 100 + 99, at=now())
        prepared = Prepared()
        number, prepared.delivered = self._write_news(question, row, steering)
        messages = desk.agents.transcripts.read(question.agent_id, number)
        tools = self._tools(spec)
        facts = desk.models.facts(spec.model)
        last = desk.agents.transcripts.turn(question.agent_id, question.turn - 1)
        assembled = fit(messages, tools, facts, last)
        stop = may_ask(row.spent, steering.limits(spec.limits), facts, assembled.tokens)
        if stop is not None:
            return Prepared(result=_ended(question, stop, number=number))
        prepared.number = number
        prepared.request = ModelRequest(
            agent=question.agent_id, turn=question.turn, model=spec.model, messages=assembled.messages, tools=tools
        )
        return prepared

    def _why_not(self, question: TurnInput, row: AgentRow, spec: AgentSpec, steering: Steering) -> TurnResult | None:
        """Why no model is asked now; ``None``: it may be."""
        if row.end is not None:
            return _ended(question, row.end)
        if steering.cancelled_by:
            return _ended(question, AgentEnd(reason="cancelled", sentence=f"Cancelled by {steering.cancelled_by}."))
        if steering.paused_by:
            return self._park(question, f"paused by {steering.paused_by}")
        if asked := self._unanswered(question):
            return self._park(question, asked)
        given = [f"more/{word.id}" for word in steering.words if word.kind == "more"]
        if not (given and self._desk.agents.transcripts.untold(question.agent_id, given)):
            finding, step = self._circle(question)
            if finding is not None and step == "tell_person":
                return _ended(question, AgentEnd(reason="loop", sentence=finding.sentence[:500]))
        seconds = row.wall_seconds(now())
        stop = find_stop(row.spent, steering.limits(spec.limits), wall_seconds=seconds, idle_seconds=0)
        return _ended(question, stop) if stop is not None else None

    def _park(self, question: TurnInput, why: str) -> TurnResult:
        self._desk.agents.park(question.agent_id, JobPhase.paused, why, question.turn * 100 + 97, at=now())
        return TurnResult(number=question.number, parked=why[:500])

    def _unanswered(self, question: TurnInput) -> str:
        """What the turn before asked a person, while nobody has said anything since; empty: nothing."""
        if self._desk.agents.undelivered(question.job_id):
            return ""
        records = self._desk.agents.transcripts.calls(question.agent_id, last=MOST_CALLS)
        asked = [one for one in records if one.status == "asks" and one.turn == question.turn - 1]
        return f"asks: {asked[0].summary}" if asked else ""

    def _write_news(self, question: TurnInput, row: AgentRow, steering: Steering) -> tuple[int, tuple[str, ...]]:
        """Put what is new since the last answer into the transcript; return (the answer's number, messages delivered).

        Written before the model is asked: an attempt that follows finds it there, under the same numbers.
        """
        desk, agent_id = self._desk, question.agent_id
        written = desk.agents.transcripts.length(agent_id)
        number = max(question.number, written)
        lines: list[Line] = []
        for key, message in [*self._late(agent_id), *self._given(agent_id, steering), *self._warning(question)]:
            lines.append(Line(number + len(lines), key, message))
        words = [word for word in steering.words if word.kind in MESSAGES]
        fresh = set(desk.agents.transcripts.untold(agent_id, [f"say/{word.id}" for word in words]))
        undelivered = set(desk.agents.undelivered(question.job_id))
        delivered = [word for word in words if word.id in undelivered and f"say/{word.id}" in fresh]
        for word in delivered:
            text = f"The goal was changed: {word.comment}" if word.kind == "amend" else word.comment
            message = make_message(
                f"{agent_id}#say/{word.id}", TextPart(text=text), role="user", source="person", person=word.by
            )
            lines.append(Line(number + len(lines), f"say/{word.id}", message))
        if lines:
            desk.agents.deliver(agent_id, question.turn, lines, [word.id for word in delivered], at=now())
        return number + len(lines), tuple(word.id for word in delivered)

    def _late(self, agent_id: str) -> list[tuple[str, Message]]:
        """Ends of calls that had been answered with "running"."""
        late = {f"late/{record.key}": record for record in self._desk.agents.transcripts.late_calls(agent_id)}
        found = []
        for key in self._desk.agents.transcripts.untold(agent_id, list(late)) if late else []:
            record, said = late[key], (late[key].late or {})["text"]
            text = f"The call {record.tool} ({record.key}), which was running, has ended:\n{said}"
            message = make_message(f"{agent_id}#{key}", TextPart(text=text), role="user", source="perdure")
            found.append((key, message))
        return found

    def _given(self, agent_id: str, steering: Steering) -> list[tuple[str, Message]]:
        """What people gave more, which also clears what was said about circles."""
        given = {f"more/{word.id}": word for word in steering.words if word.kind == "more"}
        found = []
        for key in self._desk.agents.transcripts.untold(agent_id, list(given)) if given else []:
            text = f"{given[key].by} gave you more to work with ({given[key].comment}). Go on."
            message = make_message(f"{agent_id}#{key}", TextPart(text=text), role="user", source="perdure")
            found.append((key, message))
        return found

    def _warning(self, question: TurnInput) -> list[tuple[str, Message]]:
        """What loop detection found, when it is the model's turn to hear it."""
        finding, step = self._circle(question)
        if finding is None or step != "tell_model":
            return []
        key = f"loop/{question.turn}"
        name = f"{question.agent_id}#{key}"
        return [(key, make_message(name, TextPart(text=finding.sentence), role="user", source="perdure"))]

    def _circle(self, question: TurnInput) -> tuple[LoopFinding | None, str]:
        """Whether it goes round in circles, and who is to be told."""
        transcripts = self._desk.agents.transcripts
        finding = find_loop(self._desk.traces(question.agent_id, _LOOKED_AT))
        if finding is None:
            return None, "go_on"
        cleared = max((number for number, _ in transcripts.keyed(question.agent_id, "more/")), default=-1)
        told = [
            int(key.rpartition("/")[2])
            for number, key in transcripts.keyed(question.agent_id, "loop/")
            if number > cleared
        ]
        return finding, next_step(finding, told, turn=question.turn)

    def _tools(self, spec: AgentSpec) -> tuple[ToolSpec, ...]:
        return tuple(self._desk.tools[name].spec for name in spec.tools if name in self._desk.tools)

    def _keep(self, question: TurnInput, prepared: Prepared, answer: ModelAnswer) -> TurnResult:
        """Store the answer and say what it asks for."""
        message = make_message(
            f"{question.agent_id}#turn/{question.turn}", *answer.parts, role="assistant", source="model"
        )
        calls = tuple(
            self._header(question.turn, prepared.number, position, part) for position, part in enumerate(message.calls)
        )
        assert prepared.request is not None
        record = TurnRecord(
            turn=question.turn,
            number=prepared.number,
            sent=len(prepared.request.messages),
            model=answer.model,
            finish=answer.finish,
            usage=answer.usage,
            cost_microdollars=answer.cost_microdollars,
            notes=answer.notes[:20],
            delivered=prepared.delivered,
            result=TurnResult(number=prepared.number + 1 + len(calls), calls=calls[:MOST_CALLS]),
        )
        line = Line(prepared.number, f"turn/{question.turn}", message)
        extra = [self._refuse_call(question, header, message.calls[header.position]) for header in calls[MOST_CALLS:]]
        return self._desk.agents.end_turn(question.agent_id, record, line, extra, at=now()).result

    @staticmethod
    def _refuse_call(question: TurnInput, header: CallHeader, part: CallPart) -> Line:
        text = f"Not run: an answer may ask for {MOST_CALLS} calls at most. Ask for this one again."
        result = ResultPart(call_id=part.id, name=part.name, status="error", text=text)
        key = f"call/{question.turn}/{header.position}"
        message = make_message(f"{question.agent_id}#{key}", result, role="tool", source="perdure")
        return Line(header.number, key, message)

    def _header(self, turn: int, answer: int, position: int, part: CallPart) -> CallHeader:
        tool = self._desk.tools.get(part.name)
        limits = {"limit_seconds": tool.spec.limit_seconds, "grace_seconds": tool.spec.grace_seconds} if tool else {}
        place = {"turn": turn, "position": position, "number": answer + 1 + position, "answer": answer}
        return CallHeader(tool=part.name[:80], **place, **limits)


def _ended(question: TurnInput, end: AgentEnd, *, number: int | None = None) -> TurnResult:
    return TurnResult(number=question.number if number is None else number, end=end)
