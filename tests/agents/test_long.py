"""Long conversations: they fit the window, a summary is made beside the loop, and nothing is lost from the record."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from perdure.store.agents import Agents
from perdure.testing.model_play import Asked
from perdure.testing.model_script import Answer
from perdure.testing.model_server import model_server
from tests.agents.kit import Office, office, read, wait_until, write
from tests.support.repositories import commit

SUMMARY = "You write the summary"
"""How the prompt begins by which a summary is asked for."""


class Reader:
    """A model that reads one file ``turns`` times, then writes the note; it summarizes when it is asked to."""

    def __init__(self, turns: int, *, says: str = "So far $turn.", fails: bool = False) -> None:
        self.turns, self._says, self._fails = turns, says, fails
        self.asked: list[Asked] = []
        self.summarized: list[Asked] = []
        self.hold = ""
        self._lock = threading.Lock()

    def __call__(self, asked: Asked) -> Answer:
        with self._lock:
            if SUMMARY in asked.texts[0]:
                self.summarized.append(asked)
                about: dict[str, Any] = {"status": 400, "error": "no"} if self._fails else {"text": "THE SUMMARY"}
                return Answer.model_validate({**about, "hold": self.hold})
            self.asked.append(asked)
            number = len(self.asked)
        if number <= self.turns:
            call = read(f"big-{number}")
            return Answer.model_validate({"text": f"turn {number}", "calls": [call]})
        if number == self.turns + 1:
            return Answer.model_validate({"calls": [write("NOTE", "the first note\n")]})
        return Answer(text="Done.")


def _with_big_files(place: Office, count: int, size: int) -> None:
    """Files to read, each another one: reading the same again and again is a circle."""
    files = {f"big-{n}": f"{n}\n" + "word \n" * (size // 6) for n in range(1, count + 1)}
    commit(place.repository, "feat: much to read", **files)


def test_hundred_turns_of_200_000_tokens_fit_a_window_of_32_000(tmp_path: Path) -> None:
    """What was said is more than six windows; every request fits, and the run comes to its end."""
    model = Reader(100)
    with model_server(model) as server, office(tmp_path, server, window=32_000, max_output=2_000) as place:
        _with_big_files(place, 100, 8_000)
        place.home.start_worker()
        job = place.home.waiting(place.start("long"))
        [agent] = place.agents(job)
        assert (agent.state, agent.turns) == ("done", 102)
        messages = place.transcript(job)
        assert sum(message.tokens for message in messages) > 200_000
        assert max(asked.size_bytes for asked in model.asked) < 4 * 32_000
        assert model.summarized
        assert any("THE SUMMARY" in text for text in model.asked[-1].texts)
        assert [f"turn {n}" for n in range(1, 101)] == [m.text for m in messages if m.text.startswith("turn ")]


def test_a_summary_is_made_beside_the_loop_and_swallows_no_word_of_a_person(tmp_path: Path) -> None:
    """Turns go on while it is made; people's words stand beside it word for word, and so do the messages it covers."""
    model = Reader(40)
    model.hold = "summary"
    with model_server(model) as server, office(tmp_path, server, window=9_000, max_output=1_000) as place:
        _with_big_files(place, 40, 3_000)
        place.home.start_worker()
        job = place.start("long")
        wait_until(lambda: len(model.asked) >= 2, "the second turn")
        place.steer(job, "say", "never touch the README")
        wait_until(lambda: model.summarized, "a summary to be asked for")
        begun = len(model.asked)
        wait_until(lambda: len(model.asked) >= begun + 3, "turns beside the summary")
        assert not any("THE SUMMARY" in text for text in model.asked[-1].texts)
        server.release("summary")
        place.home.waiting(job)
        last = model.asked[-1].texts
        assert sum("THE SUMMARY" in text for text in last) == 1
        assert sum("never touch the README" in text for text in last) == 1
        assert sum("never touch the README" in message.text for message in place.transcript(job)) == 1
        with place.home.ledger() as ledger:
            agents = Agents(ledger.database)
            summary = agents.summaries.newest(agents.of_job(job.job_id)[0].agent_id)
        assert summary is not None
        [record] = [record for record in summary.records if "README" in record]
        assert record.endswith(" said: never touch the README")


def test_without_a_summary_the_agent_goes_on(tmp_path: Path) -> None:
    """A model that will not summarize holds nothing up: what does not fit is left out, and said so."""
    model = Reader(30, fails=True)
    with model_server(model) as server, office(tmp_path, server, window=6_000, max_output=1_000) as place:
        _with_big_files(place, 40, 3_000)
        place.home.start_worker()
        job = place.home.waiting(place.start("long"))
        [agent] = place.agents(job)
        assert (agent.state, agent.turns) == ("done", 32)
        assert 1 <= len(model.summarized) <= 4
        assert any("are left out here" in text for text in model.asked[-1].texts)
        cost = sum(turn.cost_microdollars or 0 for turn in _turns(place, job.job_id))
        assert agent.cost_microdollars == cost  # what was reserved for summaries was given back


def _turns(place: Office, job_id: str) -> list[Any]:
    with place.home.ledger() as ledger:
        agents = Agents(ledger.database)
        return agents.transcripts.turns(agents.of_job(job_id)[0].agent_id)
