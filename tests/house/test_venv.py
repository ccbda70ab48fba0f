"""How `.venv` is made: loudly when something is missing, quickly when nothing changed.

The interpreter here is a stand-in that writes down what it is asked to do, since a real environment takes a minute; CI
makes the real one in each run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.kit import ROOT

STAND_IN = """#!/bin/sh
case "$1" in
-c) exec {python} "$@" ;;
--version) echo "Python 3.12.1"; exit ;;
esac
echo "$*" >>{log}
case "$*" in
"-m venv .venv") mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;
esac
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What `.ci/venv` reads, and a stand-in for Python."""
    folder = tmp_path / "checkout"
    (folder / ".ci").mkdir(parents=True)
    for name in (".ci/venv", "requirements.lock", "pyproject.toml"):
        shutil.copy(ROOT / name, folder / name)
    script = STAND_IN.format(python=sys.executable, log=tmp_path / "calls")
    write_command(tmp_path / "python3", script)
    return folder


def write_command(path: Path, script: str) -> None:
    """Write an executable."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(script)
    path.chmod(0o755)


def make(checkout: Path, **environ: str) -> tuple[list[str], subprocess.CompletedProcess[str]]:
    """Run `.ci/venv`; return what the interpreter was asked to do, and how the script ended."""
    calls = checkout.parent / "calls"
    calls.write_text("")
    given = {**os.environ, "PYTHON": str(checkout.parent / "python3"), **environ}
    ended = subprocess.run([checkout / ".ci" / "venv", "demo"], env=given, capture_output=True, text=True)
    return calls.read_text().splitlines(), ended


def test_first_time_installs_by_hash_and_second_time_nothing(checkout: Path) -> None:
    """The lock goes in with its hashes, the checkout without dependencies; the second time nothing is done."""
    calls, ended = make(checkout)
    assert ended.returncode == 0, ended.stderr
    assert calls[0] == "-m venv .venv"
    assert calls[1].endswith("install --require-hashes -r requirements.lock")
    assert calls[2].endswith("install --no-deps --no-build-isolation -e .")
    assert make(checkout)[0] == []


def test_changed_lock_makes_it_anew(checkout: Path) -> None:
    """Another lock means another environment: a package that left it is gone."""
    make(checkout)
    (checkout / "requirements.lock").write_text("# other packages\n")
    assert make(checkout)[0][0] == "-m venv .venv"


def test_changed_project_installs_the_checkout_alone(checkout: Path) -> None:
    """A new setting in pyproject.toml costs a second, not a minute."""
    make(checkout)
    with (checkout / "pyproject.toml").open("a") as file:
        file.write("\n# a change\n")
    calls, _ = make(checkout)
    assert [call.rsplit(" ", 2)[-2:] for call in calls] == [["-e", "."]]


def test_failed_install_is_not_taken_for_done(checkout: Path) -> None:
    """When pip fails the command fails, says what was expected, and the next run starts again."""
    script = (checkout.parent / "python3").read_text()
    write_command(
        checkout.parent / "python3", script.replace("esac\necho", 'esac\ncase "$*" in *lock) exit 1;; esac\necho')
    )
    _, ended = make(checkout)
    assert ended.returncode == 69
    assert "could not be installed" in ended.stderr
    write_command(checkout.parent / "python3", script)
    assert make(checkout)[0][0] == "-m venv .venv"


def test_old_python_is_named_with_what_to_install(checkout: Path) -> None:
    """A Python below 3.11 is refused before anything is made."""
    write_command(checkout.parent / "python3", '#!/bin/sh\n[ "$1" = -c ] && exit 1\necho "Python 3.9.18"\n')
    _, ended = make(checkout)
    assert ended.returncode == 69
    assert "Python 3.11 or newer was not found" in ended.stderr
    assert "Python 3.9.18" in ended.stderr
    assert "make demo PYTHON=" in ended.stderr
    assert not (checkout / ".venv").exists()


def test_missing_git_is_named_with_what_to_install(checkout: Path) -> None:
    """Without git nothing is made."""
    tools = checkout.parent / "tools"
    for name in ("bash", "env", "dirname", "cat"):
        found = shutil.which(name)
        assert found
        (tools / name).parent.mkdir(exist_ok=True)
        (tools / name).symlink_to(found)
    _, ended = make(checkout, PATH=str(tools))
    assert ended.returncode == 69
    assert "git was not found" in ended.stderr
    assert "apt-get install git" in ended.stderr
