"""An answer that was not a tool's own best is shown to whoever reviews the work that stands on it."""

from __future__ import annotations

from activities.agents import say_degraded
from perdure.contracts.agent_run import CallRecord


def test_degraded_answers_are_findings_each_once() -> None:
    """One sentence for each reason, in the order of the calls; calls that went well say nothing."""
    reasons = ["", "b stood in for a: 503", "c stood in for d", "b stood in for a: 503"]
    calls = [
        CallRecord(key=f"k/1/{number}", turn=1, position=number, tool="a", degraded=reason)
        for number, reason in enumerate(reasons)
    ]
    assert say_degraded(calls) == ["Degraded: b stood in for a: 503.", "Degraded: c stood in for d."]
