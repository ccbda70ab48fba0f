"""Routes for whoever runs the installation: health, tokens, audit."""

from __future__ import annotations

from datetime import UTC, datetime

from fastapi import APIRouter
from pydantic import Field

from perdure.api.asking import Asked, Asking
from perdure.contracts.base import Contract
from perdure.contracts.http import (
    AuditReport,
    EffectKindView,
    Health,
    KeyView,
    PassphraseRequest,
    TokenRequest,
    TokenView,
    ToolView,
)
from perdure.contracts.http_account import AccountPage
from perdure.store.account import Question

router = APIRouter()


class ExportRequest(Contract):
    """Where to write a bundle of evidence."""

    path: str = Field(pattern=r"^/")
    """Absolute, on the machine of the installation; must not exist."""


class ExportAnswer(Contract):
    """What a verifier must get by another way than the bundle."""

    path: str
    head: str
    public_keys: dict[str, str]
    """Raw Ed25519 keys in hex by key id."""


@router.get("/health")
async def show_health(client: Asked, principal: Asking) -> Health:
    """How the installation is. Answers within a second, whatever is down."""
    return await client.health(principal)


@router.get("/tools")
async def list_tools(client: Asked, principal: Asking) -> list[ToolView]:
    """The tools that agents may be given, shipped ones first."""
    return await client.read(principal, client.tools)


@router.get("/effects")
async def list_effects(client: Asked, principal: Asking) -> list[EffectKindView]:
    """The kinds of effect that templates may name, shipped ones first."""
    return await client.read(principal, client.kinds)


@router.get("/tokens")
async def list_tokens(client: Asked, principal: Asking) -> list[TokenView]:
    """All tokens, without their texts."""
    return await client.read(principal, client.ledger.tokens, right="own")


@router.post("/tokens")
async def add_token(request: TokenRequest, client: Asked, principal: Asking) -> TokenView:
    """Make a token; its text is in this answer and nowhere else."""
    return await client.read(
        principal,
        lambda: client.ledger.add_token(
            request.principal, request.groups, request.may, at=client.now(), acts_for=request.acts_for
        ),
        right="own",
    )


@router.delete("/tokens")
async def revoke_token(id: str, client: Asked, principal: Asking) -> TokenView:
    """End a token at once."""
    return await client.revoke_token(principal, id)


@router.get("/key")
async def show_key(client: Asked, principal: Asking) -> KeyView:
    """The public half of the key that signs decisions, and whether it has a passphrase."""
    return await client.read(principal, client.key)


@router.post("/key/passphrase")
async def change_passphrase(request: PassphraseRequest, client: Asked, principal: Asking) -> KeyView:
    """Give the decision key a passphrase, so that another process of the owner's uid cannot decide."""
    return await client.change_passphrase(principal, request)


@router.get("/audit")
async def audit(client: Asked, principal: Asking, ref: str = "") -> AuditReport:
    """Compare the ledger with itself, its signatures, the blobs and Temporal; ``ref``: findings about one job."""
    return await client.audit(principal, ref)


@router.get("/audit/account")
async def account(
    client: Asked,
    principal: Asking,
    thread: str = "",
    person: str = "",
    target: str = "",
    since: datetime | None = None,
    until: datetime | None = None,
    after: int = 0,
) -> AccountPage:
    """Who decided what on which plan through which door, what ran and what was undone; oldest first, in pages.

    A time without a zone is UTC.
    """
    times = [time if time is None or time.tzinfo else time.replace(tzinfo=UTC) for time in (since, until)]
    question = Question(thread, person, target, *times)
    return await client.read(principal, lambda: client.accounts.read(question, after=after))


@router.post("/audit/export")
async def export(request: ExportRequest, client: Asked, principal: Asking, ref: str = "") -> ExportAnswer:
    """Write a bundle that can be verified elsewhere, without a server."""
    path, head, keys = await client.export(principal, request.path, ref)
    return ExportAnswer(path=path, head=head, public_keys=keys)
