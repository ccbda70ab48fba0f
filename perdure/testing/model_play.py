"""Chooses the answer of a script for each request, and remembers what was asked."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from string import Template
from typing import Any

from perdure.testing.model_script import Answer, Api, Call, Rule, Script, When, unrolled

# Counted in the bytes: a conversation of ten megabytes is parsed for no other reason. Inside a JSON string the quotes
# are escaped, so that no tool's output is taken for a message.
_ASSISTANT = re.compile(rb'"role"\s*:\s*"assistant"')
_STREAM = re.compile(rb'"stream"\s*:\s*true')
_MODEL = re.compile(rb'"model"\s*:\s*"([^"]*)"')


@dataclass
class Asked:
    """One request, as it came."""

    number: int
    """From 1, in the order of asking."""
    api: Api
    raw: bytes = field(repr=False)
    at: float
    """Seconds since the epoch."""
    ended: str = ""
    """Empty while it is answered; then "answered", "cut" or "client left"."""

    @cached_property
    def size_bytes(self) -> int:
        """Size of the request's body."""
        return len(self.raw)

    def forget(self) -> None:
        """Let the body go; what was counted in it stays."""
        _ = self.size_bytes, self.turn, self.stream, self.model
        self.raw = b""
        self.__dict__.pop("body", None)

    @cached_property
    def body(self) -> dict[str, Any]:
        """The request; empty when it is no JSON object."""
        try:
            found = json.loads(self.raw)
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    @cached_property
    def turn(self) -> int:
        """How many answers of the model the conversation already holds."""
        return len(_ASSISTANT.findall(self.raw))

    @cached_property
    def stream(self) -> bool:
        """Whether the answer is to come as events."""
        return bool(_STREAM.search(self.raw))

    @cached_property
    def model(self) -> str:
        """Name of the model that was asked."""
        found = _MODEL.search(self.raw)
        return found[1].decode("utf-8", "replace") if found else ""

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The conversation, in the form of the protocol."""
        return list(self.body.get("messages") or [])

    @property
    def tools(self) -> list[str]:
        """Names of the tools that are offered."""
        return [tool.get("name") or tool.get("function", {}).get("name", "") for tool in self.body.get("tools") or []]

    @property
    def wants_json(self) -> bool:
        """Whether an answer by a JSON schema (or any JSON) is asked for."""
        return "response_format" in self.body or "output_config" in self.body

    @property
    def texts(self) -> list[str]:
        """All texts of instructions, messages and results, in order."""
        return list(_texts(self.body.get("system"))) + [text for each in self.messages for text in _texts(each)]

    @property
    def last_texts(self) -> list[str]:
        """The texts of the last message."""
        return list(_texts(self.messages[-1])) if self.messages else []


Answering = Callable[[Asked], Answer]
"""What decides: a script being played, or a function of a test."""


class Play:
    """A script being played: it knows what was used up."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self._turns = unrolled(script.turns)
        self._answers = [answer for answer in script.answers for _ in range(answer.repeat)]
        self._next = 0
        self._used: Counter[int] = Counter()
        self._attempts: Counter[tuple[str, int]] = Counter()

    def __call__(self, asked: Asked) -> Answer:
        """Return the answer for this request, its ``$turn`` and such replaced."""
        found = self._rule(asked) or self._turn(asked) or self._in_order() or self.script.otherwise
        if found is None:
            said = f"The script has no answer for request {asked.number} (turn {asked.turn}). Add one, or `otherwise`."
            return Answer(status=400, error=said)
        return fill_in(found, asked)

    def _rule(self, asked: Asked) -> Answer | None:
        for place, rule in enumerate(self.script.rules):
            if self._may_use(place, rule) and fits(rule.when, asked):
                self._used[place] += 1
                return rule.answer
        return None

    def _may_use(self, place: int, rule: Rule) -> bool:
        return rule.times is None or self._used[place] < rule.times

    def _turn(self, asked: Asked) -> Answer | None:
        if asked.turn >= len(self._turns):
            return None
        attempts = self._turns[asked.turn]
        if len(attempts) == 1:
            return attempts[0]
        place = (_opening(asked), asked.turn)
        self._attempts[place] += 1
        return attempts[min(self._attempts[place], len(attempts)) - 1] if attempts else None

    def _in_order(self) -> Answer | None:
        if self._next >= len(self._answers):
            return None
        self._next += 1
        return self._answers[self._next - 1]


def fits(when: When, asked: Asked) -> bool:
    """Whether a request is one that ``when`` speaks of."""
    return (
        when.turn in (None, asked.turn)
        and when.api in (None, asked.api)
        and when.stream in (None, asked.stream)
        and when.model in ("", asked.model)
        and (not when.says or any(when.says in text for text in asked.texts))
        and (not when.last_says or any(when.last_says in text for text in asked.last_texts))
        and (not when.tool or when.tool in asked.tools)
        and when.wants_json in (None, asked.wants_json)
    )


def fill_in(answer: Answer, asked: Asked) -> Answer:
    """Replace ``$turn``, ``$number`` and ``$model`` in the texts, and give every call an id."""
    words = {"turn": str(asked.turn), "number": str(asked.number), "model": asked.model}
    calls = [
        Call(
            tool=call.tool,
            arguments=_replaced(call.arguments, words),
            raw=call.raw,
            id=_replaced(call.id, words) or f"call_{asked.turn}_{place}",
        )
        for place, call in enumerate(answer.calls)
    ]
    return answer.model_copy(update={"text": _replaced(answer.text, words), "calls": calls})


def _replaced(value: Any, words: dict[str, str]) -> Any:
    if isinstance(value, str):
        return Template(value).safe_substitute(words) if "$" in value else value
    if isinstance(value, dict):
        return {name: _replaced(item, words) for name, item in value.items()}
    return [_replaced(item, words) for item in value] if isinstance(value, list) else value


def _opening(asked: Asked) -> str:
    """What tells conversations of one script apart: the first message of the user."""
    return next((json.dumps(each, sort_keys=True) for each in asked.messages if each.get("role") == "user"), "")


def _texts(value: Any) -> Iterator[str]:
    """Every text of a message, of its parts and of its calls' arguments."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, dict):
        for name in ("content", "text", "thinking", "tool_calls", "function", "arguments"):
            yield from _texts(value.get(name))
        if isinstance(value.get("input"), dict):
            yield json.dumps(value["input"])
