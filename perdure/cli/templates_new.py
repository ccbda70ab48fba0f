"""``perdure templates new``: a runbook by questions, or by options from a script."""

from __future__ import annotations

import json
import re
from pathlib import Path

import click

from perdure.cli import codes
from perdure.cli.runbook_text import QUESTIONS, Answers, Runbook, write_runbook
from perdure.cli.session import Session, command
from perdure.contracts.http import TemplateView, ValidateRequest
from perdure.errors import Conflict, UserError

_NAME = re.compile(r"[a-z][a-z0-9-]{0,63}")
_KINDS = ", ".join(QUESTIONS)


@command(
    "new",
    examples=[
        ("perdure templates new switch-build", "asks what it changes, and writes .perdure/jobs/switch-build.yaml"),
        (
            """perdure templates new x --step '{"kind": "link", "path": "/srv/current", "to": "/srv/green"}'""",
            "from a script; one --step for each",
        ),
    ],
)
@click.argument("name")
@click.option("--summary", default="", help="What it does, in one line.")
@click.option("--step", "steps", multiple=True, metavar="JSON", help=f"One step; `kind` is one of {_KINDS}.")
@click.option("--approver", default="", help="Group that approves; default: maintainers.")
@click.option("--health", default="", help="URL that answers 200 while all is well; asked before and after.")
@click.option("--pause", "pauses", is_flag=True, help="A person says go on between the steps.")
@click.option("--file", type=click.Path(dir_okay=False, path_type=Path), help="Default: .perdure/jobs/NAME.yaml.")
def new_template(
    session: Session,
    name: str,
    summary: str,
    steps: tuple[str, ...],
    approver: str,
    health: str,
    pauses: bool,
    file: Path | None,
) -> int:
    """Write a runbook: steps that change something, each with how it is told and taken back.

    Asks for what is not given. The file is checked before it is written, and no file is ever overwritten.
    """
    path = file or Path(".perdure") / "jobs" / f"{name}.yaml"
    _refuse_early(name, path)
    given = Runbook(name, summary, approver, [_read_step(text) for text in steps], health, pauses)
    if not given.steps and not session.may_ask:
        raise UserError(f"Nobody can be asked here. Give --step '{{\"kind\": …}}'; kinds: {_KINDS}.")
    runbook = given if given.steps else _ask_for(given)
    text = write_runbook(_complete(runbook))
    with session.door() as door:
        found = door.post("/v1/templates/validate", ValidateRequest(path=str(path), text=text), TemplateView)
    if found.problem:
        raise UserError(f"{found.problem}\nNothing was written.")
    _write_new(path, text)
    if session.as_json:
        session.answer({"name": name, "path": str(path), "text": text})
        return codes.OK
    session.paper.line(("✓ ", "good"), f"{path} is a valid template.")
    session.paper.line("  Trust it, then look at its plan: ", (f"perdure templates trust {name}", "hint"))
    session.paper.line("  ", (f"perdure run {name} --plan", "hint"))
    return codes.OK


def _refuse_early(name: str, path: Path) -> None:
    if not _NAME.fullmatch(name):
        raise UserError(f"{name!r} is no name; expected lower-case letters, digits and -, as in switch-build.")
    if path.exists():
        raise Conflict(f"{path} is there already and is not overwritten. Choose another name, or give --file.")


def _read_step(text: str) -> tuple[str, Answers]:
    """One step of a script. Raises ``UserError`` naming the keys that it takes."""
    try:
        given = json.loads(text)
    except ValueError as error:
        raise UserError(f"--step {text!r} is no JSON ({error}).") from None
    kind = given.get("kind") if isinstance(given, dict) else None
    if not isinstance(kind, str) or kind not in QUESTIONS:
        raise UserError(f"--step {text!r} has no `kind` that is known. Kinds: {_KINDS}.")
    defaults = {question.key: question.default for question in QUESTIONS[kind] if question.default is not None}
    found = {key: value if isinstance(value, str) else json.dumps(value) for key, value in given.items()}
    answers = {**defaults, **found}
    answers.pop("kind")
    wanted = [question.key for question in QUESTIONS[kind]]
    if sorted(answers) != sorted(wanted):
        raise UserError(f"A {kind} step takes {', '.join(wanted)}; {text!r} has {', '.join(found) or 'nothing'}.")
    return kind, answers


def _ask_for(given: Runbook) -> Runbook:
    """Ask the person for what was not given."""
    summary = given.summary or click.prompt("What does it do, in one line?")
    steps: list[tuple[str, Answers]] = []
    while not steps or click.confirm("Another step?", default=False):
        kind = click.prompt(f"What does step {len(steps) + 1} change?", type=click.Choice(list(QUESTIONS)))
        steps.append((kind, _ask_step(kind)))
    health = given.health or click.prompt("URL that answers 200 while all is well (Enter: none)", default="")
    approver = given.approver or click.prompt("Which group approves?", default="maintainers")
    pauses = given.pauses or (len(steps) > 1 and click.confirm("Wait for a person between the steps?", default=False))
    return Runbook(given.name, summary, approver, steps, health, pauses)


def _ask_step(kind: str) -> Answers:
    return {one.key: click.prompt(f"  {one.text}", default=one.default) for one in QUESTIONS[kind]}


def _complete(runbook: Runbook) -> Runbook:
    summary, approver = runbook.summary or f"Runbook {runbook.name}.", runbook.approver or "maintainers"
    return Runbook(runbook.name, summary, approver, runbook.steps, runbook.health, runbook.pauses)


def _write_new(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise Conflict(f"{path} is there already and is not overwritten. Nothing was written.") from None
