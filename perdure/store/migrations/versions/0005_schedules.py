"""Schedules, what people said about them, the fires that became jobs; threads that rest."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables of schedules and threads. Nothing that is there changes."""
    _make_schedules()
    _make_words()
    _make_fires()
    _make_threads()


def _make_schedules() -> None:
    text = ("name", "thread", "template", "requester", "state", "note")
    op.create_table(
        "schedules",
        *(sa.Column(name, sa.Text(), nullable=False) for name in text),
        sa.Column("word_sha256", sa.String(64), nullable=False),
        sa.Column("word_size", sa.Integer(), nullable=False),
        sa.Column("decision_id", sa.Text(), nullable=False),
        sa.Column("newer_plan", sa.Text(), nullable=False),
        sa.Column("alert_after", sa.Integer(), nullable=False),
        sa.Column("handled_until", sa.Text(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("alerted", sa.Boolean(), nullable=False),
        sa.Column("trouble", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Text(), nullable=False),
        sa.Column("updated_at", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_schedules"),
    )
    op.create_index("ix_schedules_thread", "schedules", ["thread"])


def _make_words() -> None:
    op.create_table(
        "schedule_words",
        sa.Column("decision_id", sa.Text(), nullable=False),
        sa.Column("schedule", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("word_sha256", sa.String(64), nullable=False),
        sa.Column("word_size", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("decision_id", name="pk_schedule_words"),
        sa.ForeignKeyConstraint(["decision_id"], ["decisions.id"], name="fk_schedule_words_decision_id"),
        sa.ForeignKeyConstraint(["schedule"], ["schedules.name"], name="fk_schedule_words_schedule"),
    )
    op.create_index("ix_schedule_words_schedule", "schedule_words", ["schedule"])


def _make_fires() -> None:
    op.create_table(
        "fires",
        sa.Column("schedule", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("job_id", sa.Text(), nullable=True),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("due_at", sa.Text(), nullable=False),
        sa.Column("at", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("schedule", "key", name="pk_fires"),
        sa.UniqueConstraint("job_id", name="uq_fires_job_id"),
        sa.ForeignKeyConstraint(["schedule"], ["schedules.name"], name="fk_fires_schedule"),
    )


def _make_threads() -> None:
    op.create_table(
        "threads",
        sa.Column("thread", sa.Text(), nullable=False),
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("state", "note", "by", "at")),
        sa.PrimaryKeyConstraint("thread", name="pk_threads"),
    )


def downgrade() -> None:
    """The ledger is evidence: it goes forward only."""
    raise NotImplementedError("A ledger is not downgraded; restore a backup made before the upgrade.")
