"""Agents: their transcripts, turns and calls, and which turn a person's message was in."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the agents' tables. Nothing that is there changes."""
    _make_agents()
    _make_transcript()
    _make_calls()
    _make_notes()


def downgrade() -> None:
    """The ledger is evidence: it goes forward only."""
    raise NotImplementedError("A ledger is not downgraded; restore a backup made before the upgrade.")


def _text(name: str, *, nullable: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=nullable)


def _number(name: str, *, nullable: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.Integer(), autoincrement=False, nullable=nullable)


def _refers(table: str, column: str, target: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint([column], [target], name=f"fk_{table}_{column}")


def _make_agents() -> None:
    op.create_table(
        "agents",
        _text("agent_id"),
        _text("job_id"),
        _number("ordinal"),
        sa.Column("spec_sha256", sa.String(64), nullable=False),
        _number("spec_size"),
        _text("end_reason"),
        _text("end_sentence"),
        sa.Column("result_sha256", sa.String(64)),
        _number("result_size", nullable=True),
        _text("started_at"),
        _text("parked_at", nullable=True),
        _number("parked_seconds"),
        _number("turns"),
        _number("calls"),
        _number("tokens"),
        sa.Column("cost_microdollars", sa.BigInteger(), nullable=False),
        sa.Column("unknown_cost", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("agent_id", name="pk_agents"),
        sa.UniqueConstraint("job_id", "ordinal", name="uq_agents_job_id_ordinal"),
        _refers("agents", "job_id", "jobs.job_id"),
    )


def _make_transcript() -> None:
    op.create_table(
        "transcript",
        _text("agent_id"),
        _number("number"),
        _text("key"),
        _text("body"),
        _text("at"),
        sa.PrimaryKeyConstraint("agent_id", "number", name="pk_transcript"),
        sa.UniqueConstraint("agent_id", "key", name="uq_transcript_agent_id_key"),
        _refers("transcript", "agent_id", "agents.agent_id"),
    )
    op.create_table(
        "agent_turns",
        _text("agent_id"),
        _number("turn"),
        _number("number"),
        _text("body"),
        _text("at"),
        sa.PrimaryKeyConstraint("agent_id", "turn", name="pk_agent_turns"),
        _refers("agent_turns", "agent_id", "agents.agent_id"),
    )


def _make_calls() -> None:
    op.create_table(
        "agent_calls",
        _text("key"),
        _text("agent_id"),
        _number("turn"),
        _number("position"),
        _text("tool"),
        _text("state"),
        _text("body"),
        _text("at"),
        sa.PrimaryKeyConstraint("key", name="pk_agent_calls"),
        _refers("agent_calls", "agent_id", "agents.agent_id"),
    )
    op.create_index("ix_agent_calls_agent_id_turn", "agent_calls", ["agent_id", "turn"])
    op.create_table(
        "deliveries",
        _text("decision_id"),
        _text("job_id"),
        _text("agent_id"),
        _number("turn"),
        _text("at"),
        sa.PrimaryKeyConstraint("decision_id", name="pk_deliveries"),
        _refers("deliveries", "decision_id", "decisions.id"),
    )
    op.create_index("ix_deliveries_job_id", "deliveries", ["job_id"])


def _make_notes() -> None:
    op.create_table(
        "notes",
        _text("thread"),
        _text("key"),
        _text("text"),
        _text("at"),
        sa.PrimaryKeyConstraint("thread", "key", name="pk_notes"),
    )
