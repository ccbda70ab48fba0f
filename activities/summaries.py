"""Summaries of long conversations, made beside the loop: no turn waits for one, and no message is changed."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.agent_context import FIRST
from activities.agent_desk import AgentDesk, asked, now
from activities.models import ModelLoop
from activities.running import in_thread, raise_failure
from perdure.contracts import names
from perdure.contracts.agent import ModelAnswer, ModelFacts, ModelRequest, Spent
from perdure.contracts.agent_run import AgentSpec, SummaryInput, SummaryRecord, SummaryResult
from perdure.contracts.messages import CallPart, Message, ResultPart, TextPart
from perdure.errors import ModelFailed, ModelTrouble
from perdure.policy.budgets import add, may_ask, reserve
from perdure.policy.records import find_notes, find_records
from perdure.policy.shorten import shorten
from perdure.store.notes import ThreadNotes
from perdure.store.transcripts import make_message

PROMPT = "prompts/summary.md"
_LONGEST_TOKENS = 4000
"""Of one summary; the prompt asks for much less."""
_PIECE_CHARACTERS = 1500
"""Of one message, as it is put before whoever summarizes."""
_ATTEMPTS = 4


class SummaryActivities:
    """Makes summaries. A second run finds the summary of the first."""

    def __init__(self, desk: AgentDesk, loop: ModelLoop, templates: Path) -> None:
        self._desk = desk
        self._loop = loop
        self._prompt = functools.cache((templates / PROMPT).read_text)

    @activity.defn(name=names.SUMMARIZE)
    async def summarize_agent(self, question: SummaryInput) -> SummaryResult:
        """Summarize what came before one number. Where nobody can, the agent goes on without a summary."""
        question = asked(question)
        prepared = await in_thread(lambda: self._prepare(question))
        if isinstance(prepared, SummaryResult):
            return prepared
        try:
            answer = await self._loop.run(self._desk.models.ask(prepared))
        except ModelTrouble as trouble:
            return await self._again_or_not(question, trouble)
        except ModelFailed as failed:
            return await self._give_up(question, failed.message)
        except Exception as error:
            raise_failure(error)
        if not _text(answer):
            return await self._give_up(question, "The model's summary was empty.")
        await in_thread(lambda: self._keep(question, answer))
        return SummaryResult()

    def _prepare(self, question: SummaryInput) -> ModelRequest | SummaryResult:
        desk = self._desk
        row = desk.row(question.agent_id)
        if row.end is not None:
            return SummaryResult(made=False, why="The agent has ended.")
        newest = desk.agents.summaries.newest(question.agent_id)
        if newest is not None and newest.until >= question.until:
            return SummaryResult()
        spec = desk.spec(question.agent_id)
        facts = desk.models.facts(spec.model)
        request = self._request(question, spec, facts, newest)
        reserved = _reserve(request, facts)
        # A turn is asked beside it: what that may come to has to be left as well.
        beside = add(row.spent, reserve(facts, facts.window_tokens - facts.max_output_tokens))
        stop = may_ask(
            beside, desk.steering_of(spec).limits(spec.limits), facts, reserved.tokens - facts.max_output_tokens
        )
        if stop is not None:
            return SummaryResult(made=False, why=stop.sentence)
        desk.agents.summaries.begin(question.agent_id, question.until, reserved, at=now())
        return request

    def _request(
        self, question: SummaryInput, spec: AgentSpec, facts: ModelFacts, newest: SummaryRecord | None
    ) -> ModelRequest:
        start = newest.until if newest else FIRST
        messages = self._desk.agents.transcripts.read(question.agent_id, question.until)
        said = [f"The task:\n{messages[1].text}", *([f"The summary so far:\n{newest.text}"] if newest else [])]
        room = (facts.window_tokens - facts.max_output_tokens) * 2  # characters: half of what the window holds
        text = "\n\n".join([*said, _within(list(_lines(messages[start:])), room - sum(map(len, said)))])
        about = f"{question.agent_id}#summarize/{question.until}"
        return ModelRequest(
            agent=question.agent_id,
            turn=0,
            model=spec.model,
            messages=(
                make_message(f"{about}/prompt", TextPart(text=self._prompt()), role="system", source="perdure"),
                make_message(f"{about}/text", TextPart(text=text), role="user", source="perdure"),
            ),
            max_output_tokens=min(_LONGEST_TOKENS, facts.max_output_tokens),
        )

    async def _again_or_not(self, question: SummaryInput, trouble: ModelTrouble) -> SummaryResult:
        attempt = activity.info().attempt
        if attempt >= _ATTEMPTS:
            return await self._give_up(question, trouble.message)
        seconds = trouble.retry_after_seconds
        delay = timedelta(seconds=min(seconds, 600) if seconds is not None else 2.0**attempt)
        raise ApplicationError(trouble.message, type="ModelTrouble", next_retry_delay=delay) from trouble

    async def _give_up(self, question: SummaryInput, why: str) -> SummaryResult:
        await in_thread(lambda: self._desk.agents.summaries.give_up(question.agent_id, question.until))
        return SummaryResult(made=False, why=why[:500])

    def _keep(self, question: SummaryInput, answer: ModelAnswer) -> None:
        desk = self._desk
        messages = desk.agents.transcripts.read(question.agent_id, question.until)[FIRST:]
        turns = sum(message.source == "model" for message in messages)
        calls = [call for call in desk.agents.transcripts.calls(question.agent_id) if call.turn <= turns]
        notes = ThreadNotes(desk.ledger.database, names.JobId.parse(question.job_id).thread).read()
        record = SummaryRecord(
            until=question.until,
            text=_text(answer),
            records=(*find_records(messages, calls), *find_notes(notes)),
            model=answer.model,
            usage=answer.usage,
            cost_microdollars=answer.cost_microdollars,
        )
        desk.agents.summaries.end(question.agent_id, record, at=now())


def _reserve(request: ModelRequest, facts: ModelFacts) -> Spent:
    return reserve(facts, sum(message.tokens for message in request.messages))


def _text(answer: ModelAnswer) -> str:
    return "".join(part.text for part in answer.parts if isinstance(part, TextPart)).strip()


def _lines(messages: tuple[Message, ...]) -> Iterator[str]:
    """Messages as text to read: who, and what; long ones cut."""
    for message in messages:
        who = message.person or message.source
        for part in shorten(message).parts:
            yield f"{who}: {_cut(_say(part))}"


def _say(part: TextPart | CallPart | ResultPart) -> str:
    if isinstance(part, TextPart):
        return part.text
    if isinstance(part, CallPart):
        return f"calls {part.name} {part.raw or part.arguments}"
    return f"{part.name} answered ({part.status}): {part.text}"


def _cut(text: str) -> str:
    if len(text) <= _PIECE_CHARACTERS:
        return text
    return f"{text[: _PIECE_CHARACTERS - 300]}\n[… {len(text) - _PIECE_CHARACTERS} characters …]\n{text[-300:]}"


def _within(lines: list[str], room: int) -> str:
    """As many of the lines as fit, every one of them shorter where not all do."""
    if sum(map(len, lines)) + 2 * len(lines) <= room:
        return "\n\n".join(lines)
    each = max(room // max(len(lines), 1) - 5, 20)
    return "\n\n".join(line if len(line) <= each else line[:each] + " […]" for line in lines)[:room]
