"""Fixtures of the effects' tests."""

from __future__ import annotations

from pathlib import Path

import pytest

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
