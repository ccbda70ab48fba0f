"""The models of an installation as people look at them: what they are, and whether one answers.

Asked by the command line and the doctor on this machine, not by the API: its process reads no key of a model.
"""

from __future__ import annotations

import time
from typing import Any

from perdure.contracts.agent import ModelRequest
from perdure.contracts.messages import Message, TextPart
from perdure.models.client import Models
from perdure.models.configured import EXAMPLE
from perdure.settings import Settings

__all__ = ["EXAMPLE", "list_models_of", "try_model"]

QUESTION = "Reply with one word: ready"
ANSWER_TOKENS = 512
"""Room for models that reason before they say it."""
TEST_SECONDS = 60


def list_models_of(settings: Settings) -> list[dict[str, Any]]:
    """Every model as plain JSON, in the order of the settings; prices in microdollars a million tokens.

    Raises:
        SetupError: the settings cannot be used.
    """
    models = Models.of(settings)
    configured = models.configured
    found = []
    for model in configured.models.values():
        facts = models.facts(model.name)
        found.append(
            {
                "name": model.name,
                "is_default": model.name == configured.default,
                "model": model.label,
                "host": model.host,
                "input_price": facts.input_price,
                "output_price": facts.output_price,
                "window_tokens": facts.window_tokens,
                "key": model.key,
                "key_is_there": models.has_key(model),
                "fallbacks": list(model.fallbacks),
            }
        )
    return found


async def try_model(settings: Settings, name: str) -> dict[str, Any]:
    """Ask one tiny question; what came of it as plain JSON.

    Raises:
        ModelTrouble, ModelFailed, SetupError: there was no answer.
    """
    models = Models.of(settings)
    message = Message(id="test", role="user", source="goal", parts=(TextPart(text=QUESTION),))
    asked = ModelRequest(
        agent="perdure models test",
        turn=0,
        model=name,
        messages=(message,),
        max_output_tokens=ANSWER_TOKENS,
        limit_seconds=TEST_SECONDS,
    )
    started = time.monotonic()
    try:
        answer = await models.ask(asked)
    finally:
        await models.close()
    text = " ".join("".join(part.text for part in answer.parts if isinstance(part, TextPart)).split())
    return {
        "model": answer.model,
        "seconds": round(time.monotonic() - started, 3),
        "text": text[:200],
        "input_tokens": answer.usage.input_tokens,
        "output_tokens": answer.usage.output_tokens,
        "cost_microdollars": answer.cost_microdollars,
        "notes": list(answer.notes),
    }
