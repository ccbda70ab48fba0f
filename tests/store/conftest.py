"""Ledgers over SQLite and over a real PostgreSQL server: every promise is kept by both."""

from __future__ import annotations

import pytest

from perdure.store.blobs import BlobStore
from perdure.store.ledger import Ledger
from perdure.store.signing import DecisionKey
from tests.store.ledger_kit import Scene
from tests.store.postgres_kit import run_postgres


@pytest.fixture(scope="session")
def postgres():
    """A PostgreSQL server; ``postgres.new_url()`` is an empty schema. Fails where PostgreSQL is not installed."""
    with run_postgres() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def ledger_url(request, tmp_path):
    """URL of an empty ledger, once for each database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'data' / 'ledger.db'}"
    return request.getfixturevalue("postgres").new_url()


@pytest.fixture
def ledger(ledger_url):
    """An empty ledger, once for each database."""
    opened = Ledger.open(ledger_url)
    yield opened
    opened.close()


@pytest.fixture
def sqlite_url(tmp_path):
    """URL of an empty SQLite ledger."""
    return f"sqlite:///{tmp_path / 'data' / 'ledger.db'}"


@pytest.fixture
def sqlite_ledger(sqlite_url):
    """An empty SQLite ledger."""
    opened = Ledger.open(sqlite_url)
    yield opened
    opened.close()


@pytest.fixture
def blobs(tmp_path):
    """An empty blob store."""
    return BlobStore(tmp_path / "blobs")


@pytest.fixture
def key(tmp_path):
    """A decision key without a passphrase."""
    return DecisionKey.create(tmp_path / "keys")


@pytest.fixture
def scene(ledger, blobs, key):
    """Jobs, plans and decisions in a ledger, one step a call."""
    return Scene(ledger, blobs, key)


@pytest.fixture
def sqlite_scene(sqlite_ledger, blobs, key):
    """The same over SQLite alone, for what does not depend on the database."""
    return Scene(sqlite_ledger, blobs, key)
