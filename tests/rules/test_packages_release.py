"""Several packages in one plan: what counts for whom, who follows whom, what is written and what is left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from perdure.contracts.decisions import Edits
from perdure.errors import UserError
from tests.rules.kit import ReleaseRun, make_repository, save, tag
from tests.rules.packages_kit import NPM, NPM_TAGS, PackagesRun, make_workspace, manifest, texts, versions
from tests.support.repositories import git


def begin(folder: Path) -> Path:
    """The npm workspace after its first releases."""
    return make_workspace(folder, NPM, *NPM_TAGS)


def test_each_package_has_its_own_version_and_tag(tmp_path: Path) -> None:
    """A commit counts for the package that it changes; the others are left out, and that is said."""
    path = begin(tmp_path)
    save(path, "feat(core): a flag", {"packages/core/a.js": "1"})
    save(path, "fix(tool): a crash", {"packages/tool/a.js": "1"})
    run = PackagesRun(path, tmp_path)
    release = run.propose()
    assert versions(release) == {"@x/core": "1.1.0", "@x/tool": "1.0.1"}
    assert [tag["name"] for tag in release["tags"]] == ["@x/core@1.1.0", "@x/tool@1.0.1"]
    assert [tag["id"] for tag in release["tags"]] == ["core", "tool"]
    assert release["refs"] == ["refs/heads/main", "refs/tags/@x/core@1.1.0", "refs/tags/@x/tool@1.0.1"]
    assert release["title"] == "@x/core 1.0.0 → 1.1.0, @x/tool 1.0.0 → 1.0.1"
    assert release["message"] == "chore(release): @x/core 1.1.0, @x/tool 1.0.1"
    assert "Left out, nothing to release: @x/app." in run.findings
    assert "Left out, private: site." in run.findings


def test_a_first_release_reads_its_own_folder(tmp_path: Path) -> None:
    """Of a package without a release only commits beneath its folder are read, however long the history is: also those
    of a branch whose work was overwritten; beside it every package keeps the range since its own release.
    """
    path = make_repository(tmp_path)
    save(path, "feat: begin", {**NPM, "packages/n/package.json": manifest("n", "0.1.0")})
    elsewhere = save(path, "feat(n): in the root", {"README": "1"})[:7]
    git(path, "checkout", "-qb", "side")
    save(path, "feat(n): on a branch", {"packages/n/a.js": "1"})
    git(path, "checkout", "-q", "main")
    save(path, "fix(n): on main", {"packages/n/a.js": "2"})
    git(path, "merge", "-q", "-s", "ours", "-m", "merge side", "side")
    tag(path, *NPM_TAGS)
    save(path, "fix(core): a crash", {"packages/core/a.js": "1"})
    run = PackagesRun(path, tmp_path)
    release = run.propose()
    assert versions(release) == {"n": "0.1.0", "@x/core": "1.0.1"}
    assert {"on a branch", "on main"} <= set(texts(release, "n")) and texts(release, "@x/core") == ["a crash"]
    assert not any(elsewhere in one for one in run.findings)


def test_path_and_scope_are_both_shown(tmp_path: Path) -> None:
    """The path decides; where the scope says something else, or a commit is in two packages, the plan shows it."""
    path = begin(tmp_path)
    both = save(path, "feat(core): a flag", {"packages/core/a.js": "1"})[:7]
    bare = save(path, "fix: a crash", {"packages/core/b.js": "1", "packages/tool/b.js": "1"})[:7]
    against = save(path, "fix(app): lies in core", {"packages/core/c.js": "1"})[:7]
    root = save(path, "feat(tool): in the root", {"README": "1"})[:7]
    run = PackagesRun(path, tmp_path)
    release = run.propose()
    assert texts(release, "@x/core") == ["lies in core", "a crash", "a flag"]
    assert texts(release, "@x/tool") == ["a crash"]
    assert [
        f"@x/core (packages/core): by path and scope {both}; by path {bare}; "
        f"by path, against its scope {against} fix(app): lies in core.",
        f"@x/tool (packages/tool): by path {bare}.",
        f"Not listed for @x/tool, because they change nothing in packages/tool: {root} feat(tool): in the root.",
        f"Commits that change several packages count for each: {bare} for @x/core, @x/tool.",
    ] == run.findings[:4]


def test_a_dependant_follows_when_its_range_is_left(tmp_path: Path) -> None:
    """A new major version gives its dependant a patch with an entry of its own; ranges are rewritten, nothing else."""
    path = begin(tmp_path)
    save(path, "feat(core)!: drop v1", {"packages/core/a.js": "1"})
    run = PackagesRun(path, tmp_path)
    space = run.draft()
    release = run.results["analyze"]["release"]
    assert versions(release) == {"@x/core": "2.0.0", "@x/app": "1.0.1"}
    assert texts(release, "@x/app") == ["depends on @x/core 2.0.0"]
    [entry] = release["packages"][1]["entries"]
    assert (entry["sources"], entry["bump"]) == (["@x/core 2.0.0"], "patch")
    changed = run.changed(space)
    assert changed["packages/app/package.json"] == NPM["packages/app/package.json"].replace(
        '"version": "1.0.0"', '"version": "1.0.1"'
    ).replace('"@x/core": "^1.0.0"', '"@x/core": "^2.0.0"')
    assert changed["packages/tool/package.json"] == NPM["packages/tool/package.json"].replace("^1.0.0", "^2.0.0")
    assert "depends on @x/core 2.0.0" in changed["packages/app/CHANGELOG.md"]
    assert "packages/site/package.json" not in changed, "1.0.1 meets ^1.0.0"
    assert (
        "packages/tool/package.json asks for @x/core ^1.0.0: that becomes ^2.0.0 without a release of @x/tool "
        "(it is a development dependency)."
    ) in run.findings


def test_a_range_that_is_still_met_releases_nobody(tmp_path: Path) -> None:
    """A minor version leaves a caret range alone; of a dependant that is released anyway the range is raised."""
    path = begin(tmp_path)
    save(path, "feat(core): a flag", {"packages/core/a.js": "1"})
    assert PackagesRun(path, tmp_path).propose()["ranges"] == []
    save(path, "fix(app): use it", {"packages/app/a.js": "1"})
    run = PackagesRun(path, tmp_path)
    assert '"@x/core": "^1.1.0"' in run.changed(run.draft())["packages/app/package.json"]
    assert versions(run.results["analyze"]["release"]) == {"@x/core": "1.1.0", "@x/app": "1.0.1"}


def test_a_left_peer_dependency_is_breaking(tmp_path: Path) -> None:
    """Who must bring the new version along has to change something: the dependant's version is a major one."""
    files = {**NPM, "packages/app/package.json": manifest("@x/app", peerDependencies={"@x/core": "^1.0.0"})}
    path = make_workspace(tmp_path, files, *NPM_TAGS)
    save(path, "feat(core)!: drop v1", {"packages/core/a.js": "1"})
    assert versions(PackagesRun(path, tmp_path).propose()) == {"@x/core": "2.0.0", "@x/app": "2.0.0"}


def test_packages_in_a_circle_are_settled(tmp_path: Path) -> None:
    """Packages that need each other follow each other once, and the plan says that they do."""
    files = {
        "package.json": '{"private": true, "workspaces": ["p/*"]}',
        "p/a/package.json": manifest("a", dependencies={"b": "1.0.0"}),
        "p/b/package.json": manifest("b", dependencies={"c": "workspace:*"}),
        "p/c/package.json": manifest("c", dependencies={"a": "1.0.0"}),
    }
    path = make_workspace(tmp_path, files, "a@1.0.0", "b@1.0.0", "c@1.0.0")
    save(path, "fix(b): a crash", {"p/b/a.js": "1"})
    run = PackagesRun(path, tmp_path)
    changed = run.changed(run.draft())
    assert set(versions(run.results["analyze"]["release"]).values()) == {"1.0.1"}
    assert '"b": "1.0.1"' in changed["p/a/package.json"] and '"c": "workspace:*"' in changed["p/b/package.json"]
    assert "a and b and c need each other: they are settled together." in run.findings


def test_changesets_alone_decide_where_they_are_used(tmp_path: Path) -> None:
    """With .changeset/config.json a package is released when a changeset names it; files about released ones go."""
    config = '{"fixed": [], "ignore": ["@x/tool"]}'
    path = make_workspace(tmp_path, {**NPM, ".changeset/config.json": config}, *NPM_TAGS)
    save(path, "feat(tool): not told", {"packages/tool/a.js": "1"})
    save(path, "feat(app): not told", {"packages/app/a.js": "1"})
    save(
        path,
        "feat: told",
        {
            "packages/core/a.js": "1",
            ".changeset/one.md": '---\n"@x/core": minor\n---\n\nA flag.\n',
            ".changeset/two.md": '---\n"@x/core": patch\n"@x/tool": patch\n---\n\nA crash.\n',
        },
    )
    run = PackagesRun(path, tmp_path)
    changed = run.changed(run.draft())
    release = run.results["analyze"]["release"]
    assert versions(release) == {"@x/core": "1.1.0"}
    assert texts(release, "@x/core") == ["A flag.", "A crash."]
    assert changed[".changeset/one.md"] == "" and ".changeset/two.md" not in changed, "its other package waits"
    assert "@x/app: no changeset names it, so it is not released for itself (1 commit since @x/app@1.0.0)." in (
        run.findings
    )
    assert "Left out, ignored by .changeset/config.json: @x/tool." in run.findings


def with_changesets(folder: Path, config: str, **more: str) -> Path:
    """The npm workspace under changesets, with one that mends core."""
    path = make_workspace(folder, {**NPM, ".changeset/config.json": config}, *NPM_TAGS)
    save(path, "fix: told", {".changeset/one.md": '---\n"@x/core": patch\n---\n\nA crash.\n', **more})
    return path


def test_dependants_always_follow_where_the_project_says_so(tmp_path: Path) -> None:
    """Changesets' own option releases a dependant although its range is met; the entry says why."""
    options = '{"___experimental": {"updateInternalDependents": "always"}}'
    release = PackagesRun(with_changesets(tmp_path, options), tmp_path).propose()
    assert versions(release) == {"@x/core": "1.0.1", "@x/app": "1.0.1"}
    assert "here dependants always follow" in release["packages"][1]["entries"][0]["reason"]


def test_changesets_number_by_the_manifest(tmp_path: Path) -> None:
    """A release that nobody tagged is still a release there: the next version is above the manifest's."""
    path = with_changesets(tmp_path, '{"ignore": []}')
    save(path, "Version Packages", {"packages/core/package.json": manifest("@x/core", "1.4.0")})
    assert versions(PackagesRun(path, tmp_path).propose()) == {"@x/core": "1.4.1"}


def test_changesets_in_pre_mode_are_refused(tmp_path: Path) -> None:
    """Files that wait for a final version would be lost: the way out is named, for a single package too."""
    path = with_changesets(tmp_path, '{"ignore": []}', **{".changeset/pre.json": '{"mode": "pre", "tag": "next"}'})
    with pytest.raises(UserError, match=r"pre mode \(pre\), which is not supported\. Leave it"):
        PackagesRun(path, tmp_path).propose()
    with pytest.raises(UserError, match="`changeset pre exit`"):
        ReleaseRun(path, tmp_path, {"tag": "@x/core@{version}", "path": "packages/core"}).propose()


def test_leaving_changesets_pre_mode_releases_all_that_waited(tmp_path: Path) -> None:
    """From pre-releases in the manifests to final versions above the last one; the mode ends with the last one."""
    pre = '{"mode": "exit", "tag": "next", "initialVersions": {"@x/core": "1.0.0"}, "changesets": ["one"]}'
    path = with_changesets(tmp_path, '{"ignore": []}', **{".changeset/pre.json": pre})
    core = {"packages/core/package.json": manifest("@x/core", "1.1.0-next.1")}
    save(path, "new", {**core, ".changeset/two.md": '---\n"@x/core": minor\n---\n\nImport.\n'})
    release = PackagesRun(path, tmp_path).propose()
    assert versions(release)["@x/core"] == "1.1.0"
    assert release["consumed"] == [".changeset/one.md", ".changeset/pre.json", ".changeset/two.md"]
    save(path, "theirs", {".changeset/app.md": '---\n"@x/app": patch\n---\n\nApp.\n'})
    part = PackagesRun(path, tmp_path, {"only": ["@x/core"]}).propose()
    assert part["consumed"] == [".changeset/one.md", ".changeset/two.md"], "the app's still waits"


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        ({"versions": ["core=3.0.0"]}, {"@x/core": "3.0.0", "@x/app": "1.0.1"}),
        ({"only": ["@x/core"]}, {"@x/core": "2.0.0"}),
        ({"pre": "rc"}, {"@x/core": "2.0.0-rc.1", "@x/app": "1.0.1-rc.1"}),
        ({"scheme": "always-patch"}, {"@x/core": "1.0.1"}),
    ],
)
def test_inputs_choose(tmp_path: Path, inputs: dict[str, Any], expected: dict[str, str]) -> None:
    """Versions by package, a choice of packages, pre-releases and another scheme."""
    path = begin(tmp_path)
    save(path, "feat(core)!: drop v1", {"packages/core/a.js": "1"})
    assert versions(PackagesRun(path, tmp_path, inputs).propose()) == expected


@pytest.mark.parametrize(
    ("inputs", "says"),
    [
        ({"versions": ["core=0.9.0"]}, "@x/core: Version 0.9.0 is not above the last release 1.0.0"),
        ({"versions": ["cor=2.0.0"]}, "Known packages: @x/app, @x/core"),
        ({"versions": ["2.0.0"]}, "is not of the form PACKAGE=VERSION"),
        ({"only": ["cor"]}, "only='cor' is no package"),
        ({"packages": ["libs/*"]}, "No packages were found"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, inputs: dict[str, Any], says: str) -> None:
    """A version that breaks a rule is refused with its package, an unknown name with those that there are."""
    path = begin(tmp_path)
    save(path, "feat(core): a flag", {"packages/core/a.js": "1"})
    with pytest.raises(UserError) as caught:
        PackagesRun(path, tmp_path, inputs).propose()
    assert says in caught.value.message


def test_a_tag_that_is_taken_is_refused_with_its_package(tmp_path: Path) -> None:
    """A package's next tag that exists elsewhere stops the plan, and says how to choose another version."""
    path = begin(tmp_path)
    save(path, "fix(core): a crash", {"packages/core/a.js": "1"})
    run = PackagesRun(path, tmp_path)
    run.gather()
    run.results["gather"]["workspace"]["tags"].append("@x/core@1.0.1")
    with pytest.raises(UserError, match=r"@x/core: The tag @x/core@1\.0\.1 exists already.*versions="):
        run.run("release.propose_packages", {"from": run.results["gather"]})


def test_a_reviewer_names_the_package(tmp_path: Path) -> None:
    """Versions are chosen by package; an entry of two has two ids; what follows can be reworded, not dropped."""
    path = begin(tmp_path)
    shared = save(path, "fix: a crash", {"packages/core/a.js": "1", "packages/app/a.js": "1"})[:7]
    edits = [
        Edits(
            by="rhea",
            changes={
                "version": {"core": "2.0.0"},
                "entries": [
                    {"op": "reword", "id": f"{shared}:core", "text": "A crash is gone"},
                    {"op": "drop", "id": shared},
                    {"op": "drop", "id": f"{shared}:app"},
                    {"op": "add", "package": "@x/tool", "section": "Security", "text": "By hand"},
                    {"op": "add", "section": "Security", "text": "Of nobody"},
                ],
            },
        )
    ]
    run = PackagesRun(path, tmp_path, edits=edits)
    release = run.propose()
    assert versions(release) == {"@x/core": "2.0.0", "@x/app": "1.0.1", "@x/tool": "1.0.1"}
    assert texts(release, "@x/core") == ["A crash is gone"]
    assert texts(release, "@x/app") == ["depends on @x/core 2.0.0"]
    assert texts(release, "@x/tool") == ["By hand"]
    assert any(f"drop of entry '{shared}' by rhea was skipped" in one for one in run.findings)
    assert any("names no package (None)" in one for one in run.findings)
    ids = [entry["id"] for entry in release["entries"]]
    assert len(set(ids)) == len(ids)
    follows = next(name for name in ids if name.startswith("d-"))
    more = [
        {"op": "reword", "id": follows, "text": "needs the new core"},
        {"op": "drop", "id": follows},
    ]
    again = PackagesRun(path, tmp_path, edits=[*edits, Edits(by="rhea", changes={"entries": more})])
    assert texts(again.propose(), "@x/app") == ["needs the new core"]
    assert any("it is not dropped" in one for one in again.findings)


def test_nothing_to_release_is_said(tmp_path: Path) -> None:
    """Without a change that users notice no package is released and no ref is named."""
    path = begin(tmp_path)
    save(path, "docs: words", {"packages/core/README": "1"})
    release = PackagesRun(path, tmp_path).propose()
    assert (release["packages"], release["tags"], release["refs"]) == ([], [], [])


def test_tags_that_name_no_package_are_asked_about(tmp_path: Path) -> None:
    """Where plain version tags stand beside packages of several versions, nobody guesses whose they are."""
    path = make_repository(tmp_path)
    files = {**NPM, "packages/core/package.json": manifest("@x/core", "3.0.0")}
    save(path, "feat: begin", files)
    tag(path, "v1.7.0")
    with pytest.raises(UserError, match=r"none names a package.*tag='v\{version\}'"):
        PackagesRun(path, tmp_path).propose()
    release = PackagesRun(path, tmp_path, {"tag": "{name}@{version}"}).propose()
    assert [tag["name"] for tag in release["tags"]] == ["@x/core@3.0.0", "@x/app@1.0.0", "@x/tool@1.0.0"]


def test_packages_follow_their_own_settings_or_the_root_s(tmp_path: Path) -> None:
    """What a package sets for itself counts for it alone; the others have the root's, and broken ones are named."""
    path = begin(tmp_path)
    rules = '{"releaseRules": [{"type": "feat", "release": "patch"}]}'
    own = {"packages/core/.releaserc": rules, "packages/tool/.releaserc": "{", "cog.toml": ""}
    save(path, "chore: set up", own)
    save(path, "feat(core): a flag", {"packages/core/a.js": "1"})
    save(path, "feature(tool): a crash", {"packages/tool/a.js": "1"})
    run = PackagesRun(path, tmp_path)
    release = run.propose()
    assert versions(release) == {"@x/core": "1.0.1", "@x/tool": "1.0.1"}
    rules_by = {entry["id"][-4:]: entry["rule"] for one in release["packages"] for entry in one["entries"]}
    assert rules_by["core"] == "packages/core/.releaserc: releaseRules[0]"
    assert rules_by["tool"].startswith("cog.toml; cocogitto makes no minor version of it")
    assert any(told.startswith("@x/tool: packages/tool/.releaserc cannot be read") for told in run.findings)
