"""The files of the base commit that tools are set by: read as data, once; what cannot be read becomes a finding."""

from __future__ import annotations

import configparser
import json
import tomllib
from collections.abc import Callable, Iterable
from typing import Any

from perdure.errors import UserError
from perdure.policy.yaml_text import YamlProblem, read_yaml
from perdure.rules.git_tree import CommitTree, join

_LIMIT_BYTES = 512 * 1024
"""Settings have a few kilobytes; a package.json with everything in it a few more."""


class SettingsFiles:
    """One folder's files."""

    def __init__(self, tree: CommitTree) -> None:
        self._tree = tree
        self._names = set(tree.names)
        self._read: dict[str, dict[str, Any]] = {}
        self._broken: set[str] = set()
        self.findings: list[str] = []

    @property
    def folder(self) -> str:
        """From the repository's root; empty for the root itself."""
        return self._tree.folder

    def has(self, name: str) -> bool:
        """Whether a file of that name is there."""
        return name in self._names

    def path(self, name: str) -> str:
        """From the repository's root."""
        return join(self._tree.folder, name)

    def find_first(self, names: Iterable[str]) -> str:
        """The first of the names that is there; empty when none is."""
        return next((name for name in names if self.has(name)), "")

    def open_folder(self, name: str) -> SettingsFiles | None:
        """The folder of that name beneath this one, with findings of its own."""
        tree = self._tree.open_folder(name)
        return SettingsFiles(tree) if tree else None

    def json(self, name: str) -> dict[str, Any]:
        """A JSON file's object; empty when there is none, or none that can be read."""
        return self._load(name, json.loads, "JSON")

    def toml(self, name: str) -> dict[str, Any]:
        """A TOML file's tables, in the same way."""
        return self._load(name, tomllib.loads, "TOML")

    def yaml(self, name: str) -> dict[str, Any]:
        """A YAML (or JSON) file's mapping, in the same way."""
        return self._load(name, lambda text: read_yaml(text).value, "YAML")

    def ini(self, name: str, section: str) -> dict[str, Any]:
        """The texts of one section of an INI file, in the same way."""
        return self._load(name, lambda text: _read_ini(text, section), "INI")

    def document(self, name: str) -> dict[str, Any]:
        """A file by what its name ends with; YAML when that says nothing, which JSON is too."""
        if name.endswith(".json"):
            return self.json(name)
        return self.toml(name) if name.endswith(".toml") else self.yaml(name)

    def is_readable(self, name: str) -> bool:
        """Whether a file that was asked for could be read; one that was not is named in ``findings``."""
        return self.has(name) and name not in self._broken

    def refuse_program(self, names: Iterable[str], tool: str) -> None:
        """Name settings that are programs: nothing of the project is run to read them."""
        for name in names:
            if self.has(name):
                told = f"{self.path(name)} was not read: a program. What {tool} is told there does not count"
                self.findings.append(f"{told}; habits, conventions and your edits do.")

    def _load(self, name: str, parse: Callable[[str], Any], kind: str) -> dict[str, Any]:
        if not self.has(name):
            return {}
        if name not in self._read:
            self._read[name] = self._parse(name, parse, kind)
        return self._read[name]

    def _parse(self, name: str, parse: Callable[[str], Any], kind: str) -> dict[str, Any]:
        try:
            data = self._tree.read(name) or b""
            if len(data) > _LIMIT_BYTES:
                raise ValueError(f"it has {len(data)} bytes; expected at most {_LIMIT_BYTES}")
            found = parse(data.decode("utf-8-sig"))
        except UserError as error:
            self._tell(name, kind, str(error))
        except YamlProblem as problem:
            self._tell(name, kind, f"line {problem.line}: {problem.message}")
        except RecursionError:
            self._tell(name, kind, "its values are nested too deeply")
        except (ValueError, configparser.Error) as error:
            self._tell(name, kind, " ".join(str(error).split()))
        else:
            return found if isinstance(found, dict) else {}
        return {}

    def _tell(self, name: str, kind: str, why: str) -> None:
        self._broken.add(name)
        self.findings.append(f"{self.path(name)} cannot be read as {kind} ({why.rstrip('.')}): nothing in it counts.")


def _read_ini(text: str, section: str) -> dict[str, Any]:
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
    parser.read_string(text)
    return dict(parser[section]) if parser.has_section(section) else {}


def table(value: Any, *keys: str) -> dict[str, Any]:
    """Return the table at ``keys``; an empty one when there is none."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def texts(value: Any) -> list[str]:
    """Return the texts of a list, or one text as a list; empty for anything else."""
    if isinstance(value, str):
        return [value]
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def items(value: Any) -> list[dict[str, Any]]:
    """Return the tables of a list; empty for anything else."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
