"""The application is found from the package, wherever the process runs and whatever lies around it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from perdure import application
from perdure.errors import SetupError

FIND = "from perdure import application; print(application.root()); print(application.load('workflows').__file__)"


def test_application_is_found_from_another_folder(tmp_path: Path) -> None:
    """A `workflows` folder of somebody else in the current folder is not taken for ours."""
    (tmp_path / "workflows").mkdir()
    (tmp_path / "workflows" / "__init__.py").write_text("raise SystemExit('a stranger ran')")
    done = subprocess.run([sys.executable, "-P", "-c", FIND], cwd=tmp_path, capture_output=True, text=True, check=True)
    root, loaded = done.stdout.split()
    assert Path(root) == application.root()
    assert Path(loaded) == application.root() / "workflows" / "__init__.py"


def test_installed_wheel_carries_the_application(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Outside a checkout the application is the copy inside the package."""
    inside = tmp_path / "site" / "perdure" / "_app"
    (inside / "workflows").mkdir(parents=True)
    (inside / "worker.py").touch()
    monkeypatch.setattr(application, "_PACKAGE", inside.parent)
    assert application.root() == inside


def test_incomplete_installation_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without the application the message says that the installation is incomplete."""
    monkeypatch.setattr(application, "_PACKAGE", tmp_path / "perdure")
    with pytest.raises(SetupError, match="installation is incomplete"):
        application.root()


def test_stranger_of_the_same_name_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A module of that name that was imported before ours is refused, not run."""
    (tmp_path / "workflows.py").touch()
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import workflows; {FIND}"
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True)
    assert "Start the worker with `python -P`" in done.stderr
