"""Writes the reference pages from the code: `make docs`. With `--check` it only says which pages are old."""

from __future__ import annotations

import ast
import inspect
import json
import re
import sys
import typing
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import click
from pydantic import TypeAdapter

from perdure import errors
from perdure.cli import codes
from perdure.cli.lazy import LazyGroup, TeachingCommand
from perdure.cli.main import perdure
from perdure.contracts import template as language
from perdure.contracts import template_agents, template_review
from perdure.contracts.values import format_duration
from perdure.effects.registry import default_effects
from perdure.policy.templates import template_schema
from perdure.rules.registry import default_rules
from perdure.tools.base import ModelTool
from perdure.tools.registry import shipped_tools

FOLDER = Path(__file__).resolve().parent / "reference"
NOTE = "<!-- Written by `make docs` from the code. Change it there. -->\n\n"

Schema = dict[str, Any]

TYPES = {"string": "text", "integer": "number", "boolean": "`true` `false`", "object": "object"}

CLI_INTRODUCTION = """\
`--json` and `--data` are options of every command. A job is `3`, `releases/3` or `@last`; a plan is its digest, eight
digits of it are enough. [Exit codes](errors.md) are the same for all.
"""

TEMPLATES_INTRODUCTION = """\
# The template language

The fields of a job template, version 1. `perdure templates schema` prints the same as a JSON schema for editors;
[how to write one](../how-to/write-a-template.md) begins with an example.

A *condition* is `true`, `false` or one expression. A *duration* is `90s`, `2m`, `4h`, `7d`. An *amount* is `0.50 USD`.
A *command* is a list of words, or one expression that gives one.

## Template

"""

TOOLS_INTRODUCTION = """\
# Tools

What an agent can be given. A template names the ones that its agent gets; [your own](../how-to/write-a-tool.md) are
added by `[tools]` in the settings file. `perdure tools list` shows those of an installation, `--json` with their
schemas and the hash of each definition, which stands in every call's record.

A call is judged by what it *touches*: `file:src/a.py`, `command:git push origin main` (each simple command of a line,
without its options), `https://api.example.org/v1/x`, `note:build`. Permissions are patterns over tool, arguments and
that: `**` stands for anything, `*` for anything without `/`. A denial or an ask is read broadly and goes before every
allowance; what no permission speaks about is denied.

Long output is shown as head and tail, with how to read the middle by `output.read`. What a tool gives back is data: no
text in it is an instruction to Perdure.
"""

ERRORS_INTRODUCTION = """
## Errors

The API answers with `kind`, `message` and `exit_code`; `--json` writes the same to stderr. A message says what
happened, what was expected and what to do next.

| kind | exit code | |
|---|---|---|
"""


def write_cli() -> str:
    """Every command with its options and examples, from click."""
    parts = [f"# Commands\n\n{_paragraphs(perdure.help)}\n\n{CLI_INTRODUCTION}"]
    for title, section in perdure.sections.items():
        parts.append(f"\n## {title}\n")
        context = click.Context(perdure, info_name="perdure")
        for name in section:
            parts += _command(["perdure", name], perdure.get_command(context, name), "###")
    return "".join(parts)


def _command(words: list[str], command: click.Command | None, level: str) -> Iterator[str]:
    assert command is not None, words
    name = " ".join(words)
    context = click.Context(command, info_name=name)
    yield f"\n{level} {name}\n\n{_paragraphs(command.help)}\n\n"
    yield f"```\n{name} {' '.join(command.collect_usage_pieces(context))}\n```\n"
    if isinstance(command, TeachingCommand | LazyGroup) and command.examples:
        yield "\n| example | |\n|---|---|\n" + "".join(f"| `{_cell(a)}` | {_cell(b)} |\n" for a, b in command.examples)
    rows = [_option(param) for param in command.params if isinstance(param, click.Option) and _is_own(param)]
    if rows:
        yield "\n| option | |\n|---|---|\n" + "".join(rows)
    if isinstance(command, LazyGroup):
        for inner in command.list_commands(context):
            yield from _command([*words, inner], command.get_command(context, inner), level + "#")


def _is_own(option: click.Option) -> bool:
    return option.name not in {"data", "as_json"}


def _option(option: click.Option) -> str:
    metavar = "" if option.is_flag else f" {option.make_metavar(click.Context(perdure))}"
    return f"| `{_cell(', '.join(option.opts) + metavar)}` | {_cell(option.help or '')} |\n"


def _paragraphs(text: str | None) -> str:
    return inspect.cleandoc(text or "").replace("\b\n", "")


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def write_templates() -> str:
    """Every field of the template language, from its schema and the strings under its fields."""
    schema = template_schema()
    docs = _field_docs(language) | _field_docs(template_review) | _field_docs(template_agents)
    parts = [TEMPLATES_INTRODUCTION, _fields(schema, docs["Template"])]
    for name in sorted(schema["$defs"], key=list(docs).index):
        part = schema["$defs"][name]
        parts.append(f"\n## {name}\n\n{_plain(part.get('description', ''))}\n\n{_fields(part, docs[name])}")
    return "".join(parts)


def _fields(part: Schema, docs: dict[str, str]) -> str:
    rows = ["| field | | default | |\n|---|---|---|---|\n"]
    for name, field in part["properties"].items():
        default = "**needed**" if name in part.get("required", []) else f"`{_default(field)}`"
        rows.append(f"| `{name}` | {_type(field)} | {default} | {_plain(docs.get(name, ''))} |\n")
    return "".join(rows)


def _default(field: Schema) -> str:
    value = field.get("default")
    if isinstance(value, dict) and value:
        return "–"  # a part's own defaults stand in its own table
    if _type(field) == "amount":
        return f"{value / 1_000_000:.2f} USD"
    if isinstance(value, str) and _type(field) == "duration":
        value = format_duration(TypeAdapter(timedelta).validate_python(value))
    return _cell(json.dumps(value, ensure_ascii=False)) if value not in (None, "") else "–"


def _type(field: Schema) -> str:
    """Say a field's type in words; conditions, durations and commands by their names."""
    if "$ref" in field:
        name = field["$ref"].rsplit("/", 1)[1]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in field:
        kinds = [kind for kind in field["anyOf"] if kind.get("type") != "null"]
        if any("{" in kind.get("pattern", "") for kind in kinds):
            return "condition" if any(kind.get("type") == "boolean" for kind in kinds) else "command"
        return " or ".join(dict.fromkeys(map(_type, kinds)))
    if "enum" in field or "const" in field:
        return " ".join(f"`{value}`" for value in field.get("enum", [field.get("const")]) if value != "")
    if "patternProperties" in field or isinstance(field.get("additionalProperties"), dict):
        inner = next(iter(field.get("patternProperties", {}).values()), field.get("additionalProperties"))
        return f"names → {_type(inner)}"
    if field.get("type") == "array":
        return f"list of {_type(field.get('items', {}))}"
    if "(\\d+d)" in field.get("pattern", ""):
        return "duration"
    if "USD" in field.get("pattern", ""):
        return "amount"
    return TYPES.get(field.get("type", ""), "any")


def _field_docs(module: ModuleType) -> dict[str, dict[str, str]]:
    """Class → field as templates write it → the string under it, in the order of the source."""
    found: dict[str, dict[str, str]] = {}
    for node in ast.parse(inspect.getsource(module)).body:
        if isinstance(node, ast.ClassDef):
            fields = getattr(module, node.name).model_fields if hasattr(module, node.name) else {}
            found[node.name] = {
                fields[field.target.id].alias or field.target.id: text.value.value
                for field, text in zip(node.body, node.body[1:], strict=False)
                if isinstance(field, ast.AnnAssign)
                and isinstance(field.target, ast.Name)
                and field.target.id in fields
                and isinstance(text, ast.Expr)
                and isinstance(text.value, ast.Constant)
                and isinstance(text.value.value, str)
            }
    return found


def _plain(text: str) -> str:
    """A docstring as Markdown in a table, without its pointers into the code."""
    return _cell(re.sub(r" See :\w+:`[^`]+`\.", "", text).replace("``", "`"))


def write_rules_and_effects() -> str:
    """Every rule and every kind of effect that a template can name, from the registries."""
    parts = ["# Rules and effects\n\nWhat a template can name in `use` and `effect`.\n\n## Rules\n"]
    for name, rule in default_rules().items():
        parts.append(f"\n### {name}\n\n{rule.rule_class.capitalize()}. {_plain(rule.about)}\n\n")
        parts.append(f"`with`: {_names(rule.needs, 'needed') or _names(rule.takes, '') or 'nothing'}")
        parts.append(f"; {_names(rule.takes, 'optional')}\n" if rule.needs and rule.takes else "\n")
    parts.append("\n## Effects\n")
    for kind, effect in default_effects().items():
        parts.append(f"\n### {kind}\n\n{_plain(type(effect).__doc__ or '')}\n\n{_plain(effect.plan.__doc__ or '')}\n\n")
        undo = "Its undo is built in." if effect.always_reversible else (
            "A step needs `undo`, `undo: none_needed` or `irreversible`."
        )  # fmt: skip
        parts.append(f"Version {effect.version}. {undo}{_settling(effect.settle)}\n")
    return "".join(parts)


def _settling(settle: timedelta) -> str:
    if not settle:
        return ""
    return f' A probe\'s "not done" counts only {settle.total_seconds():.0f} s after it was begun.'


def _names(names: typing.Iterable[str], what: str) -> str:
    listed = ", ".join(f"`{name}`" for name in sorted(names))
    return f"{listed} ({what})" if listed and what else listed


def write_tools() -> str:
    """Every shipped tool, from the registry."""
    parts = [TOOLS_INTRODUCTION]
    for tool in shipped_tools():
        parts.append(f"\n## {tool.spec.name}\n\n{tool.spec.description}\n\n{_tool_facts(tool)}\n")
        rows = [_argument(name, field, tool.spec.parameters) for name, field in _arguments(tool.spec.parameters)]
        parts += ["\n| argument | | default | |\n|---|---|---|---|\n", *rows] if rows else []
    return "".join(parts)


def _tool_facts(tool: ModelTool[Any]) -> str:
    spec = tool.spec
    facts = [{"read": "Changes nothing", "workspace": "Changes the workspace"}.get(spec.effect_class, "External")]
    facts += ["may run again"] if spec.may_repeat else []
    facts += [f"ends after {spec.limit_seconds} s", f"shows {spec.output_limit_bytes} bytes at once"]
    return "; ".join(facts) + "."


def _arguments(schema: Schema) -> Iterator[tuple[str, Schema]]:
    yield from schema["properties"].items()


def _argument(name: str, field: Schema, schema: Schema) -> str:
    kinds = [field, *field.get("anyOf", [])]
    kind = " or ".join(dict.fromkeys(filter(None, (_argument_type(one, schema) for one in kinds))))
    needed = name in schema.get("required", [])
    default = "**needed**" if needed else f"`{_cell(json.dumps(field.get('default')))}`"
    return f"| `{name}` | {kind} | {default} | {_cell(field.get('description', ''))} |\n"


def _argument_type(field: Schema, schema: Schema) -> str:
    if "enum" in field:
        return " ".join(f"`{value}`" for value in field["enum"])
    if "$ref" in field:
        inner = schema["$defs"][field["$ref"].rsplit("/", 1)[1]]
        return "object of " + ", ".join(f"`{name}`" for name in inner["properties"])
    if field.get("type") == "array":
        return f"list of {_argument_type(field['items'], schema)}"
    return TYPES.get(field.get("type", ""), "")


def write_errors() -> str:
    """The exit codes and the tree of errors."""
    rows = "".join(f"| {code} | {_cell(meaning)} |\n" for code, meaning in codes.MEANINGS.items())
    parts = [f"# Exit codes and errors\n\n## Exit codes\n\n| code | |\n|---|---|\n{rows}"]
    parts.append(
        "\n## Errors\n\nThe API answers with `kind`, `message` and `exit_code`; `--json` writes the same to stderr. A "
    )
    parts.append(
        "message says what happened, what was expected and what to do next.\n\n| kind | exit code | |\n|---|---|---|\n"
    )
    for name, error in vars(errors).items():
        if inspect.isclass(error) and issubclass(error, errors.PerdureError) and error is not errors.PerdureError:
            parts.append(f"| `{name}` | {error.exit_code} | {_plain(error.__doc__ or '')} |\n")
    return "".join(parts)


PAGES: dict[str, Callable[[], str]] = {
    "cli.md": write_cli,
    "templates.md": write_templates,
    "rules-and-effects.md": write_rules_and_effects,
    "tools.md": write_tools,
    "errors.md": write_errors,
}


def main(arguments: list[str]) -> int:
    """Write or check every page; 1 when one was old under `--check`."""
    pages = {FOLDER / name: NOTE + write() for name, write in PAGES.items()}
    old = [path for path, text in pages.items() if not path.exists() or path.read_text("utf-8") != text]
    if "--check" in arguments:
        sys.stdout.writelines(f"{path.relative_to(FOLDER.parents[1])} is old. Run `make docs`.\n" for path in old)
        return 1 if old else 0
    for path in old:
        path.parent.mkdir(exist_ok=True)
        path.write_text(pages[path], "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
