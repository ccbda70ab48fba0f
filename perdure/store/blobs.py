"""Content-addressed bytes on disk: written once, atomically, durably; hashed again whenever they are read."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from perdure.contracts.base import BlobRef
from perdure.contracts.canonical import canonical_bytes
from perdure.errors import NotFound, Tampered
from perdure.store.trouble import StoreTrouble

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class BlobStore:
    """Blobs beneath one folder: ``<root>/<first two hex digits>/<sha256>``, files 0600 in folders 0700.

    Several processes may use one folder. A blob appears whole or not at all, also after a power failure.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    def put(self, data: bytes) -> BlobRef:
        """Store bytes durably and return their name; the same bytes twice are one blob.

        A stored blob that no longer hashes to its name is replaced by the right bytes.

        Raises:
            StoreTrouble: the folder cannot be written (full, read-only, another owner); nothing half-written is left.
        """
        ref = BlobRef(sha256=hashlib.sha256(data).hexdigest(), size_bytes=len(data))
        path = self._path(ref.sha256)
        with self._explained():
            self._make_folder(path.parent)
            if not _is_intact(path, ref):
                self._write(path, data)
            _sync_folder(path.parent)  # also when another process wrote it: its rename may not be durable yet
        return ref

    def get(self, ref: BlobRef) -> bytes:
        """Return the bytes that ``ref`` names, hashed again.

        Raises:
            NotFound: there is no such blob.
            Tampered: the stored bytes are not the ones that were put.
        """
        try:
            data = self._path(ref.sha256).read_bytes()
        except FileNotFoundError:
            raise NotFound(
                f"Blob {ref.sha256[:12]} is not in {self._root}; expected {ref.size_bytes} bytes. "
                "Restore the folder from a backup, or run `perdure audit` to see what else is missing."
            ) from None
        except OSError as error:
            raise StoreTrouble(f"Blob {ref.sha256[:12]} in {self._root} cannot be read ({error.strerror}).") from error
        found = hashlib.sha256(data).hexdigest()
        if found != ref.sha256 or len(data) != ref.size_bytes:
            raise Tampered(
                f"Blob {ref.sha256[:12]} in {self._root} holds {len(data)} bytes that hash to {found[:12]}; expected "
                f"{ref.size_bytes} bytes. It was changed after it was stored; nothing was done with it."
            )
        return data

    def has(self, ref: BlobRef) -> bool:
        """Whether a blob of that name and size is there; its bytes are not hashed."""
        try:
            return self._path(ref.sha256).stat().st_size == ref.size_bytes
        except FileNotFoundError:
            return False

    def put_json(self, value: Any) -> BlobRef:
        """Store plain JSON: canonical (RFC 8785) when it can be, else with sorted keys (floats, huge integers)."""
        return self.put(_json_bytes(value))

    def get_json(self, ref: BlobRef) -> Any:
        """Return the JSON value stored under ``ref``. Raises what :meth:`get` does; ``Tampered`` when it is no JSON."""
        data = self.get(ref)
        try:
            return json.loads(data)
        except ValueError as error:
            raise Tampered(
                f"Blob {ref.sha256[:12]} is not JSON ({error}); another kind of blob was expected."
            ) from error

    def _path(self, sha256: str) -> Path:
        return self._root / sha256[:2] / sha256

    def _make_folder(self, folder: Path) -> None:
        if folder.is_dir():
            return
        self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        _sync_folder(self._root)

    def _write(self, path: Path, data: bytes) -> None:
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            what = "is full" if error.errno in _FULL else f"cannot be written ({error.strerror})"
            advice = "Free some space" if error.errno in _FULL else "Check its owner, mode and mount"
            raise StoreTrouble(f"The blob folder {self._root} {what}. Nothing was stored. {advice}.") from error


def _is_intact(path: Path, ref: BlobRef) -> bool:
    try:
        return path.stat().st_size == ref.size_bytes and hashlib.sha256(path.read_bytes()).hexdigest() == ref.sha256
    except FileNotFoundError:
        return False


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _json_bytes(value: Any) -> bytes:
    try:
        return canonical_bytes(value)
    except ValueError:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")
