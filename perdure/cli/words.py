"""How phases, states and times are said."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime

from perdure.cli import codes
from perdure.cli.paper import Span
from perdure.contracts.http import JobView
from perdure.contracts.job import JobPhase

_NEVER = 2100
"""A plan that is parked has a deadline that nobody will see."""

PHASES: dict[JobPhase, tuple[str, str]] = {
    JobPhase.queued: ("○", "dim"),
    JobPhase.gathering: ("●", "busy"),
    JobPhase.analyzing: ("●", "busy"),
    JobPhase.drafting: ("●", "busy"),
    JobPhase.verifying: ("●", "busy"),
    JobPhase.waiting: ("◆", "warn"),
    JobPhase.applying: ("●", "busy"),
    JobPhase.unknown: ("?", "bad"),
    JobPhase.waiting_for_merge: ("◆", "warn"),
    JobPhase.paused: ("‖", "warn"),
    JobPhase.undoing: ("●", "busy"),
    JobPhase.done: ("✓", "good"),
    JobPhase.nothing_to_do: ("–", "dim"),
    JobPhase.rejected: ("⊘", "dim"),
    JobPhase.expired: ("⊘", "dim"),
    JobPhase.superseded: ("⊘", "dim"),
    JobPhase.cancelled: ("⊘", "dim"),
    JobPhase.failed: ("✗", "bad"),
    JobPhase.stuck: ("✗", "bad"),
}
"""Mark and style of each phase."""

STEPS: dict[str, Span] = {
    "ok": ("✓", "good"),
    "failed": ("✗", "bad"),
    "skipped": ("–", "dim"),
    "finished": ("✓", "good"),
}
"""Mark of a stage's step, by its status."""

VERDICTS: dict[str, Span] = {
    "passed": ("✓", "good"),
    "failed": ("✗", "bad"),
    "skipped": ("–", "dim"),
    "not_run": ("–", "dim"),
}

EFFECTS: dict[str, Span] = {
    "": ("·", "dim"),
    "intent": ("●", "busy"),
    "done": ("✓", "good"),
    "already": ("✓", "good"),
    "undone": ("↶", "warn"),
    "drift": ("✗", "warn"),
    "refused": ("✗", "bad"),
    "failed": ("✗", "bad"),
    "unknown": ("?", "bad"),
    "stopped": ("✗", "bad"),
}
"""Mark of an effect, by its state."""

WOULD: dict[str, Span] = {
    "change": ("~ changes", "hunk"),
    "nothing": ("= no change", "dim"),
    "unknown": ("? unknown", "bad"),
}
"""What a step would do, as it was seen when the plan was made. What cannot be told is never drawn as fine."""

WORKING: dict[JobPhase, str] = {
    JobPhase.queued: "queued",
    JobPhase.gathering: "gather",
    JobPhase.analyzing: "analyze",
    JobPhase.drafting: "draft",
    JobPhase.verifying: "verify",
    JobPhase.applying: "applying",
    JobPhase.undoing: "taking back",
}
"""What the spinner says."""

_ENDS: dict[JobPhase, int] = {
    JobPhase.done: codes.OK,
    JobPhase.nothing_to_do: codes.OK,
    JobPhase.rejected: codes.REFUSED,
    JobPhase.expired: codes.REFUSED,
    JobPhase.superseded: codes.REFUSED,
    JobPhase.cancelled: codes.FAILED,
    JobPhase.failed: codes.FAILED,
    JobPhase.stuck: codes.FAILED,
}


def exit_code(phase: JobPhase) -> int:
    """What a command that followed a job to this phase ends with."""
    return _ENDS.get(phase, codes.WAITING)


def phase_span(phase: JobPhase) -> Span:
    """Mark and name of a phase: "◆ waiting"."""
    mark, style = PHASES[phase]
    return f"{mark} {phase.value.replace('_', ' ')}", style


def own_words(job: JobView) -> str:
    """A job's summary, where it says more than its plan's title and digest do."""
    says_nothing = job.digest.startswith(job.summary) or job.summary == job.title
    return "" if says_nothing else job.summary


def clock(at: datetime) -> str:
    """A time to the minute where the reader is: "7 Dec 10:12", with the year when it is another one."""
    local = at.astimezone()
    year = "" if local.year == datetime.now().astimezone().year else f" {local.year}"
    return f"{local.day} {local:%b}{year} {local:%H:%M}"


def deadline(at: datetime) -> str:
    """ "until 7 Dec 10:12", or that a parked plan waits without a deadline."""
    return f"until {clock(at)}" if at.year < _NEVER else "without a deadline"


def ago(at: datetime, now: datetime | None = None) -> str:
    """How long since: "just now", "5 min ago", "3 h ago"; from two days on the time itself."""
    seconds = ((now or datetime.now(UTC)) - at).total_seconds()
    if seconds < 60:
        return "just now"
    if seconds < 3600:
        return f"{seconds // 60:.0f} min ago"
    return f"{seconds // 3600:.0f} h ago" if seconds < 48 * 3600 else clock(at)


def counted(count: int, noun: str, plural: str = "") -> str:
    """A number with its noun: "1 file", "2 files"."""
    return f"{count} {noun if count == 1 else plural or noun + 's'}"


def new_id() -> str:
    """An id for one request or decision: the same one sent twice is the same one."""
    return secrets.token_hex(16)
