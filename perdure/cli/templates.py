"""``perdure templates``: what can be run, what a file gets wrong, whom to trust."""

from __future__ import annotations

import json
from pathlib import Path

import click

from perdure.cli import codes
from perdure.cli.catalog import TEMPLATES
from perdure.cli.decide import passphrase_option, read_passphrase
from perdure.cli.door import Door
from perdure.cli.lazy import CONTEXT, LazyGroup
from perdure.cli.paper import Paper, Row, Span
from perdure.cli.plans import with_passphrase
from perdure.cli.session import Session, command
from perdure.cli.words import new_id
from perdure.contracts.base import JsonDict
from perdure.contracts.http import TemplateView, TrustRequest, ValidateRequest
from perdure.errors import UserError


@click.group(
    "templates",
    cls=LazyGroup,
    sections=TEMPLATES,
    context_settings=CONTEXT,
    examples=[
        ("perdure templates list", "what can be run here"),
        ("perdure templates show release", "its inputs and its text"),
        ("perdure templates validate .perdure/jobs/memo.yaml", "what is wrong, with line numbers"),
    ],
)
def templates() -> None:
    """Kinds of jobs, as YAML: shipped ones, a configured folder's, and this repository's in .perdure/jobs/.

    A repository's template runs only once you trust its text.
    """


@command("list", examples=[("perdure templates list", "with where each comes from")])
def list_templates(session: Session) -> None:
    """List the templates that can be run from this folder."""
    with session.door() as door:
        found = door.get("/v1/templates", list[TemplateView], folder=str(Path.cwd()))
    if session.as_json:
        session.answer(found)
        return
    rows: list[Row] = [[(one.name, "title"), one.source, standing(one), _what_it_does(one)] for one in found]
    session.paper.table(rows, header=("NAME", "FROM", "", "WHAT IT DOES"), shrink=3)


@command("show", examples=[("perdure templates show release", "inputs first, then the text")])
@click.argument("name")
def show_template(session: Session, name: str) -> None:
    """Show a template: its inputs and its whole text, as it would run."""
    with session.door() as door:
        found = _read(door, name)
    if session.as_json:
        session.answer(found)
        return
    paper = session.paper
    paper.line((found.name, "title"), f"   {found.summary}   ", standing(found))
    paper.table([[("from", "dim"), f"{found.source}: {found.path}"], [("digest", "dim"), found.digest]])
    if found.inputs:
        paper.line()
        paper.table([input_row(one) for one in found.inputs], header=("INPUT", "TYPE", "DEFAULT", ""), shrink=3)
    paper.line()
    for line in found.text.splitlines():
        paper.write(paper.code(line) + "\n")


def _what_it_does(found: TemplateView) -> str:
    """The summary; of a broken template the first thing that is wrong."""
    first, *more = found.problem.splitlines() or [found.summary]
    return more[0].strip() if more else first


@command("validate", examples=[("perdure templates validate .perdure/jobs/memo.yaml", "exit code 64 when it is wrong")])
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def validate_template(session: Session, file: Path) -> int:
    """Check a template file: form, names, expressions, and that nothing irreversible goes without an approval."""
    try:
        text = file.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"{file} is not UTF-8 text (byte {error.start}). A template is YAML in UTF-8.") from error
    with session.door() as door:
        found = door.post("/v1/templates/validate", ValidateRequest(path=str(file), text=text), TemplateView)
    if session.as_json:
        session.answer(found)
    elif found.problem:
        _write_problem(session.notes, found.problem)
    else:
        session.paper.line(("✓ ", "good"), f"{file} is a valid template: {found.name}. {found.summary}")
    return codes.USAGE if found.problem else codes.OK


@command(
    "schema",
    examples=[("perdure templates schema > .perdure/schema.json", "then point your editor's YAML mode to it")],
)
def print_schema(session: Session) -> None:
    """Print the JSON schema of the template language, for completion and checks in your editor."""
    with session.door() as door:
        schema: JsonDict = door.get("/v1/templates/schema", dict)
    click.echo(json.dumps(schema, indent=2))


@command(
    "trust",
    examples=[
        ("perdure templates trust memo", "show it, ask, and remember its digest"),
        ("perdure templates trust memo --digest 1f0c…", "from a script: exactly this text (64 digits)"),
    ],
)
@click.argument("name")
@click.option("--digest", default="", help="The text's whole SHA-256; needed where nobody can be asked.")
@passphrase_option
def trust_template(session: Session, name: str, digest: str, passphrase_stdin: bool) -> int:
    """Allow this repository's template NAME to run, exactly as its text is now.

    It may run commands in a sandbox and propose effects, which are still reviewed. When its text changes, it is asked
    about again.
    """
    with session.door() as door:
        found = _read(door, name)
        if not _agrees(session, found, digest):
            session.paper.line(("Not trusted; nothing was changed.", "dim"))
            return codes.REFUSED
        decision_id = new_id()

        def send(passphrase: str) -> TemplateView:
            request = TrustRequest(
                name=name, digest=found.digest, folder=str(Path.cwd()), decision_id=decision_id, passphrase=passphrase
            )
            return door.post("/v1/templates/trust", request, TemplateView)

        given = read_passphrase() if passphrase_stdin else ""
        trusted = with_passphrase(send, passphrase=given, may_ask=session.may_ask)
    if session.as_json:
        session.answer(trusted)
    else:
        session.paper.line(("✓ ", "good"), f"{trusted.name} may run as it is now ({trusted.digest[:12]}).")
    return codes.OK


def standing(template: TemplateView) -> Span:
    """Whether a template can be run."""
    if template.problem:
        return "✗ broken", "bad"
    if template.trusted:
        return "✓", "good"
    return "◆ edited since it was trusted" if template.edited else "◆ not trusted", "warn"


def input_row(value: JsonDict) -> Row:
    """One input as a row: name, type, default, help."""
    default = value.get("default")
    shown = (
        "optional"
        if default is None and value.get("optional")
        else "needed"
        if default is None
        else json.dumps(default)
    )
    of = f" of {', '.join(map(str, value['of']))}" if value.get("of") else ""
    return [
        (str(value.get("name", "")), "title"),
        f"{value.get('type', '')}{of}",
        (shown, "dim"),
        str(value.get("help") or ""),
    ]


def _read(door: Door, name: str) -> TemplateView:
    return door.get("/v1/template", TemplateView, name=name, folder=str(Path.cwd()))


def _agrees(session: Session, template: TemplateView, digest: str) -> bool:
    """Whether the person agrees to exactly this text.

    Raises:
        UserError: the digest is another one, or nobody can be asked and none was given.
    """
    if digest:
        if digest != template.digest:
            raise UserError(f"{template.name} has the digest {template.digest}, not {digest}: its text is another one.")
        return True
    if not session.may_ask:
        raise UserError(f"Nobody can be asked here. Read {template.path}, then give --digest {template.digest}.")
    paper = session.paper
    for line in template.text.splitlines():
        paper.write("  " + paper.code(line) + "\n")
    paper.line((template.path, "dim"), "   ", (template.digest[:12], "digest"))
    return click.confirm("Trust this text?", default=False)


def _write_problem(paper: Paper, problem: str) -> None:
    for line in problem.splitlines():
        paper.line(("✗ ", "bad"), line)
