"""The language in which a model's answers are written down beforehand: YAML or JSON, read into these types.

``docs/how-to/test-with-a-scripted-model.md`` explains it by examples.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from pydantic import ConfigDict, Field, JsonValue, TypeAdapter, ValidationError

from perdure.contracts.base import Contract
from perdure.errors import UserError

Api = Literal["chat", "messages"]
"""Which protocol was spoken: OpenAI's chat completions, or Anthropic's messages."""


class ScriptPart(Contract):
    """A part of a script; ``with`` and ``json`` are words of Python's, so those two fields have other names in it."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Call(ScriptPart):
    """One tool call of an answer."""

    tool: str
    """Name of the tool, offered or not."""
    arguments: dict[str, JsonValue] = Field(default_factory=dict, alias="with")
    """Any JSON object: wrong types are answered as they stand."""
    raw: str | None = None
    """Text instead of the arguments, for text that is no JSON."""
    id: str = ""
    """Empty: made from the turn and the call's place in it."""


class Usage(ScriptPart):
    """What an answer says that it cost, in tokens."""

    input: int = 0
    output: int = 0
    cached: int = 0


class Answer(ScriptPart):
    """One answer. All fields are optional; an answer without any is an empty one."""

    text: str = ""
    """``$turn``, ``$number`` and ``$model`` are replaced, here and in texts of a call's arguments."""
    text_bytes: int = Field(0, ge=0)
    """This many more bytes of text."""
    data: JsonValue = Field(None, alias="json")
    """The text is this JSON value."""
    thinking: str = ""
    """Reasoning that comes before the text."""
    calls: list[Call] = Field(default_factory=list)
    """Tool calls; several are parallel ones."""
    usage: Usage | Literal["made up", "unknown"] = "made up"
    """Made up: four bytes a token. Unknown: the answer does not say."""
    finish: str = ""
    """Why it ended, in the protocol's own word; empty: what fits."""
    repeat: int = Field(1, ge=1)
    """Stands for this many answers in a row."""
    delay_ms: int = Field(0, ge=0)
    """Before the first byte."""
    pace_ms: int = Field(0, ge=0)
    """Between the events of a stream."""
    hold: str = ""
    """Nothing is sent before this name is released (``POST /release/NAME``)."""
    hold_half: str = ""
    """Half of a stream's events are sent; the others once this name is released."""
    status: int = Field(200, ge=200, le=599)
    """From 400 on the answer is an error in the protocol's form."""
    retry_after: int | str | None = None
    """The header's value: seconds, or an HTTP date."""
    error: str = ""
    """Text of the error. With status 200: it is sent in the middle of a stream."""
    raw: str | None = None
    """The whole body as it stands; nobody checks that it is JSON, or events."""
    cut_after_bytes: int | None = Field(None, ge=0)
    """The connection is cut after this many bytes of the body; 0: before the answer's first byte."""


class When(ScriptPart):
    """What must be true of a request. Fields left out do not matter."""

    turn: int | None = None
    """Number of the model's answers that the conversation already holds; 0 in its first request."""
    says: str = ""
    """Text anywhere in the conversation: instructions, messages, results of tools."""
    last_says: str = ""
    """Text in the last message or result."""
    model: str = ""
    tool: str = ""
    """A tool of that name is offered."""
    api: Api | None = None
    stream: bool | None = None
    wants_json: bool | None = None
    """An answer by a JSON schema is asked for."""


class Rule(ScriptPart):
    """An answer to whatever request fits."""

    when: When
    answer: Answer
    times: int | None = Field(None, ge=1)
    """How often it may be used; ``None``: always."""


class Script(ScriptPart):
    """All answers. The first fitting rule goes first, then the answer for the turn, then the next in order."""

    rules: list[Rule] = Field(default_factory=list)
    turns: list[Answer | list[Answer]] = Field(default_factory=list)
    """By the conversation's turn, whoever asks and how often: a worker that was killed gets the same again. A list is
    one answer an attempt, its last one from then on."""
    answers: list[Answer] = Field(default_factory=list)
    """In the order of asking."""
    otherwise: Answer | None = None
    """When nothing fits; without it, such a request is refused with 400 and a text that says so."""
    key: str = ""
    """Requests without this key are refused with 401."""
    models: list[str] = Field(default_factory=lambda: ["scripted"])
    """Names that ``GET /v1/models`` lists. Every name is answered."""


_SCRIPT = TypeAdapter(Script)


def load_script(source: Path | dict[str, Any] | Script) -> Script:
    """Read a script from a YAML or JSON file, or from plain data.

    Raises:
        UserError: it cannot be read, or says what no script says; every place is named.
    """
    if isinstance(source, Script):
        return source
    plain: Any = _read(source) if isinstance(source, Path) else source
    try:
        return _SCRIPT.validate_python(plain)
    except ValidationError as error:
        name = source if isinstance(source, Path) else "the script"
        raise UserError(f"{name} is no script of a model's answers: {'; '.join(_faults(error))}.") from error


def unrolled(turns: list[Answer | list[Answer]]) -> list[list[Answer]]:
    """Every turn's attempts, repeated ones written out."""
    out: list[list[Answer]] = []
    for entry in turns:
        attempts = entry if isinstance(entry, list) else [entry]
        out += [attempts] * (attempts[0].repeat if attempts else 1)
    return out


def _read(path: Path) -> Any:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        text = path.read_text(encoding="utf-8")
        return json.loads(text) if path.suffix == ".json" else YAML(typ="safe", pure=True).load(text)
    except (OSError, UnicodeDecodeError, json.JSONDecodeError, YAMLError) as error:
        raise UserError(f"The script {path} cannot be read: {error}") from error


def _faults(error: ValidationError) -> Iterator[str]:
    for fault in error.errors(include_url=False):
        place = ".".join(str(part) for part in fault["loc"]) or "the whole"
        yield f"{place}: {fault['msg']}"
