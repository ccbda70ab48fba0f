"""`perdure templates new`: a runbook by questions or options, valid at once, and nothing overwritten."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perdure.contracts.http import TemplateView
from perdure.effects.registry import default_effects
from perdure.policy.templates import TemplateError, check_template, parse_template
from tests.cli.conftest import Ended
from tests.cli.terminal import Terminal
from tests.cli.world import World

Call = Callable[..., Ended]

STEPS: dict[str, dict[str, Any]] = {
    "link": {"path": "/srv/current", "to": '/srv/gr"een'},
    "file": {"root": "/srv", "path": "a/b", "content": "two\nlines: {yes}"},
    "command": {"run": "systemctl reload 'my service'", "probe": "test -e x", "undo": "none"},
    "sqlite": {"database": "/srv/x.db", "statement": "DELETE FROM a", "probe": "SELECT 1", "undo": "none"},
    "postgresql": {"statement": "INSERT INTO a VALUES ('x: y')", "probe": "SELECT 1", "undo": "DELETE FROM a"},
    "http": {"url": "https://a.example/r/1", "json": {"state": "on", "n": 1}, "undo": {"state": "off"}},
}


def validate(_query: Any, body: Any) -> TemplateView:
    """What the API says, by the real reader."""
    view = {"name": "x", "source": "configured", "path": body["path"], "digest": "0" * 64, "trusted": False}
    try:
        effects = {kind: effect.always_reversible for kind, effect in default_effects().items()}
        check_template(parse_template(body["text"], path=body["path"]), rules={}, effects=effects, tools=())
    except TemplateError as error:
        return TemplateView.model_validate({**view, "problem": str(error)})
    return TemplateView.model_validate(view)


@pytest.fixture
def here(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, and an API that validates."""
    world.routes["POST /v1/templates/validate"] = validate
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_script_gives_steps_of_every_kind(call: Call, here: Path) -> None:
    """Quotes, colons and lines of a value come through; the file is valid and says what it does."""
    steps = [word for kind, given in STEPS.items() for word in ("--step", json.dumps({"kind": kind, **given}))]
    ended = call("templates", "new", "all-kinds", *steps, "--health", "http://a.example/h", "--pause", "--json")
    assert ended.code == 0, ended.err
    written = here / ".perdure" / "jobs" / "all-kinds.yaml"
    assert ended.json["text"] == written.read_text()
    template = parse_template(written.read_text(), path="x")
    assert [step.id for step in template.apply] == [f"{kind}_{at}" for at, kind in enumerate(STEPS, 1)]
    assert template.apply[0].arguments["to"] == '/srv/gr"een'
    assert template.apply[2].arguments["run"] == ["systemctl", "reload", "my service"]
    assert [step.pause for step in template.apply] == [False, *[True] * 5]
    assert template.apply[-1].verify is not None


def test_nothing_is_overwritten(call: Call, here: Path) -> None:
    """A file that is there stays as it is."""
    file = here / "mine.yaml"
    file.write_text("mine")
    step = json.dumps({"kind": "link", **STEPS["link"]})
    ended = call("templates", "new", "x", "--step", step, "--file", str(file))
    assert ended.code != 0 and "is not overwritten" in ended.err
    assert file.read_text() == "mine"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("Bad Name",), "lower-case letters"),
        (("x",), "Nobody can be asked here"),
        (("x", "--step", "{"), "is no JSON"),
        (("x", "--step", '{"kind": "lnk"}'), "Kinds: link, file"),
        (("x", "--step", '{"kind": "link", "path": "/a"}'), "takes path, to"),
        (("x", "--step", json.dumps({"kind": "http", **STEPS["http"], "json": "word"})), "JSON object"),
        (
            ("x", "--step", json.dumps({"kind": "link", "path": "/a", "to": "{{ inputs.nobody }}"})),
            "no 'inputs.nobody'",
        ),
    ],
)
def test_wrong_answers_write_nothing(call: Call, here: Path, arguments: tuple[str, ...], said: str) -> None:
    """What is wrong and what was expected is told before anything is written."""
    ended = call("templates", "new", *arguments)
    assert ended.code != 0
    assert said in ended.err
    assert list(here.iterdir()) == []


def test_person_is_asked_step_by_step(terminal: Callable[..., Terminal], here: Path) -> None:
    """The questions of a link and of a command, with what is usual as the answer of Enter."""
    shown = terminal("templates", "new", "switch-build")
    for question, answer in (
        ("in one line?", "Switch the build."),
        ("What does step 1 change?", "link"),
        ("absolute path", "/srv/current"),
        ("Where it shall point", "/srv/green"),
        ("Another step?", "n"),
        ("while all is well", ""),
        ("Which group approves?", ""),
    ):
        shown.expect(question)
        shown.type(answer + "\n")
    assert shown.end() == 0
    (file,) = (here / ".perdure" / "jobs").iterdir()
    template = parse_template(file.read_text(), path="x")
    assert (template.name, template.summary) == ("switch-build", "Switch the build.")
    assert template.review.approvals[0].group == "maintainers"
