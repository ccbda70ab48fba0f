"""Which files of a repository say the package's version, and which of them a release writes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from perdure.errors import UserError
from perdure.rules.release.files.gather import FILES
from perdure.workspace.copies import open_draft
from perdure.workspace.git import open_repository
from tests.rules.kit import ReleaseRun, make_repository, save, tag

DYNAMIC = '[project]\nname = "orders"\ndynamic = ["version"]\n'


def gather(tmp_path: Path, files: Mapping[str, str], **arguments: Any) -> tuple[dict[str, list[str]], dict[str, Any]]:
    """Gather from a repository with these files; return ({path: places to write}, {value and findings})."""
    path = make_repository(tmp_path)
    save(path, "feat: a", files)
    run = ReleaseRun(path, tmp_path)
    value = run.run(FILES, {"repo": {"path": str(path)}, **arguments}).value
    written = {file["path"]: [place["where"] for place in file["places"]] for file in value["files"] if file["places"]}
    return written, {**value, "findings": run.findings}


def release(tmp_path: Path, files: Mapping[str, str], **inputs: str) -> tuple[dict[str, str], list[str]]:
    """Release 1.3.0 over 1.2.0 of a repository with these files; return what changed, and the findings."""
    path = make_repository(tmp_path)
    save(path, "feat: a", files)
    tag(path, "v1.2.0")
    save(path, "feat: b", {f"{inputs.get('path', '.')}/new": "1"})
    run = ReleaseRun(path, tmp_path, dict(inputs))
    space = run.draft()
    assert run.check("release.check_version", space).status == "ok"
    after = {name: (space.read(name) or b"").decode() for name in files}
    return {name: text for name, text in after.items() if text != files[name]}, run.findings


@pytest.mark.parametrize(
    ("settings", "path"),
    [
        ('[tool.hatch.version]\npath = "orders/__about__.py"\n', "orders/__about__.py"),
        ('[tool.pdm.version]\nsource = "file"\npath = "src/orders/version.py"\n', "src/orders/version.py"),
        ('[tool.setuptools.dynamic]\nversion = {attr = "orders.__version__"}\n', "src/orders/__init__.py"),
        ('[tool.setuptools.dynamic]\nversion = {attr = "orders.__version__"}\n', "orders.py"),
        ('[build-system]\nbuild-backend = "flit_core.buildapi"\n', "orders/__init__.py"),
    ],
)
def test_a_dynamic_version_is_written_where_the_build_reads_it(tmp_path: Path, settings: str, path: str) -> None:
    """The module that the build points at says the version, before any other file."""
    files = {"pyproject.toml": DYNAMIC + settings, path: '__version__ = "1.2.0"\n', "Chart.yaml": "version: 0.1.0\n"}
    written, value = gather(tmp_path, files)
    assert written[path] == ["__version__"] and value["version"] == "1.2.0" and value["package"] == "orders"


def test_a_file_that_setuptools_reads_is_the_version(tmp_path: Path) -> None:
    """``file:`` in setup.cfg points at a file that holds the version alone."""
    files = {"setup.cfg": "[metadata]\nname = orders\nversion = file: src/ORDERS\n", "src/ORDERS": "1.2.0\n"}
    assert gather(tmp_path, files)[0] == {"src/ORDERS": ["the whole file"]}


def test_modules_follow_while_they_say_the_same(tmp_path: Path) -> None:
    """``__version__`` is written where it says what the manifest says; another version stays and is named."""
    files = {
        "pyproject.toml": '[project]\nname = "orders"\nversion = "1.2.0"\n[tool.commitizen]\nversion = "1.2.0"\n',
        "src/orders/__init__.py": '__version__ = "1.2.0"\nversion = "1.2.0"\n',
        "src/vendored/__init__.py": '__version__ = "3.1.0"\n',
        "src/orders/deep/__init__.py": '__version__ = "1.2.0"\n',
    }
    changed, findings = release(tmp_path, files)
    assert changed == {
        "pyproject.toml": files["pyproject.toml"].replace("1.2.0", "1.3.0"),
        "src/orders/__init__.py": '__version__ = "1.3.0"\nversion = "1.2.0"\n',
    }
    assert "src/vendored/__init__.py says 3.1.0 (__version__), not 1.2.0: it is left." in findings
    assert any("src/orders/__init__.py:2, src/orders/deep/__init__.py:1" in finding for finding in findings)


def test_without_a_manifest_repetitions_must_agree(tmp_path: Path) -> None:
    """Modules alone say the version when all say the same; otherwise nothing is written, and each is named."""
    same = {"a/__init__.py": '__version__ = "1.2.0"\n', "b/_version.py": 'version = "1.2.0"\n'}
    written, value = gather(tmp_path / "same", same)
    assert value["version"] == "1.2.0" and set(written) == set(same)
    written, value = gather(tmp_path / "other", {**same, "c/__init__.py": '__version__ = "9.0.0"\n'})
    assert written == {} and value["version"] == "" and len(value["findings"]) == 3


def test_a_cargo_workspace_moves_as_one(tmp_path: Path) -> None:
    """The shared version, members of the same version, what they ask of each other and the lock are written."""
    entry = '[[package]]\nname = "{}"\nversion = "{}"\n'
    lock = "".join(
        entry.format(*facts) for facts in [("a", "1.2.0"), ("b", "1.2.0"), ("c", "0.3.0"), ("root", "1.2.0")]
    )
    lock += entry.format("dep", "1.2.0") + 'source = "registry"\n'
    files = {
        "Cargo.toml": '[workspace]\nmembers = ["crates/*"]\nexclude = ["crates/x"]\n'
        '[workspace.package]\nversion = "1.2.0"\n'
        '[package]\nname = "root"\nversion.workspace = true\n',
        "crates/a/Cargo.toml": '[package]\nname = "a"\nversion.workspace = true\n',
        "crates/b/Cargo.toml": '[package]\nname = "b"\nversion = "1.2.0"\n'
        '[dependencies]\ndep = "1.2.0"\na = { path = "../a", version = "=1.2.0" }\n'
        'x = { path = "../x", version = "1.2.0" }\n[target.t.dev-dependencies]\n'
        'r = { version = "^1.2.0", path = "../..", package = "root" }\nc = { version = "1.2.0", path = "../c" }\n',
        "crates/c/Cargo.toml": '[package]\nname = "c"\nversion = "0.3.0"\n',
        "crates/x/Cargo.toml": '[package]\nname = "x"\nversion = "1.2.0"\n',
        "Cargo.lock": lock,
    }
    changed, findings = release(tmp_path, files)
    assert changed == {
        "Cargo.toml": files["Cargo.toml"].replace("1.2.0", "1.3.0"),
        "crates/b/Cargo.toml": files["crates/b/Cargo.toml"]
        .replace('"b"\nversion = "1.2.0"', '"b"\nversion = "1.3.0"')
        .replace("=1.2.0", "=1.3.0")
        .replace("^1.2.0", "^1.3.0"),
        "Cargo.lock": lock.replace('"1.2.0"', '"1.3.0"', 3).replace(
            '"dep"\nversion = "1.3.0"', '"dep"\nversion = "1.2.0"'
        ),
    }
    assert any("crates/b/Cargo.toml:5,7,10" in finding for finding in findings)


WORKSPACE = {
    "Cargo.toml": '[workspace]\nmembers = ["a", "b"]\n',
    "a/Cargo.toml": '[package]\nname = "a"\nversion = "1.2.0"\n',
    "setup.py": "setup(version='0.0.0')\n",
}


@pytest.mark.parametrize(("version", "moves"), [("1.2.0", True), ("0.3.0", False)])
def test_a_workspace_without_a_version_of_its_own_moves_what_was_released(
    tmp_path: Path, version: str, moves: bool
) -> None:
    """Members that say the last release's version move, with their lock entries; a placeholder decides nothing."""
    files = {
        **WORKSPACE,
        "b/Cargo.toml": f'[package]\nname = "b"\nversion = "{version}"\n',
        "Cargo.lock": f'[[package]]\nname = "a"\nversion = "1.2.0"\n[[package]]\nname = "b"\nversion = "{version}"\n',
    }
    changed, findings = release(tmp_path, files)
    wanted = {name: text.replace("1.2.0", "1.3.0") for name, text in files.items() if "1.2.0" in text}
    assert changed == wanted and ("b/Cargo.toml" in changed) == moves
    assert [finding for finding in findings if "b/Cargo.toml" in finding] == []


def test_one_package_of_a_workspace_reaches_its_entry_in_the_lock_above(tmp_path: Path) -> None:
    """Lock files at the root name a package by its folder or its name: that entry is written and no other."""
    npm = (
        '{"version": "9.0.0", "packages": {"": {"version": "9.0.0"}, "packages/app": {"version": "1.2.0"}, '
        '"packages/other": {"version": "1.2.0"}}}'
    )
    entry = '[[package]]\nname = "{0}"\nversion = "1.2.0"\nsource = {{ editable = "packages/{0}" }}\n'
    files = {
        "packages/app/package.json": '{"name": "app", "version": "1.2.0"}',
        "packages/app/pyproject.toml": '[project]\nname = "app"\nversion = "1.2.0"\n',
        "packages/app/Cargo.toml": '[package]\nname = "app"\nversion = "1.2.0"\n',
        "packages/other/pyproject.toml": '[project]\nname = "other"\nversion = "1.2.0"\n',
        "package-lock.json": npm,
        "uv.lock": entry.format("app") + entry.format("other"),
        "Cargo.lock": '[[package]]\nname = "app"\nversion = "1.2.0"\n[[package]]\nname = "other"\nversion = "1.2.0"\n',
    }
    changed, _ = release(tmp_path, files, path="packages/app")
    wanted = {name: files[name].replace("1.2.0", "1.3.0", 1) for name in files if "other" not in name}
    assert changed == wanted


def test_maven_modules_follow_their_parent(tmp_path: Path) -> None:
    """Modules name the parent's version: it is written in each, however deep; a foreign parent's stays."""
    parent = "<parent><groupId>g</groupId><artifactId>{}</artifactId><version>1.2.0</version></parent>"
    files = {
        "pom.xml": "<project><groupId>g</groupId><artifactId>root</artifactId><version>1.2.0</version>"
        "<modules><module>a</module><module>f</module></modules></project>",
        "a/pom.xml": f"<project>{parent.format('root')}<artifactId>a</artifactId>"
        "<modules><module>b</module></modules><dependencies><dependency><version>1.2.0</version></dependency>"
        "</dependencies></project>",
        "a/b/pom.xml": f"<project>{parent.format('a')}<artifactId>b</artifactId><version>1.2.0</version></project>",
        "f/pom.xml": f"<project>{parent.format('foreign')}<artifactId>f</artifactId><version>1.2.0</version></project>",
        "unlisted/pom.xml": f"<project>{parent.format('root')}</project>",
    }
    changed, _ = release(tmp_path, files)
    assert changed == {
        "pom.xml": files["pom.xml"].replace("1.2.0", "1.3.0"),
        "a/pom.xml": files["a/pom.xml"].replace("1.2.0", "1.3.0", 1),
        "a/b/pom.xml": files["a/b/pom.xml"].replace("1.2.0", "1.3.0"),
        "f/pom.xml": files["f/pom.xml"].replace(
            "<version>1.2.0</version></project>", "<version>1.3.0</version></project>"
        ),
    }


def test_a_gem_is_written_with_its_constant_and_its_lock(tmp_path: Path) -> None:
    """A gemspec that reads VERSION leaves the writing to the constant; the gem's own lock line follows."""
    files = {
        "orders.gemspec": 'Gem::Specification.new do |s|\n  s.name = "orders"\n  s.version = Orders::VERSION\nend\n',
        "lib/orders/version.rb": 'module Orders\n  VERSION = "1.2.0"\nend\n',
        "Gemfile.lock": "PATH\n  remote: .\n  specs:\n    orders (1.2.0)\n\nGEM\n  specs:\n    a (1.2.0)\n",
    }
    changed, _ = release(tmp_path, files)
    assert changed == {
        "lib/orders/version.rb": files["lib/orders/version.rb"].replace("1.2.0", "1.3.0"),
        "Gemfile.lock": files["Gemfile.lock"].replace("orders (1.2.0)", "orders (1.3.0)"),
    }


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (
            {"package.json": '{"version": "1.2.0"}', "yarn.lock": ""},
            "yarn.lock does not hold",
        ),
        ({"package.json": '{"version": "1.2.0"}', "pnpm-lock.yaml": ""}, "pnpm-lock.yaml does not hold"),
        ({"pyproject.toml": '[project]\nversion = "1.2.0"\n', "poetry.lock": ""}, "poetry.lock does not hold"),
        ({"composer.json": '{"version": "1.2.0"}', "composer.lock": "{}"}, "composer update --lock"),
        ({"go.mod": "module x\n"}, "Go modules take their version from the tag"),
    ],
)
def test_what_holds_no_version_of_its_own_is_said(tmp_path: Path, files: dict[str, str], said: str) -> None:
    """The reviewer need not look for a version where none is."""
    assert any(said in finding for finding in gather(tmp_path, files)[1]["findings"])


def test_declared_places_are_written_and_nothing_else_in_the_file(tmp_path: Path) -> None:
    """A text with {version} names places in any file: where it says the whole current version."""
    text = "orders==1.2.0\norders==1.1.0\norders==1.2.0.1\norders==1.2.0-rc.1\nother==1.2.0\nrun orders==1.2.0.\n"
    files = {"VERSION": "1.2.0", "README": text}
    path = make_repository(tmp_path)
    save(path, "feat: a", files)
    run = ReleaseRun(path, tmp_path)
    release = run.propose()
    gathered = run.run(FILES, {"repo": {"path": str(path)}, "also": ["README: orders=={version}"]})
    run.results["gather"]["files"] = gathered.value
    space = open_draft(open_repository(path), release["base"], tmp_path / "draft")
    run.run("release.write_versions", {"version": "2.0.0"}, space)
    assert (space.read("README") or b"").decode() == (
        "orders==2.0.0\norders==1.1.0\norders==1.2.0.1\norders==1.2.0-rc.1\nother==1.2.0\nrun orders==2.0.0.\n"
    )


@pytest.mark.parametrize(
    ("also", "said"),
    [
        ("README orders", "names no place"),
        ("README: orders", "names no place"),
        ("README: {version}", "names no place"),
        ("../README: orders=={version}", "leaves the package"),
        ("NONE: orders=={version}", "there is no such file"),
        ("README: other=={version}", "that text is not there"),
        ("README: old=={version}", "it says 1.1.0 there"),
    ],
)
def test_a_declared_place_that_is_none_stops_the_release(tmp_path: Path, also: str, said: str) -> None:
    """A typing error in a declaration is an error, not a version that is forgotten in silence."""
    with pytest.raises(UserError, match=said):
        gather(tmp_path, {"VERSION": "1.2.0", "README": "orders==1.2.0 old==1.1.0"}, also=[also])


def test_declared_places_may_be_all_that_says_the_version(tmp_path: Path) -> None:
    """Where tags alone name the version, a declared place is written when all of it says the same."""
    also = {"also": ["README: orders@v{version}"]}
    written, _ = gather(tmp_path / "one", {"go.mod": "module o\n", "README": "orders@v1.2.0 orders@v1.2.0"}, **also)
    assert written == {"README": ["orders@v{version}", "orders@v{version} (2)"]}
    with pytest.raises(UserError, match="finds no version"):
        gather(tmp_path / "two", {"README": "orders@v1.2.0 orders@v1.1.0"}, **also)


def test_a_second_manifest_with_a_version_of_its_own_is_left_and_said(tmp_path: Path) -> None:
    """A private package.json of another version is not the package's: it stays, and the reviewer is told."""
    files = {"pyproject.toml": '[project]\nversion = "1.2.0"\n', "package.json": '{"version": "0.4.0"}'}
    changed, findings = release(tmp_path, files)
    assert list(changed) == ["pyproject.toml"]
    assert "package.json says 0.4.0, not 1.2.0: it is left as it is." in findings


def test_a_manifest_that_was_forgotten_catches_up(tmp_path: Path) -> None:
    """The first manifest is the package's, and one that says the last release's version is too."""
    files = {"pyproject.toml": '[project]\nversion = "1.1.0"\n', "package.json": '{"version": "1.2.0"}'}
    assert set(release(tmp_path, files)[0]) == set(files)


def test_files_that_still_say_the_old_version_are_named(tmp_path: Path) -> None:
    """Every text file that holds the old version is named with its lines; changelogs, locks and binaries are not."""
    files = {
        "VERSION": "1.2.0\n",
        "README.md": "a\nv1.2.0 and 1.2.0\n1.2.0\n11.2.0 1.2.01 1.2.0-rc.1 1.2.0.4\n",
        "docs/conf": "release = '1.2.0'",
        "CHANGELOG.md": "## 1.2.0\n",
        "x.lock": "1.2.0",
        "node_modules/a": "1.2.0",
        "binary": "\0 1.2.0",
    }
    _, findings = release(tmp_path, files)
    assert "These still say 1.2.0 and were not written: README.md:2,3, docs/conf:1." in findings
