"""What a model costs and how much fits into it: from the settings first, else from the public list."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

from perdure.contracts.agent import ModelFacts, Usage
from perdure.models.configured import FREE, MAX_OUTPUT_TOKENS, OWN_MACHINE, WINDOW_TOKENS, ConfiguredModel, Price

_LISTED = {"openai": "openai", "anthropic": "anthropic", "openrouter": "openrouter"}
"""Providers by their names in the public list."""
_MILLION = 1_000_000


class Listed(NamedTuple):
    """What the public list says of a model."""

    price: Price | None
    window_tokens: int | None


def facts_of(model: ConfiguredModel) -> ModelFacts:
    """What is known of a model before it is asked."""
    price, window = price_of(model), _window(model)
    return ModelFacts(
        name=model.name,
        window_tokens=window,
        max_output_tokens=model.max_output or min(MAX_OUTPUT_TOKENS, window // 4),
        input_price=price.input if price else None,
        output_price=price.output if price else None,
    )


def price_of(model: ConfiguredModel) -> Price | None:
    """The price of a model; ``None``: unknown. A server that one runs on one's own machine is free."""
    if isinstance(model.price, Price):
        return model.price
    if model.price == "free" or (model.provider in OWN_MACHINE and model.is_loopback):
        return FREE
    return _listed(model).price


def cost_of(model: ConfiguredModel, usage: Usage) -> int | None:
    """Microdollars of one call, rounded up; ``None`` when price or usage is unknown."""
    price = price_of(model)
    if price is None or usage.input_tokens is None or usage.output_tokens is None:
        return None
    cached = min(usage.cached_tokens or 0, usage.input_tokens)
    cached_price = price.input if price.cached is None else price.cached
    total = (usage.input_tokens - cached) * price.input + cached * cached_price + usage.output_tokens * price.output
    return -(-total // _MILLION)


def _window(model: ConfiguredModel) -> int:
    return model.window or _listed(model).window_tokens or WINDOW_TOKENS


def _listed(model: ConfiguredModel) -> Listed:
    if model.provider not in _LISTED or model.base_url:
        return Listed(None, None)
    return _look_up(_LISTED[model.provider], model.model)


@lru_cache(maxsize=256)
def _look_up(provider: str, name: str) -> Listed:
    """Look into the list that came with the package; nothing is downloaded."""
    from genai_prices.data_snapshot import get_snapshot

    try:
        _, found = get_snapshot().find_provider_model(name, None, provider, None)
    except LookupError:
        return Listed(None, None)
    return Listed(_price(name, provider), found.context_window)


def _price(name: str, provider: str) -> Price | None:
    """The highest price of any tier and hour, so that a budget is never passed unseen."""
    from genai_prices import Usage as Counted
    from genai_prices import calc_price

    def of(counted: Counted) -> int:
        return math.ceil(calc_price(counted, name, provider_id=provider).total_price * _MILLION)

    try:
        return Price.model_construct(
            input=of(Counted(input_tokens=_MILLION)),
            output=of(Counted(output_tokens=_MILLION)),
            cached=of(Counted(input_tokens=_MILLION, cache_read_tokens=_MILLION)),
        )
    except (LookupError, ValueError):
        return None
