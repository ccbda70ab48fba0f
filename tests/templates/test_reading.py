"""A template is read whole or refused with every problem, each with its line."""

from __future__ import annotations

from datetime import timedelta

import pytest

from perdure.contracts.template import Template
from perdure.contracts.values import format_duration, parse_duration, parse_money
from perdure.errors import UserError
from perdure.policy.templates import TemplateError, parse_template
from tests.templates.texts import SMALL, changed, line_of


def refuse(text: str) -> list[str]:
    """Return the problems of a text that must be refused."""
    with pytest.raises(TemplateError) as caught:
        parse_template(text, path="jobs/notes.yaml")
    return caught.value.problems


def test_a_good_template_is_typed() -> None:
    """Durations, commands and defaults come out as types; what is left out has its default."""
    template = parse_template(SMALL, path="jobs/notes.yaml")
    assert template.name == "notes"
    assert template.verify.checks["test"].run == ["make", "test"]
    assert template.gather.attempt_limit == timedelta(minutes=2)
    assert template.verify.redrafts == 0
    assert template.review.expires.after == timedelta(days=7)
    assert template.review.requester_may_approve is True
    assert template.apply[0].on_failure == "undo_all"
    assert template.thread_name == "notes"


@pytest.mark.parametrize(
    ("old", "new", "part", "says"),
    [
        ("finish_when:", "finish_wen:", "finish_wen", "no field 'finish_wen'. Did you mean 'finish_when'?"),
        ("  steps:\n    - {", "  stpes:\n    - {", "stpes", "no field 'stpes'. Did you mean 'steps'?"),
        ("effect: files.write\n", "efect: files.write\n", "efect", "no field 'efect'. Did you mean 'effect'?"),
        ("type: path", "type: paht", "type: paht", "'paht'; expected 'git-repository', 'path'"),
        ("type: path", "type: paht", "type: paht", "Did you mean 'path'?"),
        ("perdure: 1", "perdure: 2", "perdure: 2", "Language version 2 is unknown"),
        ("perdure: 1", "perdure: 1.0", "perdure", "Language version '1.0' is unknown"),
        ("name: notes", "name: Notes!", "name: Notes!", "'Notes!' is no name"),
        ("use: notes.check", "use: notes.check, run: [x]", "fine:", "exactly one of `use`, `run`, `expect` and `http`"),
        ("run: [make, test]", "run: make test", "run: make test", "'make test' is no command; expected a list"),
        ("run: [make, test]", "run: []", "run: []", "is no command"),
        ("run: [make, test]", "run: [x], attempt_limit: soon", "run: [x]", "'soon' is no duration; expected a number"),
        ("run: [make, test]", "run: [x], baseline: 1", "run: [x]", "baseline is 1; expected boolean"),
        ("[{from: maintainers}]", "[{from: m}, {from: m}]", "review:", "one group stands twice"),
        ("[{from: maintainers}]", "[{from: m, count: 0}]", "approvals", "count is 0; expected greater than"),
        (
            "[{from: maintainers}]",
            "[]\n  expires: {after: 1h, then: approve}",
            "expires",
            "then is 'approve'; expected",
        ),
        ("  - id: tell\n", "  - id: tell\n    undo: none_needed\n", "- id: tell", "`undo` or `irreversible`, not both"),
        ("  - id: tell\n", "  - id: write\n", "- id: write\n    effect: shell", "Two apply steps are called 'write'"),
        ("type: path", "type: choice", "where:", "belongs to an input of type choice"),
        ("default: notes.txt", "default: [a]", "where:", "The input 'where' is ['a']; expected text"),
        ("type: path", "type: path, needs: [whom]", "where:", "no input 'whom'"),
        ("- {use: notes.write", "- {agent: x.md, use: notes.write", "agent", "exactly one of `use: <rule>` and `agent"),
        (
            "- {use: notes.write",
            "- {agent: x.md, done_when: [fien]}\n    - {use: notes.write",
            "agent",
            "no check 'fien'. Did you mean 'fine'?",
        ),
        ("summary: Writes notes.\n", "summary: [x]\n", "summary", "summary is a list; expected string"),
    ],
)
def test_a_mistake_is_told_with_line_and_nearest_name(old: str, new: str, part: str, says: str) -> None:
    """One mistake is one problem: ``path:line``, what was found, what was expected."""
    text = changed(old, new)
    problems = refuse(text)
    at = f"jobs/notes.yaml:{line_of(text, part)}: "
    assert any(says in problem and problem.startswith(at) for problem in problems), problems


def test_every_problem_is_listed_at_once() -> None:
    """Three mistakes in three places are three lines of one message."""
    text = SMALL.replace("finish_when", "finish_wen").replace("type: path", "type: paht").replace("id: tell", "id: T")
    with pytest.raises(UserError, match="Template 'notes' has 3 problems") as caught:
        parse_template(text, path="t.yaml")
    assert caught.value.message.count("\n  t.yaml:") == 3


@pytest.mark.parametrize("text", ["[]", "just text", "5", "null"])
def test_what_is_no_template_at_all_is_refused(text: str) -> None:
    """YAML that holds no fields is refused in words."""
    assert "expected" in refuse(text)[0]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('path: "{{ inputs.where }}"}}\n', 'path: "{{ inputs.were }}"}}\n', "no 'inputs.were'. Did you mean 'where'?"),
        ('path: "{{ inputs.where }}"}}\n', 'path: "{{ gather.old }}"}}\n', "no 'gather' at this stage"),
        ('from: "{{ gather }}"', 'from: "{{ gather.odl }}"', "no 'gather.odl'. Did you mean 'old'?"),
        ('from: "{{ gather }}"', 'from: "{{ analyze.sum }}"', "no 'analyze.sum'"),
        ("{{ analyze.sum.text }}", "{{ draft.commit }}", "no 'draft' at this stage"),
        ("{{ analyze.sum.text }}", "{{ job.nmae }}", "no 'job.nmae'"),
        ("run: [make, test]", 'run: [make, "{{ verify.fine }}"]', "no 'verify' at this stage"),
        ("run: [make, test]", 'run: "{{ inputs.where }} {{ inputs.where }}"', "makes text; expected one"),
        ("run: [make, test]", 'run: [x], when: "{{ inputs.where }}{{ 1 }}"', "makes text; expected one"),
        ("{{ analyze.sum.lines == 0 }}", "{{ analyze.sum.lines | lenght }}", "Did you mean 'length'?"),
        ("{{ analyze.sum.lines == 0 }}", "{{ analyze.sum.lines == }}", "cannot be read"),
        ("effect: shell.run", 'effect: "{{ 1 }}"', "Expressions are not read in 'effect'"),
        ('irreversible: "Told', 'irreversible: "{{ inputs.where }} Told', "Expressions are not read in 'irreversible'"),
        ("name: notes\n", 'name: "notes"\nthread: "{{ gather.old }}"\n', "no 'gather' at this stage"),
        ("[tell, everybody]", '[tell, "{{ inputs.whom }}"]', "no 'inputs.whom'"),
    ],
)
def test_an_expression_may_only_name_what_its_stage_sees(old: str, new: str, says: str) -> None:
    """Names are checked when the template is loaded: no job runs to its last step to find a misspelt one."""
    text = changed(old, new)
    problems = refuse(text)
    assert len(problems) == 1
    assert says in problems[0]
    assert problems[0].startswith(f"jobs/notes.yaml:{line_of(text, new[new.index('{{') :])}: ")


def test_prose_may_hold_braces() -> None:
    """A summary or a help text that shows an expression is not one."""
    text = changed("summary: Writes notes.", 'summary: "Use {{ inputs.anything }} here."')
    assert "{{" in parse_template(text, path="t.yaml").summary


def test_a_template_read_twice_is_two_templates() -> None:
    """What one caller does to its copy, no other one sees."""
    first = parse_template(SMALL, path="t.yaml")
    first.apply[0].arguments["path"] = "elsewhere"
    second = parse_template(SMALL, path="t.yaml")
    assert second.apply[0].arguments["path"] == "{{ inputs.where }}"
    assert second.locate(("apply", 0)) == f"t.yaml:{line_of(SMALL, '- id: write')}"


def test_a_thread_is_one_per_template_and_repository() -> None:
    """Without a thread of its own, a template has one thread for each repository it works on."""
    text = changed("  where: {", "  repo: {type: git-repository}\n  where: {")
    assert parse_template(text, path="t.yaml").thread_name == "notes-{{ inputs.repo.slug }}"
    own = text.replace("name: notes\n", 'name: notes\nthread: "t-{{ inputs.where }}"\n')
    assert parse_template(own, path="t.yaml").thread_name == "t-{{ inputs.where }}"


def test_words_of_a_command_are_words() -> None:
    """A number or a boolean in a command is the word that was written."""
    template = parse_template(changed("run: [make, test]", "run: [sleep, 3, true]"), path="t.yaml")
    assert template.verify.checks["test"].run == ["sleep", "3", "true"]


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("2m", 120), ("4h", 14_400), ("7d", 604_800), ("1h30m", 5_400), ("1d1s", 86_401)]
)
def test_durations_are_read_and_written_back(text: str, seconds: int) -> None:
    """A duration is numbers with units, largest first."""
    assert parse_duration(text) == timedelta(seconds=seconds)
    assert parse_duration(format_duration(timedelta(seconds=seconds))) == timedelta(seconds=seconds)


@pytest.mark.parametrize("value", ["", "0s", "5", 5, "soon", "-1m", "1.5h", "1m1h", "401d", "9999999999d", None, True])
def test_what_is_no_duration_is_refused(value: object) -> None:
    """A number without a unit, nothing, too much, or units out of order are refused."""
    with pytest.raises(ValueError, match="expected"):
        parse_duration(value)


def test_money_is_whole_microdollars() -> None:
    """An amount is never a float."""
    assert parse_money("0.50 USD") == 500_000
    assert parse_money("0.000001 USD") == 1
    for wrong in ("0.5", "1 EUR", "1.0000001 USD", "-1 USD", 1, None):
        with pytest.raises(ValueError, match="expected"):
            parse_money(wrong)


def test_a_template_survives_its_own_json() -> None:
    """What is dumped by alias is read back as the same template."""
    template = parse_template(SMALL, path="t.yaml")
    dumped = template.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    assert Template.model_validate(dumped).model_dump() == template.model_dump()
