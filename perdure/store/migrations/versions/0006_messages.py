"""Messages to people: which record was told on which channel. What happened before this is not told any more."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables. Nothing that is there changes."""
    text = ("channel", "about", "job_id", "digest", "state", "sender", "error", "due_at", "sent_at")
    op.create_table(
        "messages",
        sa.Column("key", sa.Text(), nullable=False),
        *(sa.Column(name, sa.Text(), nullable=False) for name in text),
        *(sa.Column(name, sa.Integer(), nullable=False) for name in ("position", "attempts")),
        sa.Column("is_doubtful", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_messages"),
        sa.ForeignKeyConstraint(["position"], ["events.position"], name="fk_messages_position"),
    )
    op.create_index("ix_messages_state_due_at", "messages", ["state", "due_at"])
    op.create_table(
        "told",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_told"),
    )
    op.execute("INSERT INTO told (name, position) SELECT 'ledger', COALESCE(MAX(position), 0) FROM events")


def downgrade() -> None:
    """The ledger is evidence: it goes forward only."""
    raise NotImplementedError("A ledger is not downgraded; restore a backup made before the upgrade.")
