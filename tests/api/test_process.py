"""The API as a process of its own: what it makes at first, where it listens, how it ends."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from perdure.runtime.installation import prepare
from perdure.settings import Settings
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
            wait_for(lambda: process.poll() is not None or settings.socket.exists())
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
    settings.socket.unlink()  # so that the next one's can be waited for
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
    """Where only the public half is left, decisions made before could not be told from a stranger's: it refuses."""
    with running(settings):
        pass
    (settings.keys / "decision.pem").unlink()
    code, said = refuse(settings)
    assert (code, "decision key" in said) == (69, True)
    assert "Traceback" not in said


@pytest.mark.parametrize("listen", ["nonsense", "127.0.0.1:99999", "no.such.host.invalid:1"])
def test_an_address_that_cannot_be_used_is_said(settings: Settings, listen: str) -> None:
    """A wrong --listen ends the start with a message that names it."""
    code, said = refuse(settings, "--listen", listen)
    assert (code, listen in said) == (69, True)
    assert "Traceback" not in said
