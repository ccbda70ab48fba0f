"""A job's inputs: what was typed becomes typed, complete and checked."""

from __future__ import annotations

import json
import posixpath
import re
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from perdure.contracts.base import JsonDict
from perdure.contracts.template import InputSpec, Template
from perdure.errors import UserError
from perdure.policy.names import nearest, suggest

TEXT_LIMIT_CHARACTERS = 64 * 1024
_SECRET_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")
_VERSION = re.compile(r"[0-9][0-9A-Za-z.+!_-]{0,63}")
_SHELL_WORDS = {"|", "||", "&", "&&", ";", ">", ">>", "<", "2>", "2>&1"}
_TRUTHS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}


def resolve_inputs(
    template: Template,
    given: Mapping[str, Any],
    *,
    folder: str,
    describe_repository: Callable[[Path], JsonDict],
) -> JsonDict:
    """Return every input of ``template``, typed and complete, in the template's order.

    ``given`` holds what was typed: text, or JSON values. ``folder`` is absolute; a relative repository starts there.
    ``describe_repository`` turns a folder into ``{path, slug, identity}`` and may raise ``UserError``. A ``path`` stays
    relative when it was typed so (rules read it from the repository's root); a ``secret`` stays a name. An optional
    input that is not given is ``None``.

    Raises:
        UserError: every problem at once: unknown names (with the nearest), missing and wrong values, unmet ``needs``.
    """
    problems = [
        f"There is no input {name!r}.{suggest(name, template.inputs, 'inputs')}"
        for name in given
        if name not in template.inputs
    ]
    resolved: JsonDict = {}
    for name, spec in template.inputs.items():
        try:
            value = _choose(name, spec, given)
            resolved[name] = _open(value, spec, folder, describe_repository)
        except UserError as error:
            problems.append(error.message)
    problems += _check_needs(template, resolved) if not problems else []
    if problems:
        raise UserError(
            "\n".join([f"The inputs of {template.name!r} are not right:", *(f"  {line}" for line in problems)])
        )
    return resolved


def read_default(name: str, spec: InputSpec) -> Any:
    """Return an input's default, typed; ``None`` without one. Raises ``UserError`` when it is wrong for its type."""
    return None if spec.default is None else _read(name, spec, spec.default)


def _choose(name: str, spec: InputSpec, given: Mapping[str, Any]) -> Any:
    value = given.get(name)
    # `version=` on a command line takes an optional input away; for text, nothing typed is a text.
    if value is None or (value == "" and spec.optional and spec.type != "string"):
        if spec.default is None and not spec.optional:
            about = f" ({spec.help})" if spec.help else ""
            raise UserError(f"The input {name!r} is missing{about}. Give {name}=<{spec.type}>.")
        return read_default(name, spec)
    return _read(name, spec, value)


def _open(value: Any, spec: InputSpec, folder: str, describe_repository: Callable[[Path], JsonDict]) -> Any:
    if spec.type != "git-repository" or value is None:
        return value
    return describe_repository(Path(posixpath.normpath(posixpath.join(folder, value))))


def _check_needs(template: Template, resolved: JsonDict) -> list[str]:
    return [
        f"The input {name!r} needs {needed!r} too. Give {needed}=<{template.inputs[needed].type}>."
        for name, spec in template.inputs.items()
        for needed in spec.needs
        if resolved[name] not in (None, "", False) and resolved[needed] in (None, "")
    ]


def _read(name: str, spec: InputSpec, value: Any) -> Any:
    readers: dict[str, Callable[[str, InputSpec, Any], Any]] = {
        "git-repository": _read_path,
        "path": _read_path,
        "string": _read_text,
        "choice": _read_choice,
        "version": _read_version,
        "command": _read_command,
        "secret": _read_secret,
        "boolean": _read_boolean,
        "integer": _read_integer,
    }
    return readers[spec.type](name, spec, value)


def _read_text(name: str, spec: InputSpec, value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        raise UserError(f"The input {name!r} is {value!r}; expected text (a fraction like 1.10 in quotes).")
    if "\0" in value or len(value) > TEXT_LIMIT_CHARACTERS:
        raise UserError(
            f"The input {name!r} holds a NUL or more than {TEXT_LIMIT_CHARACTERS} characters; expected plain text."
        )
    return value


def _read_path(name: str, spec: InputSpec, value: Any) -> str:
    text = _read_text(name, spec, value)
    if not text:
        raise UserError(f"The input {name!r} is empty; expected a path, `.` for here.")
    return posixpath.normpath(text)


def _read_choice(name: str, spec: InputSpec, value: Any) -> str:
    text = _read_text(name, spec, value)
    if text not in spec.of:
        best = nearest(text, spec.of)
        question = f" Did you mean {best!r}?" if best else ""
        raise UserError(f"The input {name!r} is {text!r}; expected one of {', '.join(spec.of)}.{question}")
    return text


def _read_version(name: str, spec: InputSpec, value: Any) -> str:
    text = _read_text(name, spec, value)
    if not _VERSION.fullmatch(text):
        raise UserError(f"The input {name!r} is {text!r}; expected a version like 1.3.0, without a `v` before it.")
    return text


def _read_command(name: str, spec: InputSpec, value: Any) -> list[str]:
    words = _split_command(name, value) if isinstance(value, str) else value
    if (
        not isinstance(words, list)
        or not words
        or not all(isinstance(word, str) and "\0" not in word for word in words)
    ):
        raise UserError(f'The input {name!r} is {value!r}; expected a list of words like ["make", "test"].')
    shell = next((word for word in words if word in _SHELL_WORDS), "")
    if shell and isinstance(value, str) and not value.lstrip().startswith("["):
        raise UserError(
            f'The input {name!r} has {shell!r}, but no shell reads it; write ["sh", "-c", {json.dumps(value)}].'
        )
    return list(words)


def _is_word(word: object) -> bool:
    return isinstance(word, str) and "\0" not in word


def _split_command(name: str, text: str) -> Any:
    try:
        return json.loads(text) if text.lstrip().startswith("[") else shlex.split(text)
    except ValueError as error:
        example = '["make", "test"]'
        raise UserError(f"The input {name!r} is {text!r} ({error}); expected a list like {example}.") from error


def _read_secret(name: str, spec: InputSpec, value: Any) -> str:
    if not isinstance(value, str) or not _SECRET_NAME.fullmatch(value):
        # The value is not shown: who types a secret here must not find it in a log.
        raise UserError(
            f"The input {name!r} is not the name of a secret; give the name that it is stored under, not its value."
        )
    return value


def _read_boolean(name: str, spec: InputSpec, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    found = _TRUTHS.get(str(value).lower()) if isinstance(value, str | int) else None
    if found is None:
        raise UserError(f"The input {name!r} is {value!r}; expected true or false.")
    return found


def _read_integer(name: str, spec: InputSpec, value: Any) -> int:
    if isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,15}", value):
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**15:
        return value
    raise UserError(f"The input {name!r} is {value!r}; expected a whole number.")
