"""The kinds of effect that templates may name, described by a process of its own: users' never enter the API's."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from perdure.contracts.http import EffectKindView
from perdure.describing import describe_apart
from perdure.effects.base import Effect
from perdure.errors import SetupError, UserError
from perdure.settings import Settings, read_named

_MODULE = "perdure.effects.describe"


def list_effects(settings: Settings) -> list[EffectKindView]:
    """Return every kind: the shipped ones, then those that the settings name now."""
    return describe_effects(read_named(settings, "effects"))


def describe_effects(named: Sequence[str] = ()) -> list[EffectKindView]:
    """Return every kind: the shipped ones, then those of the entry points ``named`` with their versions.

    Raises:
        SetupError: one cannot be loaded; says which and what to do.
    """
    return describe_apart(_MODULE, "effects", EffectKindView, named)


def find_kinds(settings: Settings, shipped: Mapping[str, Effect], wanted: Collection[str]) -> Mapping[str, bool]:
    """Return whether each kind always has an inverse of its own; users' are only looked for when they are wanted.

    Raises:
        UserError: they are, and cannot be loaded.
    """
    found = {kind: effect.always_reversible for kind, effect in shipped.items()}
    if found.keys() >= set(wanted) or not read_named(settings, "effects"):
        return found
    try:
        return found | {view.kind: view.always_reversible for view in list_effects(settings)}
    except SetupError as error:
        raise UserError(error.message) from error
