"""What a process imports at its start, and what it leaves for later."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from perdure.errors import SetupError
from perdure.runtime.imports import Late

ROOT = Path(__file__).parents[2]


def test_worker_starts_without_what_its_first_steps_do_not_need() -> None:
    """Rules, Jinja and YAML are loaded when the first job asks: what a dead worker left in flight goes on before."""
    asked = "import json, sys, worker; print(json.dumps(sorted(sys.modules)))"
    said = subprocess.run([sys.executable, "-c", asked], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = set(json.loads(said.stdout))
    assert not loaded & {"perdure.rules.release.propose", "jinja2.environment", "ruamel.yaml", "perdure.tools.shell"}


def test_late_items_are_loaded_once_when_asked_for() -> None:
    """A mapping that is loaded late is loaded by the first look, and never again."""
    loads: list[str] = []

    def load() -> Mapping[str, int]:
        loads.append("now")
        return {"one": 1}

    late = Late(load)
    assert loads == []
    assert (late["one"], list(late), len(late), "two" in late) == (1, ["one"], 1, False)
    assert loads == ["now"]


def test_error_of_loading_is_told_to_everybody_who_asks() -> None:
    """What cannot be loaded says so each time; a later look tries again."""

    def load() -> Mapping[str, int]:
        raise SetupError("not there")

    late = Late(load)
    for _ in range(2):
        with pytest.raises(SetupError, match="not there"):
            late["one"]
