"""The one door to models: :class:`Models` asks whichever is configured, with fallbacks, in either protocol."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from perdure.contracts.agent import ModelAnswer, ModelFacts, ModelRequest
from perdure.contracts.agent_ports import OnText
from perdure.contracts.messages import TextPart
from perdure.errors import ModelFailed, ModelTrouble, PerdureError, SetupError
from perdure.models.anthropic import Anthropic
from perdure.models.chat import Chat
from perdure.models.configured import Configured, ConfiguredModel, read_models
from perdure.models.fragments import Fragments
from perdure.models.prices import cost_of, facts_of
from perdure.models.protocol import Adapter, Question, Reading, Typed
from perdure.models.schema_calls import SchemaChat
from perdure.models.typed import unwrapped
from perdure.settings import Settings, read_config, read_secret

if TYPE_CHECKING:
    from perdure.models.exchange import Exchange

_WEAKER: Mapping[Typed, Typed] = {"schema": "object", "object": "prompt"}
_NOT_UNDERSTOOD = (400, 422, 501)
"""What servers answer to a field that they do not know."""
_CERTAIN = ("openai", "anthropic")
"""Providers that take a schema: their refusal means something else."""


class Models:
    """Asks models (the port ``ModelClient``). One for a process; its connections belong to the loop that asks.

    ``read`` gives the ``[models]`` table as it is now, ``read_key`` the value of a named secret, ``place`` is the
    settings file's name for messages.
    """

    def __init__(
        self, read: Callable[[], Mapping[str, Any]], read_key: Callable[[str], str | None], place: str = "config.toml"
    ) -> None:
        self._read, self._read_key, self._place = read, read_key, place
        fragments = Fragments()
        self._chat, self._anthropic = Chat(fragments), Anthropic(fragments)
        self._schema_chat = SchemaChat(fragments)
        self._typed: dict[str, Typed] = {}
        self._exchange: tuple[asyncio.AbstractEventLoop, Exchange] | None = None
        self._seen: tuple[Mapping[str, Any], Configured] | None = None

    @classmethod
    def of(cls, settings: Settings) -> Models:
        """Models of an installation. Its settings file is read at each question: a change counts from the next one."""
        return cls(_table_of(settings), lambda name: read_secret(settings, name), str(settings.config))

    @property
    def configured(self) -> Configured:
        """All models of the settings, as they are now.

        Raises:
            SetupError: something in them cannot be used.
        """
        table = self._read()
        if self._seen is None or self._seen[0] != table:
            self._seen = table, read_models(table, self._place)
        return self._seen[1]

    def facts(self, model: str) -> ModelFacts:
        """What is known about a configured model. Raises ``SetupError`` naming the setting when there is none."""
        return facts_of(self.configured.find(model, self._place))

    def has_key(self, model: ConfiguredModel) -> bool:
        """Whether the secret that a model's key is in is there; also when it needs none."""
        return not model.key or bool(self._read_key(model.key))

    async def ask(self, request: ModelRequest, on_text: OnText | None = None) -> ModelAnswer:
        """Ask once, with fallbacks in their order. Streams when somebody watches.

        Raises:
            ModelTrouble, ModelFailed, SetupError: see ``ModelClient.ask``.
        """
        chain = self.configured.chain(request.model, self._place)
        deadline = time.monotonic() + request.limit_seconds
        faults: list[PerdureError] = []
        notes: list[str] = []
        for place, model in enumerate(chain):
            limit = max((deadline - time.monotonic()) / (len(chain) - place), 1.0)
            try:
                return await self._ask_one(model, request, on_text, limit, notes)
            except (ModelTrouble, ModelFailed, SetupError) as error:
                faults.append(error)
                if place + 1 < len(chain):
                    notes.append(f"fell back from {model.name} to {chain[place + 1].name}: {error.message}")
        raise _gravest(faults)

    async def close(self) -> None:
        """Close the connections; from the loop that asked."""
        if self._exchange:
            await self._exchange[1].close()
            self._exchange = None

    async def _ask_one(
        self, model: ConfiguredModel, request: ModelRequest, on_text: OnText | None, limit: float, notes: list[str]
    ) -> ModelAnswer:
        key = self._key(model)
        while True:
            question = Question(
                request=request,
                model=model,
                max_output_tokens=self._output_tokens(model, request),
                typed=self._typed.get(_server(model)) or model.typed or "schema",
                stream=on_text is not None,
            )
            try:
                reading = await self._connections().ask(self._adapter(model), question, key, limit, on_text)
            except ModelFailed as error:
                weaker = _weaker(question, error)
                if weaker is None:
                    raise
                self._typed[_server(model)] = weaker
                notes.append(f"{model.name} takes no {question.typed} for a typed answer: asked by {weaker}")
            else:
                return _answer(question, reading, notes)

    def _adapter(self, model: ConfiguredModel) -> Adapter:
        if model.provider == "anthropic":
            return self._anthropic
        return self._schema_chat if model.calls == "schema" else self._chat

    def _connections(self) -> Exchange:
        """Those of the running loop: a loop that ended took its own with it."""
        from perdure.models.exchange import Exchange  # httpx: 130 ms that a worker without agents never spends

        loop = asyncio.get_running_loop()
        if self._exchange is None or self._exchange[0] is not loop:
            self._exchange = loop, Exchange()
        return self._exchange[1]

    def _key(self, model: ConfiguredModel) -> str:
        if not model.key:
            return ""
        value = self._read_key(model.key)
        if not value or not value.isascii() or not value.isprintable():
            what = "is none of that name" if value is None else "is empty, or more than one line of plain text"
            raise SetupError(
                f"The model {model.name!r} needs the secret {model.key!r} for its key, and there {what}. "
                f"Write it into secrets/{model.key} of the data folder, mode 0600."
            )
        return value

    def _output_tokens(self, model: ConfiguredModel, request: ModelRequest) -> int:
        known = facts_of(model).max_output_tokens
        return min(request.max_output_tokens or known, known)


def _table_of(settings: Settings) -> Callable[[], Mapping[str, Any]]:
    """Reads the table of models, anew when the file is another one: a turn asks for it four times."""
    kept: tuple[tuple[int, int, int], Mapping[str, Any]] | None = None

    def read() -> Mapping[str, Any]:
        nonlocal kept
        try:
            about = settings.config.stat()
        except OSError:
            return read_config(settings, "models")
        mark = (about.st_ino, about.st_mtime_ns, about.st_size)
        if kept is None or kept[0] != mark:
            kept = mark, read_config(settings, "models")
        return kept[1]

    return read


def _answer(question: Question, reading: Reading, notes: list[str]) -> ModelAnswer:
    parts = reading.parts
    if question.request.answer_schema is not None:
        parts = tuple(
            part.model_copy(update={"text": unwrapped(part.text)}) if isinstance(part, TextPart) else part
            for part in parts
        )
    return ModelAnswer(
        parts=parts,
        finish=reading.finish,
        usage=reading.usage,
        cost_microdollars=cost_of(question.model, reading.usage),
        model=question.model.label,
        notes=tuple(notes),
    )


def _weaker(question: Question, error: ModelFailed) -> Typed | None:
    """The next weaker way to ask for a typed answer, when that may be what was refused."""
    model = question.model
    asked = question.request.answer_schema is not None
    if not asked or model.typed or model.provider in _CERTAIN or error.status not in _NOT_UNDERSTOOD:
        return None
    return _WEAKER.get(question.typed)


def _server(model: ConfiguredModel) -> str:
    return f"{model.url} {model.model}"


def _gravest(faults: list[PerdureError]) -> PerdureError:
    """What to raise when nobody answered: whatever may pass first, with the shortest wait; else the first fault."""
    passing = [fault for fault in faults if isinstance(fault, ModelTrouble)]
    if not passing:
        return faults[0]
    return min(passing, key=lambda fault: fault.retry_after_seconds if fault.retry_after_seconds is not None else 0.0)
