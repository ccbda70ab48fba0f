"""Where agents end: the named checks say that the work is done, a schema that an answer fits; or a reason is named."""

from __future__ import annotations

import shutil
from datetime import timedelta

from temporalio import activity

from activities.agent_desk import AgentDesk, asked, now
from activities.jobs import JobReader
from activities.running import in_thread
from activities.workspaces import WorkspaceActivities, base_of
from perdure.contracts import names
from perdure.contracts.agent import MORE_HELPS, AgentEnd
from perdure.contracts.agent_run import AgentSpec, CloseAgentInput, CloseAgentResult
from perdure.contracts.base import BlobRef, JsonDict
from perdure.contracts.job import JobPhase
from perdure.contracts.messages import TextPart
from perdure.errors import StageFailed, UserError
from perdure.policy.answers import read_answer
from perdure.store.transcripts import Line, make_message
from perdure.workspace.copies import reopen_draft

_LOG_TAIL_BYTES = 3000

_PARKED = timedelta(days=7)
"""How long a person may take to give more, where the template's limits do not say."""


class ClosingActivities:
    """Ends agents. A second run finds the end, or judges the same work again."""

    def __init__(self, desk: AgentDesk, drafts: WorkspaceActivities) -> None:
        self._desk = desk
        self._drafts = drafts

    @activity.defn(name=names.CLOSE_AGENT)
    async def close_agent(self, question: CloseAgentInput) -> CloseAgentResult:
        """Look whether an agent is done; end it, let it go on with what is wrong, or park it for a person."""
        return await in_thread(lambda: self._close(asked(question)))

    def _close(self, question: CloseAgentInput) -> CloseAgentResult:
        row, spec = self._desk.row(question.agent_id), self._desk.spec(question.agent_id)
        if row.end is not None:
            return CloseAgentResult(state="ended", number=question.number)
        if question.end is not None:
            return self._stop(question, spec, question.end)
        told = self._desk.agents.transcripts.read(question.agent_id, question.number)[-1].text.strip()
        red = self._find_red(spec) if spec.done_when else []
        if red:
            text = "Not done: these checks are red.\n\n" + "\n\n".join(red)
            return self._tell(question, f"checks/{question.turn}", text)
        return self._take_answer(question, spec, told) if spec.answer else self._finish(question, "done", told, None)

    def _finish(self, question: CloseAgentInput, reason: str, told: str, answer: BlobRef | None) -> CloseAgentResult:
        end = AgentEnd.model_validate({"reason": reason, "sentence": (told or "The checks are green.")[:500]})
        if self._desk.agents.close(question.agent_id, end, answer, at=now()) is None:
            return CloseAgentResult(state="goes_on", number=question.number)  # somebody has just written
        self._desk.agents.transcripts.forget(question.agent_id)
        return CloseAgentResult(state="ended", number=question.number)

    def _stop(
        self, question: CloseAgentInput, spec: AgentSpec, end: AgentEnd, answer: BlobRef | None = None
    ) -> CloseAgentResult:
        """A limit is met: it is over, or a person may give more."""
        agents = self._desk.agents
        may_go_on = spec.on_limit == "ask" and end.reason in MORE_HELPS and spec.refused is None
        if may_go_on and not question.for_good:
            agents.park(question.agent_id, JobPhase.paused, end.sentence, question.turn * 100 + 98, at=now())
            idle = timedelta(seconds=spec.limits.idle_seconds) if spec.limits.idle_seconds else _PARKED
            return CloseAgentResult(state="parked", number=question.number, until=now() + idle, end=end)
        agents.close(question.agent_id, end, answer, at=now())
        agents.transcripts.forget(question.agent_id)
        if end.reason == "cancelled":  # nobody drafts on: its job is over
            shutil.rmtree(self._desk.folder(question.agent_id), ignore_errors=True)
        return CloseAgentResult(state="ended", number=question.number)

    def _take_answer(self, question: CloseAgentInput, spec: AgentSpec, told: str) -> CloseAgentResult:
        """A typed answer ends it; one that does not fit is told what is wrong, and so often at most."""
        answer, problems = read_answer(told, spec.answer)
        kept = self._desk.blobs.put_json(answer) if answer is not None else None
        if answer is not None:
            problems = self._find_changed_facts(spec, answer)
        if not problems:
            return self._finish(question, "done" if spec.done_when else "answered", told, kept)
        wrong = " ".join(problems)
        if self._count_repairs(question) >= spec.repairs:
            sentence = f"No answer fitted, although it was told {spec.repairs} times what is wrong: {wrong}"[:500]
            if spec.on_limit == "end":
                return self._stop(question, spec, AgentEnd(reason="answer", sentence=sentence), kept)
            question = self._told(question, wrong)  # whoever lets it go on finds it told
            return self._stop(question, spec, AgentEnd(reason="answer", sentence=sentence), kept)
        return CloseAgentResult(state="goes_on", number=self._told(question, wrong).number)

    def _told(self, question: CloseAgentInput, wrong: str) -> CloseAgentInput:
        text = f"Your answer does not fit: {wrong} Give the whole answer again, as one JSON object and nothing else."
        number = self._tell(question, f"repair/{question.turn}", text).number
        return question.model_copy(update={"number": number})

    def _tell(self, question: CloseAgentInput, key: str, text: str) -> CloseAgentResult:
        message = make_message(f"{question.agent_id}#{key}", TextPart(text=text), role="user", source="perdure")
        self._desk.agents.add_lines(question.agent_id, [Line(question.number, key, message)], at=now())
        return CloseAgentResult(state="goes_on", number=question.number + 1)

    def _count_repairs(self, question: CloseAgentInput) -> int:
        """How often it was told since a person last said something."""
        keys = self._desk.agents.look(question.agent_id, question.turn, last=1).keys
        heard = max((number for number, key in keys if key.startswith(("more/", "say/"))), default=-1)
        mine = f"repair/{question.turn}"  # of an attempt before this one
        return sum(key.startswith("repair/") and number > heard and key != mine for number, key in keys)

    def _find_changed_facts(self, spec: AgentSpec, answer: JsonDict) -> list[str]:
        """What the rule whose words are chosen here does not let go: its facts."""
        if spec.refines is None:
            return []
        tools = self._drafts.tools
        rule = tools.rules[tools.read(spec.step).template.analyze.steps[spec.prompt].use]
        assert rule.refinement is not None  # or nobody had asked
        return rule.refinement.find_problems(self._desk.blobs.get_json(spec.refines), answer)

    def _find_red(self, spec: AgentSpec) -> list[str]:
        """One paragraph for each named check that is not green, with the end of its output."""
        reader = self._drafts.tools.read(spec.step)
        try:
            reader.results["draft"] = self._draft_value(reader, spec)
        except (StageFailed, UserError) as error:  # what cannot be committed is the model's to mend
            return [error.message]
        red = []
        for name in spec.done_when:
            verdict, _ = self._drafts.judge(reader, name, reader.template.verify.checks[name])
            if verdict.status == "failed":
                tail = self._desk.blobs.get(verdict.log)[-_LOG_TAIL_BYTES:] if verdict.log else b""
                red.append(f"{name}: {verdict.detail}\n{tail.decode('utf-8', 'replace')}".rstrip())
        return red

    def _draft_value(self, reader: JobReader, spec: AgentSpec) -> JsonDict:
        repository, base = base_of(reader)
        copy = reopen_draft(repository, base, self._desk.folder(spec.agent_id))
        return self._drafts.commit(reader, copy, "an agent's work in progress")
