"""Bearer tokens: shown once, stored as their hash."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, insert, select, update

from perdure.contracts.http import TokenView
from perdure.errors import NotFound, UserError
from perdure.policy.authorize import AGENT_RIGHTS
from perdure.store import schema
from perdure.store.chain import time_of, time_text
from perdure.store.events import INSTALLATION, append_event, clean

_PREFIX = "perdure_"
SCOPES = ("read", "submit", "decide", "break_glass")


def add_token(
    connection: Connection, principal: str, groups: Sequence[str], may: Sequence[str], at: datetime, acts_for: str = ""
) -> TokenView:
    """Make a token of 32 random bytes; only the view returned here holds its text.

    ``acts_for``: the person behind an agent. An agent decides nothing, so it gets no group and no right to.
    """
    wrong = [scope for scope in may if scope not in SCOPES]
    if wrong or not may:
        raise UserError(f"A token may {', '.join(SCOPES)}; not {', '.join(wrong) or 'nothing'}.")
    for name in (principal, acts_for or principal):
        if not name or name != clean(name):
            raise UserError(f"{name!r} is no name for a principal.")
    if acts_for:
        _check_agent(principal, groups, may, acts_for)
    text = _PREFIX + secrets.token_urlsafe(32)
    token_id = secrets.token_hex(4)
    values = {
        "principal": principal,
        "acts_for": acts_for,
        "groups": json.dumps(list(groups)),
        "may": json.dumps(list(may)),
    }
    connection.execute(
        insert(schema.tokens).values(id=token_id, sha256=_hash(text), created_at=time_text(at), **values)
    )
    body = {"id": token_id, "principal": principal, "groups": list(groups), "may": list(may), "acts_for": acts_for}
    append_event(connection, thread=INSTALLATION, kind="token.added", actor="perdure", body=body, at=at)
    row = connection.execute(select(schema.tokens).where(schema.tokens.c.id == token_id)).one()
    return _view(row).model_copy(update={"text": text})


def _check_agent(principal: str, groups: Sequence[str], may: Sequence[str], acts_for: str) -> None:
    if principal == acts_for:
        raise UserError(f"{principal!r} cannot act for itself; an agent has a name of its own.")
    if groups or not AGENT_RIGHTS.issuperset(may):
        raise UserError(
            f"{principal!r} is an agent of {acts_for}: it may {', '.join(sorted(AGENT_RIGHTS))}, and is in no group. "
            "Agents decide nothing. No token was made."
        )


def find_token(connection: Connection, text: str) -> TokenView | None:
    """Return the token of that text; ``None`` when there is none or it was revoked.

    Looked up by hash: the time it takes tells nothing about the text of another token.
    """
    tokens = schema.tokens
    query = select(tokens).where(tokens.c.sha256 == _hash(text), tokens.c.revoked_at.is_(None))
    row = connection.execute(query).one_or_none()
    return _view(row) if row is not None else None


def token_by_id(connection: Connection, token_id: str) -> TokenView | None:
    """Return a token by its id; ``None`` when there is none or it was revoked."""
    tokens = schema.tokens
    query = select(tokens).where(tokens.c.id == token_id).where(tokens.c.revoked_at.is_(None))
    row = connection.execute(query).one_or_none()
    return _view(row) if row is not None else None


def list_tokens(connection: Connection) -> list[TokenView]:
    """Return all tokens without their texts, oldest first, revoked ones too."""
    rows = connection.execute(select(schema.tokens).order_by(schema.tokens.c.created_at, schema.tokens.c.id))
    return [_view(row) for row in rows]


def revoke_token(connection: Connection, token_id: str, at: datetime) -> None:
    """End a token at once; a no-op when it was revoked before. Raises ``NotFound``."""
    tokens = schema.tokens
    row = connection.execute(select(tokens).where(tokens.c.id == token_id)).one_or_none()
    if row is None:
        raise NotFound(f"There is no token {token_id!r}. `perdure tokens list` shows them.")
    if row.revoked_at is not None:
        return
    connection.execute(update(tokens).where(tokens.c.id == token_id).values(revoked_at=time_text(at)))
    body = {"id": token_id, "principal": row.principal}
    append_event(connection, thread=INSTALLATION, kind="token.revoked", actor="perdure", body=body, at=at)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _view(row: Row[Any]) -> TokenView:
    return TokenView(
        id=row.id,
        principal=row.principal,
        acts_for=row.acts_for,
        groups=json.loads(row.groups),
        may=json.loads(row.may),
        created_at=time_of(row.created_at),
        revoked_at=time_of(row.revoked_at) if row.revoked_at else None,
    )
