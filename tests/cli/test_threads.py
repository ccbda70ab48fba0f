"""`perdure threads`: what is told of one, keeping it in a file, erasing it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from perdure.contracts.job import JobPhase
from perdure.contracts.threads import ThreadErased, ThreadJob, ThreadRow, ThreadView
from tests.cli.conftest import Ended
from tests.cli.terminal import Terminal
from tests.cli.world import NOW, World

Call = Callable[..., Ended]

VIEW = ThreadView(
    about=ThreadRow(thread="release-orders", templates=["release"], jobs=2, open=0),
    done=1,
    taken_back=0,
    failed=1,
    deciders={"anna": 1},
    waits=[],
    leftovers=["release-orders/2: push (git.push) on origin: nobody knows whether it happened"],
    jobs=[
        ThreadJob(
            name="release-orders/1",
            number=1,
            template="release",
            title="1.2.0 → 1.3.0",
            phase=JobPhase.done,
            requester="anna",
            created_at=NOW,
            updated_at=NOW,
            decided=["approve by anna"],
        )
    ],
    schedules=["nightly (active)"],
    notes={"tone": "short"},
)


@pytest.fixture
def told(world: World) -> World:
    """A world that knows one thread."""
    world.routes["GET /v1/threads"] = lambda query, body: (
        VIEW if query["path"].endswith("/release-orders") else [VIEW.about]
    )
    world.routes["DELETE /v1/threads"] = lambda query, body: ThreadErased(thread="release-orders", contents=13)
    return world


def test_a_thread_tells_its_history(call: Call, told: World) -> None:
    """Counts, who approved, what is left over, schedules, each job with its decisions, and notes."""
    out = call("threads", "show", "release-orders").out
    for text in ("1 done, 0 taken back, 1 failed", "anna ×1", "nobody knows whether", "nightly", "approve by anna"):
        assert text in out
    assert "tone: short" in out
    assert "release-orders" in call("threads", "list").out


def test_an_export_is_what_show_tells_for_its_owner_alone(call: Call, told: World, tmp_path: Path) -> None:
    """A new file that only its owner reads holds the whole view; one that exists is left as it is."""
    file = tmp_path / "orders.json"
    ended = call("threads", "export", "release-orders", str(file))
    assert ended.code == 0 and "1 of 2 jobs, 1 note" in ended.out
    assert ThreadView.model_validate_json(file.read_text()) == VIEW
    assert file.stat().st_mode & 0o777 == 0o600
    again = call("threads", "export", "release-orders", str(file))
    assert again.code != 0 and "exists already" in again.err
    missing = call("threads", "export", "release-orders", str(tmp_path / "none" / "x.json"))
    assert missing.code != 0 and "cannot be written" in missing.err


def test_deleting_without_anybody_to_ask_needs_yes(call: Call, told: World) -> None:
    """On a pipe nothing is erased without --yes; with it, what went and what stays is said."""
    refused = call("threads", "delete", "release-orders")
    assert refused.code != 0 and "--yes" in refused.err
    assert told.sent("DELETE /v1/threads") == []
    ended = call("threads", "delete", "release-orders", "--yes")
    assert "13 records erased" in ended.out and "blobs stay" in ended.err
    assert json.loads(call("threads", "delete", "release-orders", "--yes", "--json").out)["contents"] == 13


def test_a_no_erases_nothing(terminal: Callable[..., Terminal], told: World) -> None:
    """Asked on a terminal, anything but yes leaves the thread as it is."""
    with terminal("threads", "delete", "release-orders") as line:
        line.expect("for good?")
        line.type("n\n")
        assert line.end() == 0
    assert told.sent("DELETE /v1/threads") == []
