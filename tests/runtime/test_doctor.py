"""`perdure doctor`: what is looked at, and that every fault comes with what to do."""

from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path

import pytest

from perdure.runtime.doctor import Check, examine
from perdure.runtime.installation import prepare
from perdure.settings import Settings


def found(settings: Settings) -> dict[str, Check]:
    """The checks by name."""
    return {check.name: check for check in examine(settings)}


def test_healthy_machine_is_healthy_and_stays_as_it_is(settings: Settings) -> None:
    """On a machine that can run Perdure every check is fine, and looking makes nothing."""
    checks = examine(settings)
    assert [check for check in checks if not check.ok] == []
    assert all(check.detail for check in checks)
    assert not settings.data.exists()


def test_prepared_installation_is_healthy(settings: Settings) -> None:
    """A prepared installation that is stopped is fine too; its key is named, not shown."""
    prepare(settings)
    checks = found(settings)
    assert [check for check in checks.values() if not check.ok] == []
    assert (settings.keys / "payload.key").read_text().strip() not in str(checks)
    assert checks["processes"].detail == "stopped."


def test_missing_programs_are_named(settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without git the check says how to get it."""
    monkeypatch.setenv("PATH", str(tmp_path))
    git = found(settings)["git"]
    assert (git.ok, git.detail) == (False, "There is no git on PATH.")
    assert git.advice.startswith("Install git")


def test_old_git_is_named(settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A git that is too old is named with the version that is needed."""
    old = tmp_path / "git"
    old.write_text("#!/bin/sh\necho git version 2.1.4\n")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    git = found(settings)["git"]
    assert not git.ok
    assert "git version 2.1.4 is too old" in git.detail


def test_unreachable_cluster_is_named(settings: Settings) -> None:
    """A cluster that does not answer is named."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
    temporal = found(replace(settings, temporal_address=address))["temporal"]
    assert not temporal.ok
    assert address in temporal.detail
    assert "TEMPORAL_ADDRESS" in temporal.advice


def test_taken_port_is_named(settings: Settings) -> None:
    """A port that the settings fix and somebody else uses is named with its holder."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ports = found(replace(settings, temporal_port=port))["ports"]
    assert not ports.ok
    assert f"port {port}, used by pid " in ports.detail


def test_too_long_a_path_is_named_before_the_folder_is_made(settings: Settings, tmp_path: Path) -> None:
    """A data folder that `up` would refuse for its length is red in the doctor too, and is not made."""
    folder = tmp_path / ("x" * 110)
    check = found(replace(settings, data=folder))["data folder"]
    assert not check.ok
    assert "path is too long" in check.detail
    assert not folder.exists()


def test_open_folder_and_lost_key_are_named(settings: Settings) -> None:
    """A folder open to others and a lost key are two faults, each with its cure."""
    prepare(settings)
    settings.data.chmod(0o755)
    (settings.data / "ledger.db").touch()
    (settings.keys / "payload.key").unlink()
    checks = found(settings)
    assert "chmod 700" in checks["data folder"].advice
    assert "backup" in checks["payload key"].advice
