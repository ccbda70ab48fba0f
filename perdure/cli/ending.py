"""Says how a job ended and what one can do now."""

from __future__ import annotations

from perdure.cli.door import Door
from perdure.cli.paper import Paper, Span
from perdure.cli.words import PHASES, counted, exit_code, own_words
from perdure.contracts.http import ArtifactView, AuditReport, JobView, Review
from perdure.contracts.job import JobPhase
from perdure.errors import NotFound, PerdureError


def say_end(paper: Paper, door: Door, job: JobView) -> int:
    """Write the last line for a job that rests; return the exit code for it."""
    if job.phase is JobPhase.unknown:
        _say_unknown(paper, door, job)
    elif job.phase is JobPhase.paused:
        _say_paused(paper, job)
    elif job.phase is JobPhase.waiting_for_merge:
        _say_parked(paper, job)
    elif job.phase is JobPhase.done and job.template == "undo":
        _say_undone(paper, door, job)
    else:
        mark, style = PHASES[job.phase]
        paper.line("  ", (f"{mark} ", style), _sentence(job), *_next(door, job))
    return exit_code(job.phase)


def plan_of(door: Door, job: JobView) -> Review | None:
    """The job's newest plan; ``None`` when it never had one."""
    if not job.digest:
        return None
    try:
        return door.get("/v1/review", Review, digest=job.digest)
    except NotFound:
        return None


def _sentence(job: JobView) -> str:
    phase = job.phase.value.replace("_", " ").capitalize()
    said = own_words(job) or (f"{phase}: {job.title}" if job.title else phase)
    return said if said.endswith((".", "!", "?")) else f"{said}."


def _next(door: Door, job: JobView) -> list[Span]:
    if job.phase is JobPhase.done and not job.undone_by and _can_be_undone(plan_of(door, job)):
        return ["  Take back: ", (f"perdure undo {job.number}", "hint")]
    if job.phase in {JobPhase.failed, JobPhase.stuck}:
        again: list[Span] = ["  Take back what is left: ", (f"perdure undo {job.number}", "hint")]
        return ["  See: ", (_where_to_look(door, job), "hint"), *(again if job.phase is JobPhase.stuck else [])]
    return []


def _where_to_look(door: Door, job: JobView) -> str:
    """The command that shows why a job failed: the log of a check that its summary names, else its records."""
    for artifact in door.get("/v1/artifacts", list[ArtifactView], ref=job.job_id):
        check = artifact.name.removeprefix("verify.").removesuffix(".log")
        if artifact.name == f"verify.{check}.log" and f" {check}: " in job.summary:
            return f"perdure artifacts {job.number} {artifact.name}"
    return f"perdure logs {job.number}"


def _can_be_undone(review: Review | None) -> bool:
    views = review.effects if review else []
    return any(view.effect.inverse.body is not None and view.state == "done" for view in views)


def _say_unknown(paper: Paper, door: Door, job: JobView) -> None:
    review = plan_of(door, job)
    paper.line("  ", ("? ", "bad"), f"Nobody can tell whether an effect happened. {job.summary}".rstrip())
    paper.line("    Look, then say what you found (nothing is tried again before):")
    for number, view in enumerate(review.effects if review else [], 1):
        if view.state == "unknown":
            answers = f"perdure resolve {job.number} {number} --done | --not-done | --stop"
            paper.line("    ", (answers, "hint"), f"   {view.effect.summary}")


def _say_paused(paper: Paper, job: JobView) -> None:
    paper.line("  ", ("‖ ", "warn"), f"Paused, over restarts too. {job.summary}".rstrip())
    go_on, stop = f"perdure resume {job.number}", f"perdure cancel {job.number}"
    paper.line("    Go on: ", (go_on, "hint"), "   Stop and take back what was applied: ", (stop, "hint"))


def _say_parked(paper: Paper, job: JobView) -> None:
    paper.line("  ", ("◆ ", "warn"), f"Parked, over restarts too. {job.summary}".rstrip())
    look, stop = f"perdure show {job.number}", f"perdure cancel {job.number}"
    paper.line("    Merged? Looks at once: ", (look, "hint"), "   Close it: ", (stop, "hint"))


def _say_undone(paper: Paper, door: Door, job: JobView) -> None:
    paper.line("  ", ("✓ ", "good"), "As before. ", *_audit(door, job))


def _audit(door: Door, job: JobView) -> list[Span]:
    try:
        report = door.get("/v1/audit", AuditReport, ref=job.job_id)
    except PerdureError as error:
        # The undo is done whatever the audit says; that it could not be asked is said instead.
        return [(f"Audit: {error.message}", "warn")]
    gaps = [finding for finding in report.findings if finding.severity in {"gap", "tampered"}]
    if report.ok and not gaps:
        return [f"Audit: {counted(report.records, 'record')}, no gaps."]
    return [
        (
            f"Audit: {counted(report.records, 'record')}, {counted(len(gaps), 'finding')}: perdure audit {job.number}",
            "bad",
        )
    ]
