"""What people wrote in a workspace's root, in its changelog or as change files: none of it is lost or written twice."""

from pathlib import Path

from tests.rules.kit import save
from tests.rules.packages_kit import PackagesRun, make_workspace, manifest

EMPTY = "# Changelog\n\n## [Unreleased]\n\n## [3.1.0]\n\n- x\n"
WAITING = "# Changelog\n\n## [Unreleased]\n\n### Changed\n\n- **Breaking:** Written by hand\n\n## [3.1.0]\n\n- x\n"
FIXED_MODE = {
    "package.json": '{"name": "root", "private": true}\n',
    "lerna.json": '{"version": "3.1.0", "packages": ["modules/*"]}\n',
    "modules/a/package.json": manifest("a", "3.1.0"),
    "modules/b/package.json": manifest("b", "3.1.0"),
    "CHANGELOG.md": EMPTY,
}
"""Lerna's fixed mode: one version, one tag, one changelog in a private root."""

PUBLIC_ROOT = {**FIXED_MODE, "package.json": '{"name": "root", "version": "3.1.0", "workspaces": ["modules/*"]}\n'}


def begin(folder: Path, files: dict[str, str], changed: dict[str, str]) -> Path:
    """A workspace after release 3.1.0, with a fix of module a."""
    path = make_workspace(folder, files, "v3.1.0")
    save(path, "fix: a crash", {"modules/a/a.js": "1", **changed})
    return path


def test_words_under_the_roots_unreleased_are_taken_over(tmp_path: Path) -> None:
    """One changelog in the root for packages of one tag: what people wrote there by hand comes into the section."""
    run = PackagesRun(begin(tmp_path, FIXED_MODE, {"CHANGELOG.md": WAITING}), tmp_path)
    changed = run.changed(run.draft())["CHANGELOG.md"]
    pending, section = changed.index("## [Unreleased]"), changed.index("3.1.1")
    assert pending < section < changed.index("- **Breaking:** Written by hand") < changed.index("[3.1.0]")
    assert "crash" in changed and changed.count("Written by hand") == 1
    [entry] = [one for one in run.results["analyze"]["release"]["changelogs"][0]["entries"] if "hand" in one["text"]]
    assert entry["sources"] == ["CHANGELOG.md [Unreleased]"]


def test_a_step_that_the_roots_words_ask_for_is_said(tmp_path: Path) -> None:
    """They name no package and move no version; where they ask for more than what is proposed, the plan says so."""
    run = PackagesRun(begin(tmp_path, FIXED_MODE, {"CHANGELOG.md": WAITING}), tmp_path)
    run.propose()
    assert (
        'Taken over from CHANGELOG.md [Unreleased], without moving the version: "Written by hand". '
        "What is written there asks for a major step: `perdure edit JOB --version a=…` takes it."
    ) in run.findings


def test_the_roots_words_of_an_earlier_release_stay(tmp_path: Path) -> None:
    """An item that stood there when the last release was tagged is not released again: it stays, and is named."""
    run = PackagesRun(begin(tmp_path, {**FIXED_MODE, "CHANGELOG.md": WAITING}, {}), tmp_path)
    changed = run.changed(run.draft())["CHANGELOG.md"]
    assert changed.index("Written by hand") < changed.index("3.1.1") and changed.count("Written by hand") == 1
    assert any("stood there already when v3.1.0 was released. It stays there" in one for one in run.findings)


def test_change_files_of_the_root_stay_and_are_named(tmp_path: Path) -> None:
    """They name no package, so that no release takes them over."""
    run = PackagesRun(begin(tmp_path, FIXED_MODE, {"changelog.d/1.feature.md": "A fragment"}), tmp_path)
    assert "changelog.d/1.feature.md" not in run.changed(run.draft())
    assert "Change files of the root stay, because they name no package: changelog.d/1.feature.md." in run.findings


def test_the_roots_words_stay_where_it_is_not_written(tmp_path: Path) -> None:
    """Where packages have changelogs of their own nobody extends the root's: what waits there is named."""
    files = {**FIXED_MODE, "modules/a/CHANGELOG.md": EMPTY}
    run = PackagesRun(begin(tmp_path, files, {"CHANGELOG.md": WAITING}), tmp_path)
    assert "CHANGELOG.md" not in run.changed(run.draft())
    told = "CHANGELOG.md [Unreleased] stays as it is, because no package is released there"
    assert any(one.startswith(told) and "Written by hand" in one for one in run.findings)


def test_a_package_in_the_root_brings_its_words_once(tmp_path: Path) -> None:
    """A root that is a package itself has them as entries of its own: they are written once and move the version."""
    path = begin(tmp_path, PUBLIC_ROOT, {"CHANGELOG.md": WAITING})
    run = PackagesRun(path, tmp_path, {"tag": "v{version}"})
    changed = run.changed(run.draft())["CHANGELOG.md"]
    assert changed.count("Written by hand") == 1 and "4.0.0" in changed


def test_words_of_a_root_that_waits_wait_with_it(tmp_path: Path) -> None:
    """Where the root is a package that is not asked for, its words stay under [Unreleased]."""
    path = begin(tmp_path, PUBLIC_ROOT, {"CHANGELOG.md": WAITING})
    run = PackagesRun(path, tmp_path, {"tag": "v{version}", "only": ["a", "b"]})
    changed = run.changed(run.draft())["CHANGELOG.md"]
    assert changed.index("Written by hand") < changed.index("3.1.1") and changed.count("Written by hand") == 1
