"""``python -m perdure.effects.describe [name@version …]``: every kind of effect as JSON, or the problem with code 1."""

from __future__ import annotations

import inspect
import sys

from perdure.contracts.http import EffectKindView
from perdure.describing import write_description
from perdure.effects.base import Effect
from perdure.effects.registry import load_entry, shipped_effects

SHIPPED = "perdure"


def describe(effect: Effect, origin: str = SHIPPED) -> EffectKindView:
    """Return a kind of effect as people see it."""
    return EffectKindView(
        kind=effect.kind,
        version=effect.version,
        about=_plain(type(effect).__doc__),
        takes=_plain(effect.plan.__doc__),
        always_reversible=effect.always_reversible,
        settle_seconds=int(effect.settle.total_seconds()),
        parks=hasattr(effect, "withdraw"),
        origin=origin,
    )


def list_all(named: list[str]) -> list[EffectKindView]:
    """The shipped kinds, then those of the named entry points. Raises ``SetupError`` as the registry says."""
    found = [describe(effect) for effect in shipped_effects()]
    for entry in named:
        effects, origin = load_entry(entry, taken={view.kind for view in found})
        found += [describe(effect, origin) for effect in effects]
    return found


def _plain(text: str | None) -> str:
    return inspect.cleandoc(text or "").replace("``", "`")


def main(named: list[str]) -> int:
    """Write the listing."""
    return write_description(EffectKindView, lambda: list_all(named))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
