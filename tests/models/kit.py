"""Models that are played by a script, in either protocol."""

from __future__ import annotations

from typing import Any

from perdure.contracts.agent import ModelRequest, ToolSpec
from perdure.contracts.messages import CallPart, Message, ResultPart, Role, TextPart
from perdure.models.client import Models
from perdure.testing.model_handle import ModelServer

PROTOCOLS = ("compatible", "anthropic")
KEY = "sk-planted-3f9a"
PRICE = {"input": "1.00 USD", "output": "10.00 USD", "cached": "0.10 USD"}


def table(server: ModelServer, provider: str, **more: Any) -> dict[str, Any]:
    """A model's table in the settings."""
    url = server.anthropic_url if provider == "anthropic" else server.openai_url
    return {"provider": provider, "model": "small", "base_url": url, "price": PRICE, **more}


def models_at(server: ModelServer, provider: str, **more: Any) -> Models:
    """Models with one, ``main``, at the scripted server."""
    return Models(lambda: {"main": table(server, provider, **more)}, {"main-key": KEY}.get)


def said(text: str, role: Role = "user", number: int = 0) -> Message:
    """A message with one text."""
    source = {"system": "charter", "assistant": "model"}.get(role, "goal")
    return Message.model_validate(
        {"id": f"{role}{number}:{text}", "role": role, "source": source, "parts": (TextPart(text=text),)}
    )


def called(*calls: CallPart, text: str = "", number: int = 1) -> Message:
    """An answer of the model with calls."""
    parts = (*((TextPart(text=text),) if text else ()), *calls)
    return Message(id=f"called{number}", role="assistant", source="model", parts=parts)


def answered(*results: ResultPart, number: int = 1) -> Message:
    """The results of calls."""
    return Message(id=f"results{number}", role="tool", source="tool", parts=results)


def request(*messages: Message, **more: Any) -> ModelRequest:
    """A request with these messages; one greeting when there are none."""
    return ModelRequest(agent="a", turn=0, model="", messages=messages or (said("Hello"),), **more)


READ = ToolSpec(
    name="files.read",
    description="Reads a file.",
    parameters={"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    effect_class="read",
)
