"""Fixtures of the API's tests."""

from collections.abc import Iterator

import httpx
import pytest

from tests.api.installed import Installed, installed


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    """One installation for a test module, with nobody behind Temporal's address."""
    with installed(tmp_path_factory.mktemp("data")) as world:
        yield world


@pytest.fixture
def owner(world: Installed) -> Iterator[httpx.Client]:
    """The owner at the Unix socket."""
    with world.http.unix() as client:
        yield client
