"""A ledger that is locked, full, unreachable, foreign or new: a clear error each, and nothing half-written."""

from __future__ import annotations

import sqlite3
import stat
import subprocess
import sys
import textwrap
import threading
import time
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import text

from perdure.errors import SetupError
from perdure.store.ledger import Ledger
from perdure.store.migrate import HEAD_REVISION, MIGRATIONS
from perdure.store.schema import metadata
from tests.store.ledger_kit import AT
from tests.store.postgres_kit import run_postgres

SHORT = timedelta(milliseconds=300)


def _append(ledger, kind="stage"):
    return ledger.append(thread="t", kind=kind, actor="perdure", body={}, at=AT)


def test_the_tables_are_the_ones_the_code_knows(ledger):
    """After migrating, each database has exactly the tables, columns, keys and indexes of the schema."""
    with ledger.database.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []


def test_the_newest_migration_is_the_head():
    """The constant that saves importing Alembic names the newest migration."""
    assert sorted(path.name.split("_")[0] for path in (MIGRATIONS / "versions").glob("[0-9]*.py"))[-1] == HEAD_REVISION


def test_a_ledger_is_opened_again_as_it_was(ledger_url):
    """Opening does not change a ledger that is up to date, and does not import Alembic for it."""
    ledger = Ledger.open(ledger_url)
    _append(ledger)
    head = ledger.head()
    ledger.close()
    script = (
        "import sys; from perdure.store.ledger import Ledger; l = Ledger.open(sys.argv[1]); print(l.head()); l.close()"
    )
    script += "; assert 'alembic' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", script, ledger_url], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == head


def test_a_ledger_of_a_newer_version_is_left_alone(ledger_url):
    """A ledger that a newer Perdure wrote is refused by name, unchanged."""
    ledger = Ledger.open(ledger_url)
    with ledger.database.write() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    ledger.close()
    with pytest.raises(SetupError, match="newer Perdure"):
        Ledger.open(ledger_url)


def test_many_open_one_new_ledger_at_once(ledger_url):
    """Of several processes that start together one makes the tables, and all of them work."""
    script = textwrap.dedent("""
        import sys
        from datetime import datetime, UTC
        from perdure.store.ledger import Ledger
        ledger = Ledger.open(sys.argv[1])
        ledger.append(thread="t", kind="stage", actor="perdure", body={}, at=datetime.now(UTC))
        ledger.close()
    """)
    processes = [subprocess.Popen([sys.executable, "-c", script, ledger_url]) for _ in range(4)]
    assert [process.wait() for process in processes] == [0] * 4
    ledger = Ledger.open(ledger_url)
    assert [event.seq for event in ledger.events()] == [1, 2, 3, 4]
    ledger.close()


def test_the_file_is_private_and_kept_safe(sqlite_url):
    """The ledger's files are 0600 in a folder 0700, written ahead, and synced before a write is acknowledged."""
    ledger = Ledger.open(sqlite_url)
    path = Path(ledger.database.engine.url.database)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert {stat.S_IMODE(one.stat().st_mode) for one in path.parent.iterdir()} == {0o600}
    with ledger.database.read() as connection:
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
    ledger.close()
    path.chmod(0o644)
    Ledger.open(sqlite_url).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_write_waits_for_its_turn(sqlite_url):
    """A ledger locked for a moment is waited for."""
    ledger = Ledger.open(sqlite_url)
    other = sqlite3.connect(ledger.database.engine.url.database, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    threading.Timer(0.3, other.execute, ["COMMIT"]).start()
    assert _append(ledger) == 1
    other.close()
    ledger.close()


def test_a_locked_ledger_says_so(sqlite_url):
    """A ledger locked for longer than the patience is a set-up error; nothing is written, and it works afterwards."""
    ledger = Ledger.open(sqlite_url, patience=SHORT)
    other = sqlite3.connect(ledger.database.engine.url.database, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(SetupError, match=r"Ledger unreachable.*locked.*Nothing was written"):
        _append(ledger)
    assert ledger.events() == []
    other.execute("ROLLBACK")
    other.close()
    assert _append(ledger) == 1
    ledger.close()


def test_a_locked_postgresql_ledger_says_so(postgres):
    """Another writer that holds the ledger for longer than the patience is named as a lock."""
    url = postgres.new_url()
    ledger, holder = Ledger.open(url, patience=SHORT), Ledger.open(url)
    with holder.database.write(), pytest.raises(SetupError, match=r"Ledger unreachable.*lock timeout"):
        _append(ledger)
    assert _append(ledger) == 1
    ledger.close()
    holder.close()


def test_two_postgresql_ledgers_do_not_wait_on_each_other(postgres):
    """The writer's place belongs to one schema."""
    one, two = Ledger.open(postgres.new_url()), Ledger.open(postgres.new_url(), patience=SHORT)
    with one.database.write():
        assert _append(two) == 1
    one.close()
    two.close()


def test_a_lost_server_is_a_set_up_error():
    """PostgreSQL that goes away is named with its URL without a password, and found again when it is back."""
    with run_postgres() as server:
        url = server.new_url()
        ledger = Ledger.open(url, patience=SHORT)
        _append(ledger)
        server.stop()
        with pytest.raises(SetupError, match="Ledger unreachable"):
            _append(ledger)
        ledger.close()
        with pytest.raises(SetupError, match=r"PERDURE_LEDGER_URL"):
            Ledger.open(url.replace("perdure@", "perdure:secret@"), patience=SHORT)
        try:
            Ledger.open(url.replace("perdure@", "perdure:secret@"), patience=SHORT)
        except SetupError as error:
            assert "secret" not in error.message


def test_acknowledged_writes_are_synced_whatever_the_server_says(postgres):
    """A server set to acknowledge before it has written is overruled for the ledger's connections."""
    url = postgres.new_url()
    with psycopg.connect(postgres.conninfo, autocommit=True) as connection:
        connection.execute("CREATE ROLE hasty LOGIN SUPERUSER; ALTER ROLE hasty SET synchronous_commit = off")
    ledger = Ledger.open(url.replace("perdure@", "hasty@"))
    with ledger.database.write() as connection:
        assert connection.execute(text("SHOW synchronous_commit")).scalar() == "on"
    ledger.close()


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("nonsense", "cannot be read"),
        ("mysql://host/db", "cannot lie in 'mysql'"),
        ("sqlite://", "needs a file"),
        ("sqlite:///:memory:", "needs a file"),
        ("postgresql+psycopg://nobody@/x?host=/nonexistent", "unreachable"),
    ],
)
def test_a_url_that_cannot_work_says_what_would(url, says):
    """Each wrong URL is answered with what was expected."""
    with pytest.raises(SetupError, match=says):
        Ledger.open(url, patience=SHORT)


def test_what_is_no_ledger_is_named(tmp_path):
    """A file that is no database, and a folder that cannot hold one, are set-up errors."""
    path = tmp_path / "ledger.db"
    path.write_bytes(b"not a database, but a text that is long enough to look at" * 20)
    with pytest.raises(SetupError, match="not a database"):
        Ledger.open(f"sqlite:///{path}", patience=SHORT)
    (tmp_path / "file").write_text("")
    with pytest.raises(SetupError, match="Ledger unreachable"):
        Ledger.open(f"sqlite:///{tmp_path / 'file' / 'ledger.db'}", patience=SHORT)


def test_a_full_disk_leaves_no_half_a_record(sqlite_url):
    """When the disk is full (here: a limit on file size), writes fail whole, reads go on, and the chain verifies."""
    ledger = Ledger.open(sqlite_url)
    _append(ledger)
    ledger.close()
    script = textwrap.dedent("""
        import resource, sys
        from datetime import datetime, UTC
        from perdure.errors import SetupError
        from perdure.store.audit import verify_chain
        from perdure.store.ledger import Ledger
        at = datetime.now(UTC)
        ledger = Ledger.open(sys.argv[1])
        ledger.append(thread="t", kind="stage", actor="perdure", body={}, at=at)
        resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, resource.RLIM_INFINITY))
        written = len(ledger.events())
        try:
            for _ in range(1000):
                ledger.append(thread="t", kind="stage", actor="perdure", body={"text": "x" * 5000}, at=at)
                written += 1
        except SetupError as error:
            assert "Ledger unreachable" in error.message and "Nothing was written" in error.message, error
            print("full")
        assert len(ledger.events(limit=5000)) == written
        assert [one.severity for one in verify_chain(ledger)] == ["ok"]
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
        assert ledger.append(thread="t", kind="stage", actor="perdure", body={}, at=at) == written + 1
        ledger.close()
    """)
    done = subprocess.run([sys.executable, "-c", script, sqlite_url], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "full\n"), done.stderr


def test_a_killed_writer_leaves_all_or_nothing(sqlite_url):
    """A process killed at any moment of a write leaves whole records; the next one goes on after them."""
    Ledger.open(sqlite_url).close()
    script = textwrap.dedent("""
        import sys
        from datetime import datetime, UTC
        from perdure.store.ledger import Ledger
        ledger = Ledger.open(sys.argv[1])
        while True:
            print(ledger.append(thread="t", kind="stage", actor="perdure", body={}, at=datetime.now(UTC)), flush=True)
    """)
    from perdure.store.audit import verify_chain

    acknowledged = 0
    for records in (1, 3, 8):
        with subprocess.Popen([sys.executable, "-c", script, sqlite_url], stdout=subprocess.PIPE, text=True) as process:
            acknowledged = max(int(process.stdout.readline()) for _ in range(records))
            process.kill()
        ledger = Ledger.open(sqlite_url)
        assert ledger.events(limit=10_000)[-1].position >= acknowledged
        assert [one.severity for one in verify_chain(ledger)] == ["ok"]
        ledger.close()


def test_threads_of_one_process_write_one_chain(ledger):
    """Many threads write at once; every record has its place, and none waits for ever."""
    from perdure.store.audit import verify_chain

    errors = []

    def work(name):
        try:
            for step in range(5):
                ledger.append(
                    thread=f"t{name % 3}",
                    kind="stage",
                    actor="perdure",
                    body={},
                    workflow_id=f"w{name}",
                    step=str(step),
                    at=AT,
                )
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=[name]) for name in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(ledger.events()) == 30
    assert [one.severity for one in verify_chain(ledger)] == ["ok"]


def test_an_error_inside_a_write_takes_all_of_it_back(ledger):
    """A refusal in the middle of a transaction leaves nothing of it."""
    from perdure.store.events import append_event

    with pytest.raises(ZeroDivisionError), ledger.database.write() as connection:
        append_event(connection, thread="t", kind="stage", actor="perdure", body={}, at=AT)
        raise ZeroDivisionError
    assert ledger.events() == []
    assert _append(ledger) == 1


def test_patience_is_kept(sqlite_url):
    """A process that opens a ledger while another one holds it for ever gives up, and names the lock."""
    import fcntl

    Ledger.open(sqlite_url).close()
    lock = Path(sqlite_url.removeprefix("sqlite:///") + ".lock")
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        begun = time.monotonic()
        with pytest.raises(SetupError, match="another process has been opening it"):
            Ledger.open(sqlite_url, patience=SHORT)
        assert time.monotonic() - begun < 5
