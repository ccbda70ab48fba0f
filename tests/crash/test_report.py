"""`on_failure: report`: a step that fails stands in the end's words, and undoes nothing."""

from __future__ import annotations

from tests.support.installation import Installation
from tests.support.small import Small


def test_failed_step_that_only_reports_undoes_nothing(working: Installation, small: Small) -> None:
    """The steps around it happen once, it is not tried again, and the job's last word names it."""
    job = small.start(working, "tell-last")
    working.approve(job)
    done = working.done(job)
    small.assert_applied_once()
    assert small.lines("told") == ["tried"]
    assert "effect 2 did not happen: tell:" in done.summary
