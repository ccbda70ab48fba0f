"""The data folder: is it usable, is it ours, is it whole. Every "no" says what was found and what to do."""

from __future__ import annotations

import errno
import json
import os
import secrets
import stat
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from perdure.errors import SetupError
from perdure.runtime.payload_keys import KEY_FILE, load_keys, make_key
from perdure.runtime.state import LOCK_FILE, STATE_FILE, write_whole
from perdure.settings import Settings

FORMAT = 1
MARKER = "installation.json"
WORKER_LOCK = "worker.lock"
TEMPORAL_DATABASE = "temporal.db"
LEDGER_DATABASE = "ledger.db"
MIN_FREE_BYTES = 64 * 1024 * 1024
MAX_SOCKET_BYTES = 107
"""``sun_path`` has 108 bytes on Linux, one of them for the closing zero."""

SQLITE_MAGIC = b"SQLite format 3\0"

_OURS = {MARKER, LOCK_FILE, WORKER_LOCK, STATE_FILE, "config.toml"}
_OURS |= {"keys", "run", "logs", "blobs", "workspaces", "locks", "journal", "secrets"}
_OURS |= {name + end for name in (TEMPORAL_DATABASE, LEDGER_DATABASE) for end in ("", "-wal", "-shm", "-journal")}


@dataclass(frozen=True)
class Installation:
    """One data folder that is whole."""

    id: str
    """Random; tells two data folders apart, on one machine or many."""
    created_at: str
    note: str = ""
    """What was repaired on the way, for a person; empty: nothing."""


def check_folder(settings: Settings) -> None:
    """Make the data folder when it is missing and see that it can be used: path, owner, mode, space, a real write.

    Raises:
        SetupError: it cannot.
    """
    check_socket_path(settings)
    folder = settings.data
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check_owner(folder)
        _check_writing(folder)
    except OSError as error:
        raise explain(error, folder) from error


def prepare(settings: Settings) -> Installation:
    """Return the installation beneath ``settings.data``, finishing one that was never finished. Needs the lock.

    Raises:
        SetupError: the folder belongs to something else, to a newer Perdure, or lost a part that cannot be made again.
    """
    check_folder(settings)
    try:
        found = _read_marker(settings.data)
        note = "" if found else _check_unfinished(settings)
        _check_databases(settings.data)
        _make_folders(settings)
        if found:
            load_keys(settings.keys)
            return found
        make_key(settings.keys)
        return _write_marker(settings.data, note)
    except OSError as error:
        raise explain(error, settings.data) from error


def explain(error: OSError, folder: Path) -> SetupError:
    """Return ``error``, met in the data folder, as a text that says what to do."""
    where = error.filename or folder
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return SetupError(f"The disk is full: {where} could not be written. Free some space beneath {folder}.")
    if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        return SetupError(
            f"The data folder {folder} cannot be written ({os.strerror(error.errno)}: {where}). "
            "Make it writable for your user, or choose another with --data or PERDURE_DATA."
        )
    if isinstance(error, FileExistsError | NotADirectoryError):
        return SetupError(f"{where} is not a folder. Choose another with --data or PERDURE_DATA.")
    return SetupError(f"The data folder {folder} cannot be used ({error}). Choose another with --data or PERDURE_DATA.")


def check_socket_path(settings: Settings) -> None:
    """See that the data folder's socket has a path that Linux takes. Raises ``SetupError`` when it has not."""
    size = len(os.fsencode(settings.socket))
    if size > MAX_SOCKET_BYTES:
        raise SetupError(
            f"The data folder's path is too long: its socket {settings.socket} takes {size} bytes, "
            f"Linux allows {MAX_SOCKET_BYTES}. Choose a shorter one with --data or PERDURE_DATA."
        )


def _check_owner(folder: Path) -> None:
    info = folder.stat()
    if not stat.S_ISDIR(info.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, "not a folder", str(folder))
    if info.st_uid != os.geteuid():
        raise SetupError(
            f"The data folder {folder} belongs to uid {info.st_uid}; you are uid {os.geteuid()}. "
            "Choose one of your own with --data or PERDURE_DATA."
        )
    mode = stat.S_IMODE(info.st_mode)
    if mode & 0o077:
        if any(folder.iterdir()):
            raise SetupError(
                f"The data folder {folder} is open to others (mode {mode:04o}); expected 0700, it holds keys. "
                f"Run `chmod 700 {folder}`."
            )
        folder.chmod(0o700)  # empty: nobody can have read or planted anything


def _check_writing(folder: Path) -> None:
    space = os.statvfs(folder)
    free = space.f_bavail * space.f_frsize
    if space.f_flag & os.ST_RDONLY:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(folder))
    if free < MIN_FREE_BYTES:
        raise SetupError(
            f"The disk is nearly full: {free / 1e6:.1f} MB are free beneath {folder}; expected at least "
            f"{MIN_FREE_BYTES / 1e6:.0f} MB. Free some space, or choose another folder with --data or PERDURE_DATA."
        )
    probe = folder / f".probe.{secrets.token_hex(6)}"
    try:
        probe.write_bytes(b"\0" * 4096)
    finally:
        probe.unlink(missing_ok=True)


def _read_marker(folder: Path) -> Installation | None:
    path = folder / MARKER
    try:
        raw = json.loads(path.read_text("utf-8"))
        made, installation = int(raw["format"]), Installation(str(raw["id"]), str(raw["created_at"]))
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise SetupError(f"{path} is damaged ({error}). Restore it from a backup of the data folder.") from error
    if made > FORMAT:
        raise SetupError(
            f"The data folder {folder} was made by a newer Perdure (format {made}; this one knows {FORMAT}). "
            "Upgrade Perdure, or choose another folder with --data."
        )
    return installation


def _check_unfinished(settings: Settings) -> str:
    """See that a folder without our mark may become an installation; return what to say about it."""
    names = {path.name for path in settings.data.iterdir() if not path.name.startswith(".")}
    foreign = sorted(names - _OURS)
    if foreign:
        raise SetupError(
            f"{settings.data} holds other things than an installation of Perdure ({', '.join(foreign[:3])}). "
            "Choose an empty or new folder with --data or PERDURE_DATA."
        )
    has_key = (settings.keys / KEY_FILE).exists()
    written = [name for name in (TEMPORAL_DATABASE, LEDGER_DATABASE) if _size(settings.data / name)]
    if written and not has_key:
        raise SetupError(
            f"The data folder {settings.data} is half-written: it has {' and '.join(written)} but no {settings.keys}/"
            f"{KEY_FILE}, so what is in it cannot be read. Restore the key from a backup, or move the folder away."
        )
    return f"Finished preparing {settings.data}, which an earlier start had left half-written." if has_key else ""


def _check_databases(folder: Path) -> None:
    for name in (TEMPORAL_DATABASE, LEDGER_DATABASE):
        path = folder / name
        if not _size(path):
            continue  # SQLite makes a whole database of an empty file
        with path.open("rb") as file:
            head = file.read(len(SQLITE_MAGIC))
        if head != SQLITE_MAGIC:
            raise SetupError(
                f"{path} is damaged: it does not begin like an SQLite database. Restore the data folder from a backup, "
                "or move it away to start with a new one."
            )


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _make_folders(settings: Settings) -> None:
    for folder in (settings.logs, settings.socket.parent, settings.journal, settings.locks, settings.keys):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def _write_marker(folder: Path, note: str) -> Installation:
    """Written last: a folder that has it is whole."""
    installation = Installation(uuid.uuid4().hex, datetime.now(UTC).isoformat(timespec="seconds"), note)
    body = {"format": FORMAT, "id": installation.id, "created_at": installation.created_at}
    write_whole(folder / MARKER, json.dumps(body))
    return installation
