"""Follows a job through its events, over lost connections, until it ends or needs a person."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack

from perdure.cli.door import Door, Unreachable
from perdure.cli.listening import Listener
from perdure.cli.live import LiveLine
from perdure.cli.paper import Paper
from perdure.cli.story import Story
from perdure.contracts.http import EventPage, EventView, JobView
from perdure.contracts.job import JobPhase
from perdure.contracts.watching import LiveView

WAIT_SECONDS = 20
"""How long the server holds an answer when there is nothing new."""
FIRST_WAIT_SECONDS = 5
"""The first time: what holds a job up is told then, and nobody waits for that."""
PAGE = 500
RETRY_SECONDS = 0.5
GIVE_UP_SECONDS = 60.0
"""A server that is being restarted is back within seconds; after this long somebody stopped it."""

Own = Collection[str]

_RESTS = {JobPhase.waiting, JobPhase.unknown, JobPhase.waiting_for_merge, JobPhase.paused}
"""Phases in which only a person can bring the job on."""


class Watch:
    """One job's events in the ledger's order, each once."""

    def __init__(self, door: Door, ref: str, say: Callable[[str], None], *, after: int = 0) -> None:
        self._door = door
        self._ref = ref
        self._say = say
        self.position = after
        """Of the last event that was given."""

    def page(self, *, wait: int = WAIT_SECONDS) -> EventPage:
        """Give what is new, after at most ``wait`` seconds; a lost connection is made anew, and that is said.

        Raises:
            Unreachable: nobody answered for ``GIVE_UP_SECONDS``, or nothing is left that could.
        """
        page = self._ask(wait)
        if page.events:
            self.position = page.events[-1].position
        return page

    def rest(self) -> Iterator[EventView]:
        """Give all that is there already, without waiting."""
        while events := self.page(wait=0).events:
            yield from events

    def _ask(self, wait: int) -> EventPage:
        lost_at = 0.0
        while True:
            try:
                page = self._door.get("/v1/events", EventPage, ref=self._ref, after=self.position, wait=wait)
            except Unreachable as error:
                lost_at = self._lost(lost_at, error)
                time.sleep(RETRY_SECONDS)
                wait = 0
                continue
            if lost_at:
                self._say("Connected again.")
            return page

    def _lost(self, lost_at: float, error: Unreachable) -> float:
        if self._door.is_stopped():
            raise error
        now = time.monotonic()
        if not lost_at:
            self._say("Lost the connection to Perdure; the job goes on. Connecting again …")
            return now
        if now - lost_at > GIVE_UP_SECONDS:
            raise error
        return lost_at


def last_position(door: Door, ref: str) -> int:
    """Position of the job's newest event; 0 when it has none."""
    watch = Watch(door, ref, lambda _: None)
    for _ in watch.rest():
        pass
    return watch.position


def follow(
    door: Door, job: JobView, paper: Paper, *, after: int = 0, decided: str = "", moved: bool = True, own: Own = ()
) -> tuple[JobView, int]:
    """Tell the job's story until it rests; return where it is then, and the last event's position.

    ``after``: the last event that was told before. ``decided``: digest of a plan whose gate is closed by now, so that
    waiting for it is no rest. ``moved`` false: something was just resolved, so the rest that the job is still in does
    not count before it came to a phase anew. ``own``: ids of decisions that need no telling.
    """
    with LiveLine(paper) as live, ExitStack() as stack:
        watch = Watch(door, job.job_id, lambda text: live.say([(text, "warn")]), after=after)
        story = Story(live, job.name, own)
        story.show(job)
        ears = Ears(stack, door, job.job_id, live)
        first, trouble = True, ""
        while True:
            page = watch.page(wait=FIRST_WAIT_SECONDS if first else WAIT_SECONDS)
            first = False
            trouble = _say_trouble(live, page.job, trouble)
            moved = _tell(story, page.events) or moved
            ears.open_for(page.events)
            if page.job is not None and _rests(page.job, decided, moved=moved):
                _tell(story, list(watch.rest()))
                story.finish()
                return page.job, watch.position
            if page.job is not None:
                story.show(page.job)


class Ears:
    """Hears agents once one has begun: what one says stands behind the spinner. Only where a line can move."""

    def __init__(self, stack: ExitStack, door: Door, job_id: str, live: LiveLine) -> None:
        self._stack, self._door, self._job_id, self._live = stack, door, job_id, live
        self._is_open = False

    def open_for(self, events: list[EventView]) -> None:
        """Begin to listen when an agent begins; until the stack ends."""
        begun = [event for event in events if event.kind == "agent.started"]
        if begun and not self._is_open and self._live.paper.moves:
            self._is_open = True
            since = begun[-1].at.isoformat()
            self._stack.enter_context(Listener(self._door, self._job_id, self._hear, since=since))

    def _hear(self, view: LiveView) -> None:
        if view.view is not None:
            turn = view.view
            self._live.busy(f"agent {turn.agent}, {turn.turn} turns")
            self._live.hear("")
            self._live.hear(", ".join(f"{call.tool} {call.status}" for call in turn.calls))
        elif view.kind == "again":
            self._live.hear("")
        else:
            self._live.hear(view.text)


def _say_trouble(live: LiveLine, job: JobView | None, said: str) -> str:
    """Say once what holds the job up; return what was said last."""
    trouble = job.trouble if job is not None else ""
    if trouble and trouble != said:
        live.say([("  held up: ", "warn"), trouble, (" It is tried again by itself.", "dim")])
    return trouble


def _tell(story: Story, events: list[EventView]) -> bool:
    """Tell the events; say whether the job came to a phase in them."""
    for event in events:
        story.tell(event)
    return any(event.kind == "job.phase" for event in events)


def _rests(job: JobView, decided: str, *, moved: bool) -> bool:
    if job.phase.is_final:
        return True
    if job.phase is JobPhase.waiting:
        return not decided or job.digest != decided
    return job.phase in _RESTS and moved
