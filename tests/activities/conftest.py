"""A bench for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.activities.kit import Bench


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """A job's place on a real ledger; nothing is admitted yet."""
    made = Bench(tmp_path)
    yield made
    made.ledger.close()
