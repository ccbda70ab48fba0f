"""People are told although the worker dies while it tells them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.hearing import Ear, listening
from tests.support.installation import Installation, wait_until
from tests.support.small import Small


@contextmanager
def channel(home: Installation, ear: Ear) -> Iterator[None]:
    """One channel in the settings, for everybody."""
    secret = home.settings.secrets / "ear"
    secret.parent.mkdir(mode=0o700, exist_ok=True)
    secret.write_text(ear.url)
    secret.chmod(0o600)
    home.settings.config.write_text("[channels.ear]\n")
    try:
        yield
    finally:
        home.settings.config.unlink()
        secret.unlink()


def heard_of(ear: Ear, name: str) -> list[int]:
    """Which messages name a job; another test's job may have its own."""
    return [number for number, (title, _) in enumerate(ear.heard) if title.startswith(f"{name} ")]


def test_killed_worker_tells_again_with_the_same_key_and_says_so(working: Installation, small: Small) -> None:
    """What was being sent when it died comes once more; then the job's end is told, once."""
    with listening() as ear, channel(working, ear):
        ear.go.clear()
        job = working.waiting(small.start(working))
        wait_until(lambda: heard_of(ear, job.name), "the message to be on its way")
        working.kill_workers()
        ear.go.set()
        working.start_worker()
        wait_until(lambda: len(heard_of(ear, job.name)) == 2, "the message to come again")
        first, second = heard_of(ear, job.name)
        assert ear.keys[first] == ear.keys[second]
        assert "may have been told before" not in ear.heard[first][1]
        assert "may have been told before" in ear.heard[second][1]
        working.approve(job)
        working.done(job)
        wait_until(lambda: len(heard_of(ear, job.name)) == 3, "the end to be told")
        assert ear.titles[heard_of(ear, job.name)[2]] == f"{job.name} (small) is done"
        small.assert_applied_once()
