"""The rounds of a conversation laid down one after the other within a limit, as the turns did it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from perdure.contracts.messages import Message, estimate_tokens
from perdure.policy.shorten import shorten

KEPT_WHOLE = 4
"""The newest rounds, whose results are shortened last."""
WHOLE = 8
"""A scale is in eighths of our own estimate: this is the estimate as it stands."""


@dataclass(slots=True)
class Round:
    """Messages that stay or go together: an answer of the model and the results of its calls, or one other message."""

    messages: list[Message]
    whole: int = 0
    short: int = 0
    """Tokens when all is whole, and when its results are shortened."""
    is_person: bool = False
    is_short: bool = False
    is_out: bool = False

    @property
    def tokens(self) -> int:
        """What it takes as it goes into the request."""
        return 0 if self.is_out else self.short if self.is_short else self.whole

    @property
    def shown(self) -> list[Message]:
        """What of it goes into the request."""
        if self.is_out:
            return []
        return [shorten(message) for message in self.messages] if self.is_short else self.messages


@dataclass(slots=True)
class Window:
    """What is laid down stays down: a turn adds its rounds, and only what no longer fits is looked at again."""

    limit: int
    scale: int = WHOLE
    rounds: list[Round] = field(default_factory=list)
    tokens: int = 0
    left_out: int = 0
    """Messages."""
    shown: list[Message] = field(default_factory=list)
    _settled: int = 0
    """Rounds before this one are short already."""
    _shorts: int = 0
    """What the rounds but the newest ``KEPT_WHOLE`` would take when all of them were shortened."""

    @property
    def low(self) -> int:
        """Where shrinking stops: two thirds, so that it need not be done again soon."""
        return self.limit * 2 // 3

    @property
    def least(self) -> int:
        """What it would take with all but the newest rounds shortened, and nothing left out."""
        return self._shorts + sum(one.whole for one in self.rounds[-KEPT_WHOLE:])

    def lay(self, messages: Iterable[Message]) -> None:
        """Add what is new, round by round; when it does not fit, shorten oldest first, then leave rounds out."""
        for one in rounds_of(messages, self.scale):
            self._lay(one)

    def _lay(self, one: Round) -> None:
        self.rounds.append(one)
        self.tokens += one.tokens
        if len(self.rounds) > KEPT_WHOLE:
            self._shorts += self.rounds[-KEPT_WHOLE - 1].short
        if self.tokens <= self.limit:
            self.shown += one.messages
            return
        self._shorten_old()
        if self.tokens > self.limit:
            self._shrink(self.rounds[-KEPT_WHOLE:], "is_short")
        if self.tokens > self.limit:
            self._shrink([old for old in self.rounds[:-1] if not old.is_person], "is_out")
        if self.tokens > self.limit:
            self._shrink(self.rounds[:-1], "is_out")
        self.left_out = sum(len(old.messages) for old in self.rounds if old.is_out)
        self.shown = [message for old in self.rounds for message in old.shown]

    def _shorten_old(self) -> None:
        """Shorten from where it stopped the last time."""
        end = max(len(self.rounds) - KEPT_WHOLE, 0)
        while self._settled < end and self.tokens > self.low:
            self._set(self.rounds[self._settled], "is_short")
            self._settled += 1

    def _shrink(self, rounds: Sequence[Round], how: str) -> None:
        for one in rounds:
            if self.tokens <= self.low:
                return
            self._set(one, how)

    def _set(self, one: Round, how: str) -> None:
        self.tokens -= one.tokens
        setattr(one, how, True)
        self.tokens += one.tokens


def rounds_of(messages: Iterable[Message], scale: int) -> Iterator[Round]:
    """Return messages as rounds, measured."""
    current: list[Message] = []
    for message in messages:
        if current and message.role != "tool":
            yield _measure(current, scale)
            current = []
        current.append(message)
    if current:
        yield _measure(current, scale)


def measure(message: Message, scale: int) -> int:
    """Return about how many tokens a message takes, by a scale in eighths."""
    return -(-(message.tokens or estimate_tokens(message.parts)) * scale // 8)


def _measure(messages: list[Message], scale: int) -> Round:
    whole = sum(measure(message, scale) for message in messages)
    short = sum(_short_tokens(message, scale) for message in messages)
    return Round(messages, whole, short, is_person=messages[0].source == "person")


def _short_tokens(message: Message, scale: int) -> int:
    """A shortened copy is made only to be measured where it could be smaller."""
    return measure(shorten(message), scale) if message.role == "tool" else measure(message, scale)
