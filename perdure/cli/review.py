"""``perdure review``: one plan, whole."""

from __future__ import annotations

import click

from perdure.cli.pager import show_lines
from perdure.cli.plan_view import diff_lines, review_lines
from perdure.cli.plans import read_plan_of
from perdure.cli.session import Session, command


@command(
    "review",
    examples=[
        ("perdure review 1", "the newest plan of job 1, whole"),
        ("perdure review 7f3a91c2", "exactly this plan, also after it was decided"),
        ("perdure review 1 --diff", "only the diff, for another tool"),
    ],
)
@click.argument("plan", default="@last", metavar="[JOB|DIGEST]")
@click.option("--diff", "only_diff", is_flag=True, help="Only the diff.")
@click.option("--no-diff", is_flag=True, help="Everything but the diff.")
@click.option("--no-pager", is_flag=True, help="Write it all at once, also on a terminal.")
def review(session: Session, plan: str, only_diff: bool, no_diff: bool, no_pager: bool) -> None:
    """Show a plan whole: what happens, how it is undone, what was checked, every changed line.

    Characters that would steer a terminal or hide are written out. Without an argument: the last job's plan.
    A diff above 1 MB is not in --json: `diff_bytes` says how large it is, and --diff gives it.
    """
    with session.door() as door:
        found = read_plan_of(door, plan)
        if session.as_json:
            session.answer(found)
        elif only_diff:
            show_lines(session.paper, diff_lines(session.paper, found, door), pager=not no_pager)
        else:
            show_lines(session.paper, review_lines(session.paper, found, door, diff=not no_diff), pager=not no_pager)
