"""Who is signed in to the pages. Sessions live in this process's memory and end with it; what opens one is a token."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

LASTS = timedelta(hours=12)
"""From signing in, whatever is done meanwhile."""
IDLE = timedelta(hours=2)

_MOST_SESSIONS = 1000
_MOST_FORMS = 200
"""Open forms of one session; the oldest are forgotten first."""


@dataclass(frozen=True)
class Form:
    """What one form that was shown is about; answered once at most."""

    about: str
    """The plan's whole digest, or the job's id."""
    since: str = ""
    """The plan that the difference on the page was from."""


@dataclass
class Session:
    """One browser that somebody signed in with."""

    token_id: str
    is_secure: bool
    """Signed in over TLS: its cookie counts only as one that never went another way."""
    begun: datetime
    seen: datetime
    forms: OrderedDict[str, Form] = field(default_factory=OrderedDict)
    said: dict[str, str] = field(default_factory=dict)
    """What is to be told at the next look, by what it is about."""

    def offer(self, form: Form) -> str:
        """Return the nonce of a form that is shown now."""
        nonce = secrets.token_urlsafe(24)
        self.forms[nonce] = form
        while len(self.forms) > _MOST_FORMS:
            self.forms.popitem(last=False)
        return nonce

    def take(self, nonce: str, about: str) -> Form | None:
        """Return a nonce's form and forget it; ``None``: it was answered, is too old, or is about something else."""
        form = self.forms.get(nonce)
        if form is None or form.about != about:
            return None
        return self.forms.pop(nonce)


class Sessions:
    """All of them. Used on one event loop, between two awaits: no lock is needed."""

    def __init__(self, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._now = now
        self._all: OrderedDict[str, Session] = OrderedDict()

    def begin(self, token_id: str, *, is_secure: bool) -> str:
        """Return the secret of a new session: nobody brings one along."""
        key, now = secrets.token_urlsafe(32), self._now()
        self._all[key] = Session(token_id, is_secure, begun=now, seen=now)
        while len(self._all) > _MOST_SESSIONS:
            self._all.popitem(last=False)
        return key

    def find(self, key: str, *, is_secure: bool) -> Session | None:
        """Return a session that still lasts, and note that it was used."""
        session, now = self._all.get(key), self._now()
        if session is None or session.is_secure != is_secure:
            return None
        if now - session.begun >= LASTS or now - session.seen >= IDLE:
            self.end(key)
            return None
        session.seen = now
        return session

    def end(self, key: str) -> None:
        """Forget a session; a no-op when there is none."""
        self._all.pop(key, None)
