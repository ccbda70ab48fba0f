"""What a reviewer must know about changed files before reading the diff."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import PurePosixPath

from perdure.contracts.base import BlobRef, path_bytes
from perdure.contracts.plan import FileChange
from perdure.contracts.visible import visible, visible_bytes
from perdure.policy.confusables import colliding_names, confusing_name

ReadBlob = Callable[[BlobRef], bytes]

LINK, SUBMODULE, EXECUTABLE, REGULAR = "120000", "160000", "100755", "100644"

_KINDS = {
    LINK: "a symbolic link",
    SUBMODULE: "a submodule",
    EXECUTABLE: "an executable file",
    REGULAR: "a regular file",
}

_BINARY_PROBE_BYTES = 8000
"""Git's own rule: binary is what has a NUL among its first 8,000 bytes."""

_STEERING = re.compile(
    "\r(?!\n)|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]"
)

_CI = re.compile(
    r"^(\.github/(workflows|actions)/|\.(gitea|forgejo)/workflows/|\.circleci/|\.buildkite/|\.woodpecker|\.teamcity/|\.ci/"
    r"|\.gitlab-ci\.ya?ml$|\.gitlab/ci/|\.travis\.ya?ml$|\.drone\.ya?ml$|\.?appveyor\.ya?ml$|azure-pipelines[^/]*\.ya?ml$"
    r"|bitbucket-pipelines\.ya?ml$|cloudbuild\.ya?ml$|buildspec\.ya?ml$|jenkinsfile$|(.*/)?action\.ya?ml$)",
    re.IGNORECASE,
)
_GIT_FILES = re.compile(r"(^|/)(\.gitattributes|\.gitmodules|\.lfsconfig)$", re.IGNORECASE)
_HOOKS = re.compile(
    r"(^|/)(\.githooks/|\.husky/|\.pre-commit-config\.ya?ml$|\.pre-commit-hooks\.ya?ml$|\.?lefthook[^/]*\.(ya?ml|toml|json)$"
    r"|\.overcommit\.yml$)",
    re.IGNORECASE,
)
_SELF_STARTING = re.compile(
    r"(^|/)(\.envrc|\.vscode/(tasks|settings|launch)\.json|\.devcontainer/.+|\.devcontainer\.json|sitecustomize\.py"
    r"|usercustomize\.py|[^/]+\.pth|\.npmrc|\.yarnrc(\.yml)?|pip\.conf)$",
    re.IGNORECASE,
)
_OWNERS = re.compile(r"^(\.github/|\.gitlab/|docs/)?codeowners$", re.IGNORECASE)

_FILES = (
    (_CI, "is a CI file: it runs with the project's rights on its build machines"),
    (_GIT_FILES, "tells git how to treat other files"),
    (_HOOKS, "is a hook file: it runs on the machine of everyone who commits"),
    (_SELF_STARTING, "is acted upon by tools as soon as somebody opens or installs the project"),
    (_OWNERS, "says who must review changes"),
)


def name_hazards(changes: Sequence[FileChange], read: ReadBlob) -> list[str]:
    """Return one sentence for each thing that the diff alone would not make plain, in the order of the paths.

    Sentences are safe for a terminal. ``read`` gives a blob's bytes; asked at most once for each side of a change.
    """
    ordered = sorted(changes, key=lambda change: path_bytes(change.path))
    found = [f"{shown_path(change)}: {text}." for change in ordered for text in _of_one(change, read)]
    for one, other in colliding_names(change.path for change in ordered):
        found.append(f"{_quote(one)} and {_quote(other)} differ only in case or in letters that look alike.")
    return found


def shown_path(change: FileChange) -> str:
    """A change's path as a reviewer may see it."""
    return _quote(change.path)


def is_binary(data: bytes) -> bool:
    """Whether git would call these bytes binary."""
    return b"\0" in data[:_BINARY_PROBE_BYTES]


def _of_one(change: FileChange, read: ReadBlob) -> Iterator[str]:
    if why := confusing_name(change.path):
        yield why
    yield from _of_name(change)
    yield from _of_mode(change, read)
    if SUBMODULE not in {change.old_mode, change.new_mode} and change.new_mode != LINK:
        yield from _of_content(change, read)


def _of_name(change: FileChange) -> Iterator[str]:
    name = path_bytes(change.path).decode("utf-8", "replace")
    for pattern, meaning in _FILES:
        if pattern.search(name):
            yield meaning
    parts = PurePosixPath(name).parts
    if any(part.lower() in {".git", "git~1"} for part in parts) or ".." in parts or name.startswith("/"):
        yield "its path leaves the checkout or enters git's own folder; no effect of Perdure writes it"


def _of_mode(change: FileChange, read: ReadBlob) -> Iterator[str]:
    old, new = change.old_mode, change.new_mode
    if new == LINK:
        target = visible_bytes(read(change.new)) if change.new else "?"
        yield f"a {'changed' if old == LINK else 'new'} symbolic link to '{target}'{_outside(change.path, target)}"
    elif new == SUBMODULE:
        yield f"a {'moved' if old == SUBMODULE else 'new'} submodule; what is in it is not part of this plan"
    elif old in {LINK, SUBMODULE}:
        yield f"it was {_KINDS[old]} and {'becomes ' + _kind(new) if new else 'is removed'}"
    elif not old and new == EXECUTABLE:
        yield "a new executable file"
    elif old and new and old != new:
        yield f"it changes from {_kind(old)} to {_kind(new)} (mode {old} → {new})"


def _kind(mode: str) -> str:
    return _KINDS.get(mode, f"mode {mode}")


def _outside(path: str, target: str) -> str:
    inside = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    return " (outside the repository)" if inside.startswith(("/", "..")) else ""


def _of_content(change: FileChange, read: ReadBlob) -> Iterator[str]:
    old = read(change.old) if change.old else b""
    new = read(change.new) if change.new else b""
    if is_binary(old) or is_binary(new):
        yield f"binary, {_measure(change.old)} → {_measure(change.new)}; its content is not in the diff"
        return
    if not _is_utf8(new) and _is_utf8(old):
        yield "its content is no UTF-8; the bytes that are none are shown as ⟨0x..⟩"
    if steering := _count_steering(new) - _count_steering(old):
        listed = ", ".join(f"{visible(char)} ×{count}" for char, count in sorted(steering.items()))
        yield f"its content gains characters that steer a terminal or cannot be seen: {listed}"


def _measure(ref: BlobRef | None) -> str:
    return f"{ref.size_bytes:,} bytes SHA-256 {ref.sha256}" if ref else "absent"


def _count_steering(data: bytes) -> Counter[str]:
    """Steering characters by how often they occur; a byte order mark at the very start is ordinary."""
    return Counter(_STEERING.findall(data.decode("utf-8", "replace").removeprefix("\ufeff")))


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _quote(path: str) -> str:
    return f"'{visible_bytes(path_bytes(path))}'"
