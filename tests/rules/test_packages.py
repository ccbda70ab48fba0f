"""A package of a monorepo: its commits are known by their path; where a scope says something else, both are shown."""

from pathlib import Path

from tests.rules.kit import ReleaseRun, make_repository, save, tag


def make_packages(tmp_path: Path) -> Path:
    """Two packages, each with a release of its own."""
    path = make_repository(tmp_path)
    save(path, "feat: begin", {"packages/app/VERSION": "1.0.0\n", "packages/core/VERSION": "3.0.0\n"})
    tag(path, "app-v1.0.0", "core-v3.0.0")
    return path


INPUTS = {"path": "packages/app", "tag": "app-v{version}", "remote": ""}


def test_a_package_is_released_by_its_own_tags_and_files(tmp_path: Path) -> None:
    """Other packages' commits and tags do not count."""
    path = make_packages(tmp_path)
    save(path, "fix(app): close the pool", {"packages/app/a.py": "1"})
    save(path, "feat(core)!: drop v1", {"packages/core/a.py": "1"})
    run = ReleaseRun(path, tmp_path, INPUTS)
    release = run.propose()
    assert (release["version"], release["tag"]) == ("1.0.1", "app-v1.0.1")
    assert [entry["text"] for entry in release["entries"]] == ["close the pool"]
    assert run.findings == []


def test_a_scope_that_disagrees_with_the_path_is_shown(tmp_path: Path) -> None:
    """The path decides; what the scope would have added or left out is named with its commit."""
    path = make_packages(tmp_path)
    listed = save(path, "fix(core): a helper that lies here", {"packages/app/b.py": "1"})
    left = save(path, "feat(@scope/app): a flag", {"packages/core/b.py": "1"})
    run = ReleaseRun(path, tmp_path, INPUTS)
    assert [entry["text"] for entry in run.propose()["entries"]] == ["a helper that lies here"]
    assert run.findings == [
        "Not listed, because they change nothing in packages/app, though their scope names it: "
        f"{left[:7]} feat(@scope/app): a flag.",
        "Listed, because they change packages/app, though their scope names another package: "
        f"{listed[:7]} fix(core): a helper that lies here.",
    ]
