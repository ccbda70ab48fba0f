"""``perdure people``: who is in which group today, which policies hold, and who decides in whose place."""

from __future__ import annotations

import click

from perdure.cli.catalog import PEOPLE
from perdure.cli.decide import comment_option, passphrase_option, read_passphrase
from perdure.cli.lazy import CONTEXT, LazyGroup
from perdure.cli.paper import Row
from perdure.cli.plans import with_passphrase
from perdure.cli.session import Session, command
from perdure.cli.words import clock, new_id
from perdure.contracts.http_people import DelegateRequest, DelegationView, EndDelegationRequest, PeopleView
from perdure.contracts.plan import ReviewRule
from perdure.contracts.values import parse_duration
from perdure.errors import UserError


@click.group(
    "people",
    cls=LazyGroup,
    sections=PEOPLE,
    default="list",
    context_settings=CONTEXT,
    examples=[
        ("perdure people", "who is in which group today, and which policies hold"),
        ("perdure people delegate cy --group dba --lasts 7d -m 'on leave'", "cy decides in your place for a week"),
        ("perdure people end 4f0c", "and no longer"),
    ],
)
def people() -> None:
    """Who decides today: people and policies of config.toml, and people's delegations.

    Without people in config.toml a token says who is in which group, and you stand for every group.
    """


@command("list", examples=[("perdure people list", "people, policies, delegations")])
def list_people(session: Session) -> None:
    """List people with their groups, policies, and delegations with their ends."""
    with session.door() as door:
        found = door.get("/v1/people", PeopleView)
    if session.as_json:
        session.answer(found)
        return
    if not found.named:
        session.paper.line(("config.toml names nobody: you stand for every group, tokens name their own.", "dim"))
    rows: list[Row] = [
        [one.name, f"agent of {one.acts_for}" if one.acts_for else ", ".join(one.groups)] for one in found.people
    ]
    session.paper.table(rows, header=("WHO", "GROUPS"))
    session.paper.table([_policy_row(policy) for policy in found.policies], header=("POLICY", "NEEDS"))
    given: list[Row] = [_delegation_row(one) for one in found.delegations]
    session.paper.table(given, header=("DELEGATION", "FROM", "TO", "GROUPS", "UNTIL", "", "WHY"))


@command(
    "delegate",
    examples=[("perdure people delegate cy --group dba --lasts 7d -m 'on leave'", "signed, listed, with an end")],
)
@click.argument("name")
@click.option("--group", "groups", multiple=True, required=True, metavar="NAME", help="A group of yours.")
@click.option("--lasts", required=True, metavar="DURATION", help="How long: 90m, 8h, 7d.")
@comment_option
@passphrase_option
def delegate(
    session: Session, name: str, groups: tuple[str, ...], lasts: str, comment: str, passphrase_stdin: bool
) -> None:
    """Let NAME decide for groups of yours until a time. You both together count once."""
    about = {"decision_id": new_id(), "to": name, "groups": list(groups), "comment": comment}
    request = DelegateRequest.model_validate({**about, "lasts_seconds": _seconds(lasts)})
    given = read_passphrase() if passphrase_stdin else ""
    with session.door() as door:

        def send(passphrase: str) -> DelegationView:
            asked = request.model_copy(update={"passphrase": passphrase})
            return door.post("/v1/delegations", asked, DelegationView)

        made = with_passphrase(send, passphrase=given, may_ask=session.may_ask)
    if session.as_json:
        session.answer(made)
        return
    session.paper.line(f"{made.to} decides for {', '.join(made.groups)} in your place until {clock(made.until)}.")
    session.notes.line(("End it: ", "dim"), (f"perdure people end {made.id[:8]}", "hint"))


@command("end", examples=[("perdure people end 4f0c", "from now on it counts no more")])
@click.argument("delegation", metavar="ID")
@passphrase_option
def end_delegation(session: Session, delegation: str, passphrase_stdin: bool) -> None:
    """Take a delegation of yours back. What was decided by it before stays decided."""
    request = EndDelegationRequest(decision_id=new_id())
    given = read_passphrase() if passphrase_stdin else ""
    with session.door() as door:

        def send(passphrase: str) -> DelegationView:
            asked = request.model_copy(update={"passphrase": passphrase})
            return door.post(f"/v1/delegations/{delegation}/end", asked, DelegationView)

        ended = with_passphrase(send, passphrase=given, may_ask=session.may_ask)
    if session.as_json:
        session.answer(ended)
    else:
        session.paper.line(f"{ended.to} no longer decides in your place.")


def _policy_row(policy: ReviewRule) -> Row:
    wanted = [f"{one.count} from {one.group}" for one in policy.approvals]
    own = [] if policy.requester_may_approve else ["not whoever asked for it"]
    return [policy.policy, ", ".join([*wanted, *own]) or "nobody"]


def _delegation_row(one: DelegationView) -> Row:
    state = ("stands", "good") if one.stands else ("ended", "dim")
    return [one.id[:8], one.by, one.to, ", ".join(one.groups), clock(one.until), state, one.comment]


def _seconds(text: str) -> int:
    try:
        return int(parse_duration(text).total_seconds())
    except ValueError as error:
        raise UserError(f"--lasts: {error}. Nothing was recorded.") from None
