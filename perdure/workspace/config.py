"""Reading git configuration as plain text: nothing in it is executed, no include of a repository is followed."""

from __future__ import annotations

import stat
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path

from perdure.workspace.git_process import READ_LIMIT, GitError, git_environment, git_program, run_plain

Config = Mapping[str, list[str]]
"""Values by key, in file order. Section and name are lower case, a subsection keeps its case: ``remote.Origin.url``."""

CONTENT_KEYS = (
    "core.autocrlf",
    "core.eol",
    "core.filemode",
    "core.symlinks",
    "core.ignorecase",
    "core.precomposeunicode",
    "core.checkstat",
    "core.trustctime",
)
"""Keys that say how file bytes and modes of a work tree compare with objects. None of them can name a program."""


def read_config(path: Path, *, includes: bool = False) -> dict[str, list[str]]:
    """Return the values of one configuration file; empty when there is none.

    Raises:
        GitError: git cannot parse it.
    """
    try:
        found = path.stat()
    except OSError:
        return {}
    if not stat.S_ISREG(found.st_mode):
        return {}
    values = _read_version(path, includes, (found.st_ino, found.st_mtime_ns, found.st_size))
    if includes and any(key.startswith(("include.", "includeif.")) for key in values):
        # What it includes may have changed while the file itself did not.
        values = _list_config(path, includes=True)
    return {key: list(found) for key, found in values.items()}


@lru_cache(maxsize=64)
def _read_version(path: Path, includes: bool, _version: tuple[int, int, int]) -> dict[str, list[str]]:
    """One version of a file, read once: git replaces configuration files, so that a new one has another inode."""
    return _list_config(path, includes=includes)


def _list_config(path: Path, *, includes: bool) -> dict[str, list[str]]:
    argv = [git_program(), "config", "--file", str(path), "--includes" if includes else "--no-includes", "--list", "-z"]
    # A git directory that is not there, and the root as folder: no repository around the file is looked at.
    env = git_environment({"GIT_DIR": "/nonexistent/git", "HOME": str(Path.home())})
    code, out, err = run_plain(argv, stdin=b"", env=env, cwd=Path("/"), limit=READ_LIMIT)
    if code:
        said = err.decode("utf-8", "replace").strip()
        raise GitError(f"{path} cannot be read as git configuration: {said}. Repair the file, then try again.")
    return parse_list(out)


def parse_list(listed: bytes) -> dict[str, list[str]]:
    """Parse ``git config --list -z``. A key without ``=`` counts as ``true``, as git reads it."""
    values: dict[str, list[str]] = {}
    for item in listed.split(b"\0"):
        if item:
            key, newline, value = item.decode("utf-8", "surrogateescape").partition("\n")
            values.setdefault(key, []).append(value if newline else "true")
    return values


def user_config() -> dict[str, list[str]]:
    """Return the user's own configuration: the machine's, then ``~/.config/git/config``, then ``~/.gitconfig``."""
    merged: dict[str, list[str]] = {}
    home = Path.home()
    for path in (Path("/etc/gitconfig"), home / ".config" / "git" / "config", home / ".gitconfig"):
        for key, found in read_config(path, includes=True).items():
            merged.setdefault(key, []).extend(found)
    return merged


def pick(keys: Iterable[str], *configs: Config) -> dict[str, str]:
    """Return the last value of each key over ``configs``, later ones winning."""
    return {key: config[key][-1] for key in keys for config in configs if config.get(key)}


def config_text(values: Iterable[tuple[str, str]]) -> str:
    """Write a configuration file from (key, value) pairs, every value quoted."""
    lines = []
    for key, value in values:
        section, _, rest = key.partition(".")
        subsection, _, name = rest.rpartition(".")
        head = f'[{section} "{_escape(subsection)}"]' if subsection else f"[{section}]"
        lines.append(f'{head}\n\t{name} = "{_escape(value)}"\n')
    return "".join(lines)


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
