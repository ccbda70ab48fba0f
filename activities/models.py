"""One model call as an activity: what is new goes into the transcript, the model is asked, its answer is kept."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeVar

from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.agent_context import Fitter, Told, context_of
from activities.agent_desk import AgentDesk, Steering, asked, now
from activities.agent_family import parked_seconds, taken
from activities.agent_news import Written, circle, has_news_of_more, write_news
from activities.checkpointing import CheckpointKeeper
from activities.running import again_later, in_thread, raise_failure
from perdure.contracts import names
from perdure.contracts.agent import AgentEnd, Limits, ModelAnswer, ModelRequest, Spent, ToolSpec
from perdure.contracts.agent_ports import ModelClient, OnText
from perdure.contracts.agent_run import MOST_CALLS, AgentSpec, CallHeader, TurnInput, TurnRecord, TurnResult
from perdure.contracts.job import JobPhase
from perdure.contracts.messages import CallPart, ResultPart
from perdure.errors import Conflict, ModelFailed, ModelTrouble
from perdure.policy.budgets import find_stop, may_ask, may_call
from perdure.store.agent_rows import AgentLook
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


@dataclass(frozen=True)
class Prepared:
    """What a turn needs before its model is asked; or its result, when nobody has to be asked."""

    result: TurnResult | None = None
    request: ModelRequest | None = None
    told: Told | None = None
    written: Written = field(default_factory=lambda: Written(0))
    most_calls: int = MOST_CALLS
    """So many of the answer's calls may run; the others are told that they do not."""


class ModelActivities:
    """Asks models for agents. A second run of a turn that was answered gives the answer of the first."""

    def __init__(self, desk: AgentDesk, loop: ModelLoop, watch: Watch, keeper: CheckpointKeeper) -> None:
        self._desk = desk
        self._keeper = keeper
        self._loop = loop
        self._watch = watch
        self._fitter = Fitter()
        self._asking: dict[str, asyncio.Task[ModelAnswer]] = {}

    @activity.defn(name=names.ASK_MODEL)
    async def ask_model(self, question: TurnInput) -> TurnResult:
        """Ask once. Told apart by (agent, turn): an answer that is in the store is given again, and nobody is asked."""
        question = asked(question)
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
            raise_failure(error)
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
        look = desk.agents.look(question.agent_id, question.turn, last=_LOOKED_AT)
        if look.record is not None:
            return Prepared(result=look.record.result)
        spec = desk.spec(question.agent_id)
        steering = desk.steering_of(spec)
        stopped = self._why_not(question, look, spec, steering)
        if stopped is not None:
            return Prepared(result=stopped)
        if look.row.parked_at is not None:
            desk.agents.unpark(question.agent_id, question.turn * 100 + 99, at=now())
        rewind = functools.partial(self._keeper.rewind, spec, question.turn)
        written = write_news(desk, question, look, steering, rewind)
        messages = desk.agents.transcripts.read(question.agent_id, written.number)
        tools = self._tools(spec)
        facts = desk.models.facts(spec.model)
        told = self._fitter.fit(
            question.agent_id, context_of(question.agent_id, messages, tools, facts, look.before, look.summary)
        )
        spent, limits = self._taken(look), steering.limits(spec.limits)
        stop = may_ask(spent, limits, facts, told.assembled.tokens)
        if stop is not None:
            return Prepared(result=_ended(question, stop, number=written.number))
        request = ModelRequest(
            agent=question.agent_id,
            turn=question.turn,
            model=spec.model,
            messages=told.assembled.messages,
            tools=tools,
            answer_schema=spec.answer if spec.answer and not tools else None,
        )
        most = _most_calls(spent, limits)
        return Prepared(request=request, told=told, written=written, most_calls=most)

    def _why_not(self, question: TurnInput, look: AgentLook, spec: AgentSpec, steering: Steering) -> TurnResult | None:
        """Why no model is asked now; ``None``: it may be."""
        if look.row.end is not None:
            return _ended(question, look.row.end)
        if spec.refused is not None:
            return _ended(question, spec.refused)
        if spec.parent and self._desk.row(spec.parent).end is not None:
            return _ended(question, AgentEnd(reason="cancelled", sentence="The agent that it works for has ended."))
        if steering.cancelled_by:
            return _ended(question, AgentEnd(reason="cancelled", sentence=f"Cancelled by {steering.cancelled_by}."))
        if steering.paused_by:
            return self._park(question, f"paused by {steering.paused_by}")
        if unanswered := _unanswered(question, look):
            return self._park(question, unanswered)
        finding, step = circle(question, look)
        if finding is not None and step == "tell_person" and not has_news_of_more(look, steering):
            return _ended(question, AgentEnd(reason="loop", sentence=finding.sentence[:500]))
        seconds = look.row.wall_seconds(now()) - parked_seconds(question.agent_id, look.below)
        stop = find_stop(self._taken(look), steering.limits(spec.limits), wall_seconds=seconds, idle_seconds=0)
        return _ended(question, stop) if stop is not None else None

    def _taken(self, look: AgentLook) -> Spent:
        """What it has used, with what agents below it have used and may yet use."""
        return taken(look.row, look.below, lambda agent_id: self._desk.spec(agent_id).limits)

    def _park(self, question: TurnInput, why: str) -> TurnResult:
        self._desk.agents.park(question.agent_id, JobPhase.paused, why, question.turn * 100 + 97, at=now())
        return TurnResult(number=question.number, parked=why[:500])

    def _tools(self, spec: AgentSpec) -> tuple[ToolSpec, ...]:
        return tuple(self._desk.tools[name].spec for name in spec.tools if name in self._desk.tools)

    def _keep(self, question: TurnInput, prepared: Prepared, answer: ModelAnswer) -> TurnResult:
        """Store the answer and say what it asks for."""
        message = make_message(
            f"{question.agent_id}#turn/{question.turn}", *answer.parts, role="assistant", source="model"
        )
        number = prepared.written.number
        calls = tuple(
            self._header(question.turn, number, position, part) for position, part in enumerate(message.calls)
        )
        told, most = prepared.told, prepared.most_calls
        assert prepared.request is not None and told is not None
        record = TurnRecord(
            turn=question.turn,
            number=number,
            sent=len(prepared.request.messages),
            estimate=told.assembled.estimate,
            scale=told.scale,
            model=answer.model,
            finish=answer.finish,
            usage=answer.usage,
            cost_microdollars=answer.cost_microdollars,
            notes=answer.notes[:20],
            delivered=prepared.written.delivered,
            result=TurnResult(number=number + 1 + len(calls), calls=calls[:most], summarize=told.summarize),
        )
        line = Line(number, f"turn/{question.turn}", message)
        extra = [self._refuse_call(question, header, message.calls[header.position], most) for header in calls[most:]]
        return self._desk.agents.end_turn(question.agent_id, record, line, extra, at=now()).result

    @staticmethod
    def _refuse_call(question: TurnInput, header: CallHeader, part: CallPart, most: int) -> Line:
        why = f"an answer may ask for {MOST_CALLS} calls at most. Ask for this one again."
        if most < MOST_CALLS:
            why = f"your limit left {most} calls, and this answer asked for more. A person may give more."
        text = f"Not run: {why}"
        result = ResultPart(call_id=part.id, name=part.name, status="error", text=text)
        key = f"call/{question.turn}/{header.position}"
        message = make_message(f"{question.agent_id}#{key}", result, role="tool", source="perdure")
        return Line(header.number, key, message)

    def _header(self, turn: int, answer: int, position: int, part: CallPart) -> CallHeader:
        tool = self._desk.tools.get(part.name)
        limit = {"limit": tool.spec.limit_seconds} if tool else {}
        place = {"turn": turn, "position": position, "number": answer + 1 + position, "answer": answer}
        return CallHeader(**place, **limit)


def _most_calls(spent: Spent, limits: Limits) -> int:
    """How many calls of one answer may run: all of them fit into what is left."""
    return next((count for count in range(MOST_CALLS, 0, -1) if may_call(spent, limits, count) is None), 0)


def _unanswered(question: TurnInput, look: AgentLook) -> str:
    """What the turn before asked a person, while nobody has said anything since; empty: nothing."""
    open_ones = [one for one in look.calls if one.status == "asks" and one.turn == question.turn - 1]
    return f"asks: {open_ones[0].summary}" if open_ones and not look.undelivered else ""


def _ended(question: TurnInput, end: AgentEnd, *, number: int | None = None) -> TurnResult:
    return TurnResult(number=question.number if number is None else number, end=end)
