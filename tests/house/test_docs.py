"""The documents say what is: reference pages are as the code, settings are all there, commands exist."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import click

from perdure.cli.main import perdure
from perdure.effects.registry import default_effects
from perdure.policy.templates import check_template, parse_template
from perdure.rules.registry import default_rules
from perdure.tools.registry import default_tools
from tests.house.kit import ROOT, text_of, tracked_files

NAMED_TESTS = re.compile(r"`(tests/[a-z_/.]+)`")


def test_reference_pages_are_as_the_code() -> None:
    """`make docs` would change nothing."""
    argv = [sys.executable, str(ROOT / "docs" / "generate.py"), "--check"]
    ended = subprocess.run(argv, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_every_setting_is_explained() -> None:
    """Each variable that settings.py names stands in the reference, and the tables there name no other."""
    read = set(re.findall(r"\"([A-Za-z]+_[A-Za-z_]+)\"", text_of(Path("perdure/settings.py"))))
    page = text_of(Path("docs/reference/settings.md"))
    told = set(re.findall(r"^\| `([A-Z_]+)` \|", page, re.MULTILINE))
    variables = {name for name in read if name.isupper()}
    assert {"PERDURE_DATA", "TEMPORAL_ADDRESS"} <= variables
    assert variables - set(re.findall(r"`([A-Z_]+)`", page)) == set()
    assert told <= variables


def test_only_settings_reads_the_environment() -> None:
    """No other module of the library or the application reads a variable; PATH, which is handed on, is no setting."""
    readers = {
        str(path)
        for path in tracked_files()
        if path.suffix == ".py" and path.parts[0] in ("perdure", "workflows", "activities", "worker.py")
        for line in text_of(path).splitlines()
        if re.search(r"os\.(environ|getenv)", line) and '"PATH"' not in line
    }
    assert readers == {"perdure/settings.py"}


def test_every_perdure_command_that_is_told_exists() -> None:
    """Each `perdure …` in a document's code is a command, with options that it has."""
    wrong = []
    for path in tracked_files():
        if path.suffix == ".md" and path.parts[:2] != ("docs", "reference"):
            for line in commands_in(text_of(path)):
                problem = find_problem(line.split())
                wrong += [f"{path}: perdure {line}: {problem}"] if problem else []
    assert wrong == []


def test_templates_in_the_documents_are_valid() -> None:
    """Each YAML template that a page shows is accepted, with the rules and effects that there are."""
    shown = [
        (path, text)
        for path in tracked_files()
        if path.suffix == ".md"
        for text in re.findall(r"```yaml\n(perdure: .*?)```", text_of(path), re.DOTALL)
    ]
    assert shown
    rules = {name: rule.shape for name, rule in default_rules().items()}
    effects = {kind: effect.always_reversible for kind, effect in default_effects().items()}
    for path, text in shown:
        check_template(parse_template(text, path=str(path)), rules=rules, effects=effects, tools=default_tools())


def test_every_folder_of_tests_that_is_told_exists() -> None:
    """The promises' page sends nobody to tests that are not there."""
    pages = [text_of(path) for path in tracked_files() if path.suffix == ".md"]
    told = {Path(name) for page in pages for name in NAMED_TESTS.findall(page)}
    there = {parent for path in tracked_files() for parent in [path, *path.parents]}
    assert told
    assert told - there == set()


def commands_in(text: str) -> list[str]:
    """What follows ``perdure`` in code spans and on the prompt lines of code blocks, without comments."""
    spans = re.findall(r"`(?:\.venv/bin/)?perdure ([a-z][^`\n]*)`", text)
    blocks = re.findall(r"```(?:console)?\n(.*?)```", text, re.DOTALL)
    prompts = [
        found for block in blocks for found in re.findall(r"^\$ (?:.*&& |[A-Z_]+=\S+ )*perdure (.*)$", block, re.M)
    ]
    return [re.split(r"\s+#|\s+>", line)[0] for line in spans + prompts]


def find_problem(words: list[str]) -> str:
    """Say what is wrong with a command line; empty when nothing is. Arguments are not looked at."""
    command: click.Command = perdure
    names = list(words)
    while isinstance(command, click.Group) and names and not names[0].startswith("-"):
        context = click.Context(command)
        found = command.get_command(context, names[0])
        if found is None:
            return "" if getattr(command, "default", "") else f"no command {names[0]!r}"
        command, names = found, names[1:]
    known = {option for param in command.params for option in [*param.opts, *param.secondary_opts]}
    unknown = [word for word in names if re.match(r"--?[a-z]", word) and word.split("=")[0] not in known]
    return f"no option {unknown}" if unknown else ""
