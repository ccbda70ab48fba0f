"""The keys that encrypt Temporal's payloads: one small file, never sent anywhere.

Light on purpose: the supervisor makes the first key and must not wait for cryptography or Temporal's SDK to load.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from dataclasses import dataclass, field
from pathlib import Path

from perdure.errors import SetupError

KEY_FILE = "payload.key"
KEY_BYTES = 32


@dataclass(frozen=True)
class PayloadKeys:
    """Keys by id; ``current`` encrypts, every one decrypts. An id is derived from its key: no two keys share one."""

    current: str
    by_id: dict[str, bytes] = field(repr=False)


def key_id(key: bytes) -> str:
    """Return the public name of ``key``: eight hex digits that tell nothing about it."""
    return hashlib.sha256(b"perdure.payload-key/1\0" + key).hexdigest()[:8]


def load_keys(folder: Path) -> PayloadKeys:
    """Read the keys of ``folder``. The file has one key a line, 64 hex digits each; the last one is current.

    Raises:
        SetupError: the file is missing, readable by others, or half-written.
    """
    path = folder / KEY_FILE
    try:
        mode, text = path.stat().st_mode, path.read_text("ascii")
    except FileNotFoundError:
        raise SetupError(
            f"The payload key {path} is missing; without it no running job can be read. "
            "Restore it from a backup, or copy it from a worker of the same cluster."
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise SetupError(f"The payload key {path} cannot be read ({error}). Check the file and its owner.") from error
    if mode & 0o077:
        raise SetupError(f"The payload key {path} has mode {mode & 0o777:04o}; expected 0600. Run `chmod 600 {path}`.")
    return _parse(text, path)


def make_key(folder: Path) -> PayloadKeys:
    """Return the keys of ``folder``, making the first one when there is none. May be called twice, also at once."""
    path = folder / KEY_FILE
    if not path.exists():
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _write_once(path, secrets.token_bytes(KEY_BYTES).hex() + "\n")
    return load_keys(folder)


def _write_once(path: Path, text: str) -> None:
    """Write a file that is whole or absent; the first of two writers wins (a link never replaces)."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(draft, path)
        except FileExistsError:
            return
    finally:
        draft.unlink(missing_ok=True)


def _parse(text: str, path: Path) -> PayloadKeys:
    by_id: dict[str, bytes] = {}
    current = ""
    for line in text.split():
        try:
            key = bytes.fromhex(line)
        except ValueError:
            key = b""
        if len(key) != KEY_BYTES:
            raise SetupError(
                f"The payload key {path} is damaged; expected lines of {KEY_BYTES * 2} hex digits. Restore it."
            )
        current = key_id(key)
        by_id[current] = key
    if not current:
        raise SetupError(f"The payload key {path} is empty; expected a line of {KEY_BYTES * 2} hex digits. Restore it.")
    return PayloadKeys(current, by_id)
