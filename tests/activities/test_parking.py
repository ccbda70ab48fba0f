"""What becomes of an effect that somebody outside has to finish."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from activities.parking import judge_parked
from perdure.effects.base import EffectContext, Found, Parking, Probe
from perdure.errors import EffectFailed, EffectUnknown
from perdure.store.blobs import BlobStore
from perdure.workspace.git import GitError
from perdure.workspace.processes import GroupRunner


@dataclass
class Outside:
    """A request outside: what looking at it finds, one after the other, and how withdrawing goes."""

    found: list[Found]
    refuses: Exception | None = None
    withdrawn: int = 0
    settle: timedelta = field(default=timedelta(0))

    def probe(self, body: Any, context: EffectContext) -> Probe:
        """Look."""
        found = self.found.pop(0) if len(self.found) > 1 else self.found[0]
        return Probe(found, f"it is {found}")

    def withdraw(self, body: Any, context: EffectContext) -> str:
        """Take back."""
        if self.refuses:
            raise self.refuses
        self.withdrawn += 1
        return "closed"


def judge(folder: Path, outside: Outside, *, by: str = "", error: Exception | None = None) -> tuple[str, str]:
    """Judge it once."""
    runner = GroupRunner(folder / "lock", lambda _pgid, _mark: None)
    context = EffectContext(blobs=BlobStore(folder), scratch=folder, runner=runner, now=datetime.now(UTC))
    verdict = judge_parked(cast(Parking, outside), {}, context, lambda: by, error)
    return verdict.step, verdict.detail


@pytest.mark.parametrize(
    ("found", "error", "step"),
    [
        (Found.done, None, "done"),
        (Found.done, EffectFailed("late"), "done"),
        (Found.waiting, None, "wait"),
        (Found.unknown, None, "wait"),
        (Found.unknown, EffectUnknown("silence"), "wait"),
        (Found.not_done, None, "again"),
        (Found.not_done, EffectUnknown("silence"), "wait"),
        (Found.not_done, GitError("the remote does not answer"), "wait"),
        (Found.not_done, BlockingIOError("no process left"), "wait"),
    ],
)
def test_nothing_is_withdrawn_while_it_may_still_come(
    tmp_path: Path, found: Found, error: Exception | None, step: str
) -> None:
    """Done, waiting, or not to be told: it stays as it is, and only a proven nothing is begun again."""
    outside = Outside([found])
    assert judge(tmp_path, outside, error=error)[0] == step
    assert outside.withdrawn == 0


@pytest.mark.parametrize(
    ("found", "by", "error", "step"),
    [
        (Found.lapsed, "", None, "drift"),
        (Found.foreign, "", None, "drift"),
        (Found.lapsed, "ada", None, "stopped"),
        (Found.waiting, "ada", None, "stopped"),
        (Found.not_done, "ada", None, "stopped"),
        (Found.unknown, "ada", None, "stopped"),
        (Found.not_done, "", EffectFailed("refused"), "failed"),
        (Found.not_done, "", KeyError("a fault of ours"), "failed"),
    ],
)
def test_what_ends_unfinished_is_withdrawn(
    tmp_path: Path, found: Found, by: str, error: Exception | None, step: str
) -> None:
    """Lapsed, cancelled or refused: what was begun is taken back before the end is written."""
    outside = Outside([found])
    assert judge(tmp_path, outside, by=by, error=error)[0] == step
    assert outside.withdrawn == 1


def test_merged_at_the_last_moment_is_done(tmp_path: Path) -> None:
    """Somebody merges while it is being withdrawn: it happened, whatever was wanted."""
    assert judge(tmp_path, Outside([Found.waiting, Found.done]), by="ada")[0] == "done"


def test_what_cannot_be_withdrawn_now_is_tried_again(tmp_path: Path) -> None:
    """A forge that is silent just then: the end is not written before what is open was closed."""
    step, detail = judge(tmp_path, Outside([Found.lapsed], EffectUnknown("silence")))
    assert step == "wait" and "could not be taken back yet: silence" in detail
    assert judge(tmp_path, Outside([Found.not_done], EffectFailed("401")), error=EffectFailed("401"))[0] == "failed"
