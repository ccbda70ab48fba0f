"""The ledger's tables. ``events``, ``contents`` and ``chain`` are the evidence; the rest is what the arbiter looks up.

Times are text in UTC with microseconds (:func:`perdure.store.chain.time_text`): what is hashed is what is stored.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
)
from sqlalchemy import UniqueConstraint as Unique

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

events = Table(
    "events",
    metadata,
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("thread", Text, nullable=False),
    Column("seq", Integer, nullable=False),
    Column("kind", Text, nullable=False),
    Column("at", Text, nullable=False),
    Column("actor", Text, nullable=False),
    Column("job_id", Text, nullable=False),
    Column("workflow_id", Text),  # both null or both set: null is distinct from null in a unique constraint
    Column("step", Text),
    Column("content_hash", String(64), nullable=False),
    Column("prev", String(64), nullable=False),
    Column("hash", String(64), nullable=False),
    Unique("thread", "seq"),
    Unique("workflow_id", "step"),
    Index(None, "job_id", "position"),
)
"""One header a record. Rows are only ever added."""

contents = Table(
    "contents",
    metadata,
    Column("position", Integer, ForeignKey("events.position"), primary_key=True, autoincrement=False),
    Column("salt", LargeBinary, nullable=False),
    Column("body", Text, nullable=False),
)
"""A record's body, apart from its header: deleting the row erases it and leaves the chain whole."""

chain = Table(
    "chain",
    metadata,
    Column("position", Integer, ForeignKey("events.position"), primary_key=True, autoincrement=False),
    Column("event_hash", String(64), nullable=False),
    Column("prev", String(64), nullable=False),
    Column("hash", String(64), nullable=False),
)
"""The one chain over all threads. Rows are only ever added."""

jobs = Table(
    "jobs",
    metadata,
    Column("job_id", Text, primary_key=True),
    Column("number", Integer, nullable=False, unique=True),
    Column("thread", Text, nullable=False),
    Column("sequence", Integer, nullable=False),
    Column("template", Text, nullable=False),
    Column("requester", Text, nullable=False),
    Column("spec_sha256", String(64), nullable=False),
    Column("spec_size", Integer, nullable=False),
    Column("phase", Text, nullable=False),
    Column("summary", Text, nullable=False),
    Column("created_at", Text, nullable=False),
    Column("updated_at", Text, nullable=False),
    Column("cancelled_by", Text, nullable=False),
    Unique("thread", "sequence"),
)

plans = Table(
    "plans",
    metadata,
    Column("digest", String(64), primary_key=True),
    Column("content", String(64), nullable=False),
    Column("ref_sha256", String(64), nullable=False),
    Column("ref_size", Integer, nullable=False),
    Column("job_id", Text, ForeignKey("jobs.job_id"), nullable=False),
    Column("round", Integer, nullable=False),
    Column("effects", Integer, nullable=False),
    Column("needs_gate", Boolean, nullable=False),
    Column("state", Text, nullable=False),
    Column("gate_id", Text, nullable=False),
    Column("title", Text, nullable=False),
    Column("undoes", Text, nullable=False),
    Column("expires_at", Text, nullable=False),
    Column("position", Integer, nullable=False),
    Index(None, "job_id"),
    Index(None, "undoes"),
)

decisions = Table(
    "decisions",
    metadata,
    Column("id", Text, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("job_id", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("by", Text, nullable=False),
    Column("position", Integer, ForeignKey("events.position"), nullable=False, unique=True),
    Column("told", Boolean, nullable=False),
    Index(None, "digest"),
    Index(None, "job_id"),
)
"""Where each decision lies; the signed decision itself is the content of its event."""

permits = Table(
    "permits",
    metadata,
    Column("digest", String(64), ForeignKey("plans.digest"), primary_key=True),
    Column("job_id", Text, nullable=False),
    Column("application_id", Text),  # null: withdrawn before it was granted
    Column("state", Text, nullable=False),  # granted, spent, withdrawn
    Column("withdrawn_by", Text, nullable=False),
    Column("closed", Text, nullable=False),  # how the application ended; empty while it is open
    Unique("application_id"),
)

intents = Table(
    "intents",
    metadata,
    Column("application_id", Text, primary_key=True),
    Column("effect_index", Integer, primary_key=True, autoincrement=False),
    Column("direction", Text, primary_key=True),
    Column("job_id", Text, nullable=False),
    Column("digest", String(64), nullable=False),
    Column("effect_id", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("target", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("pgid", Integer, nullable=False),
    Column("boot_id", Text, nullable=False),
    Column("receipt_sha256", String(64)),
    Column("receipt_size", Integer),
    Column("detail", Text, nullable=False),
    Column("started_at", Text),  # null: it ended without having been begun
    Column("finished_at", Text),
    Column("asked", Integer, nullable=False),  # position of the record that said "unknown"; 0 when none did
    Index(None, "job_id"),
)

target_locks = Table(
    "target_locks",
    metadata,
    Column("target", Text, primary_key=True),
    Column("application_id", Text, nullable=False),
    Column("job_id", Text, nullable=False),
    Column("taken_at", Text, nullable=False),
)

tokens = Table(
    "tokens",
    metadata,
    Column("id", Text, primary_key=True),
    Column("sha256", String(64), nullable=False, unique=True),
    Column("principal", Text, nullable=False),
    Column("acts_for", Text, nullable=False),  # the person behind an agent; empty for a person's own token
    Column("groups", Text, nullable=False),  # JSON list
    Column("may", Text, nullable=False),  # JSON list
    Column("created_at", Text, nullable=False),
    Column("revoked_at", Text),
)

trusted_templates = Table(
    "trusted_templates",
    metadata,
    Column("digest", String(64), primary_key=True),
    Column("by", Text, nullable=False),
    Column("at", Text, nullable=False),
    Column("decision_id", Text, nullable=False),
)

agents = Table(
    "agents",
    metadata,
    Column("agent_id", Text, primary_key=True),
    Column("job_id", Text, ForeignKey("jobs.job_id"), nullable=False),
    Column("ordinal", Integer, nullable=False),
    Column("spec_sha256", String(64), nullable=False),
    Column("spec_size", Integer, nullable=False),
    Column("end_reason", Text, nullable=False),  # empty while it works
    Column("end_sentence", Text, nullable=False),
    Column("result_sha256", String(64)),
    Column("result_size", Integer),
    Column("started_at", Text, nullable=False),
    Column("parked_at", Text),  # null: not waiting for a person
    Column("parked_seconds", Integer, nullable=False),
    Column("turns", Integer, nullable=False),
    Column("calls", Integer, nullable=False),
    Column("tokens", Integer, nullable=False),
    Column("cost_microdollars", BigInteger, nullable=False),
    Column("unknown_cost", Boolean, nullable=False),
    Unique("job_id", "ordinal"),
)
"""One row an agent: what it has spent, and how it ended."""

transcript = Table(
    "transcript",
    metadata,
    Column("agent_id", Text, ForeignKey("agents.agent_id"), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("key", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("at", Text, nullable=False),
    Unique("agent_id", "key"),
)
"""Each message once, whole; never changed."""

agent_turns = Table(
    "agent_turns",
    metadata,
    Column("agent_id", Text, ForeignKey("agents.agent_id"), primary_key=True),
    Column("turn", Integer, primary_key=True, autoincrement=False),
    Column("number", Integer, nullable=False),  # of the answer
    Column("body", Text, nullable=False),  # contracts.agent_run.TurnRecord
    Column("at", Text, nullable=False),
)

agent_summaries = Table(
    "agent_summaries",
    metadata,
    Column("agent_id", Text, ForeignKey("agents.agent_id"), primary_key=True),
    Column("until", Integer, primary_key=True, autoincrement=False),  # number of the first message it does not cover
    Column("tokens", Integer, nullable=False),  # reserved while it is made, then used
    Column("cost_microdollars", BigInteger, nullable=False),
    Column("body", Text, nullable=False),  # contracts.agent_run.SummaryRecord; empty while it is made
    Column("at", Text, nullable=False),
)
"""Summaries beside the transcript, newest last; the messages that they cover stay."""

agent_calls = Table(
    "agent_calls",
    metadata,
    Column("key", Text, primary_key=True),
    Column("agent_id", Text, ForeignKey("agents.agent_id"), nullable=False),
    Column("turn", Integer, nullable=False),
    Column("position", Integer, nullable=False),
    Column("tool", Text, nullable=False),
    Column("state", Text, nullable=False),  # begun, asked, ended, denied
    Column("body", Text, nullable=False),  # contracts.agent_run.CallRecord
    Column("at", Text, nullable=False),
    Index(None, "agent_id", "turn"),
)

deliveries = Table(
    "deliveries",
    metadata,
    Column("decision_id", Text, ForeignKey("decisions.id"), primary_key=True),
    Column("job_id", Text, nullable=False),
    Column("agent_id", Text, nullable=False),
    Column("turn", Integer, nullable=False),
    Column("at", Text, nullable=False),
    Index(None, "job_id"),
)
"""Which turn's request a person's message was in."""

notes = Table(
    "notes",
    metadata,
    Column("thread", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("text", Text, nullable=False),
    Column("at", Text, nullable=False),
)
"""What agents keep for the jobs of a thread that come after."""

schedules = Table(
    "schedules",
    metadata,
    Column("name", Text, primary_key=True),
    Column("thread", Text, nullable=False),
    Column("template", Text, nullable=False),
    Column("requester", Text, nullable=False),
    Column("state", Text, nullable=False),  # active, paused, deleted
    Column("note", Text, nullable=False),  # why it is paused
    Column("word_sha256", String(64), nullable=False),  # of the contracts.schedules.ScheduleWord that defines it
    Column("word_size", Integer, nullable=False),
    Column("decision_id", Text, nullable=False),
    Column("newer_plan", Text, nullable=False),  # supersedes, waits
    Column("alert_after", Integer, nullable=False),
    Column("handled_until", Text, nullable=False),  # fires due up to here have become something, or are given up
    Column("failures", Integer, nullable=False),  # in a row
    Column("alerted", Boolean, nullable=False),
    Column("trouble", Text, nullable=False),
    Column("created_at", Text, nullable=False),
    Column("updated_at", Text, nullable=False),
    Index(None, "thread"),
)

schedule_words = Table(
    "schedule_words",
    metadata,
    Column("decision_id", Text, ForeignKey("decisions.id"), primary_key=True),
    Column("schedule", Text, ForeignKey("schedules.name"), nullable=False),
    Column("kind", Text, nullable=False),
    Column("word_sha256", String(64), nullable=False),
    Column("word_size", Integer, nullable=False),
    Column("position", Integer, nullable=False),
    Index(None, "schedule"),
)
"""Where each word about a schedule lies; the word is a blob, its signature stands in its decision."""

fires = Table(
    "fires",
    metadata,
    Column("schedule", Text, ForeignKey("schedules.name"), primary_key=True),
    Column("key", Text, primary_key=True),
    Column("job_id", Text, unique=True),  # null: the fire was given up
    Column("kind", Text, nullable=False),  # timed, asked, backfill
    Column("due_at", Text, nullable=False),
    Column("at", Text, nullable=False),
)
"""A fire that became a job, once for ever: a second one of that key is the same run."""

threads = Table(
    "threads",
    metadata,
    Column("thread", Text, primary_key=True),
    Column("state", Text, nullable=False),  # active, paused, archived
    Column("note", Text, nullable=False),
    Column("by", Text, nullable=False),
    Column("at", Text, nullable=False),
)
"""Threads that a person has spoken of; any other is active."""

messages = Table(
    "messages",
    metadata,
    Column("key", Text, primary_key=True),
    Column("channel", Text, nullable=False),
    Column("about", Text, nullable=False),
    Column("position", Integer, ForeignKey("events.position"), nullable=False),
    Column("job_id", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("state", Text, nullable=False),  # waiting, sent, dropped, failed
    Column("attempts", Integer, nullable=False),
    Column("sender", Text, nullable=False),  # the process that is sending it; one that is dead died over it
    Column("is_doubtful", Boolean, nullable=False),
    Column("error", Text, nullable=False),
    Column("due_at", Text, nullable=False),
    Column("sent_at", Text, nullable=False),
    Index(None, "state", "due_at"),
)
"""Who is told of which record, and whether it arrived. Holds no words: they are made when it is sent."""

told = Table(
    "told",
    metadata,
    Column("name", Text, primary_key=True),
    Column("position", Integer, nullable=False),
)
"""Up to which record there are messages, in the row ``ledger``: the records themselves are the outbox."""

APPEND_ONLY = ("events", "chain")
"""Tables whose rows triggers protect against UPDATE, DELETE and being replaced."""
