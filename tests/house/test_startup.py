"""Asking for help costs nothing: what `perdure --help` may not import."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

SERVER_ONLY = {"temporalio", "sqlalchemy", "alembic", "fastapi", "starlette", "uvicorn", "psycopg", "cryptography"}
"""What no command of the CLI needs: it asks the API."""

HEAVY = SERVER_ONLY | {"pydantic", "httpx", "rich", "jinja2", "ruamel", "semver", "rfc8785", "google", "asyncio"}
"""Each costs 20 ms to 800 ms of CPU."""

HELP_CPU_SECONDS = 0.2


def environment() -> dict[str, str]:
    """This environment with bytecode allowed: without it every start compiles the library again."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_imports_nothing_heavy(option: str, tmp_path: Path) -> None:
    """Help and version import no library that is slow to load."""
    argv = [sys.executable, "-X", "importtime", "-m", "perdure", option]
    ended = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, env=environment())
    assert ended.returncode == 0, ended.stderr[-2000:]
    imported = {line.rsplit("|", 1)[1].strip().split(".")[0] for line in ended.stderr.splitlines() if "|" in line}
    assert "perdure" in ended.stdout.lower()
    assert "click" in imported
    assert imported & HEAVY == set()


def test_help_takes_less_than_200_ms_of_cpu(tmp_path: Path) -> None:
    """The quickest of five: the others tell how busy the machine was."""
    spent = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        argv = [sys.executable, "-m", "perdure", "--help"]
        subprocess.run(argv, cwd=tmp_path, capture_output=True, check=True, env=environment())
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(spent) < HELP_CPU_SECONDS, spent


def test_worker_loads_no_http_client_before_a_model_is_asked(tmp_path: Path) -> None:
    """Models can be named and looked at without httpx or the price list: a worker is ready before it needs them."""
    code = """
import sys
from perdure.models.client import Models
Models(lambda: {"m": {"provider": "ollama", "model": "qwen3"}}, {}.get).facts("")
print(*sorted({name.split(".")[0] for name in sys.modules}))
"""
    ended = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr[-2000:]
    assert {"httpx", "httpcore", "genai_prices", "httpx2"} & set(ended.stdout.split()) == set()


def test_no_command_imports_the_server_side(tmp_path: Path) -> None:
    """Loading every command there is imports neither Temporal's SDK nor the store's or the API's libraries."""
    code = """
import sys
from perdure.cli import catalog, lazy
targets = [entry.target for map in catalog.EVERY_MAP for part in map.values() for entry in part.values()]
for target in targets:
    lazy.load(target)
print(len(targets), *sorted({name.split(".")[0] for name in sys.modules}))
"""
    ended = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr[-2000:]
    count, *imported = ended.stdout.split()
    assert int(count) > 20
    assert SERVER_ONLY & set(imported) == set()
