"""``perdure key``: the key that signs decisions. Perdure's workers never load it."""

from __future__ import annotations

import sys

import click

from perdure.cli.catalog import KEY
from perdure.cli.lazy import CONTEXT, LazyGroup
from perdure.cli.session import Session, command
from perdure.contracts.http import KeyView, PassphraseRequest
from perdure.errors import UserError


@click.group(
    "key",
    cls=LazyGroup,
    sections=KEY,
    context_settings=CONTEXT,
    examples=[
        ("perdure key show", "the public key that a verifier of evidence needs"),
        ("perdure key passphrase", "from now on deciding asks for it"),
    ],
)
def key() -> None:
    """The key that signs your decisions.

    Without a passphrase every process of your user can decide. With one, deciding asks for it and forgets it at once.
    """


@command("show", examples=[("perdure key show --json", "for whoever verifies your evidence")])
def show_key(session: Session) -> None:
    """Show the public keys, and whether deciding asks for a passphrase."""
    with session.door() as door:
        view = door.get("/v1/key", KeyView)
    _answer(session, view)


@command(
    "passphrase",
    examples=[
        ("perdure key passphrase", "set it or change it"),
        ("perdure key passphrase --remove", "take it away"),
        ("printf 'old\\nnew\\n' | perdure key passphrase --stdin", "from a script: the old one, then the new one"),
    ],
)
@click.option("--remove", is_flag=True, help="Take the passphrase away.")
@click.option("--stdin", "from_stdin", is_flag=True, help="Read two lines: the old one (empty: none), the new one.")
def change_passphrase(session: Session, remove: bool, from_stdin: bool) -> None:
    """Give the decision key a passphrase, or change it. Nobody can recover a lost one."""
    with session.door() as door:
        view = door.get("/v1/key", KeyView)
        old, new = _read_lines() if from_stdin else _ask(session, view, remove=remove)
        request = PassphraseRequest(passphrase=old, new_passphrase="" if remove else new)
        view = door.post("/v1/key/passphrase", request, KeyView)
    _answer(session, view)


def _read_lines() -> tuple[str, str]:
    old, new = sys.stdin.readline().rstrip("\n"), sys.stdin.readline().rstrip("\n")
    return old, new


def _ask(session: Session, view: KeyView, *, remove: bool) -> tuple[str, str]:
    if not session.may_ask:
        raise UserError("There is no terminal to ask at. Use --stdin: the old passphrase and the new one, a line each.")
    old = click.prompt("Passphrase now", hide_input=True, err=True) if view.has_passphrase else ""
    new = "" if remove else click.prompt("New passphrase", hide_input=True, confirmation_prompt=True, err=True)
    return old, new


def _answer(session: Session, view: KeyView) -> None:
    if session.as_json:
        session.answer(view)
        return
    session.paper.line("Deciding asks for a passphrase." if view.has_passphrase else "Deciding asks for no passphrase.")
    for identifier, public in view.public_keys.items():
        session.paper.line("  ", (identifier, "digest"), f"  {public}")
