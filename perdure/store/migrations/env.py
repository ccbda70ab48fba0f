"""Alembic's entry: runs the migrations on the connection and in the transaction that the ledger hands over."""

from __future__ import annotations

from alembic import context

from perdure.store.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
