"""What a model costs and how much fits into it: from the settings first, else from the public list."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

from perdure.contracts.agent import ModelFacts, Usage
from perdure.models.configured import FREE, MAX_OUTPUT_TOKENS, OWN_MACHINE, WINDOW_TOKENS, ConfiguredModel, Price

_LISTED = {"openai": "openai", "anthropic": "anthropic", "openrouter": "openrouter"}
"""Providers by their names in the public list."""
_MILLION = 1_000_000


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
    return _own_price(model) or _listed_price(model)


def cost_of(model: ConfiguredModel, usage: Usage) -> int | None:
    """Microdollars of one call, rounded up; ``None`` when price or usage is unknown."""
    if usage.input_tokens is None or usage.output_tokens is None:
        return None
    cached = min(usage.cached_tokens or 0, usage.input_tokens)
    price = _own_price(model)
    if price is None:
        return _listed_cost(model, usage.input_tokens, usage.output_tokens, cached)
    cached_price = price.input if price.cached is None else price.cached
    total = (usage.input_tokens - cached) * price.input + cached * cached_price + usage.output_tokens * price.output
    return -(-total // _MILLION)


def _own_price(model: ConfiguredModel) -> Price | None:
    if isinstance(model.price, Price):
        return model.price
    if model.price == "free" or (model.provider in OWN_MACHINE and model.is_loopback):
        return FREE
    return None


def _window(model: ConfiguredModel) -> int:
    return model.window or _listed_window(model) or WINDOW_TOKENS


def _listed_price(model: ConfiguredModel) -> Price | None:
    """The price a million tokens of the largest request that fits: some are dearer from a size on."""
    size = min(_listed_window(model) or WINDOW_TOKENS, _MILLION) - 1
    costs = [_listed_cost(model, *counts) for counts in ((size, 0, 0), (0, size, 0), (size, 0, size))]
    rates = [None if cost is None else round(cost * _MILLION / size) for cost in costs]
    if rates[0] is None or rates[1] is None:
        return None
    return Price.model_construct(input=rates[0], output=rates[1], cached=rates[2])


def _listed_window(model: ConfiguredModel) -> int | None:
    return _look_up(_LISTED[model.provider], model.model)[1] if _is_listed(model) else None


def _listed_cost(model: ConfiguredModel, input_tokens: int, output_tokens: int, cached_tokens: int) -> int | None:
    if not _is_listed(model):
        return None
    calculate, _ = _look_up(_LISTED[model.provider], model.model)
    return calculate(input_tokens, output_tokens, cached_tokens)


def _is_listed(model: ConfiguredModel) -> bool:
    """An address of one's own is some gateway, which may ask for another price."""
    return model.provider in _LISTED and not model.base_url


@lru_cache(maxsize=256)
def _look_up(provider: str, name: str) -> tuple[Callable[[int, int, int], int | None], int | None]:
    """How to calculate the cost of tokens (in, out, in from the cache) in microdollars, and the window.

    From the list that came with the package; nothing is downloaded.
    """
    from genai_prices import Usage as Counted
    from genai_prices import calc_price
    from genai_prices.data_snapshot import get_snapshot

    def calculate(input_tokens: int, output_tokens: int, cached_tokens: int) -> int | None:
        counted = Counted(input_tokens=input_tokens, output_tokens=output_tokens, cache_read_tokens=cached_tokens)
        try:
            return math.ceil(calc_price(counted, name, provider_id=provider).total_price * _MILLION)
        except (LookupError, ValueError):
            return None

    try:
        _, found = get_snapshot().find_provider_model(name, None, provider, None)
    except LookupError:
        return (lambda *counts: None), None
    return calculate, found.context_window
