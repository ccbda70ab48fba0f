"""``perdure tokens``: who else may ask, and for what."""

from __future__ import annotations

import click

from perdure.cli.catalog import TOKENS
from perdure.cli.lazy import CONTEXT, LazyGroup
from perdure.cli.paper import Row
from perdure.cli.session import Session, command
from perdure.cli.words import clock
from perdure.contracts.http import TokenRequest, TokenView

RIGHTS = ["read", "submit", "decide", "break_glass"]


@click.group(
    "tokens",
    cls=LazyGroup,
    sections=TOKENS,
    context_settings=CONTEXT,
    examples=[
        ("perdure tokens add ci --may submit", "may start jobs, never decide"),
        ("perdure tokens add anna --may decide --group maintainers", "may decide for a group"),
    ],
)
def tokens() -> None:
    """Tokens for clients other than you on this machine. To submit and to decide are different rights.

    A client sends its token from PERDURE_TOKEN, to the address in PERDURE_API.
    """


@command("list", examples=[("perdure tokens list", "who may do what since when")])
def list_tokens(session: Session) -> None:
    """List tokens. Their text is nowhere: only a hash of it is kept."""
    with session.door() as door:
        found = door.get("/v1/tokens", list[TokenView])
    if session.as_json:
        session.answer(found)
    elif not found:
        session.paper.line(("No tokens. Make one: perdure tokens add NAME", "dim"))
    else:
        session.paper.table([_row(one) for one in found], header=("ID", "WHO", "MAY", "GROUPS", "SINCE", ""))


@command(
    "add",
    examples=[
        ("perdure tokens add ci --may submit --may read", "two rights"),
        ("perdure tokens add anna --may decide --group maintainers --json", "for a script"),
        ("perdure tokens add assistant --agent-of anna --may submit", "asks in anna's name, decides nothing"),
    ],
)
@click.argument("principal")
@click.option("--may", multiple=True, type=click.Choice(RIGHTS), help="A right; default: read.")
@click.option("--group", "groups", multiple=True, metavar="NAME", help="A group that it decides for.")
@click.option("--agent-of", default="", metavar="PERSON", help="It is an agent of PERSON: it can never decide.")
def add_token(session: Session, principal: str, may: tuple[str, ...], groups: tuple[str, ...], agent_of: str) -> None:
    """Make a token for PRINCIPAL and print it, this once."""
    about = {"principal": principal, "groups": list(groups), "acts_for": agent_of}
    request = TokenRequest.model_validate({**about, "may": list(may) or ["read"]})
    with session.door() as door:
        made = door.post("/v1/tokens", request, TokenView)
    if session.as_json:
        session.answer(made)
        return
    session.paper.line(made.text)
    session.notes.line(("Keep it: it is not shown again. ", "warn"), f"Revoke: perdure tokens revoke {made.id}")


@command("revoke", examples=[("perdure tokens revoke 4", "it opens nothing any more")])
@click.argument("token_id", metavar="ID")
def revoke_token(session: Session, token_id: str) -> None:
    """Make a token useless from now on. What it did stays in the evidence."""
    with session.door() as door:
        gone = door.delete("/v1/tokens", TokenView, id=token_id)
    if session.as_json:
        session.answer(gone)
    else:
        session.paper.line(f"Token {gone.id} of {gone.principal} is revoked.")


def _row(token: TokenView) -> Row:
    gone = f"revoked {clock(token.revoked_at)}" if token.revoked_at else ""
    return [
        token.id,
        f"{token.principal} (agent of {token.acts_for})" if token.acts_for else token.principal,
        ", ".join(token.may),
        ", ".join(token.groups),
        clock(token.created_at),
        (gone, "bad"),
    ]
