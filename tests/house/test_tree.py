"""The tree as a stranger clones it: what is named in it, what its commands are, what its lock holds."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.house.kit import ROOT, text_of, tracked_files

# Written in pieces: the test is a tracked file too.
REGISTRY_HOSTS = ["pypi" + ".org", "python" + "hosted", "registry." + "npmjs", "deb." + "debian", "proxy." + "golang"]
MACHINE_PATHS = ["/" + "work/", "../" + "shared", "/root/" + ".pyenv"]


def test_no_tracked_file_names_a_registry_or_a_machine() -> None:
    """Which package index a machine uses is its own business: no tracked file names one, nor a path of one machine."""
    found = [
        f"{path}: {word}"
        for path in tracked_files()
        for word in REGISTRY_HOSTS + MACHINE_PATHS
        if word in text_of(path)
    ]
    assert found == []


def test_lock_has_a_hash_for_every_package_and_no_address() -> None:
    """requirements.lock pins every package by hash and holds no URL and no index option."""
    lock = text_of(Path("requirements.lock"))
    assert "://" not in lock
    blocks = re.split(r"\n(?=\S)", lock.strip())
    assert len(blocks) > 40
    for block in blocks:
        assert re.match(r"[a-z0-9._-]+==\S+", block), block
        assert "--hash=sha256:" in block, block


def test_lock_holds_what_the_project_asks_for() -> None:
    """Each dependency of pyproject.toml is in the lock, in a version that satisfies it."""
    project = tomllib.loads(text_of(Path("pyproject.toml")))["project"]
    pins = dict(re.findall(r"^([a-z0-9._-]+)==([^\s;]+)", text_of(Path("requirements.lock")), re.MULTILINE))
    wanted = [Requirement(line) for line in project["dependencies"] + project["optional-dependencies"]["dev"]]
    assert len(wanted) > 20
    for requirement in wanted:
        version = pins.get(canonicalize_name(requirement.name))
        assert version and requirement.specifier.contains(version), f"{requirement}: locked is {version}"


def test_changelog_tells_of_the_version_that_is_built() -> None:
    """The version in pyproject.toml has a section in CHANGELOG.md, or its changes are under Unreleased."""
    version = tomllib.loads(text_of(Path("pyproject.toml")))["project"]["version"]
    assert re.search(rf"^## \[({re.escape(version)}|Unreleased)\]", text_of(Path("CHANGELOG.md")), re.MULTILINE)


def test_every_make_command_that_is_told_exists() -> None:
    """Each `make …` in README, CONTRIBUTING and docs is a target of the Makefile; README has demo and test."""
    targets = set(re.findall(r"^([a-z-]+):", text_of(Path("Makefile")), re.MULTILINE))
    told = {
        (str(path), name)
        for path in tracked_files()
        if path.suffix == ".md"
        for name in re.findall(r"(?:`|^|\s)make ([a-z-]+)", _commands_in(text_of(path)))
    }
    assert {("README.md", "demo"), ("README.md", "test")} <= told
    assert [entry for entry in told if entry[1] not in targets] == []


def test_ci_runs_the_test_command_of_the_readme() -> None:
    """.ci/run is executable and ends in `make test`, so that CI and a stranger run the same."""
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    assert text_of(Path(".ci/run")).rstrip().splitlines()[-1] == "exec make test"


def test_every_link_in_the_documents_leads_somewhere() -> None:
    """A relative link in a document names a file or folder of the tree."""
    broken = [
        f"{path}: {target}"
        for path in tracked_files()
        if path.suffix == ".md"
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text_of(path))
        if "://" not in target and not (ROOT / path.parent / target).exists()
    ]
    assert broken == []


def _commands_in(text: str) -> str:
    """Code spans and code blocks only: prose may say that one can make things."""
    return "\n".join(re.findall(r"```.*?```|`[^`\n]+`", text, re.DOTALL))
