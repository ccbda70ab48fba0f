"""`perdure models` as people type it, on a settings file and a scripted server."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from perdure.testing.model_server import model_server


def perdure(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run one command line on the installation in ``folder``."""
    argv = [sys.executable, "-m", "perdure", *words, "--data", str(folder)]
    return subprocess.run(argv, capture_output=True, text=True, env={"PATH": "/usr/bin:/bin", "PERDURE_CONFIG": ""})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A data folder with two models; the second's key is missing."""
    tmp_path.chmod(0o700)
    write_models(tmp_path, "http://127.0.0.1:9/v1")
    return tmp_path


def write_models(folder: Path, url: str) -> None:
    """Name the models in the settings file."""
    first = f'[models.fast]\nprovider = "compatible"\nmodel = "small"\nbase_url = "{url}"\nprice = "free"\n'
    second = '[models.good]\nprovider = "anthropic"\nmodel = "claude-sonnet-4-5"\nkey = "anthropic"\n'
    (folder / "config.toml").write_text(f'[models]\ndefault = "fast"\n{first}{second}')


def test_list_shows_price_window_and_missing_key(folder: Path) -> None:
    """The list has every model with what it costs, and says which key is missing."""
    ended = perdure(folder, "models", "list")
    assert ended.returncode == 0, ended.stderr
    fast, good = ended.stdout.splitlines()[1:]
    assert "fast" in fast and "free" in fast and "127.0.0.1:9" in fast
    assert "anthropic is missing" in good and "USD" in good


def test_list_without_models_shows_what_to_write(tmp_path: Path) -> None:
    """Without a model the list shows the file and an example, and that rules work."""
    ended = perdure(tmp_path, "models", "list")
    assert ended.returncode == 0, ended.stderr
    assert str(tmp_path / "config.toml") in ended.stdout
    assert "[models.fast]" in ended.stdout


def test_test_asks_one_question(folder: Path) -> None:
    """Testing asks the default model one question and tells time, answer, usage and cost."""
    with model_server({"answers": [{"text": "ready", "usage": {"input": 12, "output": 1}}] * 2}) as server:
        write_models(folder, server.openai_url)
        told = perdure(folder, "models", "test")
        plain = perdure(folder, "models", "test", "fast", "--json")
        assert len(server.requests()) == 2
    assert told.returncode == 0, told.stderr
    assert "answered in" in told.stdout and "ready" in told.stdout and "12 tokens in, 1 out; free" in told.stdout
    found = json.loads(plain.stdout)
    assert (found["text"], found["input_tokens"], found["cost_microdollars"]) == ("ready", 12, 0)


def test_test_says_why_there_is_no_answer(folder: Path) -> None:
    """A model that cannot be asked ends the command with the reason: unreachable, key missing, no such model."""
    assert "cannot be reached" in perdure(folder, "models", "test").stderr
    missing = perdure(folder, "models", "test", "good")
    assert (missing.returncode, "secrets/anthropic" in missing.stderr) == (69, True)
    unknown = perdure(folder, "models", "test", "fsat")
    assert "Did you mean 'fast'" in unknown.stderr


def test_doctor_names_the_missing_key(folder: Path) -> None:
    """The doctor says which model's key is missing and where it belongs; with it, all is well."""
    checks = {each["name"]: each for each in json.loads(perdure(folder, "doctor", "--json").stdout)["checks"]}
    assert not checks["models"]["ok"]
    assert str(folder / "secrets" / "anthropic") in checks["models"]["advice"]
    (folder / "secrets").mkdir(mode=0o700)
    (folder / "secrets" / "anthropic").write_text("sk-1\n")
    checks = {each["name"]: each for each in json.loads(perdure(folder, "doctor", "--json").stdout)["checks"]}
    assert checks["models"]["ok"], checks["models"]
    assert "sk-1" not in json.dumps(checks)
