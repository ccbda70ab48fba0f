"""After a release by hand, what is still under [Unreleased] and was released is found, left out and named."""

from pathlib import Path

import pytest

from tests.rules.kit import ReleaseRun, make_repository, save, tag

HEAD = "# Changelog\n\n## [Unreleased]\n\n### Added\n\n{waiting}\n\n## [1.1.0] - 2026-10-01\n\n### Added\n\n{listed}\n"


def changelog(waiting: str, listed: str = "- Orders.") -> dict[str, str]:
    """A changelog with these items under [Unreleased] and 1.1.0."""
    return {"CHANGELOG.md": HEAD.format(waiting=waiting, listed=listed)}


def left_out(run: ReleaseRun) -> list[str]:
    """The findings about items that were left out."""
    return [finding for finding in run.findings if finding.startswith("Left out of [Unreleased]")]


def texts(run: ReleaseRun) -> list[str]:
    """Texts of the proposed entries."""
    return [entry["text"] for entry in run.propose()["entries"]]


def test_an_item_that_a_version_lists_is_left_out(tmp_path: Path) -> None:
    """Copied to a version's section and not removed: it is named, not listed again, and gone from the file."""
    path = make_repository(tmp_path)
    listed = "- Import in bulk from files."
    save(path, "feat: begin", changelog("", listed))
    tag(path, "v1.1.0")
    save(path, "docs: words", changelog("- import in bulk  from files\n- Names are escaped.", listed))
    run = ReleaseRun(path, tmp_path)
    space = run.draft()
    assert [entry["text"] for entry in run.results["analyze"]["release"]["entries"]] == ["Names are escaped."]
    assert len(left_out(run)) == 1 and "is listed under 1.1.0 already. It goes from there." in left_out(run)[0]
    written = (space.read("CHANGELOG.md") or b"").decode()
    assert "import in bulk  from files" not in written and written.count("Import in bulk from files.") == 1
    assert run.check("release.check_entries", space).status == "ok"


def test_an_item_that_stood_there_at_the_last_release_is_left_out(tmp_path: Path) -> None:
    """Tagged by hand with a full [Unreleased]: what stood there was released; it is named and stays in the file."""
    path = make_repository(tmp_path)
    save(path, "feat: begin", changelog("- Bulk import."))
    tag(path, "v1.2.0")
    save(path, "fix: x", changelog("- Bulk import.\n- Names are escaped."))
    run = ReleaseRun(path, tmp_path)
    space = run.draft()
    assert [entry["text"] for entry in run.results["analyze"]["release"]["entries"]] == ["Names are escaped."]
    (finding,) = left_out(run)
    assert '"Bulk import." stood there already when v1.2.0 was released.' in finding
    assert finding.endswith("It stays there: move it under 1.2.0.")
    written = (space.read("CHANGELOG.md") or b"").decode()
    assert "## [Unreleased]\n\n### Added\n\n- Bulk import.\n\n## [1.3.0]" in written
    assert run.check("release.check_entries", space).status == "ok"


def test_an_item_whose_commits_are_released_is_left_out(tmp_path: Path) -> None:
    """An item that names commits of the last release is of it; one that names a later one too is not."""
    path = make_repository(tmp_path)
    old = save(path, "feat: begin", changelog(""))
    tag(path, "v1.2.0")
    new = save(path, "feat: more")
    save(path, "docs: changelog", changelog(f"- Bulk import ({old[:8]})\n- Names ({old[:8]}, {new[:8]})\n- Deadbeef1"))
    run = ReleaseRun(path, tmp_path)
    assert len(texts(run)) == 2
    (finding,) = left_out(run)
    assert f"is of {old[:8]}, which is part of v1.2.0" in finding


@pytest.mark.parametrize("version", ["v1.2.0-rc.1", ""])
def test_what_waited_through_a_pre_release_still_waits(tmp_path: Path, version: str) -> None:
    """A candidate by hand, and no release at all, release nothing of what is under [Unreleased]."""
    path = make_repository(tmp_path)
    save(path, "feat: begin", changelog("- Bulk import."))
    if version:
        tag(path, version)
    save(path, "fix: x")
    run = ReleaseRun(path, tmp_path)
    assert texts(run) == ["Bulk import."] and left_out(run) == []


def test_short_items_may_be_true_twice(tmp_path: Path) -> None:
    """ "Update dependencies." in the last section and again under [Unreleased] is a new one when it is new there."""
    path = make_repository(tmp_path)
    save(path, "feat: begin", changelog("", "- Update dependencies."))
    tag(path, "v1.1.0")
    save(path, "build: deps", changelog("- Update dependencies.", "- Update dependencies."))
    run = ReleaseRun(path, tmp_path)
    assert texts(run) == ["Update dependencies."] and left_out(run) == []
