"""Workspaces of every kind: which packages are found, by which tags, and what a release writes in each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.rules.kit import make_repository, save, tag
from tests.rules.packages_kit import NPM, NPM_TAGS, Files, PackagesRun, make_workspace, manifest, texts, versions

CARGO: Files = {
    "Cargo.toml": '[workspace]\nmembers = ["crates/*"]\nexclude = ["crates/old"]\n\n'
    '[workspace.dependencies]\ncore = { path = "crates/core", version = "0.2" } # all use it\n',
    "crates/core/Cargo.toml": '[package]\nname = "core"\nversion = "0.2.0"\n',
    "crates/cli/Cargo.toml": '[package]\nname = "cli"\nversion = "1.4.0"\n\n[dependencies]\ncore.workspace = true\n',
    "crates/net/Cargo.toml": '[package]\nname = "net"\nversion = "0.1.0"\n\n'
    '[dependencies]\ncore = { version = "=0.2.0", path = "../core", features = ["a"] }\n',
    "crates/test/Cargo.toml": '[package]\nname = "test"\nversion = "0.0.0"\npublish = false\n\n'
    '[dev-dependencies]\ncore = { path = "../core" }\n',
    "crates/old/Cargo.toml": '[package]\nname = "old"\nversion = "9.0.0"\n',
    "Cargo.lock": 'version = 4\n\n[[package]]\nname = "cli"\nversion = "1.4.0"\n\n[[package]]\nname = "core"\n'
    'version = "0.2.0"\n\n[[package]]\nname = "net"\nversion = "0.1.0"\n\n[[package]]\nname = "rand"\n'
    'version = "0.2.0"\nsource = "registry+https://example.org"\n',
}


def test_a_cargo_workspace(tmp_path: Path) -> None:
    """Members by glob, without what is excluded; inherited and exact requirements follow, and the lock's entries."""
    path = make_workspace(tmp_path, CARGO, "core-v0.2.0", "cli-v1.4.0", "net-v0.1.0")
    save(path, "feat(core)!: drop v1", {"crates/core/src/lib.rs": "1"})
    run = PackagesRun(path, tmp_path)
    changed = run.changed(run.draft())
    release = run.results["analyze"]["release"]
    assert versions(release) == {"core": "0.3.0", "cli": "1.4.1", "net": "0.1.1"}
    assert changed["Cargo.toml"] == CARGO["Cargo.toml"].replace('version = "0.2"', 'version = "0.3"')
    assert 'core = { version = "=0.3.0", path = "../core", features = ["a"] }' in changed["crates/net/Cargo.toml"]
    assert changed["Cargo.lock"] == CARGO["Cargo.lock"].replace('"1.4.0"', '"1.4.1"').replace(
        'name = "core"\nversion = "0.2.0"', 'name = "core"\nversion = "0.3.0"'
    ).replace('"0.1.0"', '"0.1.1"')
    assert "Left out, private: test." in run.findings


def test_crates_that_inherit_their_version_move_as_one(tmp_path: Path) -> None:
    """One version, one tag, one place; a crate without changes of its own says that it moves with the others."""
    files = {
        "Cargo.toml": '[workspace]\nmembers = ["a", "b"]\n\n[workspace.package]\nversion = "1.0.0"\n',
        "a/Cargo.toml": '[package]\nname = "a"\nversion.workspace = true\n',
        "b/Cargo.toml": '[package]\nname = "b"\nversion.workspace = true\n\n'
        '[dependencies]\na = { path = "../a", version = "1" }\n',
        "Cargo.lock": '[[package]]\nname = "a"\nversion = "1.0.0"\n\n[[package]]\nname = "b"\nversion = "1.0.0"\n',
        "CHANGELOG.md": "# Changelog\n\n## [1.0.0] - 2026-01-01\n\n- All.\n",
    }
    path = make_workspace(tmp_path, files, "v1.0.0")
    save(path, "feat(a): a flag", {"a/src/lib.rs": "1"})
    run = PackagesRun(path, tmp_path)
    changed = run.changed(run.draft())
    release = run.results["analyze"]["release"]
    assert versions(release) == {"a": "1.1.0", "b": "1.1.0"}
    assert [(tag["name"], tag["packages"]) for tag in release["tags"]] == [("v1.1.0", ["a", "b"])]
    assert texts(release, "b") == ["released together with the other packages of its version"]
    assert set(changed) == {"Cargo.toml", "Cargo.lock", "CHANGELOG.md"}
    assert changed["Cargo.lock"].count('version = "1.1.0"') == 2
    assert "**a:** a flag" in changed["CHANGELOG.md"]


def test_uv_and_plain_python_projects(tmp_path: Path) -> None:
    """PEP 440 versions, PEP 508 requirements with extras and markers, dependency groups, uv's lock file."""
    files = {
        "pyproject.toml": '[tool.uv.workspace]\nmembers = ["packages/*"]\nexclude = ["packages/x"]\n',
        "packages/core/pyproject.toml": '[project]\nname = "My.Core"\nversion = "1.2.0"\n',
        "packages/app/pyproject.toml": '[project]\nname = "app"\nversion = "2.0"\n'
        "dependencies = [\n  \"my_core[fast]>=1.2,<2; python_version > '3'\",  # pinned\n  'click',\n]\n\n"
        '[dependency-groups]\ndev = ["my-core==1.2.*"]\n',
        "packages/x/pyproject.toml": '[project]\nname = "x"\nversion = "1.0"\n',
        "uv.lock": '[[package]]\nname = "my-core"\nversion = "1.2.0"\nsource = { editable = "packages/core" }\n',
    }
    path = make_workspace(tmp_path, files, "my-core-v1.2.0", "app-v2.0")
    save(path, "feat!: drop v1", {"packages/core/core.py": "1"})
    run = PackagesRun(path, tmp_path)
    changed = run.changed(run.draft())
    assert versions(run.results["analyze"]["release"]) == {"my-core": "2.0.0", "app": "2.0.1"}
    assert changed["packages/app/pyproject.toml"] == files["packages/app/pyproject.toml"].replace(
        'version = "2.0"', 'version = "2.0.1"'
    ).replace(">=1.2,<2;", ">=2.0,<3;").replace("==1.2.*", "==2.0.*")
    assert 'version = "2.0.0"' in changed["uv.lock"]


def test_poetry_projects_that_nothing_lists(tmp_path: Path) -> None:
    """Without a workspace file the usual folders are looked at, and that is said; a path dependency binds nobody."""
    core = '[tool.poetry]\nname = "core"\nversion = "1.0.0"\n'
    needs = '[tool.poetry.dependencies]\npython = "^3.11"\ncore = {0}\n'
    files = {
        "libs/core/pyproject.toml": core,
        "libs/app/pyproject.toml": core.replace("core", "app") + needs.format('{version = "^1.0", optional = true}'),
        "libs/dev/pyproject.toml": core.replace("core", "dev") + needs.format('{path = "../core", develop = true}'),
    }
    path = make_workspace(tmp_path, files, "core@1.0.0", "app@1.0.0", "dev@1.0.0")
    save(path, "feat!: drop v1", {"libs/core/core.py": "1"})
    run = PackagesRun(path, tmp_path)
    changed = run.changed(run.draft())
    assert versions(run.results["analyze"]["release"]) == {"core": "2.0.0", "app": "1.0.1"}
    assert 'core = {version = "^2.0", optional = true}' in changed["libs/app/pyproject.toml"]
    assert any(finding.startswith("No workspace file names packages") for finding in run.findings)


def test_go_modules_in_folders(tmp_path: Path) -> None:
    """Tags are the folder's, the root module's are plain; nothing is written but changelogs, and nobody follows."""
    files = {
        "go.mod": "module example.org/mono\n\ngo 1.22\n",
        "log/go.mod": "module example.org/mono/log\n",
        "http/go.mod": "module example.org/mono/http\n\nrequire example.org/mono/log v0.1.0\n",
    }
    path = make_workspace(tmp_path, files, "v1.0.0", "log/v0.1.0", "http/v0.3.0")
    save(path, "feat(log)!: drop v1", {"log/log.go": "1"})
    save(path, "fix: a crash", {"main.go": "1"})
    run = PackagesRun(path, tmp_path)
    changed = run.changed(run.draft())
    release = run.results["analyze"]["release"]
    assert sorted(tag["name"] for tag in release["tags"]) == ["log/v0.2.0", "v1.0.1"]
    assert sorted(changed) == ["CHANGELOG.md", "log/CHANGELOG.md"]


def test_lerna_with_one_version(tmp_path: Path) -> None:
    """In fixed mode lerna.json and all packages take the one version, under one tag; ranges between them are raised."""
    files = {
        "package.json": '{"private": true}',
        "lerna.json": '{"version": "3.1.0", "packages": ["modules/*"]}\n',
        "modules/a/package.json": manifest("a", "3.1.0"),
        "modules/b/package.json": manifest("b", "3.1.0", dependencies={"a": "^3.1.0"}),
    }
    path = make_workspace(tmp_path, files, "v3.1.0")
    save(path, "fix: a crash", {"modules/a/a.js": "1"})
    run = PackagesRun(path, tmp_path)
    changed = run.changed(run.draft())
    assert versions(run.results["analyze"]["release"]) == {"a": "3.1.1", "b": "3.1.1"}
    assert run.results["analyze"]["release"]["refs"] == ["refs/heads/main", "refs/tags/v3.1.1"]
    assert '"version": "3.1.1"' in changed["lerna.json"] and '"a": "^3.1.1"' in changed["modules/b/package.json"]


def test_npm_and_pnpm_lock_files_follow(tmp_path: Path) -> None:
    """What lock files repeat of the members, versions and ranges, is written with them; nothing else moves."""
    lock = {
        "name": "root",
        "lockfileVersion": 3,
        "packages": {
            "": {"name": "root", "workspaces": ["packages/*"]},
            "node_modules/@x/core": {"resolved": "packages/core", "link": True},
            "node_modules/left": {"version": "9.0.0", "dependencies": {"@x/core": "^1.0.0"}},
            "packages/app": {"name": "@x/app", "version": "1.0.0", "dependencies": {"@x/core": "^1.0.0"}},
            "packages/core": {"name": "@x/core", "version": "1.0.0"},
        },
    }
    pnpm = (
        "lockfileVersion: '9.0'\n\nimporters:\n\n  .: {}\n\n  packages/app:\n    dependencies:\n      '@x/core':\n"
        "        specifier: ^1.0.0\n        version: link:../core\n      left:\n        specifier: ^9.0.0\n"
        "        version: 9.0.0\n\npackages:\n\n  left@9.0.0:\n    resolution: {integrity: x}\n"
    )
    more = {
        "package-lock.json": json.dumps(lock, indent=2) + "\n",
        "pnpm-lock.yaml": pnpm,
        "yarn.lock": "__metadata:\n",
    }
    path = make_workspace(tmp_path, {**NPM, **more}, *NPM_TAGS)
    save(path, "feat(core)!: drop v1", {"packages/core/a.js": "1"})
    run = PackagesRun(path, tmp_path)
    changed = run.changed(run.draft())
    packages: dict[str, Any] = json.loads(changed["package-lock.json"])["packages"]
    assert packages["packages/app"]["dependencies"] == {"@x/core": "^2.0.0"}
    assert (packages["packages/app"]["version"], packages["packages/core"]["version"]) == ("1.0.1", "2.0.0")
    assert packages["node_modules/left"] == lock["packages"]["node_modules/left"]  # type: ignore[index]
    assert changed["pnpm-lock.yaml"] == pnpm.replace("specifier: ^1.0.0", "specifier: ^2.0.0")
    assert any(finding.startswith("yarn.lock repeats ranges") for finding in run.findings)


def test_pnpm_names_packages_and_takes_some_away(tmp_path: Path) -> None:
    """Globs over folders, both depths, and what a `!` takes away; workspace: ranges count as what is published."""
    files = {
        "package.json": '{"private": true}',
        "pnpm-workspace.yaml": "packages:\n  - 'packages/**'\n  - '!**/fixtures/**'\n",
        "packages/core/package.json": manifest("core"),
        "packages/group/app/package.json": manifest(
            "app", dependencies={"core": "workspace:^"}, devDependencies={"exact": "workspace:*"}
        ),
        "packages/exact/package.json": manifest("exact", dependencies={"core": "workspace:*"}),
        "packages/core/fixtures/one/package.json": manifest("one"),
    }
    path = make_workspace(tmp_path, files, "core@1.0.0", "app@1.0.0", "exact@1.0.0")
    save(path, "fix: a crash", {"packages/core/a.js": "1"})
    run = PackagesRun(path, tmp_path)
    changed = run.changed(run.draft())
    assert versions(run.results["analyze"]["release"]) == {"core": "1.0.1", "exact": "1.0.1"}
    assert '"core": "workspace:*"' in changed["packages/exact/package.json"]
    assert "packages/group/app/package.json" not in changed


@pytest.mark.parametrize("braced", ["{libs/*,tools/cli}", "{libs,tools}/{core,c*}"])
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pnpm-workspace.yaml", "packages: ['%s']\n"),
        ("lerna.json", '{"version": "independent", "packages": ["%s"]}'),
    ],
)
def test_braces_name_one_of_several(tmp_path: Path, name: str, text: str, braced: str) -> None:
    """`{a,b}` in a workspace's globs is either, with stars in it or beside it; what neither names is no package."""
    files = {
        "package.json": '{"private": true}',
        name: text % braced,
        "libs/core/package.json": manifest("core"),
        "tools/cli/package.json": manifest("cli"),
        "tools/other/package.json": manifest("other"),
    }
    gathered = PackagesRun(make_workspace(tmp_path, files, "core@1.0.0", "cli@1.0.0"), tmp_path).gather()
    assert sorted(one["name"] for one in gathered["packages"]) == ["cli", "core"]


def test_changesets_fixed_and_linked_packages(tmp_path: Path) -> None:
    """Fixed packages always move as one under tags of their own; linked ones only when they are released."""
    files = {
        "package.json": '{"workspaces": ["p/*"], "private": true}',
        ".changeset/config.json": '{"fixed": [["f-*"]], "linked": [["l1", "l2", "l3"]]}',
        **{f"p/{name}/package.json": manifest(name) for name in ("f-a", "f-b", "l1", "l2", "l3")},
        "p/l3/package.json": manifest("l3", "4.0.0"),
        ".changeset/a.md": "---\nf-a: minor\nl1: patch\n---\nOne.\n",
        ".changeset/b.md": "---\nl2: major\n---\nTwo.\n",
    }
    path = make_repository(tmp_path)
    save(path, "begin", files)
    tag(path, *(f"{name}@1.0.0" for name in ("f-a", "f-b", "l1", "l2", "l3")))
    release = PackagesRun(path, tmp_path).propose()
    assert versions(release) == {"f-a": "1.1.0", "f-b": "1.1.0", "l1": "5.0.0", "l2": "5.0.0"}, "above l3, which waits"
    assert len(release["tags"]) == 4


def test_one_package_owns_the_plain_tags(tmp_path: Path) -> None:
    """Where plain tags name one package's version and the others have tags of their own, each keeps its form."""
    path = make_workspace(
        tmp_path, {**NPM, "packages/core/package.json": manifest("@x/core", "4.2.0")}, "v4.2.0", *NPM_TAGS[1:]
    )
    save(path, "fix: a crash", {"packages/core/a.js": "1", "packages/tool/a.js": "1"})
    run = PackagesRun(path, tmp_path)
    assert sorted(tag["name"] for tag in run.propose()["tags"]) == ["@x/tool@1.0.1", "v4.2.1"]
    assert "Tags of the form 'v{version}' name the versions of @x/core." in run.findings
