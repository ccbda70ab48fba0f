"""Change files: the strongest evidence, each with its own step, taken over by the release and removed with it."""

from pathlib import Path
from typing import Any

import pytest

from perdure.workspace.copies import open_draft
from perdure.workspace.git import open_repository
from tests.rules.kit import ReleaseRun, make_repository, save, tag

PACKAGE = '{"name": "app", "version": "1.2.0"}'


def project(tmp_path: Path, files: dict[str, str | bytes]) -> Path:
    """A released project with change files written since, and a commit that says something else."""
    path = make_repository(tmp_path)
    save(path, "feat: begin", {"package.json": PACKAGE, "CHANGELOG.md": "# Changelog\n\n## 1.2.0\n\n- x\n"})
    tag(path, "v1.2.0")
    save(path, "fix: something in passing", files)
    return path


def told(release: dict[str, Any]) -> list[tuple[str, str, str]]:
    """(section, text, step) of the proposed entries."""
    return [(entry["section"], entry["text"], entry["bump"]) for entry in release["entries"]]


@pytest.mark.parametrize(
    ("name", "text", "entry", "version"),
    [
        ("news/12.feature.rst", "Bulk import.\n", ("Added", "Bulk import. (#12)", "minor"), "1.3.0"),
        ("news/12.bugfix.1.md", "Said once (#12).", ("Fixed", "Said once (#12).", "patch"), "1.2.1"),
        ("newsfragments/+odd.misc", "", None, "1.2.1"),
        ("newsfragments/12.misc", "", ("Other", "#12", "patch"), "1.2.1"),
        ("changelog.d/+x.removal.md", "No v1.", ("Removed", "No v1.", "major"), "2.0.0"),
        ("changelog.d/mine.md", "### Added\n\n- One\n  more.\n", ("Added", "One\nmore.", "minor"), "1.3.0"),
        (
            "changelog.d/mine.md",  # which is removed, so that the definition goes with the entry
            "### Added\n\n- One [#1]\n[#1]: https://x.org/1\n",
            ("Added", "One [#1]\n[#1]: https://x.org/1", "minor"),
            "1.3.0",
        ),
        (
            ".changeset/odd-cats.md",
            '---\n"app": minor\n---\n\nBulk import.\n',
            ("Added", "Bulk import.", "minor"),
            "1.3.0",
        ),
        (".changeset/odd-cats.md", "---\r\napp: major\r\n---\r\nNo v1.\r\n", ("Changed", "No v1.", "major"), "2.0.0"),
    ],
)
def test_each_kind_of_change_file_is_read(
    tmp_path: Path, name: str, text: str, entry: tuple[str, str, str] | None, version: str
) -> None:
    """News fragments, fragments with sections and changesets give entries with section and step; commits yield."""
    run = ReleaseRun(project(tmp_path, {name: text}), tmp_path)
    release = run.propose()
    assert release["version"] == version
    if entry is None:
        assert f"{name} is left alone: it cannot be read as a change file." in run.findings
        return
    assert told(release) == [entry]
    assert release["entries"][0]["sources"] == [f"{name} (change file)"]
    assert any("change files are written by hand" in finding and "in passing" in finding for finding in run.findings)


def test_the_draft_removes_what_it_takes_over(tmp_path: Path) -> None:
    """Consumed files go with the release's section; what is no change file, and what could not be read, stays."""
    files: dict[str, str | bytes] = {
        "news/1.feature.md": "Bulk import.",
        "news/README.md": "How to write news.",
        "news/template.rst": "{{ x }}",
        "news/2026-announcement.md": "# We are here\n\n- hello\n",
        ".changeset/config.json": "{}",
        ".changeset/README.md": "How to.",
        ".changeset/broken.md": "no front matter",
    }
    run = ReleaseRun(project(tmp_path, files), tmp_path)
    space = run.draft()
    assert space.read("news/1.feature.md") is None
    assert all(space.read(name) is not None for name in files if name != "news/1.feature.md")
    assert b"- Bulk import. (#1)" in (space.read("CHANGELOG.md") or b"")
    assert run.check("release.check_entries", space).status == "ok"


def test_change_files_and_unreleased_are_taken_over_together(tmp_path: Path) -> None:
    """Both are written by hand, and the draft empties both: neither is lost."""
    path = project(
        tmp_path, {"news/1.bugfix": "A fix.", "CHANGELOG.md": "# C\n\n## [Unreleased]\n\n### Added\n\n- New.\n"}
    )
    assert told(ReleaseRun(path, tmp_path).propose()) == [("Fixed", "A fix. (#1)", "patch"), ("Added", "New.", "minor")]


def test_a_changeset_about_other_packages_waits_for_theirs(tmp_path: Path) -> None:
    """Only this package's line counts, and a file that others need as well is not removed."""
    files: dict[str, str | bytes] = {
        ".changeset/ours.md": '---\n"app": patch\n---\n\nOurs.\n',
        ".changeset/both.md": '---\n"app": minor\n"@scope/other": major\n---\n\nBoth.\n',
        ".changeset/theirs.md": '---\n"@scope/other": major\n---\n\nTheirs.\n',
        ".changeset/none.md": "---\n---\n\nNothing.\n",
    }
    release = ReleaseRun(project(tmp_path, files), tmp_path).propose()
    assert sorted(text for _, text, _ in told(release)) == ["Both.", "Ours."]
    assert (release["version"], release["consumed"]) == ("1.3.0", [".changeset/none.md", ".changeset/ours.md"])


def test_towncriers_own_folder_is_found(tmp_path: Path) -> None:
    """The folder that pyproject.toml names for fragments is read instead of the usual ones."""
    files: dict[str, str | bytes] = {
        "pyproject.toml": '[project]\nname = "app"\nversion = "1.2.0"\n\n[tool.towncrier]\ndirectory = "doc/next/"\n',
        "doc/next/7.feature.rst": "Found.",
        "news/8.removal.rst": "Of a web site.",
    }
    assert told(ReleaseRun(project(tmp_path, files), tmp_path).propose()) == [("Added", "Found. (#7)", "minor")]


def test_nothing_is_removed_where_no_changelog_is_written(tmp_path: Path) -> None:
    """Where the changelog is not extended, the change files are all that tells of the changes: they stay."""
    path = project(tmp_path, {"news/1.bugfix": "A fix."})
    run = ReleaseRun(path, tmp_path)
    release = run.propose()
    release["changelog"]["format"] = "unsupported"
    space = open_draft(open_repository(path), release["base"], tmp_path / "draft")
    run.run("release.write_changelog", {"release": release}, space)
    assert space.read("news/1.bugfix") == b"A fix."
