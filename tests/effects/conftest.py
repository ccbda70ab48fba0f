"""Fixtures of the effects' tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from perdure.testing.forge import Forge, serve_forge
from tests.support.world import World, copy_world, make_world


@pytest.fixture(scope="session")
def made_world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A world to copy; made once."""
    return make_world(tmp_path_factory.mktemp("world"))


@pytest.fixture
def world(made_world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """A repository with a remote; the user's own configuration is empty."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return copy_world(made_world, tmp_path)


@pytest.fixture
def forge(world: World) -> Iterator[Forge]:
    """A forge over the world's remote; its token is known."""
    with serve_forge(world.remote) as served:
        world.secrets["forge-token"] = served.token
        yield served


@pytest.fixture
def guarded(world: World) -> Iterator[Forge]:
    """The same with a protected ``main``."""
    with serve_forge(world.remote, protected="main") as served:
        world.secrets["forge-token"] = served.token
        yield served
