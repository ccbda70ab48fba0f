"""A user's own runbook with everything at once: it is applied, and takes itself back when the switch is not healthy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from perdure.contracts.http import JobView
from perdure.contracts.job import JobPhase
from tests.runbooks.plays import RUNBOOKS, Postgresql
from tests.support.installation import Installation
from tests.support.records import serve_records


@pytest.fixture
def health() -> Iterator[str]:
    """A URL that answers 200."""
    with serve_records() as records:
        records.held["health"] = {}
        yield f"{records.url}/records/health"


def start(home: Installation, place: Path, database: Postgresql, health: str) -> JobView:
    """Green is to be switched to, from blue."""
    (place / "green" / "bin").mkdir(parents=True)
    (place / "green" / "bin" / "orders").touch(0o755)
    (place / "blue").mkdir()
    (place / "current").symlink_to(place / "blue")
    inputs = {"environment": "staging", "place": str(place), "build": str(place / "green"), "health": health}
    return home.run("orders", RUNBOOKS, database=database.secret, **inputs)


def test_orders_are_migrated_and_switched_or_all_is_as_before(
    home: Installation, postgres: str, tmp_path: Path, health: str
) -> None:
    """Not healthy after the switch: back in reverse, settled again. Healthy: applied. The secret is in no plan."""
    home.start_worker()
    database = Postgresql.make(postgres, home)
    before = database.look()
    sick = start(home, tmp_path / "sick", database, health)
    home.approve(sick)
    failed = home.wait(sick, JobPhase.failed)
    assert "not as promised" in failed.summary
    assert (database.look(), (tmp_path / "sick" / "current").readlink()) == (before, tmp_path / "sick" / "blue")
    assert (tmp_path / "sick" / "restarts").read_text() == "restarted\nrestarted\n"
    job = start(home, tmp_path / "well", database, health)
    (tmp_path / "well" / "green" / "healthy").touch()
    home.approve(job)
    done = home.done(job)
    assert (tmp_path / "well" / "current").readlink() == tmp_path / "well" / "green"
    assert [dump.read_text() for dump in (tmp_path / "well").glob("*.dump")] == ["SELECT 41\n"]
    assert database.look() != before
    assert database.url not in home.review(done).model_dump_json()
