"""A template is checked against what is installed before a job is made from it."""

from __future__ import annotations

import jsonschema
import pytest

from perdure.contracts.job import JobSpec
from perdure.policy.templates import TemplateError, check_template, outline, parse_template, template_schema
from perdure.policy.yaml_text import read_yaml
from tests.templates.texts import EFFECTS, RULES, SHIPPED, SMALL, TOOLS, changed, line_of

AGENT = "agent: x.md, done_when: [fine], limits: {turns: 3}, on_failure: fail"

SUM = 'sum: {use: notes.sum, with: {from: "{{ gather }}"}}'


def refuse(text: str) -> list[str]:
    """Return the problems of a template that reads well and must be refused all the same."""
    template = parse_template(text, path="notes.yaml")
    with pytest.raises(TemplateError) as caught:
        check_template(template, rules=RULES, effects=EFFECTS, tools=TOOLS)
    return caught.value.problems


def accept(text: str) -> None:
    """Check a template that must be accepted."""
    check_template(parse_template(text, path="notes.yaml"), rules=RULES, effects=EFFECTS, tools=TOOLS)


def test_a_template_of_what_is_installed_is_accepted() -> None:
    """Every rule and effect is there, and the irreversible effect is behind an approval."""
    accept(SMALL)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("use: notes.read,", "use: notes.raed,", "no rule 'notes.raed'. Did you mean 'notes.read'? Known source rules"),
        ("use: notes.sum,", "use: notes.read,", "'notes.read' is for source, not for analysis"),
        ('with: {from: "{{ gather }}"}', 'with: {form: "{{ gather }}"}', "takes no 'form'. Did you mean 'from'?"),
        ('with: {from: "{{ gather }}"}', "with: {}", "needs 'from' in `with`"),
        ("effect: files.write", "effect: file.write", "no effect 'file.write'. Did you mean 'files.write'?"),
        ('    irreversible: "Told is told."\n', "", "needs its way back"),
        ("  - id: write\n", "  - id: write\n    undo: [rm, x]\n", "undo of 'files.write' is built in"),
        ("run: [make, test]", "run: [make], network: [registry.example]", "Opening hosts"),
        ("use: notes.sum,", "prompt: x.md.j2, on_failure: fail, use: notes.sum,", "cannot be refined by a prompt"),
        ("use: notes.sum,", "on_failure: fail, use: notes.sum,", "`on_failure` is said of a prompt"),
        (SUM, "sum: {prompt: x.md.j2, on_failure: fail}", "`answer`, the JSON schema of an object"),
        (SUM, "sum: {prompt: x.md.j2, answer: {type: object}}", "what happens when no answer of a model fits"),
        (
            SUM,
            "sum: {prompt: x.md.j2, on_failure: fail, answer: {type: object, pattern: x}}",
            "'pattern' is not checked",
        ),
        (
            "    - {use: notes.write",
            "    - {agent: x.md}\n    - {use: notes.write",
            "`done_when`, `limits`, `on_failure`",
        ),
        (
            "    - {use: notes.write",
            f"    - {{{AGENT}, tools: [shell.rum]}}\n    - {{use: notes.write",
            "no tool 'shell.rum'. Did you mean 'shell.run'? Known tools: files.read, shell.run",
        ),
        (
            "    - {use: notes.write",
            f"    - {{{AGENT}, permissions: [{{decision: deny, tool: file.read}}]}}\n    - {{use: notes.write",
            "no tool 'file.read'. Did you mean 'files.read'?",
        ),
    ],
)
def test_what_cannot_run_is_refused_when_loaded(old: str, new: str, says: str) -> None:
    """An unknown or misplaced name, a wrong key, or a part that this version would leave out in silence is refused."""
    text = changed(old, new)
    problems = refuse(text)
    assert len(problems) == 1 or "needs 'from'" in problems[1]
    assert says in problems[0]
    assert problems[0].startswith("notes.yaml:")


@pytest.mark.parametrize(
    "review",
    ["review:\n  approvals: []\n", "", "review: {}\n"],
    ids=["no approval", "no review", "default review"],
)
def test_an_irreversible_effect_stands_behind_a_written_approval(review: str) -> None:
    """Without at least one approval in a review an irreversible effect is refused when the template is loaded."""
    text = changed("review:\n  approvals: [{from: maintainers}]\n", review)
    if review == "review: {}\n":
        accept(text)
        return
    problems = refuse(text)
    assert len(problems) == 1
    assert "'tell' is irreversible and no approval stands before it" in problems[0]
    assert problems[0].startswith(f"notes.yaml:{line_of(text, 'irreversible:')}: ")


def test_an_effect_that_says_irreversible_is_irreversible_whatever_its_kind() -> None:
    """A kind with an undo of its own may be declared irreversible by a step, and then needs the approval too."""
    step = "  - id: write\n"
    text = changed(step, step + '    irreversible: "Read at once."\n').replace("[{from: maintainers}]", "[]")
    assert len(refuse(text)) == 2


def test_reversible_effects_may_go_without_a_gate() -> None:
    """`approvals: []` is for effects that can all be taken back."""
    text = changed('irreversible: "Told is told."', "undo: [untell, everybody]")
    accept(text.replace("[{from: maintainers}]", "[]"))
    accept(text.replace("undo: [untell, everybody]", "undo: none_needed").replace("[{from: maintainers}]", "[]"))


def test_a_template_without_a_review_asks_a_maintainer() -> None:
    """Leaving the review out never means that nobody is asked."""
    text = changed("review:\n  approvals: [{from: maintainers}]\n", "").replace('irreversible: "Told', 'undo: ["Told')
    template = parse_template(text.replace('is told."', 'is told."]'), path="t.yaml")
    assert [(rule.group, rule.count) for rule in template.review.approvals] == [("maintainers", 1)]


def test_a_baseline_needs_drafted_content() -> None:
    """Without a draft a command is a preflight about the world, and there is no base to compare with."""
    start, end = SMALL.index("draft:"), SMALL.index("verify:")
    text = SMALL[:start] + SMALL[end:]
    accept(text)
    command = "{run: [make, test]"
    assert "has no `draft`" in refuse(text.replace(command, f"{command}, baseline: true"))[0]


def spec_of(text: str, **more: object) -> JobSpec:
    """Return a job made from a text."""
    fields = {"template": "notes", "template_source": text, "template_digest": "0" * 64, "inputs": {}, "requester": "a"}
    return JobSpec.model_validate({**fields, **more})


def test_the_outline_has_what_the_workflow_must_know() -> None:
    """Names, attempts and limits of sources and checks; a check with a baseline may run twice as long."""
    text = changed("use: notes.read,", "use: notes.read, attempts: 5, optional: true,")
    text = text.replace("run: [make, test]", "run: [x], attempt_limit: 20m, baseline: true")
    text = text.replace("verify:\n", "verify:\n  on_failure: {redraft: 2, then: fail}\n")
    shape = outline(parse_template(text, path="t.yaml"), spec_of(text, plan_only=True), {})
    assert [(s.name, s.attempts, s.attempt_limit_seconds, s.optional) for s in shape.sources] == [("old", 5, 120, True)]
    assert [(c.name, c.attempts, c.attempt_limit_seconds) for c in shape.checks] == [
        ("fine", 1, 600),
        ("test", 1, 2400),
    ]
    assert shape.has_analysis
    assert shape.has_draft
    assert shape.redraft == 2
    assert shape.plan_only


def test_an_agent_counts_only_where_there_is_a_model() -> None:
    """Without a model a red check would be drafted again for nothing."""
    text = changed("    - {use: notes.write", f"    - {{{AGENT}}}\n    - {{use: notes.write")
    template = parse_template(text, path="t.yaml")
    assert not outline(template, spec_of(text), {}).draft_has_agent
    assert outline(template, spec_of(text), {}, has_model=True).draft_has_agent
    assert outline(template, spec_of(text), {}).draft_limit_seconds == 600 + 600


def test_a_job_that_takes_one_back_has_no_stages() -> None:
    """Undoing needs no template: its plan comes from the ledger."""
    shape = outline(None, spec_of("", undoes="job/t/r"), {})
    assert shape.undoes == "job/t/r"
    assert not (shape.sources or shape.checks or shape.has_draft or shape.has_analysis)


def test_the_schema_for_editors_agrees_with_the_reader() -> None:
    """The JSON schema is valid, accepts what the reader accepts, and marks an unknown field and a wrong duration."""
    schema = template_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    for text in [SMALL, *(path.read_text() for path in SHIPPED.glob("*.yaml"))]:
        validator.validate(read_yaml(text).value)
    for old, new in [("finish_when:", "finish_wen:"), ("run: [make, test]", "run: [x], attempt_limit: soon")]:
        assert not validator.is_valid(read_yaml(changed(old, new)).value)
