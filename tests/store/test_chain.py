"""Tampering with the evidence: refused where the database can, named by the audit where it cannot."""

from __future__ import annotations

import shutil
import sqlite3

import psycopg
import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from perdure.contracts.application import Receipt
from perdure.errors import Conflict, NotFound
from perdure.store import audit, schema
from perdure.store.chain import GENESIS
from perdure.store.signing import public_keys
from tests.store.ledger_kit import AT, NO_GATE


@pytest.fixture
def applied(sqlite_scene):
    """A job that was approved and applied, beside another thread's job: (scene, job id, plan)."""
    scene = sqlite_scene
    scene.admit("other", "links")
    job_id, plan, _ = scene.approved()
    scene.apply(job_id, plan)
    scene.note(job_id, 1, "done", "v1.3.0 released")
    return scene, job_id, plan


def _keys(scene):
    return public_keys(scene.key._folder)


def _audit(scene):
    return audit.audit(scene.ledger, scene.blobs, _keys(scene))


def _wrong(scene):
    return [f"{one.about}: {one.detail}" for one in _audit(scene).findings if one.severity == "tampered"]


def _break_in(scene, *statements):
    """Change the file as somebody would who owns it: without triggers."""
    raw = sqlite3.connect(scene.ledger.database.engine.url.database, isolation_level=None)
    triggers = raw.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall()
    for (name,) in triggers:
        raw.execute(f"DROP TRIGGER {name}")
    for statement in statements:
        raw.execute(statement)
    raw.close()


@pytest.mark.parametrize("table", schema.APPEND_ONLY)
@pytest.mark.parametrize("statement", ["UPDATE {} SET prev = 'x'", "DELETE FROM {}"])
def test_records_cannot_be_changed_or_deleted(scene, table, statement):
    """The database itself refuses to change or delete a record or a link."""
    scene.admit()
    with pytest.raises(DBAPIError, match="append-only"), scene.ledger.database.write() as connection:
        connection.execute(text(statement.format(table)))
    assert len(scene.ledger.events()) == 1


@pytest.mark.parametrize("table", schema.APPEND_ONLY)
def test_records_cannot_be_replaced_from_another_connection(sqlite_scene, table):
    """INSERT OR REPLACE, which fires no delete trigger on a plain connection, is refused as well."""
    sqlite_scene.admit()
    raw = sqlite3.connect(sqlite_scene.ledger.database.engine.url.database)
    with pytest.raises(sqlite3.IntegrityError, match="only grows"):
        raw.execute(f"INSERT OR REPLACE INTO {table} SELECT * FROM {table}")
    raw.close()


def test_postgresql_tables_cannot_be_truncated(postgres, tmp_path):
    """TRUNCATE fires no row trigger; it is refused too."""
    from perdure.store.ledger import Ledger

    url = postgres.new_url()
    Ledger.open(url).close()
    schema_name = url.rpartition("%3D")[2]
    with psycopg.connect(postgres.conninfo, autocommit=True) as connection:
        for table in schema.APPEND_ONLY:
            with pytest.raises(psycopg.errors.IntegrityConstraintViolation, match="append-only"):
                connection.execute(f"TRUNCATE {schema_name}.{table} CASCADE")


def test_a_whole_ledger_verifies(applied):
    """After a job's whole life the audit finds no gap, and says how many records it saw."""
    scene, _, _ = applied
    report = _audit(scene)
    assert report.ok, report.findings
    assert report.records == len(scene.ledger.events()) == 14
    assert report.head == scene.ledger.head()
    assert {finding.severity for finding in report.findings} == {"ok"}


def test_a_whole_ledger_verifies_on_each_database(scene):
    """The same evidence gives the same verdict on SQLite and PostgreSQL."""
    job_id, plan, _ = scene.approved()
    scene.begin(job_id, plan)
    assert _audit(scene).ok


def test_an_empty_ledger_verifies(scene):
    """Nothing is wrong with a ledger that holds nothing."""
    assert scene.ledger.head() == GENESIS
    assert _audit(scene).ok


@pytest.mark.parametrize(
    ("statement", "names"),
    [
        (
            "UPDATE contents SET body = replace(body, 'template', 'tampered') WHERE position = 2",
            "record 2: the content",
        ),
        ("UPDATE contents SET salt = zeroblob(32) WHERE position = 3", "record 3: the content"),
        ("UPDATE events SET actor = 'eve' WHERE position = 5", "record 5: its header"),
        ("UPDATE events SET at = '2020-01-01T00:00:00.000000Z' WHERE position = 4", "record 4: its header"),
        ("UPDATE chain SET hash = event_hash WHERE position = 4", "record 4: its link"),
        ("UPDATE chain SET prev = hash WHERE position = 4", "record 4: the global chain is broken"),
        ("DELETE FROM chain WHERE position = 4", "record 4: its link in the global chain is missing"),
        ("DELETE FROM events WHERE position = 4", "record 5: records 4 to 4 are missing"),
        ("INSERT INTO contents VALUES (99, zeroblob(32), '{}')", "record 99: it is in contents"),
        ("INSERT INTO chain VALUES (99, 'a', 'b', 'c')", "record 99: it is in chain"),
        ("DELETE FROM intents WHERE effect_index = 1", "effect 2 (do) of apply/releases/one/1: its row was deleted"),
        (
            "UPDATE intents SET state = 'intent' WHERE effect_index = 1",
            "effect 2 (do) of apply/releases/one/1: its row",
        ),
        ("UPDATE permits SET state = 'granted'", "its row says 'granted'"),
        ("UPDATE permits SET closed = ''", "its row says that it ended as ''"),
        ("DELETE FROM permits", "its row was deleted"),
        ("UPDATE plans SET state = 'open'", "its row says 'open'"),
        ("UPDATE decisions SET id = 'other'", "it holds decision d-1, its row says other"),
        ("DELETE FROM decisions", "the row of its decision was deleted"),
        ("UPDATE jobs SET cancelled_by = 'eve' WHERE number = 2", "its cancel is in its records or in its row"),
    ],
)
def test_every_change_to_the_file_is_named(applied, statement, names):
    """One byte in a content or header, a missing record, a row that the arbiter looks up: each is found and named."""
    scene, _, _ = applied
    _break_in(scene, "PRAGMA foreign_keys=OFF", statement)
    wrong = _wrong(scene)
    assert any(names in one for one in wrong), wrong
    assert not _audit(scene).ok


def test_reordered_records_are_named(applied):
    """Two records that changed places break the chain at both."""
    scene, _, _ = applied
    swap = (
        "UPDATE {0} SET position = 100 WHERE position = 3",
        "UPDATE {0} SET position = 3 WHERE position = 4",
        "UPDATE {0} SET position = 4 WHERE position = 100",
    )
    everywhere = [one.format(table) for table in ("events", "contents", "chain") for one in swap]
    _break_in(scene, "PRAGMA foreign_keys=OFF", *everywhere)
    wrong = _wrong(scene)
    assert any(one.startswith("record 3: the global chain is broken") for one in wrong), wrong
    assert any("number 3 after 1" in one for one in wrong), wrong


def test_a_cut_tail_is_told_by_a_head_noted_before(applied):
    """Who noted a head down learns that the ledger does not hold it any more."""
    scene, _, _ = applied
    head = scene.ledger.head()
    last = "(SELECT max(position) FROM events)"
    _break_in(
        scene,
        f"DELETE FROM contents WHERE position = {last}",
        f"DELETE FROM chain WHERE position = {last}",
        f"DELETE FROM events WHERE position = {last}",
    )
    assert [one.severity for one in audit.verify_chain(scene.ledger)] == ["ok"]
    assert [one.severity for one in audit.verify_chain(scene.ledger, expected_head=head)] == ["tampered"]


def test_an_intent_that_no_record_speaks_of_is_named(applied):
    """A row put beside the evidence, as if an effect had been allowed, is found."""
    scene, _, _ = applied
    columns = ", ".join(column.name for column in schema.intents.columns)
    faked = columns.replace("effect_index", "7", 1)
    _break_in(scene, f"INSERT INTO intents ({columns}) SELECT {faked} FROM intents WHERE effect_index = 0")
    assert any("effect 8 (do)" in one and "no record speaks of" in one for one in _wrong(scene))


def test_a_receipt_of_an_effect_that_never_began_is_named(sqlite_scene):
    """A record that says how an effect ended, without one that says that it began, is found in the records alone."""
    body = {"application_id": "apply/releases/one/1", "index": 0, "direction": "do", "state": "done", "digest": "x"}
    sqlite_scene.ledger.append(thread="releases", kind="effect.receipt", actor="perdure", body=body, at=AT)
    findings = audit.verify_applied(sqlite_scene.ledger, sqlite_scene.blobs, {})
    assert ["no record says that it began" in one.detail for one in findings] == [True]


def test_a_decision_under_another_name_is_named(sqlite_scene):
    """A signed decision whose record says another kind or person than was signed is tampering."""
    job_id = sqlite_scene.admit()
    body = sqlite_scene.sign("cancel", job_id).model_dump(mode="json")
    for kind, actor in (("decision.cancel", "eve"), ("decision.approve", "bo")):
        sqlite_scene.ledger.append(thread="releases", kind=kind, actor=actor, body=body, job_id=job_id, at=AT)
    details = [one.detail for one in audit.verify_signatures(sqlite_scene.ledger, _keys(sqlite_scene))]
    assert ["lies under" in detail for detail in details] == [True, True]


def test_a_content_that_is_gone_is_a_gap(applied):
    """A deleted content without an erasure on record is missing, not expired."""
    scene, _, _ = applied
    _break_in(scene, "DELETE FROM contents WHERE position = 3")
    gaps = [one for one in _audit(scene).findings if one.severity == "gap"]
    assert [one.about for one in gaps] == ["record 3"]


def test_an_erased_thread_still_verifies(applied):
    """Erasing a finished thread leaves the chain whole; the audit calls it expired, and its records say nothing."""
    scene, job_id, _ = applied
    erased = scene.ledger.erase_thread("releases", by="ada", at=AT)
    assert erased == 13
    assert all(event.body == {} for event in scene.ledger.events(job_id=job_id))
    assert scene.ledger.job(job_id).summary == "" == scene.ledger.job(job_id).title
    report = _audit(scene)
    assert report.ok, report.findings
    assert "expired" in {one.severity for one in report.findings}
    assert any(event.body for event in scene.ledger.events() if event.thread == "links")


def test_an_erased_thread_goes_on(applied):
    """New jobs of an erased thread are audited as ever, and old permits stay spent."""
    scene, _, plan = applied
    scene.ledger.erase_thread("releases", by="ada", at=AT)
    job_id, new_plan, _ = scene.approved("two")
    scene.begin(job_id, new_plan)
    assert _audit(scene).ok
    assert scene.ledger.permit(plan.digest).state == "spent"
    _break_in(scene, "DELETE FROM intents WHERE job_id = 'job/releases/two'")
    assert any("its row was deleted" in one for one in _wrong(scene))


def test_a_living_thread_is_not_erased(sqlite_scene):
    """While a job of it goes on, a thread's records are needed; an unknown thread is named as such."""
    sqlite_scene.admit()
    with pytest.raises(Conflict, match="not finished"):
        sqlite_scene.ledger.erase_thread("releases", by="ada", at=AT)
    with pytest.raises(NotFound):
        sqlite_scene.ledger.erase_thread("nowhere", by="ada", at=AT)


def test_a_decision_signed_by_a_stranger_is_named(applied, tmp_path):
    """A decision whose signature is by a key that is not known any more counts for nothing."""
    scene, _, _ = applied
    findings = audit.verify_signatures(scene.ledger, {})
    assert [one.severity for one in findings] == ["tampered"]
    assert "does not hold" in findings[0].detail
    applied_without = audit.verify_applied(scene.ledger, scene.blobs, {})
    assert "although its gate amounts to 'pending'" in applied_without[0].detail


def test_a_decision_that_names_a_foreign_head_is_named(sqlite_scene):
    """A decision made on another ledger, or on one that was cut since, names a head that this one never had."""
    job_id = sqlite_scene.admit()
    sqlite_scene.decide("cancel", job_id, head="f" * 64)
    findings = audit.verify_signatures(sqlite_scene.ledger, _keys(sqlite_scene))
    assert "did not have before it" in findings[0].detail


def test_missing_and_changed_blobs_are_told_apart(applied):
    """A plan that is gone is a gap, one that was changed is tampered with."""
    scene, _, plan = applied
    path = scene.blobs._path(plan.ref.sha256)
    path.write_bytes(path.read_bytes().replace(b"1.2.0", b"1.2.1"))
    assert [(one.severity, one.about) for one in audit.verify_blobs(scene.ledger, scene.blobs)] == [
        ("tampered", f"plan {plan.digest[:8]}")
    ]
    path.unlink()
    assert [one.severity for one in audit.verify_blobs(scene.ledger, scene.blobs)] == ["gap"]
    assert _audit(scene).ok is False


def test_stage_results_must_be_there(sqlite_scene):
    """A result that a stage record names is one of the blobs that an audit looks for."""
    ref = sqlite_scene.blobs.put(b"history")
    body = {"stage": "gather", "name": "history", "result": ref.model_dump(mode="json")}
    job_id = sqlite_scene.admit()
    sqlite_scene.ledger.append(thread="releases", kind="stage", actor="perdure", body=body, job_id=job_id, at=AT)
    assert audit.verify_blobs(sqlite_scene.ledger, sqlite_scene.blobs)[0].severity == "ok"
    shutil.rmtree(sqlite_scene.blobs._path(ref.sha256).parent)
    assert "history" in audit.verify_blobs(sqlite_scene.ledger, sqlite_scene.blobs)[0].about


def test_what_was_applied_must_be_what_the_plan_says(sqlite_scene):
    """A receipt whose body is not the approved effect's body is named, even with everything else in order."""
    job_id, plan, _ = sqlite_scene.approved(rule=NO_GATE)
    sqlite_scene.begin(job_id, plan)
    sqlite_scene.finish(job_id, plan, body={"path": "elsewhere", "new": "text"})
    assert any("something else was done" in one for one in _wrong(sqlite_scene))


def test_a_receipt_of_another_effect_is_named(sqlite_scene):
    """The blob that a record names must be that effect's receipt."""
    job_id, plan, application = sqlite_scene.approved(rule=NO_GATE)
    sqlite_scene.begin(job_id, plan)
    said = {"application_id": application, "direction": "do", "state": "done", "kind": "files.write", "body": {}}
    other = sqlite_scene.blobs.put_json(Receipt(index=1, **said).model_dump(mode="json"))
    sqlite_scene.ledger.finish_effect(Receipt(index=0, **said), other, at=AT)
    assert any("another effect's" in one for one in _wrong(sqlite_scene))
