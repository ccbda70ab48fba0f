"""The settings of the project's release tool in a plan: above what its tags show, below what people say, and told."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from perdure.contracts.decisions import Edits
from perdure.contracts.memory import Memory, RememberedEdit
from perdure.errors import UserError
from perdure.rules.release.results import PROPOSE
from tests.rules.kit import ReleaseRun, make_repository, save, tag

SEMANTIC = '{"version": "1.2.0", "release": {"releaseRules": [%s]}}'


def propose(folder: Path, config: dict[str, str | bytes], *messages: str, last: str = "v1.2.0") -> dict[str, Any]:
    """What is proposed after a release with these settings, for these commits."""
    return propose_run(folder, config, *messages, last=last)[0]


def propose_run(
    folder: Path, config: dict[str, str | bytes], *messages: str, last: str = "v1.2.0", **more: Any
) -> tuple[dict[str, Any], ReleaseRun]:
    """The same with the run, whose findings tell more."""
    path = make_repository(folder)
    save(path, "feat: begin", config)
    tag(path, last)
    for message in messages:
        save(path, message)
    run = ReleaseRun(path, folder, **more)
    return run.propose(), run


def test_a_step_that_settings_decide_names_file_and_key(tmp_path: Path) -> None:
    """In the entry and among the version's reasons."""
    rule = '{"type": "perf", "release": "minor"}'
    release = propose(tmp_path, {"package.json": SEMANTIC % rule}, "perf: index the words", "fix: close it")
    assert release["version"] == "1.3.0"
    where = "package.json: release.releaseRules[0]"
    assert [(entry["bump"], entry["rule"]) for entry in release["entries"]][1] == ("minor", where)
    assert release["reasons"][0].endswith(f"; {where})")


def test_a_type_that_the_tool_does_not_know_is_no_feature(tmp_path: Path) -> None:
    """What is listed as new here is a patch where the project's tool would not even release it; that is said."""
    release, run = propose_run(tmp_path, {"package.json": SEMANTIC % ""}, "feature: export", "deprecate: the old way")
    assert release["version"] == "1.2.1"
    assert [entry["section"] for entry in release["entries"]] == ["Deprecated", "Added"]
    assert any(told.startswith("feature counts as patch, not minor: package.json: release;") for told in run.findings)


def test_types_of_the_project_s_own_are_read(tmp_path: Path) -> None:
    """A type that only the settings know is no prose: it is listed, with its step."""
    config = "[commit_types]\nadd = { bump_minor = true }\nwording = { bump_patch = true }\n"
    release = propose(tmp_path, {"cog.toml": config}, "add: a way out", "wording: clearer", "server: prose", "fix: y")
    said = [(entry["section"], entry["text"], entry["bump"]) for entry in release["entries"]]
    assert said == [("Fixed", "y", "patch"), ("Changed", "clearer", "patch"), ("Added", "a way out", "minor")]
    assert release["version"] == "1.3.0"


def test_what_makes_no_release_is_left_out_and_said(tmp_path: Path) -> None:
    """By type, by scope, by both; what breaks shows all the same."""
    rules = '{"scope": "no-release", "release": false}, {"type": "perf", "scope": "ci", "release": false}'
    config: dict[str, str | bytes] = {"package.json": SEMANTIC % rules}
    messages = ["feat(no-release): x", "perf(ci): y", "fix: z", "feat(no-release)!: w"]
    release, run = propose_run(tmp_path / "a", config, *messages[:3])
    assert [entry["text"] for entry in release["entries"]] == ["z"]
    assert sum("is left out: package.json: release.releaseRules" in told for told in run.findings) == 2
    assert propose(tmp_path / "b", config, *messages[:2])["entries"] == []
    assert propose(tmp_path / "c", config, *messages)["version"] == "2.0.0"


@pytest.mark.parametrize(
    ("config", "message", "version"),
    [
        ({".versionrc": "{}"}, "feat: x", "0.4.1"),
        ({".versionrc": "{}"}, "feat!: x", "0.5.0"),
        ({"release-please-config.json": '{"bump-patch-for-minor-pre-major": true}'}, "feat: x", "0.4.1"),
        ({"cliff.toml": "[bump]\nfeatures_always_bump_minor = false\n"}, "feat: x", "0.4.1"),
        ({"cliff.toml": "[bump]\nbreaking_always_bump_major = true\n"}, "feat!: x", "0.5.0"),
        ({"package.json": '{"release": {}}'}, "feat!: x", "0.5.0"),
    ],
)
def test_in_0_x_settings_may_soften_and_never_lead_out(
    tmp_path: Path, config: dict[str, str | bytes], message: str, version: str
) -> None:
    """A feature is a patch where the tool makes it one; 1.0.0 stays a person's decision."""
    assert propose(tmp_path, config, message, last="v0.4.0")["version"] == version


def write_patch_features(path: Path) -> None:
    """Four releases in which features were patches."""
    for number in range(1, 5):
        save(path, f"feat: thing {number}")
        tag(path, f"v1.2.{number}")
    save(path, "feat: the next thing")


def test_settings_stand_above_what_the_tags_show(tmp_path: Path) -> None:
    """The tags' habit is named, and an approval confirms nothing: the base commit holds the settings."""
    path = make_repository(tmp_path)
    save(path, "feat: begin", {"package.json": '{"release": {}}'})
    tag(path, "v1.2.0")
    write_patch_features(path)
    run = ReleaseRun(path, tmp_path)
    release = run.propose()
    assert (release["version"], release["settles"], release["settled"]) == ("1.3.0", [], [])
    assert any(told.startswith("feat counts as minor: package.json: release") for told in run.findings)
    assert any("The tags show patch: so it was in 4 of the last 4" in told for told in run.findings)


def test_what_people_say_stands_above_the_settings(tmp_path: Path) -> None:
    """A line that a reviewer set, now or in an earlier plan, counts for its type with every scope."""
    rules = '{"type": "feat", "scope": "ui", "release": "major"}'
    config: dict[str, str | bytes] = {"package.json": SEMANTIC % rules}
    edit = Edits(by="rhea", changes={"map": {"feat": "patch"}})
    now, _ = propose_run(tmp_path / "a", config, "feat(ui): x", edits=[edit])
    seen = {"release": {"rule": PROPOSE, "path": "", "entries": [], "last_tag": "", "last_version": "", "base": ""}}
    at = datetime(2026, 11, 1, tzinfo=UTC)
    word = RememberedEdit(by="ben", at=at, why="", changes={"map": {"feat": "patch"}}, seen=seen)
    later, _ = propose_run(tmp_path / "b", config, "feat(ui): x", remembered=Memory(edits=[word]))
    assert (now["version"], later["version"]) == ("1.2.1", "1.2.1")
    assert propose(tmp_path / "c", config, "feat(ui): x")["version"] == "2.0.0"


def test_settings_are_those_of_the_base_commit(tmp_path: Path) -> None:
    """What lies in the work tree and is not committed does not count; neither do settings of earlier days."""
    path = make_repository(tmp_path)
    save(path, "feat: begin", {"cog.toml": "[commit_types]\nperf = { bump_minor = true }\n"})
    tag(path, "v1.2.0")
    save(path, "perf: x", {"cog.toml": ""})
    (path / ".releaserc").write_text('{"releaseRules": [{"type": "perf", "release": "major"}]}')
    assert ReleaseRun(path, tmp_path).propose()["version"] == "1.2.1"


def test_broken_settings_stop_no_release(tmp_path: Path) -> None:
    """They are named, and the conventions count."""
    release, run = propose_run(tmp_path, {"cog.toml": "[commit_types"}, "feature: x")
    assert release["version"] == "1.3.0"
    assert any(told.startswith("cog.toml cannot be read as TOML (") for told in run.findings)


def test_the_form_that_settings_name_is_offered_first(tmp_path: Path) -> None:
    """Where no tag has the form that was asked for: the question says which file names it, and nothing is taken."""
    path = make_repository(tmp_path)
    save(path, "feat: begin", {"cog.toml": 'tag_prefix = "app-"\n'})
    tag(path, "old_1.0.0", "old_1.1.0", "app-2.0.0")
    with pytest.raises(
        UserError, match=r"releases: tag='app-\{version\}' \(1 such as app-2.0.0, as cog.toml sets it\)"
    ):
        ReleaseRun(path, tmp_path).propose()
