"""Following a job: every event once, over lost connections, until it rests."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from perdure.cli import follow as following
from perdure.contracts.job import JobPhase
from perdure.runtime.state import LOCK_FILE, take_lock
from tests.cli.conftest import Ended
from tests.cli.world import DIGEST, Cut, World, serve

Call = Callable[..., Ended]


def test_a_lost_connection_is_made_anew_and_said(call: Call, data: Path) -> None:
    """The API goes away while stages run and comes back: nothing is told twice, nothing is left out."""
    world = World()
    server = serve(world, data / "run" / "api.sock")
    events = world.routes["GET /v1/events"]
    held = world.changed

    def restart() -> None:
        nonlocal server
        server.shutdown()
        server.server_close()
        (data / "run" / "api.sock").unlink()
        world.routes["GET /v1/events"] = events
        world.stage("analyze")
        world.freeze()
        server = serve(world, data / "run" / "api.sock")

    def last_words(query: dict[str, str], body: object) -> object:
        page = events(query, body)
        if int(query["after"]) >= 2:
            restarting.start()
            restarting.join()
            raise ConnectionResetError
        return page

    restarting = threading.Thread(target=restart)
    world.routes["GET /v1/events"] = last_words
    world.on_submit = lambda: (world.move(JobPhase.gathering), world.stage("gather", "history", "14 commits"))[0]
    try:
        ended = call("run", "release")
    finally:
        server.shutdown()
        server.server_close()
    assert ended.code == 3, ended.err
    assert ended.out.count("14 commits") == 1
    assert ended.out.index("gather ✓") < ended.out.index("analyze ✓") < ended.out.index("PLAN 7f3a91c2")
    assert "Lost the connection to Perdure; the job goes on." in ended.out
    assert "Connected again." in ended.out
    assert held is world.changed


def test_a_server_that_stays_away_ends_the_following(call: Call, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a while it gives up with 69: somebody has stopped Perdure. The job is kept."""
    monkeypatch.setattr(following, "GIVE_UP_SECONDS", 0.0)
    monkeypatch.setattr(following, "RETRY_SECONDS", 0.0)

    def gone(query: dict[str, str], body: object) -> object:
        raise ConnectionResetError

    world.routes["GET /v1/events"] = gone
    ended = call("run", "release")
    assert ended.code == 69
    assert "perdure" in ended.err


def test_an_installation_of_which_nothing_is_left_is_said_at_once(call: Call, world: World, data: Path) -> None:
    """When the supervisor was killed nobody starts the API again: 69 within a second or two, and how to go on."""
    supervisor = take_lock(data / LOCK_FILE)
    assert supervisor is not None

    def killed(query: dict[str, str], body: object) -> object:
        world.routes["GET /v1/events"] = gone
        os.close(supervisor)
        raise Cut

    def gone(query: dict[str, str], body: object) -> object:
        raise Cut

    world.routes["GET /v1/events"] = killed
    started = time.monotonic()
    ended = call("run", "release")
    assert time.monotonic() - started < following.GIVE_UP_SECONDS / 4
    assert ended.code == 69
    assert "nothing of it runs" in ended.err and "`perdure up`" in ended.err
    assert "Connecting again" not in ended.out


def test_more_events_than_a_page_are_all_told(call: Call, world: World) -> None:
    """Pages are read until the last one, also when the job has ended meanwhile."""

    def many() -> None:
        for number in range(1200):
            world.stage("gather", f"s{number}", "", "failed" if number == 1199 else "ok")
        world.move(JobPhase.failed, "source s1199 failed")

    world.on_submit = many
    ended = call("run", "release")
    assert "gather.s1199 ✗" in ended.out
    assert ended.code == 1


def test_waiting_for_the_plan_just_decided_is_no_rest(call: Call, world: World) -> None:
    """Between a decision and the job's next phase the job still says "waiting": it is followed on, not asked again."""
    world.draft()

    def slowly(kind: str) -> None:
        world.move(JobPhase.waiting)
        threading.Timer(0.2, world.apply).start()

    world.on_decide = slowly
    ended = call("approve", "7f3a91c2")
    assert ended.code == 0
    assert "PLAN" not in ended.out
    assert world.job.digest == DIGEST


def test_what_holds_a_job_up_is_said_live_and_once(call: Call, world: World) -> None:
    """A full disk that a worker waits for stands in the story and in `show`, not only in the worker's log."""

    def hold_up() -> None:
        world.move(JobPhase.gathering, trouble="The blob folder is full.")
        world.stage("gather", "history", "14 commits")
        threading.Timer(1.0, lambda: world.move(JobPhase.gathering)).start()
        threading.Timer(2.0, lambda: (world.move(JobPhase.gathering, trouble=""), world.freeze())).start()

    world.on_submit = hold_up
    out = call("run", "release").out
    assert out.count("held up: The blob folder is full. It is tried again by itself.") == 1
    world.move(JobPhase.applying, trouble="The ledger is locked.")
    assert "held up: The ledger is locked." in call("show", "1").out
