"""``shell.run``: a command in the sandbox, on the job's workspace. Nothing of it outlives the call."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Annotated

from pydantic import Field, StringConstraints

from perdure.contracts.agent import ToolOutcome, ToolSpec
from perdure.contracts.agent_ports import Ended, Shell, ToolContext
from perdure.contracts.messages import OutcomeStatus
from perdure.errors import ToolFault
from perdure.tools.base import Arguments, make_tool
from perdure.tools.commands import command_targets
from perdure.tools.output import give
from perdure.tools.places import explained, workspace_of
from perdure.workspace.held import Taken, held_copy
from perdure.workspace.reading import changed_paths, stamp_all

CAPTURED_BYTES = 4 << 20
"""Of a command's output; beginning and end are kept, the middle is counted."""
LONGEST_SECONDS = 600
GRACE_SECONDS = 120
"""After so long the model goes on with something else, and is told the end when it comes."""

Word = Annotated[str, StringConstraints(max_length=100_000, pattern=r"^[^\x00]*$")]


class RunCommand(Arguments):
    """Arguments of ``shell.run``."""

    command: Word | list[Word] = Field(
        description="A list of words, or one text for `sh -c`. It starts in the workspace's root, without network."
    )
    seconds: int = Field(default=120, ge=1, le=LONGEST_SECONDS, description="Killed after so long.")

    def argv(self) -> list[str]:
        """The words to run."""
        return ["sh", "-c", self.command] if isinstance(self.command, str) else self.command


def run_shell(arguments: RunCommand, context: ToolContext) -> ToolOutcome:
    """Run a command to its end; a code other than 0 is an error outcome with all that it wrote."""
    argv = arguments.argv()
    if not argv or not argv[0].strip():
        raise ToolFault("`command` is empty; expected words: [make, test].")
    shown = arguments.command if isinstance(arguments.command, str) else " ".join(argv)
    run = _run_held if context.paths else _run_free
    ended, changed, note = run(argv, arguments, context)
    return tell_end(RUN.spec, shown, ended, context, changed=changed, note=note)


def _run_free(argv: list[str], arguments: RunCommand, context: ToolContext) -> tuple[Ended, bool, str]:
    """Run where the whole workspace may be changed; whether it was."""
    root = workspace_of(context)
    before = stamp_all(root)
    ended = _run(argv, root, arguments, context)
    after = stamp_all(root)
    # Too many files to tell: taken for a change.
    return ended, before is None or after is None or bool(changed_paths(before, after)), ""


def _run_held(argv: list[str], arguments: RunCommand, context: ToolContext) -> tuple[Ended, bool, str]:
    """Run on a copy, and take over what this step may change. The sandbox itself lets a command write anywhere."""
    with explained(), held_copy(workspace_of(context), context.paths) as (copy, take_over):
        ended = _run(argv, copy, arguments, context)
        taken = take_over()
    return ended, bool(taken.kept), _note_dropped(taken, context)


def _run(argv: list[str], folder: Path, arguments: RunCommand, context: ToolContext) -> Ended:
    ended: Ended = sandbox_of(context).run(
        argv,
        workspace=folder,
        limit=min(context.limit, timedelta(seconds=arguments.seconds)),
        output_limit_bytes=CAPTURED_BYTES,
        is_stopped=context.is_stopped,
    )
    return ended


def _note_dropped(taken: Taken, context: ToolContext) -> str:
    if not taken.dropped:
        return ""
    more = f" and {len(taken.dropped) - 5} more" if len(taken.dropped) > 5 else ""
    listed = f"{', '.join(taken.dropped[:5])}{more}"
    return f"; only {', '.join(context.paths)} may be changed here, so what it did to {listed} was dropped"


def tell_end(
    spec: ToolSpec, shown: str, ended: Ended, context: ToolContext, *, changed: bool, note: str = ""
) -> ToolOutcome:
    """Return how a command ended: its code, and what it wrote to both streams in the order written."""
    summary = f"`{shown[:200]}` ended with {ended.code}".replace("\n", " ")
    head = f"[exit code {ended.code}{'' if ended.output else '; it wrote nothing'}{note}]"
    status: OutcomeStatus = "ok" if ended.code == 0 else "error"
    return give(spec, context, ended.output, head=head, summary=summary, status=status, changed=changed)


def sandbox_of(context: ToolContext) -> Shell:
    """Return the sandbox; there is nothing else that commands may run in.

    Raises:
        SetupError: it does not work on this machine.
        ToolFault: this job has none.
    """
    if context.sandbox is None:
        raise ToolFault("This job has no sandbox, and commands run nowhere else.")
    return context.sandbox()


def _targets(arguments: RunCommand) -> str:
    return "\n".join(command_targets(arguments.argv()))


RUN = make_tool(
    "shell.run",
    RunCommand,
    run_shell,
    touch=_targets,
    about=(
        "Run a command in a sandbox: it sees the workspace and the system's programs, no network, no home. All that it "
        "starts ends with it."
    ),
    effect_class="workspace",
    limit_seconds=LONGEST_SECONDS,
    grace_seconds=GRACE_SECONDS,
)
