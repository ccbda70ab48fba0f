"""One installation with a worker for all forgeries; every test has its own job, thread and witness."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hostile.forging import Saying, say
from tests.support.installation import Installation, installation


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """A running installation with one worker."""
    with installation(tmp_path_factory.mktemp("forged")) as running:
        running.start_worker()
        yield running


@pytest.fixture
def saying(home: Installation, tmp_path: Path) -> Saying:
    """A job that waits for a decision."""
    said = say(home, tmp_path / "said", f"w{uuid.uuid4().hex[:8]}")
    home.waiting(said.job)
    return said
