"""The text of a new runbook from answers: every value is written out, quoted, and nothing is left to fill in."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from perdure.errors import UserError

Answers = Mapping[str, str]


@dataclass(frozen=True)
class Question:
    """One question about a step."""

    key: str
    text: str
    default: str | None = None


_SQL = (
    Question("statement", "The one SQL statement"),
    Question("probe", "A query that says 1 or true once it is done"),
    Question("undo", "The statement that takes it back; `none` where nothing has to be"),
)

QUESTIONS: Mapping[str, tuple[Question, ...]] = {
    "link": (
        Question("path", "The link's absolute path"),
        Question("to", "Where it shall point; must be there when the plan is made"),
    ),
    "file": (
        Question("root", "The folder's absolute path"),
        Question("path", "The file's path in it"),
        Question("content", "What it shall hold"),
    ),
    "command": (
        Question("run", "The command"),
        Question("probe", "A command that ends with 0 once it is done, with 1 while it is not"),
        Question("undo", "The command that takes it back; `none` where nothing has to be"),
    ),
    "sqlite": (Question("database", "The file's absolute path"), *_SQL),
    "postgresql": (Question("database", "Name of the secret that holds the database's URL", "orders-db-url"), *_SQL),
    "http": (
        Question("url", "The URL of what is changed; GET on it must tell how it is"),
        Question("method", "POST, PUT or PATCH", "PATCH"),
        Question("json", "The JSON object that is sent"),
        Question("undo", "The JSON object that is sent to take it back; `none` where nothing has to be"),
    ),
}
"""What is asked about each kind of step, in order."""


@dataclass(frozen=True)
class Runbook:
    """All that was answered."""

    name: str
    summary: str
    approver: str
    steps: Sequence[tuple[str, Answers]]
    """(kind, answers by key)."""
    health: str = ""
    """URL that answers 200 while all is well; empty: nothing is looked at."""
    pauses: bool = False
    """A person says go on between the steps."""


def write_runbook(runbook: Runbook) -> str:
    """Return the template's text. Raises ``UserError`` for an answer that cannot stand in one."""
    on_worker = any(kind == "command" for kind, _ in runbook.steps)
    lines = [
        f"# {runbook.summary or runbook.name}",
        "perdure: 1",
        f"name: {runbook.name}",
        f"summary: {_quoted(runbook.summary)}",
        f"lock: {_quoted(runbook.name)}                # never applied twice at once",
        *(["runs_on: worker                         # commands run here, not in the sandbox"] if on_worker else []),
        "",
        *_facts(runbook),
        "review:",
        f"  approvals: [{{from: {runbook.approver}, count: 1}}]",
        "",
        "apply:                                  # in this order, each at most once",
    ]
    for number, (kind, answers) in enumerate(runbook.steps, 1):
        lines += [f"  - id: {kind}_{number}", *(f"    {line}" for line in _BLOCKS[kind](answers))]
        if runbook.pauses and number > 1:
            lines.append("    pause: true                          # `perdure resume` goes on")
    if runbook.health:
        lines.append(f"    verify: {{http: {_quoted(runbook.health)}, status: 200, within: 1m}}")
    return "\n".join(lines) + "\n"


def _facts(runbook: Runbook) -> list[str]:
    if not runbook.health:
        return []
    check = f"    healthy_now: {{http: {_quoted(runbook.health)}, status: 200}}"
    return ["verify:                                 # red stops before anybody is asked", "  checks:", check, ""]


def _link(given: Answers) -> list[str]:
    return ["effect: files.link", f"with: {{path: {_quoted(given['path'])}, to: {_quoted(given['to'])}}}"]


def _file(given: Answers) -> list[str]:
    place = f"root: {_quoted(given['root'])}, path: {_quoted(given['path'])}"
    return ["effect: files.write", f"with: {{{place}, content: {_quoted(given['content'])}}}"]


def _command(given: Answers) -> list[str]:
    undo = "none_needed" if given["undo"] == "none" else _words(given["undo"])
    return [
        "effect: shell.run",
        f"with: {{run: {_words(given['run'])}}}",
        f"probe: {_words(given['probe'])}",
        f"undo: {undo}",
    ]


def _sql(given: Answers) -> list[str]:
    undo = "none_needed" if given["undo"] == "none" else f"{{statement: {_quoted(given['undo'])}}}"
    return [
        "effect: sql.execute",
        f"with: {{database: {_quoted(given['database'])}, statement: {_quoted(given['statement'])}}}",
        f"probe: {{query: {_quoted(given['probe'])}}}",
        f"undo: {undo}",
    ]


def _http(given: Answers) -> list[str]:
    sent = _object("json", given["json"])
    method, url = given["method"].upper(), _quoted(given["url"])
    undo = "none_needed" if given["undo"] == "none" else f"{{method: {method}, json: {_json(given['undo'])}}}"
    seen = {f"/{key}": value for key, value in sent.items() if isinstance(value, str | int)}
    return [
        "effect: http.request",
        f"with: {{url: {url}, method: {method}, json: {json.dumps(sent, ensure_ascii=False)}}}",
        f"probe: {{http: {url}, json: {json.dumps(seen, ensure_ascii=False)}}}",
        f"undo: {undo}",
    ]


_BLOCKS: Mapping[str, Callable[[Answers], list[str]]] = {
    "link": _link,
    "file": _file,
    "command": _command,
    "sqlite": _sql,
    "postgresql": _sql,
    "http": _http,
}


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _words(text: str) -> str:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UserError(f"{text!r} is no command ({error}); expected words as on a command line.") from None
    if not words:
        raise UserError("A command is empty; expected words as on a command line.")
    return json.dumps(words, ensure_ascii=False)


def _json(text: str) -> str:
    return json.dumps(_object("undo", text), ensure_ascii=False)


def _object(key: str, text: str) -> dict[str, object]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict) or not found:
        raise UserError(f'`{key}` is {text!r}; expected a JSON object such as {{"state": "active"}}.')
    return found
