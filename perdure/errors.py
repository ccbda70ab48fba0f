"""Every error that Perdure raises on purpose, grouped by who must act.

A message says what happened (with the value), what was expected and what to do next.
"""

from __future__ import annotations


class PerdureError(Exception):
    """The root of the tree; never raised itself."""

    exit_code = 1

    @property
    def message(self) -> str:
        """The text for a person."""
        return str(self.args[0]) if self.args else type(self).__name__


class UserError(PerdureError):
    """The call or the file is wrong: whoever wrote it fixes it."""

    exit_code = 64


class NotFound(UserError):
    """A job, plan, template or effect of that name does not exist."""

    exit_code = 66


class Conflict(UserError):
    """The request is well formed but what it names is in another state by now."""

    exit_code = 75


class SetupError(PerdureError):
    """The machine or its settings are not ready; raised before any work starts."""

    exit_code = 69


class ToolFault(PerdureError):
    """A tool failed in a way that a model can react to: it is told, the loop goes on."""


class ToolUnavailable(ToolFault):
    """What a tool asks does not answer now: counted for its circuit breaker, told to the model like any fault."""


class ModelTrouble(PerdureError):
    """No model answers now; it may pass by itself."""

    retry_after_seconds: float | None = None
    """When the provider said to come back; ``None``: it did not."""
    kind: str = "unavailable"
    """``unavailable`` (unreachable, overloaded, a fault of theirs) · ``limited`` (too many requests) · ``late`` ·
    ``cut`` (the answer had no end) · ``malformed`` (the answer was not what the protocol says)."""


class StageFailed(PerdureError):
    """A stage cannot give its result: the job fails."""


class ModelFailed(StageFailed):
    """A model refused for good: its key, its name or the request is wrong."""

    status: int | None = None
    """The HTTP status that said so; ``None``: something else did."""


class EffectFailed(PerdureError):
    """An effect refused to happen and is known not to have happened: what was done before is taken back."""


class EffectNotBegun(EffectFailed):
    """An effect proves by itself that it did not happen (nothing was sent, all was rolled back): no probe has to."""


class EffectUnknown(PerdureError):
    """Whether an effect happened cannot be known: a person looks and resolves it."""


class LookFailed(PerdureError):
    """Whether an effect's preconditions hold cannot be seen now: a server is silent, or does not let us look.

    It says nothing of the world, so it is no drift: nothing has begun, and it is looked at again.
    """

    after_seconds: float | None = None
    """When the server said to come back; ``None``: it did not."""


class EffectWaiting(PerdureError):
    """An effect is begun, and somebody outside has to finish it: the application parks. Never leaves the applier."""


class TooLarge(StageFailed):
    """A value would not fit a Temporal payload; raised before anything is scheduled."""


class Refused(PerdureError):
    """A policy or a person said no."""

    exit_code = 77


class Tampered(Refused):
    """Stored bytes, a signature or a chain do not match what they claim to be."""
