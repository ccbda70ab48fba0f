"""``perdure edit``: change a plan's version or entries, or a call's arguments, and get a new plan."""

from __future__ import annotations

import click

from perdure.cli import codes
from perdure.cli.decide import comment_option, deliver, detach_option, follow_up, passphrase_option, read_passphrase
from perdure.cli.edit_call import call_changes
from perdure.cli.edits import changes_from_options, edit_in_editor
from perdure.cli.follow import last_position
from perdure.cli.plans import read_plan_of
from perdure.cli.session import Session, command
from perdure.cli.starting import door_to_jobs, no_start_option
from perdure.contracts.base import JsonDict
from perdure.contracts.http import DecideAnswer
from perdure.errors import UserError


@command(
    "edit",
    unread=codes.WAITING,
    examples=[
        ("perdure edit 1", "version and entries in your editor"),
        ("perdure edit 1 --version 2.0.0", "another version"),
        ("perdure edit 1 --version core=2.0.0", "of one package among several"),
        ("perdure edit 1 --reword a41c9e0='Import in bulk'", "another wording of one entry"),
        ("perdure edit 1 --drop 9be0c11", "one entry less"),
        ("perdure edit 1 --add Security='Escape names'", "one more"),
        ("perdure edit 1 --move a41c9e0=Changed", "under another heading"),
        ("perdure edit 1 --forget a41c9e0", "as it was found, whatever an earlier review made of it"),
        ("perdure edit 1 --map 'feat(words)=minor'", "what a type of commit counts as in this project"),
        ("perdure edit 7f3a91c2 --argument command='make test'", "what a call of an agent would run instead"),
    ],
)
@click.argument("plan", metavar="JOB|DIGEST")
@click.option("--version", multiple=True, metavar="[PACKAGE=]VERSION", help="The version to release instead.")
@click.option("--reword", multiple=True, metavar="ID=TEXT", help="Say an entry in other words.")
@click.option("--drop", multiple=True, metavar="ID", help="Leave an entry out.")
@click.option("--add", multiple=True, metavar="[PACKAGE:]SECTION=TEXT", help="Add an entry.")
@click.option("--move", multiple=True, metavar="ID=SECTION", help="Put an entry under another section.")
@click.option(
    "--forget", multiple=True, metavar="ID", help="Undo what is remembered of an entry, `version`, or a type."
)
@click.option("--map", "lines", multiple=True, metavar="TYPE=STEP", help="Let a type count as major, minor or patch.")
@click.option("--argument", "arguments", multiple=True, metavar="NAME=VALUE", help="Of a call: another argument.")
@comment_option
@passphrase_option
@detach_option
@no_start_option
def edit(
    session: Session,
    plan: str,
    version: tuple[str, ...],
    reword: tuple[str, ...],
    drop: tuple[str, ...],
    add: tuple[str, ...],
    move: tuple[str, ...],
    forget: tuple[str, ...],
    lines: tuple[str, ...],
    arguments: tuple[str, ...],
    comment: str,
    passphrase_stdin: bool,
    detach: bool,
    no_start: bool,
) -> int:
    """Change a waiting plan. The job drafts again and shows a new plan with the difference; you are named its author.

    Without options your editor ($VISUAL, $EDITOR) opens with the version and the entries. What you change, and why
    (-m), is remembered: it is proposed again, as yours, until it is released or forgotten.

    A call that an agent asks for is edited as well: it is judged again by the permissions, and asks as a new plan.
    """
    changes = changes_from_options(version, reword, drop, add, move, forget, lines)
    with door_to_jobs(session, no_start=no_start) as door:
        review = read_plan_of(door, plan)
        if arguments:
            changes = call_changes(review, arguments)
        if not changes and not session.may_ask:
            raise UserError(
                "Nothing to edit was given, and no terminal to open an editor on. See `perdure edit --help`."
            )
        seen = last_position(door, review.job.job_id)
        passphrase = read_passphrase() if passphrase_stdin else ""

        def send(wanted: JsonDict) -> DecideAnswer:
            return deliver(session, door, review, "request_changes", comment, passphrase, changes=wanted)

        answer = send(changes) if changes else edit_in_editor(door, review, send)
        if answer is None:
            session.paper.line(("Nothing was edited.", "dim"))
            return codes.OK
        return follow_up(session, door, review, "request_changes", answer, after=seen, detach=detach)
