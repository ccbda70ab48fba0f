"""The supervisor: up, down, status, every way in which its processes die. Real processes; stand-ins for children."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest

from perdure.errors import SetupError
from perdure.runtime.control import Status, _signal_holder, down, status, up
from perdure.runtime.state import State, is_running, lock_holder, process_name, read_state, take_lock, write_state
from perdure.settings import Settings
from tests.runtime.waiting import is_alive, wait_gone, wait_until
from tests.support.files import look_at

COMMAND = [sys.executable, "-P", str(Path(__file__).with_name("supervised.py"))]
UpTo = Callable[..., Status]


@pytest.fixture
def start(settings: Settings) -> Iterator[UpTo]:
    """Brings the installation up with a plan for its stand-ins; nothing survives the test."""

    def bring_up(**plan: Any) -> Status:
        settings.data.with_name(settings.data.name + ".plan").write_text(json.dumps(plan))
        return up(settings, command=COMMAND)

    yield bring_up
    down(settings, limit=timedelta(seconds=5))


def pids(now: Status) -> dict[str, int]:
    """Pid of each process by name."""
    return {process.name: process.pid for process in now.processes}


def test_up_brings_everything_up_and_down_leaves_nothing(settings: Settings, start: UpTo) -> None:
    """After ``up`` every process is ready; after ``down`` none is left, and neither is the state."""
    now = start()
    assert (now.running, now.phase, now.started_here) == (True, "ready", True)
    assert list(pids(now)) == ["supervisor", "worker", "api"]
    assert all(is_alive(process.pid) and process.rss_bytes for process in now.processes)
    sessions = {os.getsid(process.pid) for process in now.processes}
    assert sessions == {process.pid for process in now.processes}, "a Ctrl-C on a terminal reaches none of them"
    assert down(settings)
    wait_gone(pids(now).values())
    assert status(settings) == Status(settings.data, running=False)
    assert not down(settings)


def test_what_is_written_is_for_the_owner_only(settings: Settings, start: UpTo) -> None:
    """The data folder and everything in it can be read by its owner only."""
    start()
    for path, seen in look_at((settings.data, *settings.data.rglob("*")), Path.stat):
        assert seen.st_mode & 0o077 == 0, path


def test_second_up_finds_the_first(settings: Settings, start: UpTo) -> None:
    """``up`` on a running installation starts nothing and says so."""
    first = start()
    second = up(settings, command=COMMAND)
    assert second == replace(first, started_here=False)


def test_two_ups_at_once_make_one_installation(settings: Settings, start: UpTo) -> None:
    """Of several ``up`` at once one starts the installation; all see the same one, ready."""
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda _: up(settings, command=COMMAND), range(4)))
    assert [now.started_here for now in found].count(True) == 1
    assert len({tuple(pids(now).items()) for now in found}) == 1
    assert all(now.is_ready for now in found)


def test_killed_supervisor_leaves_no_orphan(settings: Settings, start: UpTo) -> None:
    """When the supervisor is killed its children go with it."""
    running = pids(start())
    os.kill(running["supervisor"], signal.SIGKILL)
    wait_gone(running.values())


def test_killed_supervisor_takes_the_real_server_along(settings: Settings, start: UpTo) -> None:
    """The Temporal server goes with the supervisor too, and its data is there for the next one."""
    running = pids(start(server=True))
    os.kill(running["supervisor"], signal.SIGKILL)
    wait_gone(running.values())
    assert start(server=True).is_ready


def test_up_after_a_killed_supervisor_starts_anew_and_says_so(settings: Settings, start: UpTo) -> None:
    """A stale state is not believed: the next ``up`` starts a new run and tells what became of the old one."""
    running = pids(start())
    os.kill(running["supervisor"], signal.SIGKILL)
    wait_gone(running.values())
    assert "did not end by itself" in status(settings).note
    now = start()
    assert now.started_here
    assert f"(pid {running['supervisor']}) ended without being asked to" in now.note


def test_stale_pid_of_another_process_is_never_touched(settings: Settings, start: UpTo) -> None:
    """A state of an earlier boot may name a pid that is somebody else's by now: it is left alone."""
    start()
    down(settings)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as bystander:
        write_state(settings.data, State("0.0.1", "an-earlier-boot", bystander.pid, "2026-01-01T00:00:00", "ready"))
        stale = process_name(bystander.pid).rpartition("/")[0] + "/1"
        (settings.data / "perdure.lock").write_text(stale)
        assert not status(settings).running
        assert not down(settings)
        assert "ended when the machine did" in start().note
        assert down(settings)
        _hold_without_a_word(settings, stale)
        assert is_alive(bystander.pid)
        bystander.communicate(b"\n")


def _hold_without_a_word(settings: Settings, stale: str) -> None:
    """Ask a holder to stop that has not said its name yet, so that the lock still says the one before it."""
    lock = take_lock(settings.data / "perdure.lock")
    assert lock is not None
    try:
        (settings.data / "perdure.lock").write_text(stale)
        assert lock_holder(settings.data / "perdure.lock") == 0
        assert not _signal_holder(settings.data / "perdure.lock", signal.SIGKILL)
    finally:
        os.close(lock)


def test_killed_child_is_started_again(settings: Settings, start: UpTo) -> None:
    """A child that is killed comes back by itself; the others are not disturbed; status tells how it ended."""
    before = pids(start())
    os.kill(before["worker"], signal.SIGKILL)
    wait_until(lambda: status(settings).phase == "ready" and pids(status(settings)) != before, "the worker is back")
    now = status(settings)
    after = pids(now)
    assert after["worker"] != before["worker"]
    assert (after["supervisor"], after["api"]) == (before["supervisor"], before["api"])
    [worker] = [process for process in now.processes if process.name == "worker"]
    assert (worker.restarts, worker.detail) == (1, "ended by SIGKILL")


def test_killed_server_comes_back_where_it_was(settings: Settings, start: UpTo) -> None:
    """The server's address outlives its death, so that clients find it again."""
    first = start(server=True)
    os.kill(pids(first)["temporal"], signal.SIGKILL)
    wait_until(lambda: status(settings).phase == "ready" and pids(status(settings)) != pids(first), "it is back")
    assert status(settings).temporal == first.temporal


def test_taken_port_moves_the_server(settings: Settings, start: UpTo) -> None:
    """When somebody takes the port before the server binds it, it starts on another one."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        now = start(server=port)
    assert now.is_ready
    assert now.temporal != f"127.0.0.1:{port}"


@pytest.mark.parametrize(("name", "value"), [("PERDURE_TEMPORAL_PORT", "{}"), ("PERDURE_LISTEN", "127.0.0.1:{}")])
def test_fixed_port_that_is_taken_names_the_setting_and_the_holder(
    settings: Settings, start: UpTo, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    """A port that the settings fix is not exchanged: the message names the setting, the port and who has it."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setenv(name, value.format(port))
        with pytest.raises(SetupError, match=rf"{name} asks for port {port}, which pid {os.getpid()} "):
            start(server=True)
    assert not is_running(settings.data)


def test_http_port_answers_to_one_unguessable_host_only(settings: Settings, start: UpTo) -> None:
    """A web page that reaches the server's HTTP port under any host name it can know is refused."""
    start(server=True)
    state = read_state(settings.data)
    assert state is not None
    assert state.temporal is not None
    url = f"http://127.0.0.1:{state.temporal.http_port}/api/v1/namespaces/default"

    found: list[str] = []

    def ask(host: str) -> int:
        request = urllib.request.Request(url)
        request.add_header("Host", host)
        try:
            with urllib.request.urlopen(request) as answer:
                found.append(json.load(answer)["config"]["workflowExecutionRetentionTtl"])
                return int(answer.status)
        except HTTPError as error:
            return error.code

    assert ask(state.temporal.http_host) == 200
    assert {ask(host) for host in (f"127.0.0.1:{state.temporal.http_port}", "localhost", "nobody.invalid")} == {403}
    assert len(state.temporal.http_host) >= 32
    assert found == [f"{30 * 24 * 3600}s"], "closed histories are kept for 30 days"


def test_child_that_cannot_live_is_told_with_its_last_words(settings: Settings, start: UpTo) -> None:
    """``up`` fails with what the child said and where its log is, and leaves nothing running."""
    with pytest.raises(SetupError, match=r"worker ended with exit code 1.* cannot find my shoes \(Log: .*worker\.log"):
        start(worker="dies")
    assert not is_running(settings.data)


def test_setup_error_of_a_child_is_told_at_once(settings: Settings, start: UpTo) -> None:
    """A child that names a fault of the machine is not tried again."""
    with pytest.raises(SetupError, match=r"It said: The payload key is missing\."):
        start(api="setup")
    log = (settings.logs / "supervisor.log").read_text()
    assert log.count("api started as") == 1


def test_child_that_is_never_ready_is_named(settings: Settings, start: UpTo) -> None:
    """``up`` does not wait for ever: it names the children that are not ready, and leaves nothing running."""
    with pytest.raises(SetupError, match=r"worker is not ready in time.*api is not ready in time"):
        start(worker="silent", api="silent", start_seconds=0.5)
    assert not is_running(settings.data)


def test_stubborn_child_is_killed(settings: Settings, start: UpTo) -> None:
    """A child that does not end by itself is ended by force, so that ``down`` always ends."""
    running = pids(start(worker="stubborn", stop_seconds=0.2))
    assert down(settings)
    wait_gone(running.values())
    assert "worker does not end by itself; killed" in (settings.logs / "supervisor.log").read_text()


def test_down_ends_a_supervisor_that_hangs(settings: Settings, start: UpTo) -> None:
    """Even a supervisor that no longer reacts is ended, with its children."""
    running = pids(start())
    os.kill(running["supervisor"], signal.SIGSTOP)
    assert down(settings, limit=timedelta(seconds=0.2))
    wait_gone(running.values())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_foreground_supervisor_stops_in_order(settings: Settings, number: signal.Signals) -> None:
    """In the foreground SIGTERM and Ctrl-C end everything with exit code 0."""
    with subprocess.Popen([*COMMAND, "--data", str(settings.data)], stderr=subprocess.DEVNULL) as process:
        wait_until(lambda: status(settings).is_ready, "it is ready")
        running = pids(status(settings))
        process.send_signal(number)
        assert process.wait(30) == 0
    wait_gone(running.values())


def test_down_while_starting_is_told_to_the_waiting_up(settings: Settings, start: UpTo) -> None:
    """Whoever waits for an installation that somebody stops meanwhile is told so."""
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(start, api="silent")
        wait_until(lambda: len(status(settings).processes) == 3, "it is being started")
        assert down(settings)
        with pytest.raises(SetupError, match="was stopped while it was starting"):
            waiting.result(30)


def test_up_outlives_the_process_that_called_it(settings: Settings, start: UpTo) -> None:
    """The installation belongs to nobody's terminal: it goes on when the command that started it has ended."""
    code = (
        "import sys; from pathlib import Path; from perdure.settings import Settings\n"
        "from perdure.runtime.control import up\n"
        "print(up(Settings(data=Path(sys.argv[1])), command=sys.argv[2:]).started_here)"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, str(settings.data), *COMMAND], capture_output=True, text=True, check=True
    )
    assert done.stdout == "True\n"
    assert all(map(is_alive, pids(status(settings)).values()))


def test_up_without_waiting_returns_while_children_start(settings: Settings, start: UpTo) -> None:
    """``wait=False`` returns as soon as the folder is held."""
    settings.data.with_name("d.plan").write_text('{"api": "silent"}')
    now = up(settings, wait=False, command=COMMAND)
    assert (now.running, now.phase, now.started_here) == (True, "starting", True)


def test_large_log_is_put_aside(settings: Settings, start: UpTo) -> None:
    """A log that has grown large is put aside at the next start."""
    settings.logs.mkdir(parents=True, mode=0o700)
    settings.data.chmod(0o700)
    (settings.logs / "worker.log").write_bytes(b"x" * 5_000_001)
    start()
    assert (settings.logs / "worker.log.1").stat().st_size == 5_000_001
    assert (settings.logs / "worker.log").stat().st_size < 1000
