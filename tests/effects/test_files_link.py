"""files.link: a link is pointed elsewhere in one step, and back."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from perdure.effects.base import Found
from perdure.errors import EffectFailed, UserError
from tests.support.world import Planned, World


@pytest.fixture
def builds(world: World) -> Path:
    """Two builds and a link to the first."""
    folder = world.folder / "srv"
    for name in ("blue", "green"):
        (folder / name).mkdir(parents=True)
    (folder / "current").symlink_to("blue")
    return folder


def switch(world: World, builds: Path, to: str = "green", **more: object) -> Planned:
    return world.plan("files.link", {"path": str(builds / "current"), "to": to}, **more)


def test_link_is_switched_and_switched_back(world: World, builds: Path) -> None:
    """The summary has both targets; undo is the old one."""
    planned = switch(world, builds)
    assert planned.draft.summary == f"{builds}/current blue → green"
    assert planned.draft.inverse.summary == "→ blue again, while ours"
    planned.apply()
    assert (builds / "current").readlink() == Path("green")
    planned.inverse.apply()
    assert (builds / "current").readlink() == Path("blue")


def test_new_link_is_removed_again(world: World, builds: Path) -> None:
    """Where there was none, there is none afterwards."""
    (builds / "current").unlink()
    planned = switch(world, builds)
    planned.apply()
    planned.inverse.apply()
    assert not os.path.lexists(builds / "current")


def test_link_that_somebody_moved_is_left_alone(world: World, builds: Path) -> None:
    """Neither the old target nor ours: drift before, and no undo after."""
    planned = switch(world, builds)
    (builds / "current").unlink()
    (builds / "current").symlink_to("red")
    assert planned.found() is Found.foreign and "somebody else" in planned.check()[0]
    for one in (planned, planned.inverse):
        with pytest.raises(EffectFailed, match="left alone"):
            one.do()
    assert (builds / "current").readlink() == Path("red")


def test_link_never_leads_nowhere(world: World, builds: Path) -> None:
    """A target that is not there is refused by the plan, and is drift when it goes later."""
    with pytest.raises(UserError, match="lead nowhere"):
        switch(world, builds, to="grey")
    planned = switch(world, builds)
    (builds / "green").rmdir()
    assert "lead nowhere" in planned.check()[0]


def test_only_links_are_moved(world: World, builds: Path) -> None:
    """A folder or file in the link's place is somebody's data; a folder on the way that became a link is refused."""
    with pytest.raises(UserError, match="only moves links"):
        world.plan("files.link", {"path": str(builds / "blue"), "to": "green"})
    planned = switch(world, builds)
    builds.rename(world.folder / "moved")
    builds.symlink_to("moved")
    assert planned.found() is Found.foreign
    with pytest.raises(EffectFailed, match="through a link"):
        planned.do()


def test_required_target_is_compared(world: World, builds: Path) -> None:
    """What an earlier stage read must still be so when the plan is made."""
    switch(world, builds, require={"target": "blue"})
    with pytest.raises(UserError, match="expected red"):
        switch(world, builds, require={"target": "red"})
    with pytest.raises(UserError, match="expected `target`"):
        switch(world, builds, require={"targt": "red"})
