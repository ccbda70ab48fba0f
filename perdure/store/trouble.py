"""What the stores raise when the machine lets them down; it passes by itself once somebody makes room or lets go."""

from __future__ import annotations

from perdure.errors import SetupError


class StoreTrouble(SetupError):
    """The ledger or the blob store cannot be used now: full, locked, unreachable. Nothing was half-written.

    Whatever needed it is tried again and is not at fault: no attempt of it is spent and no effect has failed by it.
    """
