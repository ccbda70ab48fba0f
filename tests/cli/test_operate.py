"""Starting, stopping, and finding the installation."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.cli.conftest import Ended
from tests.cli.world import World, _Request
from tests.support.installation import ROOT
from tests.support.repositories import make_project

Call = Callable[..., Ended]


def test_run_starts_perdure_by_itself_and_says_so(data: Path, tmp_path: Path) -> None:
    """Nothing runs: `run` starts it in the background, says how to stop it, and makes its plan; `down` ends it.

    A decision starts it too, except with --no-start.
    """
    project = make_project(tmp_path)

    def line(*args: str, **env: str) -> subprocess.CompletedProcess[str]:
        environ = {**os.environ, "PERDURE_DATA": str(data), "PYTHONPATH": str(ROOT), **env}
        argv = [sys.executable, "-m", "perdure", *args]
        return subprocess.run(argv, env=environ, cwd=project.path, capture_output=True, text=True, timeout=90)

    try:
        ended = line("run", "release", "remote=")
        assert ended.returncode == 3, ended.stderr
        assert "Started Perdure in the background (stop: perdure down)." in ended.stderr
        assert "Started Perdure" not in line("run", "release", "--plan", "remote=").stderr
        state = line("status", "--json")
        assert state.returncode == 0
        assert json.loads(state.stdout)["phase"] == "ready"
        with socket.create_server(("127.0.0.1", 0)) as taken:
            door = f"127.0.0.1:{taken.getsockname()[1]}"
        asked = line("up", PERDURE_LISTEN=door)
        assert f"Nothing listens on {door}" in asked.stderr and "`perdure down`, then `perdure up`" in asked.stderr
        assert "Nothing listens" not in line("up").stderr
        digest = next(job["digest"] for job in json.loads(line("jobs", "--json").stdout) if job["phase"] == "waiting")
        line("down")
        assert line("reject", digest, "--no-start").returncode == 69
        rejected = line("reject", digest)
        assert "Started Perdure in the background" in rejected.stderr
        assert rejected.returncode == 0, rejected.stderr
    finally:
        stopped = line("down")
    assert "Stopped." in stopped.stdout
    assert line("status").returncode == 69


def test_a_decision_where_nothing_was_ever_installed_starts_nothing(call: Call, data: Path) -> None:
    """There is no plan to decide on: it says that nobody answers, and makes no installation."""
    ended = call("approve", "7f3a91c2")
    assert ended.code == 69
    assert "perdure up" in ended.err
    assert list(data.iterdir()) == []


def test_status_of_nothing_says_how_to_start(call: Call) -> None:
    """69, where the data would be, and what to type; stopping nothing is no error."""
    ended = call("status")
    assert ended.code == 69
    assert "perdure up" in ended.out
    ended = call("down")
    assert (ended.code, ended.out) == (0, "Nothing was running.\n")


def test_doctor_says_what_to_do(call: Call, data: Path) -> None:
    """Every check with a mark; a failing one with advice, and 69."""
    (data / "keys").mkdir()
    data.chmod(0o755)
    ended = call("doctor")
    assert ended.code == 69
    assert "✗ data folder" in ended.out and "✓ python" in ended.out
    checks = call("doctor", "--json").json["checks"]
    (folder,) = [check for check in checks if check["name"] == "data folder"]
    assert folder["ok"] is False and folder["advice"] in ended.out


def test_another_machines_api_is_asked_with_the_token(call: Call, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """PERDURE_API and PERDURE_TOKEN: bearer in a header, no proxy of the environment, nothing started here."""
    world = World()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Request", (_Request,), {"world": world}))
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    monkeypatch.setenv("PERDURE_API", f"http://127.0.0.1:{server.server_port}/")
    monkeypatch.setenv("PERDURE_TOKEN", "perdure_secret")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    try:
        assert call("run", "release").code == 3
    finally:
        server.shutdown()
        server.server_close()
    assert {headers["Authorization"] for headers in world.headers} == {"Bearer perdure_secret"}
    ended = call("run", "release")
    assert ended.code == 69
    assert "PERDURE_API" in ended.err and "perdure up" not in ended.err
    assert "perdure_secret" not in ended.err
    assert not (data / "run").exists()


def test_the_option_goes_before_the_environment(call: Call, tmp_path: Path) -> None:
    """--data names the installation, before or behind the command."""
    for line in (["--data", str(tmp_path), "status"], ["status", "--data", str(tmp_path)]):
        assert str(tmp_path) in call(*line).out
