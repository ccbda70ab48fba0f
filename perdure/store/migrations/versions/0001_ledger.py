"""The first ledger: evidence, its triggers, and what the arbiter looks up."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make every table and the triggers that keep ``events`` and ``chain`` append-only."""
    _make_evidence()
    _make_jobs()
    _make_effects()
    _make_access()
    _make_triggers()


def downgrade() -> None:
    """The ledger is evidence: it goes forward only."""
    raise NotImplementedError("A ledger is not downgraded; restore a backup made before the upgrade.")


def _text(name: str, *, nullable: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=nullable)


def _number(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.Integer(), nullable=False)


def _hash(name: str, *, nullable: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.String(64), nullable=nullable)


def _key(table: str, *columns: str) -> sa.PrimaryKeyConstraint:
    return sa.PrimaryKeyConstraint(*columns, name=f"pk_{table}")


def _unique(table: str, *columns: str) -> sa.UniqueConstraint:
    return sa.UniqueConstraint(*columns, name=f"uq_{table}_{'_'.join(columns)}")


def _refers(table: str, column: str, target: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint([column], [target], name=f"fk_{table}_{column}")


def _index(table: str, *columns: str) -> None:
    op.create_index(f"ix_{table}_{'_'.join(columns)}", table, list(columns))


def _make_evidence() -> None:
    op.create_table(
        "events",
        sa.Column("position", sa.Integer(), autoincrement=False, nullable=False),
        _text("thread"),
        _number("seq"),
        _text("kind"),
        _text("at"),
        _text("actor"),
        _text("job_id"),
        _text("workflow_id", nullable=True),
        _text("step", nullable=True),
        _hash("content_hash"),
        _hash("prev"),
        _hash("hash"),
        _key("events", "position"),
        _unique("events", "thread", "seq"),
        _unique("events", "workflow_id", "step"),
    )
    _index("events", "job_id", "position")
    op.create_table(
        "contents",
        sa.Column("position", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("salt", sa.LargeBinary(), nullable=False),
        _text("body"),
        _key("contents", "position"),
        _refers("contents", "position", "events.position"),
    )
    op.create_table(
        "chain",
        sa.Column("position", sa.Integer(), autoincrement=False, nullable=False),
        _hash("event_hash"),
        _hash("prev"),
        _hash("hash"),
        _key("chain", "position"),
        _refers("chain", "position", "events.position"),
    )


def _make_jobs() -> None:
    op.create_table(
        "jobs",
        _text("job_id"),
        _number("number"),
        _text("thread"),
        _number("sequence"),
        _text("template"),
        _text("requester"),
        _hash("spec_sha256"),
        _number("spec_size"),
        _text("phase"),
        _text("summary"),
        _text("created_at"),
        _text("updated_at"),
        _text("cancelled_by"),
        _key("jobs", "job_id"),
        _unique("jobs", "number"),
        _unique("jobs", "thread", "sequence"),
    )
    op.create_table(
        "plans",
        _hash("digest"),
        _hash("content"),
        _hash("ref_sha256"),
        _number("ref_size"),
        _text("job_id"),
        _number("round"),
        _number("effects"),
        sa.Column("needs_gate", sa.Boolean(), nullable=False),
        _text("state"),
        _text("gate_id"),
        _text("title"),
        _text("undoes"),
        _text("expires_at"),
        _number("position"),
        _key("plans", "digest"),
        _refers("plans", "job_id", "jobs.job_id"),
    )
    _index("plans", "job_id")
    _index("plans", "undoes")
    op.create_table(
        "decisions",
        _text("id"),
        _text("kind"),
        _text("job_id"),
        _text("digest"),
        _text("by"),
        _number("position"),
        sa.Column("told", sa.Boolean(), nullable=False),
        _key("decisions", "id"),
        _refers("decisions", "position", "events.position"),
        _unique("decisions", "position"),
    )
    _index("decisions", "digest")
    _index("decisions", "job_id")


def _make_effects() -> None:
    op.create_table(
        "permits",
        _hash("digest"),
        _text("job_id"),
        _text("application_id", nullable=True),
        _text("state"),
        _text("withdrawn_by"),
        _text("closed"),
        _key("permits", "digest"),
        _refers("permits", "digest", "plans.digest"),
        _unique("permits", "application_id"),
    )
    op.create_table(
        "intents",
        _text("application_id"),
        sa.Column("effect_index", sa.Integer(), autoincrement=False, nullable=False),
        _text("direction"),
        _text("job_id"),
        _hash("digest"),
        _text("effect_id"),
        _text("kind"),
        _text("target"),
        _text("state"),
        _number("attempts"),
        _number("pgid"),
        _text("boot_id"),
        _hash("receipt_sha256", nullable=True),
        sa.Column("receipt_size", sa.Integer(), nullable=True),
        _text("detail"),
        _text("started_at", nullable=True),
        _text("finished_at", nullable=True),
        _number("asked"),
        _key("intents", "application_id", "effect_index", "direction"),
    )
    _index("intents", "job_id")
    op.create_table(
        "target_locks",
        _text("target"),
        _text("application_id"),
        _text("job_id"),
        _text("taken_at"),
        _key("target_locks", "target"),
    )


def _make_access() -> None:
    op.create_table(
        "tokens",
        _text("id"),
        _hash("sha256"),
        _text("principal"),
        _text("groups"),
        _text("may"),
        _text("created_at"),
        _text("revoked_at", nullable=True),
        _key("tokens", "id"),
        _unique("tokens", "sha256"),
    )
    op.create_table(
        "trusted_templates",
        _hash("digest"),
        _text("by"),
        _text("at"),
        _text("decision_id"),
        _key("trusted_templates", "digest"),
    )


def _make_triggers() -> None:
    if op.get_bind().dialect.name == "sqlite":
        _make_sqlite_triggers()
    else:
        _make_postgresql_triggers()


def _make_sqlite_triggers() -> None:
    for table in ("events", "chain"):
        for verb in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER {table}_no_{verb.lower()} BEFORE {verb} ON {table} "
                f"BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
            )
        # INSERT OR REPLACE deletes without firing the trigger above on connections without recursive_triggers.
        op.execute(
            f"CREATE TRIGGER {table}_in_order BEFORE INSERT ON {table} "
            f"WHEN NEW.position <> (SELECT COALESCE(MAX(position), 0) + 1 FROM {table}) "
            f"BEGIN SELECT RAISE(ABORT, '{table} only grows by one'); END"
        )


def _make_postgresql_triggers() -> None:
    op.execute(
        "CREATE FUNCTION perdure_append_only() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation'; "
        "END $$"
    )
    for table in ("events", "chain"):
        op.execute(
            f"CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE ON {table} "
            "FOR EACH ROW EXECUTE FUNCTION perdure_append_only()"
        )
        op.execute(
            f"CREATE TRIGGER {table}_no_truncate BEFORE TRUNCATE ON {table} "
            "FOR EACH STATEMENT EXECUTE FUNCTION perdure_append_only()"
        )
