"""Messages as bytes of a protocol, each converted once: a turn converts only what is new.

docs/decisions/0012 has what converting all of them at each turn costs.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from perdure.contracts.messages import Message

LIMIT_BYTES = 64 * 1024 * 1024
"""Of all conversations together; then what was not used for longest is converted again when it is needed."""


class Fragments:
    """Keeps what messages were converted to, by dialect and by the message's id, which names its content."""

    def __init__(self, limit_bytes: int = LIMIT_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._kept: OrderedDict[tuple[str, str], bytes] = OrderedDict()
        self._bytes = 0

    def of(self, dialect: str, message: Message, convert: Callable[[Message], bytes]) -> bytes:
        """Return the bytes of ``message``, converted when they are not known."""
        key = (dialect, message.id)
        found = self._kept.get(key)
        if found is not None:
            self._kept.move_to_end(key)
            return found
        made = self._kept[key] = convert(message)
        self._bytes += len(made)
        while self._bytes > self._limit_bytes and len(self._kept) > 1:
            self._bytes -= len(self._kept.popitem(last=False)[1])
        return made
