"""notify.send: a message to a channel. Its receipt in the ledger hands it over; the worker's courier delivers it.

So nothing is sent twice by a crash of the applier: doing it changes nothing outside, and a receipt is written once. How
the delivery fares is told by ``perdure messages``.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import ClassVar

from perdure.contracts.base import JsonDict
from perdure.contracts.notify import CHANNEL_NAME
from perdure.contracts.plan import Inverse
from perdure.effects.arguments import know_arguments, text_argument
from perdure.effects.base import SECRET_MARK, EffectContext, EffectDraft, EffectRequest, Found, Probe
from perdure.errors import EffectNotBegun, UserError

_MOST_TITLE, _MOST_TEXT = 200, 4000


class NotifySend:
    """Cannot be undone: a message that was read stays read."""

    kind: ClassVar[str] = "notify.send"
    version: ClassVar[int] = 1
    always_reversible: ClassVar[bool] = False
    settle: ClassVar[timedelta] = timedelta(0)

    def plan(self, request: EffectRequest, context: EffectContext) -> EffectDraft:
        """``with``: to (a channel), title (one line), text. Beside it `irreversible: <why>` or `undo: none_needed`."""
        know_arguments(request, self.kind, ("to", "title", "text"))
        to, title, text = (text_argument(request, name) for name in ("to", "title", "text"))
        if not re.fullmatch(CHANNEL_NAME, to):
            raise UserError(f"Step {request.id!r}: `to` is {to!r}; expected a channel's name, such as release-channel.")
        if "\n" in title or len(title) > _MOST_TITLE or len(text) > _MOST_TEXT:
            raise UserError(
                f"Step {request.id!r}: a message has a title of one line and {_MOST_TITLE} characters at most, and a "
                f"text of {_MOST_TEXT} at most. Put what is longer where a link in the text can name it."
            )
        return EffectDraft(
            body={"to": to, "title": title, "text": text},
            summary=f"tell {to}: {title}",
            target=f"channel:{to}",
            inverse=_inverse(request),
            requires=[f"channel {to} has an address"],
            ways_out=[f"{SECRET_MARK}{to}"],
        )

    def check(self, body: JsonDict, context: EffectContext) -> list[str]:
        """The channel has an address."""
        return [] if body["to"] in context.secrets else [_say_missing(body["to"])]

    def probe(self, body: JsonDict, context: EffectContext) -> Probe:
        """Nothing has to be looked for: until there is a receipt, nobody sends it."""
        return Probe(Found.not_done, "it is handed over with its receipt")

    def do(self, body: JsonDict, context: EffectContext) -> JsonDict:
        """Nothing but the receipt. Raises ``EffectNotBegun``: the channel has no address."""
        if body["to"] not in context.secrets:
            raise EffectNotBegun(_say_missing(body["to"]))
        return {"handed over to": body["to"]}

    def verify(self, body: JsonDict, context: EffectContext) -> list[str]:
        """Whether it arrives is told by ``perdure messages``."""
        return []


def _inverse(request: EffectRequest) -> Inverse:
    if request.irreversible:
        return Inverse(irreversible=request.irreversible)
    if request.undo == "none_needed":
        return Inverse(none_needed="the template says that nothing has to be undone")
    raise UserError(f"Step {request.id!r}: notify.send needs `irreversible: <why>` or `undo: none_needed`.")


def _say_missing(channel: str) -> str:
    return (
        f"Channel {channel!r} has no address: write one of apprise's into secrets/{channel} of the data folder, "
        "mode 0600."
    )
