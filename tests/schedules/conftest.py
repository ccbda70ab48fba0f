"""One installation with a worker for all tests about schedules; each test has a schedule and a thread of its own."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.schedules.kit import TEMPLATES, Scheduled
from tests.support.installation import Installation, installation


@pytest.fixture(scope="session")
def schedule_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """A running installation without a worker."""
    folder = tmp_path_factory.mktemp("schedules")
    with installation(folder, PERDURE_TEMPLATES=str(TEMPLATES)) as running:
        yield running


@pytest.fixture
def home(schedule_home: Installation) -> Installation:
    """The installation with a worker that lives."""
    if not any(process.poll() is None for process in schedule_home.workers):
        schedule_home.start_worker()
    return schedule_home


@pytest.fixture
def scheduled(home: Installation, tmp_path: Path) -> Callable[..., Scheduled]:
    """Makes schedules of a template, each under a name of its own; nothing is on Temporal before ``add``."""

    def make(template: str = "daily") -> Scheduled:
        folder = tmp_path / uuid.uuid4().hex[:6]
        folder.mkdir()
        return Scheduled(home, f"s{uuid.uuid4().hex[:8]}", folder, template)

    return make
