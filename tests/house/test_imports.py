"""Who may import whom, and that breaking it is seen."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.house.kit import ROOT, text_of, tracked_files

# Each breaks one rule of the house: file → the line that may not be there.
FORBIDDEN = {
    "perdure/effects/base.py": "import workflows",
    "perdure/contracts/base.py": "import perdure.settings",
    "perdure/policy/hazards.py": "import sqlalchemy",
    "workflows/__init__.py": "import perdure.store",
    "activities/__init__.py": "import workflows",
    "perdure/rules/base.py": "import temporalio",
    "perdure/workspace/__init__.py": "import perdure.effects.registry",
    "perdure/api/__init__.py": "import perdure.effects.base",
    "perdure/cli/__init__.py": "import perdure.client",
    "perdure/runtime/__init__.py": "import perdure.rules.base",
    "perdure/settings.py": "import perdure.cli",
}


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tracked rooms, to be broken."""
    folder = tmp_path_factory.mktemp("house")
    for path in tracked_files():
        if path.suffix == ".py" and path.parts[0] in ("perdure", "workflows", "activities"):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / path, folder / path)
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def lint_imports(folder: Path) -> tuple[int, str]:
    """Run import-linter on ``folder``; its exit code and output."""
    code = (
        "import sys; sys.path.insert(0, '.'); from importlinter.cli import lint_imports_command; lint_imports_command()"
    )
    ended = subprocess.run(
        [sys.executable, "-P", "-c", code, "--no-logo", "--no-cache"], cwd=folder, capture_output=True, text=True
    )
    return ended.returncode, ended.stdout + ended.stderr


def test_house_keeps_its_rules(copy: Path) -> None:
    """The tree as it stands breaks no contract."""
    code, output = lint_imports(copy)
    assert (code, "0 broken" in output) == (0, True), output


def test_every_rule_can_be_broken(copy: Path) -> None:
    """Each contract of pyproject.toml notices the import that it forbids: all of them break at once."""
    originals = {name: (copy / name).read_text() for name in FORBIDDEN}
    try:
        for name, line in FORBIDDEN.items():
            (copy / name).write_text(originals[name] + f"\n{line}\n")
        code, output = lint_imports(copy)
    finally:
        for name, text in originals.items():
            (copy / name).write_text(text)
    contracts = tomllib.loads(text_of(Path("pyproject.toml")))["tool"]["importlinter"]["contracts"]
    assert code == 1, output
    assert sorted(re.findall(r"^(.*?) BROKEN", output, re.MULTILINE)) == sorted(c["name"] for c in contracts), output


def test_every_room_stands_under_a_rule() -> None:
    """A new room of the library or of the application is named in some contract as a source."""
    contracts = tomllib.loads(text_of(Path("pyproject.toml")))["tool"]["importlinter"]["contracts"]
    named = [c.get("source_modules", []) + c.get("protected_modules", []) for c in contracts if c["id"] != "library"]
    sources = {name for names in named for name in names}
    rooms = {".".join(path.parts[:2]) for path in tracked_files() if path.parts[0] == "perdure" and len(path.parts) > 2}
    # Test kits and shipped data may use every room.
    assert rooms - sources - {"perdure.testing"} == set()
