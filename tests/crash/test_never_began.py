"""A command that nobody can ask whether it ran, and a worker that died just before it: what is known is said."""

from __future__ import annotations

import pytest

from perdure.contracts.job import JobPhase
from tests.support.installation import Installation
from tests.support.small import Small


@pytest.mark.parametrize("point", ["effect.do[shell.run]#1:before", "ledger.note_process#1:before"])
def test_a_command_without_a_process_never_began_and_is_run_once(home: Installation, small: Small, point: str) -> None:
    """Between intent and process nothing can have happened: it is done then, once, and nobody is asked."""
    with home.dying_worker(point):
        job = small.start(home, "doubtful")
        home.approve(job)
        home.wait(job, JobPhase.failed)  # the second effect of the template always fails
    assert small.lines("done.log") == small.lines("undone.log") == [small.name]


def test_a_command_whose_process_was_written_down_stays_in_doubt(home: Installation, small: Small) -> None:
    """From then on it may have run: without a probe only a person can tell, and it is not run again."""
    with home.dying_worker("ledger.note_process#1:after"):
        job = small.start(home, "doubtful")
        home.approve(job)
        home.wait(job, JobPhase.unknown)
    assert small.lines("done.log") == []
