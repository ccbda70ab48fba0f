"""One installation for all crash tests of a process; every test has its own repository, thread and job."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.holding import ensure_holdable
from tests.support.installation import Installation, installation
from tests.support.outside import Outside, make_outside
from tests.support.small import Small, make_small


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """A running installation without a worker."""
    with installation(tmp_path_factory.mktemp("installation")) as running:
        yield running


@pytest.fixture(scope="module")
def module_home(home: Installation) -> Iterator[Installation]:
    """The installation, whose workers end with the file's tests: the next file may want none."""
    yield home
    home.kill_workers()


@pytest.fixture
def working(module_home: Installation) -> Installation:
    """The installation with one living worker that can be held; kept from test to test."""
    ensure_holdable(module_home)
    return module_home


@pytest.fixture
def outside(tmp_path: Path) -> Outside:
    """A project with a remote, a folder and a counting command."""
    return make_outside(tmp_path)


@pytest.fixture
def small(tmp_path: Path) -> Small:
    """A folder and a counting command."""
    return make_small(tmp_path)
