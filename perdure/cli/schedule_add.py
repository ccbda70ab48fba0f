"""``perdure schedule add`` and ``edit``: what, when, and how far."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from perdure.cli.decide import passphrase_option, read_passphrase
from perdure.cli.plans import with_passphrase
from perdure.cli.run import parse_inputs
from perdure.cli.schedule import write_schedule
from perdure.cli.session import Session, command
from perdure.cli.starting import door_to_jobs, ensure_up, no_start_option
from perdure.cli.words import new_id
from perdure.contracts.schedules import ScheduleAsk, ScheduleEdit, ScheduleRequest, ScheduleView
from perdure.errors import UserError

Wrapped = Callable[..., int | None]


def _times(function: Wrapped) -> Wrapped:
    """Options that say when and how far, the same for ``add`` and ``edit``."""
    options = [
        click.option("--cron", multiple=True, metavar="LINE", help="Five fields, or six with a year. May be repeated."),
        click.option(
            "--calendar",
            "calendars",
            multiple=True,
            metavar="FIELDS",
            help="'weekday=mon-fri hour=9 minute=30': all must match. May be repeated.",
        ),
        click.option("--every", default="", metavar="SPAN", help="An interval in real time: 6h, or 6h+15m."),
        click.option("--zone", default="", metavar="NAME", help="IANA time zone; default: this machine's."),
        click.option("--jitter", default="", metavar="SPAN", help="Start up to so much later."),
        click.option(
            "--overlap",
            type=click.Choice(["merge", "skip", "allow"]),
            default=None,
            help="When its last job is still at work; default: merge.",
        ),
        click.option("--cost-each", default="", metavar="SUM", help="Models of one job: '0.50 USD' at most."),
        click.option("--cost-all", default="", metavar="SUM/SPAN", help="All its jobs: '20 USD/30d' at most."),
        click.option("--alert-after", type=click.IntRange(1, 100), default=None, help="Failures in a row; default: 3."),
    ]
    for option in reversed(options):
        function = option(function)
    return function


@command(
    "add",
    examples=[
        ("perdure schedule add release --cron '0 9 * * mon' --zone Europe/Berlin", "every Monday at nine"),
        ("perdure schedule add release test='make test' --every 6h", "with inputs, by real time"),
        ("perdure schedule add release --calendar 'day=1 hour=9' --check", "only say what it would need"),
    ],
)
@click.argument("template")
@click.argument("inputs", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--name", default="", help="Its name; default: the template's.")
@_times
@click.option("--check", "only_check", is_flag=True, help="Say what each fire will need; make nothing.")
@passphrase_option
@no_start_option
def add_schedule(
    session: Session,
    template: str,
    inputs: tuple[str, ...],
    name: str,
    only_check: bool,
    passphrase_stdin: bool,
    no_start: bool,
    **times: Any,
) -> None:
    """Make a schedule of TEMPLATE: its text and inputs are pinned as they are now, and each job runs in your name.

    The template must say what happens when nobody answers (`review: when_scheduled:`). A cron line without --zone is
    read in this machine's time zone.
    """
    zone = times.pop("zone") or _local_zone()
    asked = ScheduleAsk(
        template=template, inputs=dict(parse_inputs(inputs)), folder=str(Path.cwd()), zone=zone, **_given(times)
    )
    about = {"name": name or template, "asked": asked, "only_check": only_check, "decision_id": new_id()}
    given = read_passphrase() if passphrase_stdin else ""
    with session.door() as door:
        if not no_start:
            ensure_up(session, door)

        def send(passphrase: str) -> ScheduleView:
            request = ScheduleRequest.model_validate({**about, "passphrase": passphrase})
            return door.post("/v1/schedules", request, ScheduleView)

        made = with_passphrase(send, passphrase=given, may_ask=session.may_ask)
    _answer(session, made, "This is what it would be; nothing was made." if only_check else "")


@command(
    "edit",
    examples=[
        ("perdure schedule edit release --cron '0 10 * * mon'", "another time; inputs stay"),
        ("perdure schedule edit release test='make check'", "another input, and the template's text of today"),
    ],
)
@click.argument("name")
@click.argument("inputs", nargs=-1, metavar="[KEY=VALUE]...")
@_times
@passphrase_option
@no_start_option
def edit_schedule(
    session: Session, name: str, inputs: tuple[str, ...], passphrase_stdin: bool, no_start: bool, **times: Any
) -> None:
    """Change a schedule. The next fire comes from the new definition alone; the template's text is read anew.

    New times replace all old ones. What was due and has not run is given up, and shown so.
    """
    changes = _changes(times, inputs)
    about = {"changes": changes, "decision_id": new_id()}
    given = read_passphrase() if passphrase_stdin else ""
    with door_to_jobs(session, no_start=no_start) as door:

        def send(passphrase: str) -> ScheduleView:
            request = ScheduleEdit.model_validate({**about, "passphrase": passphrase})
            return door.post(f"/v1/schedules/{name}/edit", request, ScheduleView)

        changed = with_passphrase(send, passphrase=given, may_ask=session.may_ask)
    _answer(session, changed)


def _changes(times: dict[str, Any], inputs: tuple[str, ...]) -> dict[str, Any]:
    changes = _given(times)
    if inputs:
        changes["inputs"] = dict(parse_inputs(inputs))
    if changes.keys() & {"cron", "calendars", "every"}:
        changes = {"cron": [], "calendars": [], "every": "", **changes}
    return changes


def _given(times: dict[str, Any]) -> dict[str, Any]:
    """Options that were given, as the contract names them."""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in times.items() if value}


def _local_zone() -> str:
    """The IANA name of this machine's zone, where the system says it; UTC where it is that."""
    link = Path("/etc/localtime")
    _, found, name = str(link.resolve()).partition("/zoneinfo/")
    if found and name not in ("Etc/UTC", "localtime"):
        return name
    named = Path("/etc/timezone")
    if named.is_file() and (text := named.read_text("utf-8").strip()):
        return text
    if found or not link.exists():
        return "UTC"
    raise UserError("This machine does not say which time zone it is in. Give --zone, for example Europe/Berlin.")


def _answer(session: Session, found: ScheduleView, note: str = "") -> None:
    if session.as_json:
        session.answer(found)
        return
    write_schedule(session.paper, found)
    if note:
        session.paper.line((note, "dim"))
