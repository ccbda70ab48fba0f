"""What a project set for its own release tools: which files and keys are read, and what they say."""

import json
from pathlib import Path

import pytest

from tests.rules.kit import make_repository
from tests.rules.settings_kit import read_settings, steps

RULES = [
    {"breaking": True, "release": "minor"},
    {"type": "docs", "scope": "README", "release": "patch"},
    {"type": "refactor", "release": "patch"},
    {"scope": "no-release", "release": False},
    {"type": "feat", "release": "patch"},
    {"type": "feat", "release": "minor"},
    {"type": "{a,b}", "release": "patch"},
]


def test_semantic_release_s_own_rules_come_before_its_defaults(tmp_path: Path) -> None:
    """The highest of several rules for a kind counts; a rule that looks at more than plain words is named."""
    analyzer = ["@semantic-release/commit-analyzer", {"preset": "conventionalcommits", "releaseRules": RULES}]
    config = {"tagFormat": "app-${version}", "plugins": [analyzer, "@semantic-release/npm"]}
    found = read_settings(tmp_path, {".releaserc.json": json.dumps(config)})
    said = steps(found)
    assert (found.tool, found.file, found.tag) == ("semantic-release", ".releaserc.json", "app-{version}")
    assert (said["breaking"], said["docs(README)"], said["refactor"], said["*(no-release)"]) == (
        "minor",
        "patch",
        "patch",
        "none",
    )
    assert (said["feat"], said["fix"], said["feature"], said["deprecate"]) == ("minor", "patch", "patch", "patch")
    where = ".releaserc.json: plugins.@semantic-release/commit-analyzer.releaseRules"
    assert found.lines["feat"].where == f"{where}[5]"
    assert [told for told in found.findings if "[6] was not read" in told]


@pytest.mark.parametrize(
    ("files", "file"),
    [
        ({"package.json": '{"release": {"branches": ["main"]}}'}, "package.json"),
        ({"package.json": '{"devDependencies": {"semantic-release": "^24"}}'}, "package.json"),
        ({"package.json": '{"scripts": {"release": "npx semantic-release --ci"}}'}, "package.json"),
        ({".releaserc": "branches:\n  - main\nplugins:\n  - '@semantic-release/commit-analyzer'\n"}, ".releaserc"),
        ({".releaserc.yml": "analyzeCommits:\n  preset: angular\n"}, ".releaserc.yml"),
    ],
)
def test_semantic_release_is_found_where_it_is_set_up(tmp_path: Path, files: dict[str, str], file: str) -> None:
    """In package.json, in files of its own as JSON or YAML, or by its mere use: then its own rules count."""
    found = read_settings(tmp_path, dict(files))
    said = steps(found)
    assert (found.tool, found.file) == ("semantic-release", file)
    assert (said["feat"], said["perf"], said["feature"], said["breaking"]) == ("minor", "patch", "patch", "major")


def test_what_is_a_program_is_named_and_never_run(tmp_path: Path) -> None:
    """A configuration in JavaScript says nothing here; that it was not read is said."""
    found = read_settings(tmp_path, {"release.config.js": "throw new Error('run')", ".versionrc.cjs": "throw 1"})
    assert (found.tool, dict(found.lines)) == ("", {})
    assert [told.partition(" was not read: a program")[0] for told in found.findings] == [
        "release.config.js",
        ".versionrc.cjs",
    ]


@pytest.mark.parametrize(
    "config",
    [
        '{"plugins": ["semantic-release-gitmoji"]}',
        '{"preset": "homemade"}',
        '{"releaseRules": "./rules.js"}',
        '{"analyzeCommits": "./analyze.js"}',
    ],
)
def test_what_another_program_decides_is_not_guessed(tmp_path: Path, config: str) -> None:
    """Another analyzer, preset or file of rules: no line is made up, and it is named."""
    found = read_settings(tmp_path, {".releaserc": config})
    assert (dict(found.lines), len(found.findings)) == ({}, 1)
    assert "was not read" in found.findings[0]


def test_commitizen_s_table_is_read(tmp_path: Path) -> None:
    """Its own rules make a patch of refactoring; in 0.x a breaking change is minor where that is set."""
    text = '[tool.commitizen]\nversion = "0.1.0"\ntag_format = "v$version"\nmajor_version_zero = true\n'
    found = read_settings(tmp_path, {"pyproject.toml": text})
    assert (found.tool, found.tag, steps(found)["refactor"], steps(found)["breaking"]) == (
        "commitizen",
        "v{version}",
        "patch",
        "major",
    )
    assert found.lines_at(is_zero=True)["breaking"].where == "pyproject.toml: tool.commitizen.major_version_zero"
    assert steps(found, is_zero=True)["breaking"] == "minor"


@pytest.mark.parametrize("name", [".cz.toml", "cz.json", ".cz.yaml"])
def test_commitizen_s_own_map_is_read_as_words(tmp_path: Path, name: str) -> None:
    """Patterns that list types are understood; one that does more is named and never run."""
    bumps = {"^(new|feat)": "MINOR", "^hotfix": "PATCH", "^break": "MAJOR", "^(a+)+$": "PATCH"}
    config = {"name": "cz_customize", "version": "1.0.0", "customize": {"bump_map": bumps}}
    table = "[tool.commitizen]\nname = 'cz_customize'\nversion = '1.0.0'\n[tool.commitizen.customize.bump_map]\n"
    toml = table + "".join(f"'{key}' = '{step}'\n" for key, step in bumps.items())
    found = read_settings(tmp_path, {name: toml if name.endswith("toml") else json.dumps({"commitizen": config})})
    assert steps(found) == {"new": "minor", "feat": "minor", "hotfix": "patch", "break": "major"}
    assert len(found.findings) == 1
    assert "'^(a+)+$' was not read" in found.findings[0]


def test_python_semantic_release_s_parser_options_are_read(tmp_path: Path) -> None:
    """Tags replace those of the same step; the default level is of the allowed ones besides."""
    text = """
[tool.semantic_release]
commit_parser = "conventional"
major_on_zero = false
tag_format = "{version}"
[tool.semantic_release.commit_parser_options]
minor_tags = ["feat", "add"]
patch_tags = ["fix"]
allowed_tags = ["feat", "fix", "docs", "perf"]
default_bump_level = 2
"""
    found = read_settings(tmp_path, {"pyproject.toml": text})
    said = steps(found, is_zero=True)
    assert (found.tool, found.tag, said["breaking"]) == ("python-semantic-release", "{version}", "minor")
    assert (said["add"], said["fix"], said["docs"], said["perf"]) == ("minor", "patch", "patch", "patch")
    assert found.lines["docs"].where.endswith("commit_parser_options.default_bump_level")


@pytest.mark.parametrize(
    ("text", "kind", "step"),
    [
        ("[semantic_release]\nversion_variable = a.py:__version__\n", "feat", "minor"),
        ("[semantic_release]\nparser_angular_minor_types = feat,new\n", "new", "minor"),
        (
            "[semantic_release]\ncommit_parser = semantic_release.history.angular_parser\n"
            "parser_angular_patch_types = docs\n",
            "docs",
            "patch",
        ),
    ],
)
def test_python_semantic_release_is_read_from_setup_cfg(tmp_path: Path, text: str, kind: str, step: str) -> None:
    """As its version 7 had it, whose lists are one text."""
    assert steps(read_settings(tmp_path, {"setup.cfg": text}))[kind] == step


def test_an_emoji_parser_s_steps_are_those_of_the_kinds_that_its_emojis_name(tmp_path: Path) -> None:
    """A bug's emoji set to minor makes repairs minor; a parser that is not known is named."""
    options = '[tool.semantic_release]\ncommit_parser = "emoji"\n[tool.semantic_release.commit_parser_options]\n'
    found = read_settings(tmp_path / "a", {"pyproject.toml": options + 'minor_tags = [":bug:"]\n'})
    assert steps(found) == {"fix": "minor"}
    other = read_settings(tmp_path / "b", {"pyproject.toml": '[tool.semantic_release]\ncommit_parser = "my:parse"\n'})
    assert (dict(other.lines), "was not read" in other.findings[0]) == ({}, True)


def test_release_please_s_options_are_read(tmp_path: Path) -> None:
    """A package's options stand before those of all; a section that is shown makes a patch."""
    config = {
        "bump-minor-pre-major": True,
        "include-component-in-tag": False,
        "include-v-in-tag": False,
        "changelog-sections": [{"type": "docs", "section": "Docs"}, {"type": "chore", "hidden": True}],
        "packages": {".": {"bump-patch-for-minor-pre-major": True}},
    }
    found = read_settings(tmp_path, {"release-please-config.json": json.dumps(config)})
    assert (found.tool, found.tag, "chore" in found.lines) == ("release-please", "{version}", False)
    assert (steps(found)["docs"], steps(found)["feat"], steps(found)["breaking"]) == ("patch", "minor", "major")
    zero = steps(found, is_zero=True)
    assert (zero["feat"], zero["feature"], zero["breaking"]) == ("patch", "patch", "minor")


def test_release_please_always_bumps_as_it_is_told(tmp_path: Path) -> None:
    """``versioning`` makes every change a patch; one of a package counts for that package."""
    packages = {"libs/a": {"versioning": "always-bump-patch"}, "libs/b": {"versioning": "prerelease"}}
    files: dict[str, str | bytes] = {
        "release-please-config.json": json.dumps({"packages": packages}),
        "libs/a/x": "",
        "libs/b/x": "",
    }
    assert set(steps(read_settings(tmp_path / "a", files, "libs/a")).values()) == {"patch"}
    found = read_settings(tmp_path / "b", files, "libs/b")
    assert (steps(found)["feat"], "'prerelease' was not read" in found.findings[0]) == ("minor", True)


def test_release_please_s_app_is_read(tmp_path: Path) -> None:
    """In .github, in camel case; the sections of a Python project show documentation."""
    text = "releaseType: python\nbumpMinorPreMajor: true\n"
    found = read_settings(tmp_path, {".github/release-please.yml": text})
    assert (found.file, steps(found)["docs"]) == (".github/release-please.yml", "patch")
    assert steps(found, is_zero=True)["breaking"] == "minor"


def test_cocogitto_s_types_are_read(tmp_path: Path) -> None:
    """Types of the project's own move the version as they say; tags have the prefix that is set."""
    text = 'tag_prefix = "v"\n[commit_types]\nperf = { bump_minor = true }\nex = { bump_patch = true }\nno = {}\n'
    found = read_settings(tmp_path, {"cog.toml": text})
    assert (found.tool, found.tag) == ("cocogitto", "v{version}")
    said = steps(found)
    assert (said["perf"], said["ex"], said["feature"], "no" in said) == ("minor", "patch", "patch", False)
    assert found.lines["perf"].where == "cog.toml: commit_types.perf.bump_minor"


@pytest.mark.parametrize(
    "files",
    [
        {".versionrc": '{"types": [{"type": "refactor"}, {"type": "chore", "hidden": true}]}'},
        {"package.json": '{"standard-version": {"types": [{"type": "refactor"}]}}'},
        {"package.json": '{"commit-and-tag-version": {"preMajor": true, "types": [{"type": "refactor"}]}}'},
    ],
)
def test_standard_version_softens_features_in_0_x(tmp_path: Path, files: dict[str, str]) -> None:
    """Below 1.0.0 a feature is a patch to it; a section that is shown is listed, a hidden one is not."""
    found = read_settings(tmp_path, dict(files))
    assert (found.tool, found.tag, steps(found)["refactor"]) == ("standard-version", "v{version}", "patch")
    assert (steps(found)["feat"], steps(found, is_zero=True)["feat"]) == ("minor", "patch")
    assert "chore" not in steps(found)


def test_lerna_decides_by_commits_where_it_is_told_to(tmp_path: Path) -> None:
    """With one version for all packages; independent ones have each their own."""
    config = '{"version": "1.0.0", "command": {"version": {"conventionalCommits": true}}}'
    assert steps(read_settings(tmp_path / "a", {"lerna.json": config}))["feature"] == "patch"
    independent = config.replace("1.0.0", "independent")
    assert read_settings(tmp_path / "b", {"lerna.json": independent}).tool == ""


def test_git_cliff_s_bump_section_and_skipped_types_are_read(tmp_path: Path) -> None:
    """0.x as it is set, own types as words, and what its first matching parser skips."""
    text = """
[bump]
features_always_bump_minor = false
breaking_always_bump_major = false
custom_minor_increment_regex = "^(add|new)"
custom_major_increment_regex = "(.*)+x"
[git]
commit_parsers = [
  { message = "^feat", group = "Features" },
  { message = "^feat\\\\(ci\\\\)", skip = true },
  { message = "^perf", skip = true },
]
"""
    found = read_settings(tmp_path, {"cliff.toml": text})
    assert steps(found) == {"perf": "none", "add": "minor", "new": "minor"}
    assert steps(found, is_zero=True) == {**steps(found), "feat": "patch", "breaking": "minor"}
    assert "custom_major_increment_regex was not read" in found.findings[0]


@pytest.mark.parametrize(
    ("name", "data", "kind"),
    [
        ("package.json", b'{"release": ', "JSON"),
        ("package.json", b"[" * 100_000, "JSON"),
        (".releaserc", b"a: [1", "YAML"),
        (".versionrc", b"\xff\xfe", "YAML"),
        ("cog.toml", b"[commit_types", "TOML"),
        ("setup.cfg", b"no section\n", "INI"),
        ("pyproject.toml", b"x = 1\n" + b"# " * 600_000, "TOML"),
    ],
)
def test_a_broken_file_is_a_finding(tmp_path: Path, name: str, data: bytes, kind: str) -> None:
    """Settings that cannot be read stop no release: they are named with the reason, and nothing in them counts."""
    found = read_settings(tmp_path, {name: data})
    assert dict(found.lines) == {}
    assert found.findings[0].startswith(f"{name} cannot be read as {kind} (")


def test_settings_behind_a_link_are_not_followed(tmp_path: Path) -> None:
    """A symbolic link may lead anywhere: it is named."""
    (make_repository(tmp_path) / "cog.toml").symlink_to("/etc/hostname")
    found = read_settings(tmp_path, {})
    assert (dict(found.lines), "symbolic link" in found.findings[0]) == ({}, True)


def test_of_several_tools_the_one_that_is_set_up_counts(tmp_path: Path) -> None:
    """What is written comes before mere use; the tools that do not count are named."""
    files: dict[str, str | bytes] = {
        "package.json": '{"devDependencies": {"semantic-release": "1"}}',
        "cog.toml": "",
        "cliff.toml": "[bump]\nfeatures_always_bump_minor = false\n",
    }
    found = read_settings(tmp_path, files)
    assert found.tool == "cocogitto"
    assert found.findings == ("Of several release tools cocogitto counts (cog.toml), not cliff.toml (git-cliff).",)


def test_a_package_s_own_settings_come_before_the_root_s(tmp_path: Path) -> None:
    """Else those of the root count for it, without its tag form."""
    files: dict[str, str | bytes] = {
        "cog.toml": 'tag_prefix = "v"\n',
        "libs/a/package.json": '{"release": {}}',
        "libs/b/x": "",
    }
    assert read_settings(tmp_path / "a", files, "libs/a").tool == "semantic-release"
    found = read_settings(tmp_path / "b", files, "libs/b")
    assert (found.tool, found.tag) == ("cocogitto", "")
