"""Tokens of agents name the person behind them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column. Tokens that are there are people's."""
    op.add_column("tokens", sa.Column("acts_for", sa.Text(), nullable=False, server_default=""))


def downgrade() -> None:
    """The ledger is evidence: it goes forward only."""
    raise NotImplementedError("A ledger is not downgraded; restore a backup made before the upgrade.")
