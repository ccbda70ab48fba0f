"""A reviewer's edits: options, the form in the editor, and what is sent."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.cli.edits import Entry, Proposal, compare, read_form, write_form
from perdure.errors import UserError
from tests.cli.conftest import Ended
from tests.cli.world import DIGEST, SECOND, Answer, World

Call = Callable[..., Ended]

BEFORE = Proposal("1.3.0", (Entry("a41c9e0", "Added", "bulk import"), Entry("9be0c11", "Fixed", "names: escaped")))

words = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Zl", "Zp"]), min_size=1).map(str.strip)
lines = words.filter(bool)
texts = st.lists(lines, min_size=1, max_size=3).map("\n".join)
ids = st.text("0123456789abcdef", min_size=7, max_size=7)
sections = st.sampled_from(["Added", "Fixed", "Breaking: API"])
proposals = st.builds(
    lambda version, entries: Proposal(version, tuple(entries)),
    lines,
    st.lists(st.builds(Entry, ids, sections, texts), unique_by=lambda entry: entry.id),
)


def form(proposal: Proposal) -> str:
    """The form's text for a plan."""
    world = World()
    world.freeze()
    return write_form(proposal, world.plans[DIGEST])


@given(proposals)
def test_a_form_left_as_it_is_changes_nothing(proposal: Proposal) -> None:
    """Whatever the entries say (`yes`, `1.10`, `- x`, `#`), writing and reading the form loses nothing."""
    assert compare(proposal, read_form(form(proposal))) == {}


@pytest.mark.parametrize(
    ("typed", "op"),
    [
        (
            lambda text: text.replace("bulk import", "In bulk"),
            {"op": "reword", "id": "a41c9e0", "text": "In bulk"},
        ),
        (lambda text: text.replace("Added:", "Changed:"), {"op": "move", "id": "a41c9e0", "section": "Changed"}),
        (
            lambda text: text + "  Security:\n  - no secrets\n",
            {"op": "add", "section": "Security", "text": "no secrets"},
        ),
        (
            lambda text: "".join(line for line in text.splitlines(True) if "9be0c11" not in line),
            {"op": "drop", "id": "9be0c11"},
        ),
    ],
)
def test_each_edit_of_the_form_becomes_one_operation(typed: Callable[[str], str], op: dict[str, str]) -> None:
    """Reword, move, add, drop: the operation with the entry's id."""
    assert compare(BEFORE, read_form(typed(form(BEFORE)))) == {"entries": [op]}


def test_lines_of_the_type_map_are_set_and_forgotten() -> None:
    """A line with another step is set, a new one too; one that was taken out is forgotten."""
    before = Proposal("1.3.0", (), map=(("feat", "patch"), ("feat(words)", "patch")))
    text = form(before)
    assert compare(before, read_form(text)) == {}
    typed = text.replace("  feat: patch\n", "").replace("feat(words): patch", "feat(words): minor\n  perf: minor")
    assert compare(before, read_form(typed)) == {
        "map": {"feat(words)": "minor", "perf": "minor"},
        "entries": [{"op": "forget", "id": "feat"}],
    }
    with pytest.raises(UserError, match="under `map:`"):
        read_form("version: 1.3.0\nmap: patch\nentries: {}\n")


@pytest.mark.parametrize("text", ["version: [", "just text", "version: 1.3.0\nentries: none"])
def test_a_form_that_lost_its_shape_is_refused(text: str) -> None:
    """Broken YAML and a lost form are told apart from "nothing was changed"."""
    with pytest.raises(UserError):
        read_form(text)


def test_an_unknown_id_is_refused() -> None:
    """A mistyped id would drop one entry and invent another."""
    with pytest.raises(UserError, match=r"a41c9e1.*Known: a41c9e0, 9be0c11"):
        compare(BEFORE, read_form(form(BEFORE).replace("a41c9e0", "a41c9e1")))


def test_options_go_as_edits_of_the_jobs_plan(call: Call, world: World) -> None:
    """All of them in one request_changes on the plan's whole digest; the next plan is shown."""
    world.draft()
    entries = [{"id": name, "section": "Added", "text": name} for name in ("a", "b", "c")]
    world.put("analyze", json.dumps({"version": "1.3.0", "entries": entries}).encode())
    world.on_decide = lambda kind: world.freeze(SECOND, round=2)
    options = ["--version", "2.0.0", "--reword", "a=In bulk", "--drop", "b", "--add", "Security=x=y"]
    options += ["--forget", "version", "--map", "feat(words)=minor"]
    ended = call("edit", "1", *options, "--move", "c=Fixed")
    assert ended.code == 3, ended.err
    assert [path for _, path, _, _ in world.asked if "decisions" in path] == [f"/v1/plans/{DIGEST}/decisions"]
    (body,) = world.sent("POST /v1/plans")
    assert body["kind"] == "request_changes"
    assert body["changes"] == {
        "version": "2.0.0",
        "entries": [
            {"op": "reword", "id": "a", "text": "In bulk"},
            {"op": "move", "id": "c", "section": "Fixed"},
            {"op": "drop", "id": "b"},
            {"op": "add", "section": "Security", "text": "x=y"},
            {"op": "forget", "id": "version"},
        ],
        "map": {"feat(words)": "minor"},
    }


PACKAGES = Proposal(
    "",
    (),
    (
        ("@x/core", Proposal("2.0.0", (Entry("a41c9e0:core", "Added", "bulk import"),))),
        (
            "app",
            Proposal(
                "1.0.1", (Entry("d-123456:app", "Changed", "depends on @x/core 2.0.0"),), map=(("feat", "patch"),)
            ),
        ),
    ),
)


@pytest.mark.parametrize(
    ("old", "new", "changes"),
    [
        ("1.0.1", "1.1.0", {"version": {"app": "1.1.0"}}),
        ("bulk import", "In bulk", {"entries": [{"op": "reword", "id": "a41c9e0:core", "text": "In bulk"}]}),
        (
            "  app:\n",
            "  app:\n    more: 1\n",
            {},
        ),
        (
            "      - d-123456:app: depends on @x/core 2.0.0\n",
            "      - d-123456:app: depends on @x/core 2.0.0\n      - by hand\n",
            {"entries": [{"op": "add", "section": "Changed", "text": "by hand", "package": "app"}]},
        ),
        ("feat: patch", "fix: minor", {"map": {"fix:app": "minor"}, "entries": [{"op": "forget", "id": "feat:app"}]}),
    ],
)
def test_a_form_of_several_packages_keeps_them_apart(old: str, new: str, changes: dict[str, object]) -> None:
    """Each package has its version and entries; what is changed or added names its package."""
    text = form(PACKAGES)
    assert compare(PACKAGES, read_form(text)) == {}
    assert old in text
    assert compare(PACKAGES, read_form(text.replace(old, new))) == changes


def test_a_package_that_is_not_there_is_refused() -> None:
    """A mistyped package would lose its entries."""
    with pytest.raises(UserError, match=r"No package is called 'ap' here\. Known: @x/core, app"):
        compare(PACKAGES, read_form(form(PACKAGES).replace("  app:\n", "  ap:\n")))


def test_options_may_name_a_package(call: Call, world: World) -> None:
    """`PACKAGE=VERSION` and `PACKAGE:SECTION=TEXT` go as such; a colon with a blank behind it is the section's own."""
    world.draft()
    world.on_decide = lambda kind: world.freeze(SECOND, round=2)
    options = ["--version", "@x/core=2.0.0", "--version", "app=1.1.0"]
    ended = call("edit", "1", *options, "--add", "app:Fixed=x", "--add", "Breaking: API=y")
    assert ended.code == 3, ended.err
    (body,) = world.sent("POST /v1/plans")
    assert body["changes"] == {
        "version": {"@x/core": "2.0.0", "app": "1.1.0"},
        "entries": [
            {"op": "add", "package": "app", "section": "Fixed", "text": "x"},
            {"op": "add", "section": "Breaking: API", "text": "y"},
        ],
    }
    assert call("edit", "1", "--version", "1.0.0", "--version", "2.0.0").code == 64


@pytest.mark.parametrize("options", [["--reword", "a"], ["--add", "=x"], ["--move", "a="], []])
def test_an_edit_that_says_nothing_is_refused(call: Call, world: World, options: list[str]) -> None:
    """A half option, or none where no editor can be opened: 64, nothing sent."""
    world.draft()
    assert call("edit", "1", *options).code == 64
    assert world.sent("POST /v1/plans") == []


def test_what_the_api_refuses_is_told_with_its_code(call: Call, world: World) -> None:
    """A mistyped id, version or section costs no round: 64 with what is legal, and nothing is followed."""
    world.draft()

    def refuse(query: dict[str, str], body: object) -> object:
        raise Answer("UserError", "No entry has the id 'fffffff'; expected one of a41c9e0.", 422, 64)

    world.routes["POST /v1/plans"] = refuse
    ended = call("edit", "1", "--drop", "fffffff")
    assert (ended.code, "expected one of a41c9e0" in ended.err) == (64, True)


def test_a_refused_form_opens_again(terminal: Callable[..., object], world: World, tmp_path: Path) -> None:
    """What was typed into the editor is not lost when the API refuses it: the editor opens again with it."""
    world.draft()
    entries = [{"id": "a41c9e0", "section": "Added", "text": "bulk import"}]
    world.put("analyze", json.dumps({"version": "1.3.0", "entries": entries}).encode())
    versions: list[str] = []

    def judge(query: dict[str, str], body: dict[str, dict[str, str]]) -> object:
        versions.append(body["changes"]["version"])
        if len(versions) == 1:
            raise Answer("UserError", "Version 0.9.0 is not above the last release 1.2.0.", 422, 64)
        return decided(query, body)

    decided = world.routes["POST /v1/plans"]
    world.routes["POST /v1/plans"] = judge
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\nsed -i -e 's/0[.]9[.]0/1.4.0/;t' -e 's/1[.]3[.]0/0.9.0/' \"$1\"\n")
    editor.chmod(0o755)
    shown = terminal("edit", "1", "--detach", VISUAL=str(editor))
    shown.expect("not above the last release")  # type: ignore[attr-defined]
    shown.type("y\n")  # type: ignore[attr-defined]
    assert shown.end() == 0  # type: ignore[attr-defined]
    assert versions == ["0.9.0", "1.4.0"]


def test_a_job_without_entries_says_what_to_do_instead(terminal: Callable[..., object], world: World) -> None:
    """A plan of another kind of job has no version and entries: ask in words."""
    world.draft()
    world.put("analyze", json.dumps({"files": []}).encode())
    shown = terminal("edit", "1")
    assert shown.end() == 64  # type: ignore[attr-defined]
    assert "perdure request-changes 7f3a91c2" in shown.raw  # type: ignore[attr-defined]


def test_the_form_has_its_sections_in_the_changelogs_order(world: World) -> None:
    """Added comes before Fixed, as it will be written, whatever came first in the history; strangers come last."""
    entries = tuple(Entry(f"e{at}", name, "text") for at, name in enumerate(["Internal", "Fixed", "Added", "Security"]))
    written = write_form(Proposal("1.3.0", entries), world.freeze())
    wanted = ["Added", "Fixed", "Security", "Internal"]
    assert sorted(wanted, key=written.index) == wanted
