"""A preflight: commands and expectations about the world, before anybody is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from perdure.contracts.job import JobPhase
from tests.support.installation import Installation
from tests.support.small import Small


@pytest.fixture(autouse=True)
def database(working: Installation, tmp_path: Path) -> None:
    """A SQLite file, named by a secret."""
    (tmp_path / "orders.db").touch()
    secret = working.settings.data / "secrets" / "preflight-db"
    secret.parent.mkdir(mode=0o700, exist_ok=True)
    secret.touch(0o600)
    secret.write_text(f"sqlite:///{tmp_path / 'orders.db'}")


def test_red_preflight_stops_before_anybody_is_asked(working: Installation, small: Small) -> None:
    """The job fails, names the check, and has no plan to approve."""
    (small.counter / "current").symlink_to("blue")
    failed = working.wait(small.start(working, "preflight"), JobPhase.failed)
    assert "build_there" in failed.summary
    assert not failed.digest
    small.assert_untouched()


def test_green_preflight_stands_in_the_plan(working: Installation, small: Small) -> None:
    """Its verdicts are part of what is approved, with where the command ran."""
    (small.counter / "current").symlink_to("blue")
    (small.counter / "build").touch(0o755)
    job = small.start(working, "preflight")
    working.approve(job)
    working.done(job)
    verdicts = {one.check: (one.status, one.detail) for one in working.review(job).verdicts}
    assert verdicts["build_there"][0] == verdicts["old_in_place"][0] == verdicts["schema_41"][0] == "passed"
    assert verdicts["build_there"][1].endswith("ended with 0 on the worker")
    assert small.note.read_text() == small.name
