"""What the front doors ask about messages to people; the worker sends them, but for a trial."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from datetime import datetime

from perdure.contracts.notify import Channel, ChannelView, MessageState, MessageView
from perdure.errors import NotFound
from perdure.notify.sending import carrying
from perdure.policy.names import suggest
from perdure.store.database import Database
from perdure.store.outbox import Outbox

FAILING: tuple[MessageState, ...] = ("waiting", "failed")


class Telling:
    """Channels of the settings as they are now, and the messages on them."""

    def __init__(
        self,
        database: Database,
        channels: Callable[[], Mapping[str, Channel]],
        address_of: Callable[[str], str | None],
    ) -> None:
        self._outbox = Outbox(database)
        self._channels = channels
        self._address_of = address_of

    def channels(self) -> list[ChannelView]:
        """Every channel by name. Raises ``SetupError``: the settings cannot be read."""
        found = sorted(self._channels().items())
        return [
            ChannelView(name=name, to=channel.to, about=list(channel.about), has_address=bool(self._address_of(name)))
            for name, channel in found
        ]

    def messages(self, *, job_id: str = "", only_failing: bool = False) -> list[MessageView]:
        """The newest hundred; ``only_failing``: those that did not arrive when they were sent."""
        found = self._outbox.list(states=FAILING if only_failing else (), job_id=job_id)
        return [one for one in found if one.error] if only_failing else found

    def send_again(self, key: str, at: datetime) -> MessageView:
        """Let a message be sent now. Raises ``NotFound``."""
        return self._outbox.send_again(key, at=at)

    def try_channel(self, name: str) -> None:
        """Send a word to a channel, now.

        Raises:
            NotFound: there is no such channel, or it has no address.
            NotDelivered: it did not take it.
        """
        channels = self._channels()
        if name not in channels:
            raise NotFound(
                f"config.toml has no [channels.{name}].{suggest(name, channels, 'channels')} docs/how-to/be-told.md."
            )
        address = self._address_of(name)
        if not address:
            raise NotFound(f"Channel {name!r} has no address: write one of apprise's into secrets/{name}, mode 0600.")
        with carrying() as send:
            send(name, address, "Perdure", f"Channel {name!r} works.", uuid.uuid4().hex)
