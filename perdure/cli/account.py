"""``perdure audit log``: who decided what, what ran, what was undone; by thread, person, target or time."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from datetime import UTC, datetime

import click

from perdure.cli.door import Door
from perdure.cli.paper import Row
from perdure.cli.plan_view import SHORT
from perdure.cli.session import Session, command
from perdure.cli.words import clock
from perdure.contracts.http_account import AccountEntry, AccountPage

COLUMNS = list(AccountEntry.model_fields)
_TIMES = ["%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M:%S%z"]
_HEADER = ("WHEN", "WHO", "WHAT", "PLAN", "TARGET", "DETAIL", "DOOR")
_LOUD = {"break_glass"}


@command(
    "log",
    examples=[
        ("perdure audit log --person anna", "all that anna decided and asked for"),
        ("perdure audit log --target 'git:/srv/orders*' --since 2026-11-01", "what was done to it, and who let it"),
        ("perdure audit log --thread release-orders --csv > account.csv", "for somebody with a spreadsheet"),
    ],
)
@click.option("--thread", default="", metavar="NAME", help="Only this thread.")
@click.option("--person", default="", metavar="NAME", help="Only what this person decided or asked for.")
@click.option("--target", default="", metavar="TEXT", help="Only what changed it, and who let it; a part, or with *.")
@click.option("--since", type=click.DateTime(_TIMES), help="From this time on, UTC.")
@click.option("--until", type=click.DateTime(_TIMES), help="Before this time, UTC.")
@click.option("--csv", "as_csv", is_flag=True, help="As comma-separated values, every field whole.")
def log(
    session: Session,
    thread: str,
    person: str,
    target: str,
    since: datetime | None,
    until: datetime | None,
    as_csv: bool,
) -> None:
    """Tell who decided what on which plan through which door, what ran and what was undone, oldest first.

    It is read from the ledger's records; `perdure audit` says whether those hold.
    """
    asked = {"thread": thread, "person": person, "target": target, "since": _utc(since), "until": _utc(until)}
    with session.door() as door:
        entries = list(_read(door, {name: value for name, value in asked.items() if value}))
    if session.as_json:
        session.answer(entries)
    elif as_csv:
        session.paper.write(write_csv(entries))
    elif not entries:
        session.paper.line(("Nothing of that is in the ledger.", "dim"))
    else:
        session.paper.table([_row(entry) for entry in entries], header=_HEADER, shrink=5)


def write_csv(entries: list[AccountEntry]) -> str:
    """Return entries as CSV (RFC 4180) with a header. A cell that a spreadsheet would run as a formula is quoted."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    for entry in entries:
        said = entry.model_dump(mode="json")
        writer.writerow([_cell(said[name]) for name in COLUMNS])
    return text.getvalue()


def _read(door: Door, asked: dict[str, str]) -> Iterator[AccountEntry]:
    after = 0
    while True:
        page = door.get("/v1/audit/account", AccountPage, **asked, after=after)
        yield from page.entries
        if not page.next:
            return
        after = page.next


def _cell(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")) else value


def _row(entry: AccountEntry) -> Row:
    style = "bad" if entry.what in _LOUD else ""
    what = f"{entry.what} {entry.effect}".strip().replace("_", " ")
    digest = (entry.digest[:SHORT], "digest")
    return [clock(entry.at), entry.who, (what, style), digest, entry.target, entry.detail, (entry.door, "dim")]


def _utc(time: datetime | None) -> str:
    return "" if time is None else (time if time.tzinfo else time.replace(tzinfo=UTC)).isoformat()
