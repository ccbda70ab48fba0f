"""One installation for a file's tests; every test has its own repository, thread and job."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.installation import Installation, installation


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """A running installation without a worker."""
    with installation(tmp_path_factory.mktemp("installation")) as running:
        yield running
