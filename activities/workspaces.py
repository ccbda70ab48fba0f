"""Draft in a private workspace, verify on a throwaway copy of exactly what was drafted."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from temporalio import activity

from activities.jobs import JobReader
from activities.rules import NO_MODEL, StageTools
from activities.running import in_thread, is_stopped, made
from perdure.contracts import names
from perdure.contracts.base import BlobRef, JsonDict
from perdure.contracts.job import JobPhase, StepInput, StepResult
from perdure.contracts.plan import FileChange, Verdict
from perdure.contracts.template import Check
from perdure.contracts.template_agents import DraftStep
from perdure.effects.after import ask_status, look_until_well
from perdure.effects.base import Finished
from perdure.errors import StageFailed, UserError
from perdure.rules.base import DraftSpace
from perdure.settings import host_environment
from perdure.store.trouble import StoreTrouble
from perdure.workspace.commands import Command, LimitMet, run_command
from perdure.workspace.control_groups import remove_empty_groups
from perdure.workspace.copies import DraftCopy, export_tree, open_draft
from perdure.workspace.git import Repository, identity, open_repository
from perdure.workspace.judges import DEFAULT_JUDGES, find_judges, put_back
from perdure.workspace.sandbox import NOT_FOUND, Sandbox
from perdure.workspace.space import DraftedFiles

_MOST_SHOWN = 10

_HISTORIES = ("git.history", "release.packages", "git.head")
"""Sources that say which commit a draft starts from."""

_LEAST_FREE_BYTES = 1 << 20

_MET_LIMIT, _NOT_RUNNABLE = 124, 126
"""What a shell says of a command that ran too long, and of one that cannot be run."""

FindSandbox = Callable[[], Sandbox]
"""Finds and proves the sandbox when it is first needed; raises ``SetupError`` with how to install it."""


class WorkspaceActivities:
    """Private work only: a second run starts from a clean folder and gives the same objects."""

    def __init__(self, tools: StageTools, folder: Path, sandbox: FindSandbox) -> None:
        self.tools = tools
        self._folder = folder
        self._sandbox = sandbox

    @activity.defn(name=names.DRAFT)
    async def draft(self, step: StepInput) -> StepResult:
        """Write in a private workspace and build the commit, its id fixed by the round's time."""
        return await in_thread(lambda: self._draft(step))

    def _draft(self, step: StepInput) -> StepResult:
        self.tools.begin(step, JobPhase.drafting)
        reader = self.tools.read(step)
        draft = reader.template.draft
        if draft is None:
            raise UserError("The template has no draft stage.")
        repository, base = base_of(reader)
        folder = Path(tempfile.mkdtemp(prefix="draft-", dir=made(self._folder)))
        try:
            copy = open_draft(repository, base, folder)
            findings = [text for part in draft.steps for text in self._run_step(reader, part, copy)]
            value = self.commit(reader, copy, str(reader.render(draft.message)))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        count = len(value["changes"])
        result = StepResult(result=reader.keep(value, findings), summary=f"{count} file{'s' * (count != 1)} changed")
        return self.tools.end(step, "draft", result)

    def _run_step(self, reader: JobReader, part: DraftStep, copy: DraftSpace) -> list[str]:
        if part.agent:
            if part.optional:
                return [f"{part.agent} was skipped: no model is configured. The rules' result stands."]
            raise UserError(f"Draft step {part.agent} needs a model, and none is configured. {NO_MODEL}")
        return self.tools.run_rule(reader, part.use, part.arguments, "draft", copy).findings

    def commit(self, reader: JobReader, copy: DraftCopy, message: str) -> JsonDict:
        """Build the draft's commit; nothing outside the workspace and the blobs is written."""
        repository, _ = base_of(reader)
        who = identity(repository)
        if who is None:
            raise UserError(
                "Git does not know who you are. Run `git config user.name NAME` and `git config user.email ADDRESS`."
            )
        return copy.commit(message, who, reader.step.at, self.tools.blobs)

    @activity.defn(name=names.RUN_CHECK)
    async def run_check(self, step: StepInput) -> StepResult:
        """Give one verdict on exactly the drafted content."""
        return await in_thread(lambda: self._check(step))

    def _check(self, step: StepInput) -> StepResult:
        self.tools.begin(step, JobPhase.verifying)
        reader = self.tools.read(step)
        check = reader.template.verify.checks[step.name]
        verdict, findings = self.judge(reader, step.name, check)
        status = {"failed": "failed", "passed": "ok"}.get(verdict.status, "skipped")
        ref = reader.keep(verdict.model_dump(mode="json"), findings)
        result = StepResult.model_validate({"result": ref, "summary": verdict.detail[:400], "status": status})
        return self.tools.end(step, "verify", result)

    def judge(self, reader: JobReader, name: str, check: Check) -> tuple[Verdict, list[str]]:
        """Return one check's verdict on the drafted content, and what a reviewer should know beside it."""
        if not reader.render(check.when):
            return Verdict(check=name, status="not_run", detail="not asked for"), []
        if check.use:
            space = self._space(reader)
            found = self.tools.run_rule(reader, check.use, check.arguments, "check", space)
            status = "failed" if found.status == "failed" else "passed"
            return Verdict.model_validate({"check": name, "status": status, "detail": found.summary}), found.findings
        if check.run is not None:
            return self._run_command(reader, name, check)
        if check.http:
            return _ask(name, str(reader.render(check.http)), check), []
        held = bool(reader.render(check.expect))
        detail = "" if held else f"does not hold: {check.expect}"
        return Verdict(check=name, status="passed" if held else "failed", detail=detail), []

    def _space(self, reader: JobReader) -> DraftSpace | None:
        draft = reader.results["draft"]
        if not draft:
            return None
        return DraftedFiles(open_repository(Path(draft["repository"])), draft, self.tools.blobs)

    def _run_command(self, reader: JobReader, name: str, check: Check) -> tuple[Verdict, list[str]]:
        argv = reader.render(check.run)
        if not isinstance(argv, list) or not all(isinstance(word, str) for word in argv) or not argv:
            raise UserError(f"Check {name!r} gives {argv!r}; expected a command as a list of words.")
        draft = reader.results["draft"]
        if not draft:
            on_worker = reader.template.runs_on == "worker"
            verdict = self._verdict(name, argv, self._run_preflight(argv, check, on_worker=on_worker))
            verdict["detail"] += " on the worker" if on_worker else ""
            return Verdict.model_validate(verdict), []
        changes = [FileChange.model_validate(change) for change in draft["changes"]]
        judges = find_judges(changes, _judges_of(reader, name, check))
        ended = self._run_on(draft, draft["commit"], argv, check, judges)
        if judges and ended.code == 0:  # as it was judged before, it is good: is it also by its own standard?
            ended = self._run_on(draft, draft["commit"], argv, check)
        verdict = self._verdict(name, argv, ended)
        findings: list[str] = []
        if judges:
            shown = ", ".join(change.path for change in judges[:_MOST_SHOWN])
            findings.append(f"Check {name} judged with the base's files; the draft changes some that judge: {shown}.")
        if check.baseline and ended.code not in (0, NOT_FOUND):
            before = self._run_on(draft, draft["base"], argv, check)
            verdict["baseline"] = "passed" if before.code == 0 else "failed"
            if before.code != 0:
                findings.append(f"Check {name} was red before, on the untouched base, too.")
                verdict["detail"] += "; it was red before, too"
        return Verdict.model_validate(verdict), findings

    def _verdict(self, name: str, argv: list[str], ended: Finished) -> JsonDict:
        """What a command's end says of its check. Raises ``StageFailed`` when the job was cancelled meanwhile."""
        if is_stopped():
            raise StageFailed(f"Check {name!r} was stopped: its job was cancelled.")
        return {
            "check": name,
            "status": "passed" if ended.code == 0 else "failed",
            "log": self.tools.blobs.put(ended.output).model_dump(),
            "detail": _say_end(argv, ended),
        }

    def _run_preflight(self, argv: list[str], check: Check, *, on_worker: bool) -> Finished:
        """Run a command about the world in an empty folder."""
        with self._check_folder() as folder:
            return _run_here(argv, folder, check) if on_worker else self._run_sandboxed(argv, folder, check)

    def _run_on(
        self, draft: JsonDict, commit: str, argv: list[str], check: Check, judges: Sequence[FileChange] = ()
    ) -> Finished:
        with self._check_folder() as folder:
            repository = open_repository(Path(draft["repository"]))
            pack = BlobRef.model_validate(draft["pack"])
            export_tree(repository, commit, pack, self.tools.blobs, folder / "tree", with_git=True)
            put_back(folder / "tree", judges, self.tools.blobs)
            ended = self._run_sandboxed(argv, folder / "tree", check)
            if ended.code != 0:
                _refuse_full(folder)
            return ended

    def _run_sandboxed(self, argv: list[str], folder: Path, check: Check) -> Finished:
        return self._sandbox().run(
            argv, workspace=folder, network=check.network, limit=check.attempt_limit, is_stopped=is_stopped
        )

    @contextmanager
    def _check_folder(self) -> Iterator[Path]:
        """A folder for one run of a check's command, removed behind it."""
        folder = Path(tempfile.mkdtemp(prefix="check-", dir=made(self._folder)))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _run_here(argv: list[str], folder: Path, check: Check) -> Finished:
    """Run a command on the worker itself; over its limit, or not to be found, it is red like one that failed."""
    command = Command(argv, host_environment(), folder, limit=check.attempt_limit)
    try:
        return run_command(command, watch=lambda _pgid: "was cancelled" if is_stopped() else "")
    except LimitMet as met:
        return Finished(_MET_LIMIT, met.output + met.message.encode())
    except OSError as error:
        return Finished(_NOT_RUNNABLE, f"{argv[0]}: {error.strerror}".encode())


def _refuse_full(folder: Path) -> None:
    """A command that failed on a full disk has judged the disk, not the draft: it is run again when there is space."""
    found = os.statvfs(folder)
    if found.f_bavail * found.f_frsize < _LEAST_FREE_BYTES:
        raise StoreTrouble(
            f"The disk of the workspaces at {folder.parent} is full: what a check says there counts for nothing. "
            "Free some space; the check is run again by itself."
        )


def _judges_of(reader: JobReader, name: str, check: Check) -> Sequence[str]:
    """Patterns of the files that judge."""
    named = reader.render(check.judges)
    if isinstance(named, list):
        return [str(pattern) for pattern in named]
    draft = reader.template.draft
    ends_an_agent = draft is not None and any(name in step.done_when for step in draft.steps if step.agent)
    return DEFAULT_JUDGES if ends_an_agent else ()


def sweep(folder: Path) -> None:
    """Remove what a dead worker left beneath ``folder``. Only for the one worker of a data folder, before it polls."""
    for kind in ("draft", "check", "effect", "planning"):
        for left in folder.glob(f"{kind}-*"):
            shutil.rmtree(left, ignore_errors=True)
    remove_empty_groups()


def _ask(name: str, url: str, check: Check) -> Verdict:
    """Ask until the answer is as it must be, or the check's time is over."""
    seconds = check.within.total_seconds() if check.within else 0
    problem = look_until_well(lambda: ask_status(url, check.status), seconds, is_stopped)
    detail = problem or f"{url} answers {check.status}"
    return Verdict(check=name, status="failed" if problem else "passed", detail=detail[:400])


def _say_end(argv: list[str], ended: Finished) -> str:
    if ended.code == NOT_FOUND:
        return f"{argv[0]} was not found in the sandbox: it sees /usr and the repository's own files, nothing else"
    return f"{' '.join(argv)[:120]} ended with {ended.code}"


def base_of(reader: JobReader) -> tuple[Repository, str]:
    """The repository and base commit that a draft starts from: those of the first source that read a history.

    Raises:
        UserError: the template has a draft and no such source.
    """
    for source in reader.results["gather"].values():
        if isinstance(source, dict) and source.get("rule") in _HISTORIES:
            return open_repository(Path(source["repository"])), source["head"]
    raise UserError(
        f"Template {reader.spec.template} drafts, and gathers none of {', '.join(_HISTORIES)} to draft from."
    )
