"""The API as a process of its own: what it makes at first, where it listens, how it ends."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
import pytest

from perdure.contracts.decisions import Decision
from perdure.contracts.job import AdmitInput
from perdure.runtime.installation import prepare
from perdure.runtime.ready import answers
from perdure.settings import Settings
from perdure.store.blobs import BlobStore
from perdure.store.ledger import Ledger
from perdure.store.signing import DecisionKey
from tests.api.installed import now
from tests.api.working import wait_for


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    settings = Settings(data=tmp_path / "data")
    prepare(settings)
    return settings


def command(settings: Settings, *more: str) -> tuple[list[str], dict[str, str]]:
    env = {key: value for key, value in os.environ.items() if not key.startswith(("TEMPORAL_", "PERDURE_"))}
    argv = [sys.executable, "-P", "-m", "perdure.api", "--data", str(settings.data), *more]
    return argv, {**env, "TEMPORAL_ADDRESS": "127.0.0.1:1"}


@contextmanager
def running(settings: Settings, *more: str) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """The process once it answers, and its log."""
    argv, env = command(settings, *more)
    log = settings.data.parent / "api.log"
    with log.open("w") as output, subprocess.Popen(argv, env=env, stdout=output, stderr=output, text=True) as process:
        try:
            wait_for(lambda: process.poll() is not None or answers(settings.socket))
            assert process.poll() is None, log.read_text()
            yield process, log
        finally:
            process.kill()


def ask(settings: Settings, path: str) -> httpx.Response:
    transport = httpx.HTTPTransport(uds=str(settings.socket), retries=3)
    with httpx.Client(transport=transport, base_url="http://perdure", timeout=30) as client:
        return client.get(path)


def test_it_starts_without_temporal_serves_and_ends_orderly(settings: Settings) -> None:
    """It listens on both doors, makes the decision key, and after SIGTERM ends with 0 and leaves no socket."""
    with running(settings, "--listen", "127.0.0.1:0") as (process, log):
        assert ask(settings, "/v1/jobs").json() == []
        found = re.search(r"listening on \('127\.0\.0\.1', (\d+)\)", log.read_text())
        assert found is not None
        assert httpx.get(f"http://127.0.0.1:{found[1]}/v1/jobs", trust_env=False).status_code == 401
        assert (settings.keys / "decision.pem").stat().st_mode & 0o777 == 0o600
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    assert not settings.socket.exists()


def test_after_a_sigkill_the_next_one_takes_over(settings: Settings) -> None:
    """The dead one's socket and lock are no obstacle, and the key is the same."""
    with running(settings) as (process, _):
        key = (settings.keys / "decision.pem").read_bytes()
        process.kill()
        process.wait()
    assert settings.socket.exists()
    with running(settings):
        assert ask(settings, "/v1/jobs").status_code == 200
    assert (settings.keys / "decision.pem").read_bytes() == key


def refuse(settings: Settings, *more: str) -> tuple[int, str]:
    argv, env = command(settings, *more)
    ended = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60, check=False)
    return ended.returncode, ended.stderr


def test_a_second_one_on_the_same_data_says_so(settings: Settings) -> None:
    """It ends with the exit code for set-up errors and one line; the first goes on."""
    with running(settings):
        code, said = refuse(settings)
        assert (code, "Another API already listens" in said) == (69, True)
        assert ask(settings, "/v1/jobs").status_code == 200


def test_a_lost_private_key_is_not_replaced_in_silence(settings: Settings) -> None:
    """Once somebody has decided, a missing key is an error to be looked at; before that a new one is made."""
    with running(settings):
        pass
    (settings.keys / "decision.pem").unlink()
    with running(settings), closing(Ledger.open(settings.ledger)) as ledger:
        digest = "a" * 64
        what = {"id": "t", "kind": "trust", "job_id": "", "digest": digest}
        said = {**what, "by": "ada", "at": now(), "head": ledger.head()}
        signed = DecisionKey.load(settings.keys).sign(Decision.model_validate(said))
        ledger.trust_template(digest, by="ada", at=now(), decision=signed)
    (settings.keys / "decision.pem").unlink()
    code, said_why = refuse(settings)
    assert (code, "decision key" in said_why) == (69, True)
    assert "Traceback" not in said_why


def test_open_questions_do_not_hold_up_the_end(settings: Settings) -> None:
    """A long poll that nobody answers is cut after a moment when the process is told to stop."""
    with closing(Ledger.open(settings.ledger)) as ledger:
        spec = BlobStore(settings.blobs).put(b"{}")
        admit = AdmitInput(job_id="job/t/r", spec=spec, template="x", requester="ada")
        ledger.admit_job(admit, at=now())
    transport = httpx.HTTPTransport(uds=str(settings.socket))
    with (
        running(settings) as (process, _),
        httpx.Client(transport=transport, base_url="http://perdure", timeout=60) as client,
        ThreadPoolExecutor() as pool,
    ):
        client.get("/v1/jobs").raise_for_status()
        poll = pool.submit(client.get, "/v1/events", params={"ref": "1", "after": 1000, "wait": 30})
        assert not poll.done()
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
        poll.exception(20)


def test_an_address_that_cannot_be_used_is_said(settings: Settings) -> None:
    """A wrong --listen ends the start with a message that names it."""
    code, said = refuse(settings, "--listen", "127.0.0.1:99999")
    assert (code, "127.0.0.1:99999" in said) == (69, True)
    assert "Traceback" not in said
