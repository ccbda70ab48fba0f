"""Draft and checks on a private copy: the version and the changelog change, nothing else, and a lost fact is red."""

from pathlib import Path
from typing import Any

import pytest

from perdure.errors import StageFailed, UserError
from perdure.rules.registry import default_rules
from perdure.store.blobs import BlobStore
from tests.rules.kit import ReleaseRun, make_repository, save, tag
from tests.support.repositories import git, make_project


def test_the_draft_changes_version_and_changelog_and_nothing_else(tmp_path: Path) -> None:
    """A whole release of a real repository: two files change, both checks pass, the checkout is untouched."""
    project = make_project(tmp_path)
    run = ReleaseRun(project.path, tmp_path)
    space = run.draft()
    changed = [change.path for change in space.changes(BlobStore(tmp_path / "blobs"))]
    assert changed == ["CHANGELOG.md", "pyproject.toml"]
    assert space.read("pyproject.toml") == b'[project]\nname = "orders"\nversion = "1.3.0"  # kept\n'
    assert b"## [Unreleased]\n\n## [1.3.0] - 2026-11-30\n\n### Added\n\n- bulk import (" in (
        space.read("CHANGELOG.md") or b""
    )
    for name in ("release.check_version", "release.check_entries"):
        result = run.check(name, space)
        assert result.status == "ok", result.summary
    assert git(project.path, "status", "--porcelain") == ""


def test_the_release_commit_is_not_in_the_next_release(tmp_path: Path) -> None:
    """After the drafted commit is tagged, there is nothing to release: the release commit is no entry."""
    project = make_project(tmp_path)
    space = ReleaseRun(project.path, tmp_path).draft()
    for name in ("CHANGELOG.md", "pyproject.toml"):
        (project.path / name).write_bytes(space.read(name) or b"")
    save(project.path, "chore(release): 1.3.0")
    tag(project.path, "v1.3.0")
    assert ReleaseRun(project.path, tmp_path / "next").propose()["entries"] == []
    save(project.path, "chore(release): 1.3.0")
    assert ReleaseRun(project.path, tmp_path / "again").propose()["entries"] == []


def test_every_kind_of_version_file_is_written(tmp_path: Path) -> None:
    """All version files of the package's folder say the new version; those of other folders stay."""
    files = {
        "app/pyproject.toml": '[project]\nname = "app"\nversion = "1.2.0"\n',
        "app/package.json": '{"name": "app", "version": "1.2.0"}',
        "app/package-lock.json": '{"name": "app", "version": "1.2.0", "packages": {"": {"version": "1.2.0"}}}',
        "app/Cargo.toml": '[package]\nname = "app"\nversion = "1.2.0"\n',
        "app/VERSION": "1.2.0\n",
        "VERSION": "1.2.0\n",
    }
    path = make_repository(tmp_path)
    save(path, "feat: a", files)
    tag(path, "v1.2.0")
    save(path, "feat: b", {"app/b": "1"})
    run = ReleaseRun(path, tmp_path, {"path": "app"})
    space = run.draft()
    for name, text in files.items():
        wanted = text if name == "VERSION" else text.replace("1.2.0", "1.3.0")
        assert space.read(name) == wanted.encode(), name
    assert space.read("app/CHANGELOG.md") and space.read("CHANGELOG.md") is None
    assert run.check("release.check_version", space).status == "ok"


def test_a_placeholder_is_left_as_it_is(tmp_path: Path) -> None:
    """0.0.0 in a project with releases is a placeholder: not written, and said."""
    path = make_repository(tmp_path)
    save(path, "feat: a", {"package.json": '{"version": "0.0.0-development"}'})
    tag(path, "v1.2.0")
    save(path, "feat: b")
    run = ReleaseRun(path, tmp_path)
    space = run.draft()
    assert space.read("package.json") == b'{"version": "0.0.0-development"}'
    assert any("a placeholder" in finding for finding in run.findings)
    assert run.check("release.check_version", space).status == "ok"


def test_a_linked_version_file_or_changelog_is_refused(tmp_path: Path) -> None:
    """A symbolic link in the place of a file that would be written stops the release."""
    for name, rule in (("VERSION", "release.version_files"), ("CHANGELOG.md", "release.change_files")):
        path = make_repository(tmp_path, name=rule)
        (path / name).symlink_to("../outside")
        save(path, "feat: a")
        with pytest.raises(UserError, match=f"{name} is a symbolic link"):
            ReleaseRun(path, tmp_path).run(rule, {"repo": {"path": str(path)}})


def test_files_are_read_from_the_commit_not_from_the_checkout(tmp_path: Path) -> None:
    """What lies in the work tree is no source: the base commit's objects are."""
    project = make_project(tmp_path)
    (project.path / "VERSION").write_text("9.9.9\n")
    (project.path / "CHANGES.md").write_text("## [9.9.9]\n")
    gathered = ReleaseRun(project.path, tmp_path).gather()
    assert [file["path"] for file in gathered["files"]["files"]] == ["pyproject.toml"]
    assert gathered["notes"]["changelog"]["path"] == "CHANGELOG.md"


def reword(run: ReleaseRun, space: Any, old: str, new: str) -> str:
    """Change the drafted changelog as a wording step would; return what the check says (empty: passed)."""
    text = (space.read("CHANGELOG.md") or b"").decode()
    assert old in text
    space.write("CHANGELOG.md", text.replace(old, new).encode())
    result = run.check("release.check_entries", space)
    return "" if result.status == "ok" else result.summary


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("bulk import", "Orders can be imported in bulk", ""),
        ("- bulk import", "- A paragraph\n  over two lines about bulk import", ""),
        ("- bulk import", "- Also this.\n- bulk import", "Section 'Added' has 2 items; expected 1"),
        ("### Added", "### Removed", "Section 'Added' has 0 items"),
        ("**Breaking:** ", "", "no longer says that it is breaking"),
        ("## [2.0.0]", "## [2.0.1]", "has no section for 2.0.0"),
    ],
)
def test_wording_may_change_and_facts_may_not(tmp_path: Path, old: str, new: str, said: str) -> None:
    """Rewording is fine; an entry invented, moved, or no longer breaking is red, and so is a lost section."""
    project = make_project(tmp_path)
    save(project.path, "refactor!: drop v1")
    run = ReleaseRun(project.path, tmp_path)
    space = run.draft()
    found = reword(run, space, old, new)
    assert (said in found) if said else found == ""


def test_a_source_that_was_dropped_from_its_line_is_red(tmp_path: Path) -> None:
    """An entry is known by its commit: without it nobody can tell what a line stands for."""
    project = make_project(tmp_path)
    run = ReleaseRun(project.path, tmp_path)
    space = run.draft()
    source = run.results["analyze"]["release"]["entries"][0]["id"]
    assert f"No item of 'Fixed' names {source}" in reword(run, space, f" ({source})", "")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            '[project]\nname = "orders"\nversion = "9.9.9"\n',
            "pyproject.toml says 9.9.9 (project.version); expected 1.3.0",
        ),
        ('[project]\nname = "orders"\n', "in other places than before"),
    ],
)
def test_a_version_file_that_says_something_else_is_red(tmp_path: Path, text: str, said: str) -> None:
    """A draft whose file says a third version, or none, does not pass."""
    run = ReleaseRun(make_project(tmp_path).path, tmp_path)
    space = run.draft()
    space.write("pyproject.toml", text.encode())
    result = run.check("release.check_version", space)
    assert result.status == "failed" and said in result.summary


def test_a_version_that_became_illegal_is_red(tmp_path: Path) -> None:
    """The check judges the version again, whatever the analysis said."""
    run = ReleaseRun(make_project(tmp_path).path, tmp_path)
    space = run.draft()
    run.results["gather"]["history"]["tags"].append("v1.3.0")
    result = run.check("release.check_version", space)
    assert result.status == "failed" and "exists already" in result.summary


def test_steps_say_what_they_miss(tmp_path: Path) -> None:
    """A step without its source or its workspace names what is missing."""
    run = ReleaseRun(make_project(tmp_path).path, tmp_path)
    space = run.draft()
    with pytest.raises(StageFailed, match="needs a workspace"):
        run.run("release.write_versions", {"version": "1.3.0"})
    run.results["gather"] = {}
    with pytest.raises(UserError, match=r"'release\.version_files'.*no gather step"):
        run.run("release.write_versions", {"version": "1.3.0"}, space)


def test_every_rule_declares_what_it_takes() -> None:
    """The registry names each rule after itself, with its class and a line for the reference."""
    rules = default_rules()
    assert all(name == rule.name and rule.about for name, rule in rules.items())
    assert {rule.rule_class for rule in rules.values()} == {"source", "analysis", "draft", "check"}
