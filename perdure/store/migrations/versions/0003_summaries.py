"""Summaries of long conversations, beside the transcript that they cover."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the table of summaries. Nothing that is there changes."""
    op.create_table(
        "agent_summaries",
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("until", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("tokens", sa.Integer(), nullable=False),
        sa.Column("cost_microdollars", sa.BigInteger(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("at", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("agent_id", "until", name="pk_agent_summaries"),
        sa.ForeignKeyConstraint(["agent_id"], ["agents.agent_id"], name="fk_agent_summaries_agent_id"),
    )


def downgrade() -> None:
    """The ledger is evidence: it goes forward only."""
    raise NotImplementedError("A ledger is not downgraded; restore a backup made before the upgrade.")
