"""Watching agents at work: each answered turn once, and text while it comes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime

from perdure.contracts.watching import LiveView
from perdure.store.agents import Agents
from perdure.store.ledger import Ledger
from perdure.store.live import LiveReader, LiveTexts
from perdure.store.turns import TurnReader

SHOW_SECONDS = 5.0
"""How often a watcher shows itself to the worker."""
CALM_SECONDS = 10.0
"""So long without news, and a line says that the connection stands."""


class AgentWatch:
    """One watcher of one job. Not thread-safe; every method reads only, and says that somebody watches."""

    def __init__(self, ledger: Ledger, texts: LiveTexts, job_id: str, since: datetime | None) -> None:
        self._ledger, self._texts, self._job_id = ledger, texts, job_id
        self._agents, self._turns = Agents(ledger.database), TurnReader(ledger.database)
        self._readers: dict[str, LiveReader] = {}
        self._since = since
        self._told: set[tuple[int, int]] = set()
        self._shown = 0.0
        self._said = time.monotonic()
        self.is_over = False
        """The job has ended: nothing more will come."""

    def look(self) -> list[LiveView]:
        """Return what is new; one ``calm`` line after a while without."""
        ended = self._ledger.job(self._job_id).phase.is_final
        found = [*self._texts_now(), *self._turns_now(ended=ended)]
        self.is_over = ended
        now = time.monotonic()
        if not found and now - self._said > CALM_SECONDS:
            found = [LiveView(kind="calm")]
        if found:
            self._said = now
        return found

    def close(self) -> None:
        """Let everything go."""
        for reader in self._readers.values():
            reader.close()

    def _texts_now(self) -> Iterator[LiveView]:
        shows = time.monotonic() - self._shown > SHOW_SECONDS
        for row in self._agents.of_job(self._job_id):
            if row.end is not None and row.agent_id not in self._readers:
                continue
            if row.end is None and shows:
                self._texts.watch(row.agent_id)
                self._shown = time.monotonic()
            reader = self._readers.setdefault(row.agent_id, LiveReader(self._texts, row.agent_id))
            for kind, turn, text in reader.read():
                yield LiveView.model_validate({"kind": kind, "agent": row.ordinal, "turn": turn, "text": text})

    def _turns_now(self, *, ended: bool) -> Iterator[LiveView]:
        """Turns whose calls have ended, in their order; ``_since`` stays before the first that is still open."""
        open_at: datetime | None = None
        views = self._turns.views(self._job_id, since=self._since)
        for view in views:
            if not view.is_over and not ended:
                open_at = open_at or view.at
            elif (view.agent, view.turn) not in self._told:
                self._told.add((view.agent, view.turn))
                yield LiveView(kind="turn", agent=view.agent, turn=view.turn, view=view)
            if open_at is None:
                self._since = view.at
