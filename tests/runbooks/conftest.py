"""One installation for the runbooks of ``examples/runbooks``; every test has a world of its own."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from perdure.testing.postgres import postgres_server
from tests.runbooks.plays import RUNBOOKS
from tests.support.installation import Installation, installation


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """A running installation without a worker, with the examples and the runbooks of these tests."""
    folder = tmp_path_factory.mktemp("installation")
    (templates := folder / "templates").mkdir()
    for file in (*RUNBOOKS.glob("*.yaml"), *(Path(__file__).parent / "templates").glob("*.yaml")):
        shutil.copy(file, templates)
    with installation(folder, PERDURE_TEMPLATES=str(templates)) as running:
        yield running


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A PostgreSQL server's URL."""
    with postgres_server(tmp_path_factory.mktemp("runbooks")) as url:
        yield url
