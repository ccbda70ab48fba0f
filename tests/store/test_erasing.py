"""Erasing a thread: what goes, what stays, and what may not be erased; over SQLite and PostgreSQL."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from perdure.contracts.agent_run import SummaryRecord
from perdure.errors import Conflict, NotFound
from perdure.store import audit, schema
from perdure.store.agents import Agents
from perdure.store.erasure import delete_thread
from perdure.store.notes import ThreadNotes
from perdure.store.threads import Threads
from tests.store.ledger_kit import AT
from tests.store.test_agents import AGENT, line, spec_of
from tests.store.test_schedules import Clockwork

FACT = "the vault opens with heliotrope"


def planted(scene):
    """A finished job of "releases" whose agent, summary and notes hold the fact; its id."""
    job_id = scene.admit()
    agents = Agents(scene.ledger.database)
    ref = scene.blobs.put(b"spec")
    agents.open(spec_of(job_id, ref), ref, [line(0, "charter", FACT)], at=AT)
    agents.summaries.begin(AGENT, 8, agents.get(AGENT).spent, at=AT)
    agents.summaries.end(AGENT, SummaryRecord(until=8, text=FACT), at=AT)
    ThreadNotes(scene.ledger.database, "releases").write("vault", FACT)
    scene.note(job_id, 1, "failed", FACT)
    return job_id


def erase(scene, thread):
    """Delete a thread as its owner."""
    return delete_thread(scene.ledger.database, thread, by="ada", at=AT)


def tables_with(scene, fact):
    """Names of the tables in which a text stands."""
    with scene.ledger.database.read() as connection:
        return {
            table.name
            for table in schema.metadata.sorted_tables
            if any(fact in str(value) for row in connection.execute(select(table)) for value in row)
        }


def test_an_erased_fact_stands_in_no_table(scene):
    """Records, transcripts, summaries, notes and people's words of a deleted thread hold nothing that was said."""
    planted(scene)
    threads = Threads(scene.ledger.database)
    threads.set_state("releases", "archived", FACT, by="ada", at=AT)
    held = {"contents", "jobs", "transcript", "agent_summaries", "notes", "threads"}
    assert tables_with(scene, FACT) >= held
    assert erase(scene, "releases") > 0
    assert tables_with(scene, FACT) == set()
    assert not [one for one in audit.verify_chain(scene.ledger) if one.severity in ("gap", "tampered")]


def test_a_deleted_thread_is_archived_and_may_be_deleted_again(scene):
    """It is listed as archived, says that there were jobs, and a second delete is no error."""
    planted(scene)
    threads = Threads(scene.ledger.database)
    erase(scene, "releases")
    found = threads.find("releases")
    assert (found.state, found.jobs, found.note) == ("archived", 1, "")
    erase(scene, "releases")
    assert scene.kinds().count("thread.archived") == 1


def test_the_notes_of_other_threads_stay(scene):
    """Deleting one thread takes nothing from another."""
    planted(scene)
    notes = ThreadNotes(scene.ledger.database, "links")
    notes.write("kept", "yes")
    erase(scene, "releases")
    assert dict(notes.read()) == {"kept": "yes"}


def test_a_thread_with_open_work_is_not_deleted(scene):
    """A job that goes on, or a schedule that may start one, is named, and nothing is erased."""
    made = Clockwork(scene)
    made.say("add")
    job_id = made.fire("one", due_at=AT)
    threads = Threads(scene.ledger.database)
    ThreadNotes(scene.ledger.database, "releases").write("kept", "yes")
    with pytest.raises(Conflict, match="not finished"):
        erase(scene, "releases")
    scene.note(job_id, 1, "nothing_to_do")
    with pytest.raises(Conflict, match="perdure schedule delete nightly"):
        erase(scene, "releases")
    assert dict(ThreadNotes(scene.ledger.database, "releases").read()) == {"kept": "yes"}
    assert threads.find("releases").state == "active"
    made.say("delete")
    assert erase(scene, "releases") > 0
    with pytest.raises(NotFound):
        erase(scene, "nowhere")
