"""Models as they are named in the settings: ``[models.NAME]`` tables of ``config.toml``."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import Field, ValidationError, field_validator, model_validator

from perdure.contracts.base import Contract, JsonDict
from perdure.contracts.values import Money
from perdure.errors import SetupError

Provider = Literal["openai", "anthropic", "openrouter", "ollama", "vllm", "llama.cpp", "compatible"]

BASE_URLS: Mapping[str, str] = {
    "openai": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com",
    "openrouter": "https://openrouter.ai/api/v1",
    "ollama": "http://127.0.0.1:11434/v1",
    "vllm": "http://127.0.0.1:8000/v1",
    "llama.cpp": "http://127.0.0.1:8080/v1",
}
"""Where a provider is when the settings do not say."""

OWN_MACHINE = ("ollama", "vllm", "llama.cpp")
LOOPBACK = ("127.0.0.1", "localhost", "::1")
WINDOW_TOKENS = 32_000
MAX_OUTPUT_TOKENS = 8_192

EXAMPLE = """
[models.fast]
provider = "ollama"
model = "qwen3"
"""


class Price(Contract):
    """Microdollars a million tokens; written ``{input = "0.25 USD", output = "2.00 USD"}``."""

    input: Money
    output: Money
    cached: Money | None = None
    """Of input that came from the provider's cache; ``None``: as other input."""


FREE = Price.model_construct(input=0, output=0, cached=0)


class ConfiguredModel(Contract):
    """One model that may be asked."""

    name: str
    provider: Provider
    """Which protocol, and where; ``compatible`` is any other server of OpenAI's chat completions."""
    base_url: str = ""
    """Address up to ``/v1`` (Anthropic: without it); empty: the provider's own."""
    model: str
    """Its name at the provider."""
    key: str = ""
    """Name of the secret that holds the key; empty: no key is sent."""
    price: Price | Literal["free"] | None = None
    """``None``: from the public price list where the provider is in it, else unknown, which stops budgets."""
    window: int | None = Field(None, ge=512)
    """Tokens that fit into one request and its answer; ``None``: from the public list, else 32,000."""
    max_output: int | None = Field(None, ge=1)
    """The most tokens of an answer; ``None``: 8,192, and never more than a quarter of the window."""
    fallbacks: tuple[str, ...] = ()
    """Names of models that are asked, in order, when this one does not answer."""
    typed: Literal["schema", "object", "prompt"] | None = None
    """How an answer by a JSON schema is asked for; ``None``: the best that the server takes, tried once."""
    calls: Literal["native", "schema"] = "native"
    """``schema``: tools are offered as one JSON schema of the answer, for models without tool calls."""
    options: JsonDict = {}
    """More fields of every request, as the provider names them: ``temperature``, ``reasoning_effort``."""

    @field_validator("base_url")
    @classmethod
    def _check_url(cls, value: str) -> str:
        parts = urlsplit(value)
        if "@" in parts.netloc:
            raise ValueError("holds user info; put the key into a secret and name it with `key`")
        if value and (parts.scheme not in ("http", "https") or not parts.hostname):
            raise ValueError("is no address; expected one like http://127.0.0.1:8000/v1")
        if parts.query or parts.fragment:
            raise ValueError("has a query or a fragment; expected an address up to its path")
        return value.rstrip("/")

    @model_validator(mode="after")
    def _check_place(self) -> ConfiguredModel:
        if not self.url:
            raise ValueError("needs `base_url`, for example http://127.0.0.1:8000/v1")
        return self

    @property
    def url(self) -> str:
        """Where its server is."""
        return self.base_url or BASE_URLS.get(self.provider, "")

    @property
    def host(self) -> str:
        """Host and port of its server, for messages."""
        return urlsplit(self.url).netloc

    @property
    def is_loopback(self) -> bool:
        """Whether its server is on this machine."""
        return urlsplit(self.url).hostname in LOOPBACK

    @property
    def label(self) -> str:
        """``provider/model``, as answers name it."""
        return f"{self.provider}/{self.model}"


class Configured(Contract):
    """All models of the settings."""

    models: dict[str, ConfiguredModel]
    default: str = ""
    """Name of the model that is asked when nobody names one; empty: there is none."""

    def find(self, name: str, place: str = "config.toml") -> ConfiguredModel:
        """Return the model of that name, the default one for "".

        Raises:
            SetupError: there is none; the message has what to write where.
        """
        if not self.models:
            raise SetupError(f"No model is configured. Name one in {place}, for example:\n{EXAMPLE}")
        if not name and not self.default:
            raise SetupError(f"No default model is configured. Write `default = \"{next(iter(self.models))}\"` beneath "
                             f"[models] in {place}.")  # fmt: skip
        found = self.models.get(name or self.default)
        if found is None:
            near = difflib.get_close_matches(name, self.models, 1)
            meant = f" Did you mean {near[0]!r}?" if near else ""
            raise SetupError(f"No model {name!r} is configured in {place}.{meant} Known: {', '.join(self.models)}.")
        return found

    def chain(self, name: str, place: str = "config.toml") -> list[ConfiguredModel]:
        """Return the model and its fallbacks, in the order in which they are asked."""
        first = self.find(name, place)
        return [first, *(self.find(each, place) for each in first.fallbacks)]


def read_models(table: Mapping[str, Any], place: str = "config.toml") -> Configured:
    """Read the ``[models]`` table. A single model is the default one.

    Raises:
        SetupError: something in it cannot be used; every place is named, no value of a key or URL is shown.
    """
    default = table.get("default", "")
    models = {name: _read_model(name, value, place) for name, value in table.items() if name != "default"}
    found = Configured(models=models, default=default or (next(iter(models)) if len(models) == 1 else ""))
    if default:
        found.find(default, place)
    for model in models.values():
        found.chain(model.name, place)
    return found


def _read_model(name: str, value: Any, place: str) -> ConfiguredModel:
    if not isinstance(value, dict):
        what = f"{name!r} beneath [models] in {place} is no table"
        raise SetupError(f"{what}; expected [models.{name}] with provider and model.")
    try:
        return ConfiguredModel.model_validate({**value, "name": name})
    except ValidationError as error:
        faults = [f"{'.'.join(map(str, fault['loc']))}: {_said(fault['msg'])}" for fault in error.errors()]
        raise SetupError(f"[models.{name}] in {place} cannot be used: {'; '.join(faults)}.") from None


def _said(message: str) -> str:
    return message.removeprefix("Value error, ")
