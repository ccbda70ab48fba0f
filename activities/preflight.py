"""A preflight again, just before the first effect: what was green when the plan was made may be red by now."""

from __future__ import annotations

from activities.jobs import JobReader
from activities.rules import StageTools
from activities.workspaces import WorkspaceActivities
from perdure.contracts.base import JsonDict
from perdure.contracts.job import StepInput
from perdure.contracts.plan import Plan
from perdure.errors import NotFound, Refused, StageFailed, UserError
from perdure.store.results import read_results


class Preflight:
    """Looks again at what a plan's verdicts say. Reads only; may be called again."""

    def __init__(self, tools: StageTools, drafts: WorkspaceActivities) -> None:
        self._tools = tools
        self._drafts = drafts

    def find_red(self, plan: Plan) -> list[str]:
        """Return the checks of the preflight that do not hold now, one sentence each; empty when all do.

        Commands and URLs are those that the reviewer's verdicts are of, rendered from the facts of then; what is
        expected of facts is asked of facts that are read anew.
        """
        again = [verdict.check for verdict in plan.envelope.verdicts if verdict.again]
        if not again:
            return []
        then = self._read(plan)
        checks = then.template.verify.checks
        red: list[str] = []
        now: JobReader | None = None
        for name in again:
            reader = then
            if checks[name].expect is not None or checks[name].use:
                try:
                    reader = now = now or self._with_new_facts(plan)
                except (UserError, StageFailed, NotFound) as error:
                    red.append(f"{name}: its facts cannot be read any more: {error.message}")
                    continue
            verdict, _ = self._drafts.judge(reader, name, checks[name])
            if verdict.status == "failed":
                red.append(f"{name}: {verdict.detail}")
        return red

    def _read(self, plan: Plan) -> JobReader:
        """The job as its plan was made from it.

        Raises:
            Refused: its pinned template is another one than the plan's.
        """
        envelope = plan.envelope
        state = self._tools.ledger.job_state(envelope.job_id)
        if state is None:
            raise Refused(f"{envelope.job_id} has ended; nothing of it is applied.")
        step = StepInput(job_id=envelope.job_id, spec=state.spec, round=envelope.round, at=envelope.created_at)
        reader = self._tools.read(step)
        if reader.spec.template_digest != envelope.template_digest:
            raise Refused(f"The template of {envelope.job_id} is not the one that its plan was made from.")
        found = read_results(self._tools.ledger, self._tools.blobs, envelope.job_id, envelope.round)
        reader.results["gather"].update(found["gather"])
        reader.results["analyze"].update(found["analyze"])
        return reader

    def _with_new_facts(self, plan: Plan) -> JobReader:
        """The same with every source read anew; one that is optional and fails gives null.

        Raises:
            UserError, StageFailed: a source cannot be read.
        """
        reader = self._read(plan)
        facts: JsonDict = {}
        for name, source in reader.template.gather.sources.items():
            try:
                facts[name] = self._tools.run_rule(reader, source.use, source.arguments, "source").value
            except (UserError, StageFailed):
                if not source.optional:
                    raise
                facts[name] = None
        reader.results["gather"] = facts
        return reader
