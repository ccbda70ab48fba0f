"""Reads docker-compose.yml the way compose does, as far as is needed, and runs its services as plain processes."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from tests.house.kit import ROOT

_VARIABLE = re.compile(r"\$\$|\$\{(?P<name>[A-Z_]+)(?::(?P<kind>[-?])(?P<rest>[^}]*))?\}")


def read_compose() -> dict[str, Any]:
    """The file as written, merges done, variables not."""
    parsed: dict[str, Any] = YAML(typ="safe").load((ROOT / "docker-compose.yml").read_text())
    return json.loads(json.dumps(parsed))  # type: ignore[no-any-return]  # plain dicts: merges are resolved


def compose_schema() -> dict[str, Any]:
    """The compose specification's own JSON schema."""
    file = resources.files("check_jsonschema") / "builtin_schemas" / "vendor" / "compose-spec.json"
    schema: dict[str, Any] = json.loads(file.read_text())
    return schema


def fill_in(value: Any, variables: Mapping[str, str]) -> Any:
    """Replace ``${NAME:-default}``, ``${NAME:?message}`` and ``$$`` as compose does.

    Raises:
        KeyError: a variable that must be set is not.
    """
    if isinstance(value, dict):
        return {key: fill_in(inner, variables) for key, inner in value.items()}
    if isinstance(value, list):
        return [fill_in(inner, variables) for inner in value]
    return _VARIABLE.sub(lambda match: _fill(match, variables), value) if isinstance(value, str) else value


def _fill(match: re.Match[str], variables: Mapping[str, str]) -> str:
    if match[0] == "$$":
        return "$"
    given = variables.get(match["name"], "")
    if given or match["kind"] is None:
        return given
    if match["kind"] == "?":
        raise KeyError(match["name"])
    return match["rest"] or ""


def script_of(compose: Mapping[str, Any], name: str, folder: Path) -> Path:
    """Write an inline script to a file and return it."""
    path = folder / f"{name}.sh"
    path.write_text(compose["configs"][name]["content"])
    return path


def plain_environment(**more: str) -> dict[str, str]:
    """An environment with our commands on the path and nothing of the caller's settings."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {"PATH": path, "HOME": "/nonexistent", "LANG": "C.UTF-8", **more}


@dataclass(frozen=True)
class Service:
    """A service's command, environment and health check with the container's places replaced by ours."""

    argv: list[str]
    environ: dict[str, str]
    check: list[str]
    name: str

    @contextmanager
    def running(self, log: Path) -> Iterator[subprocess.Popen[bytes]]:
        """Run it; terminated, and waited for, at the end."""
        with log.open("wb") as output:
            process = subprocess.Popen(self.argv, env=self.environ, stdout=output, stderr=output, cwd=log.parent)
        try:
            yield process
        finally:
            process.terminate()
            process.wait(timeout=30)

    def is_healthy(self) -> bool:
        """Run its health check once."""
        return subprocess.run(self.check, env=self.environ, capture_output=True).returncode == 0


def service_of(compose: Mapping[str, Any], name: str, places: Mapping[str, str]) -> Service:
    """Return a service as a plain process; ``places`` maps text of the container's world to ours."""

    def place(text: str) -> str:
        for ours, theirs in places.items():
            text = text.replace(ours, theirs)
        return text

    service = compose["services"][name]
    kind, *check = service.get("healthcheck", {}).get("test", ["NONE"])
    argv = [place(word) for word in service["command"]]
    environ = {key: place(str(value)) for key, value in service.get("environment", {}).items()}
    shell = ["sh", "-c", *check] if kind == "CMD-SHELL" else check
    # As in the image: PERDURE_DATA is what the Dockerfile sets.
    given = plain_environment(PERDURE_DATA=place("/data"), **environ)
    argv[0] = shutil.which(argv[0], path=given["PATH"]) or argv[0]
    return Service(argv, given, [place(word) for word in shell], name)
