"""Blobs: whole or not at all, hashed again when read."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from perdure.contracts.base import BlobRef
from perdure.errors import NotFound, SetupError, Tampered
from perdure.store.blobs import BlobStore


@pytest.mark.parametrize("data", [b"", b"a", bytes(range(256)) * 5000])
def test_what_was_put_is_what_is_read(blobs, data):
    """Bytes come back as they went in, under their hash and size."""
    ref = blobs.put(data)
    assert blobs.get(ref) == data
    assert ref.size_bytes == len(data)
    assert blobs.has(ref)


def test_the_same_bytes_twice_are_one_file(blobs, tmp_path):
    """A blob is written once; files are private to their owner."""
    ref = blobs.put(b"same")
    path = blobs._path(ref.sha256)
    before = path.stat()
    assert blobs.put(b"same") == ref
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    assert before.st_mode & 0o777 == 0o600
    assert (tmp_path / "blobs").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("damage", [b"", b"sam", b"sama", b"same and more"])
def test_changed_bytes_are_never_returned(blobs, damage):
    """One changed byte, a cut or a longer file is tampering; putting the bytes again mends it."""
    ref = blobs.put(b"same")
    blobs._path(ref.sha256).write_bytes(damage)
    with pytest.raises(Tampered, match="changed after it was stored"):
        blobs.get(ref)
    blobs.put(b"same")
    assert blobs.get(ref) == b"same"


def test_a_reference_of_another_size_is_refused(blobs):
    """A reference names bytes by hash and size; both must hold."""
    ref = blobs.put(b"same")
    lie = BlobRef(sha256=ref.sha256, size_bytes=3)
    assert not blobs.has(lie)
    with pytest.raises(Tampered):
        blobs.get(lie)


def test_a_missing_blob_is_not_found(blobs):
    """A blob that is gone is told apart from one that was changed."""
    ref = blobs.put(b"gone")
    blobs._path(ref.sha256).unlink()
    assert not blobs.has(ref)
    with pytest.raises(NotFound, match="not in"):
        blobs.get(ref)


@pytest.mark.parametrize("value", [{"b": 1, "a": [True, None, "ü"]}, 1.5, 2**70, "\ud800", []])
def test_json_comes_back_as_it_went_in(blobs, value):
    """Canonical where that is possible, readable in any case; the order of keys makes no other blob."""
    ref = blobs.put_json(value)
    assert blobs.get_json(ref) == value
    assert blobs.put_json({"a": 1, "b": 2}) == blobs.put_json({"b": 2, "a": 1})


def test_what_is_no_json_is_not_returned_as_json(blobs):
    """A blob of another kind in the place of JSON is named."""
    with pytest.raises(Tampered, match="not JSON"):
        blobs.get_json(blobs.put(b"\x89PNG"))


def test_a_full_disk_leaves_nothing_half_written(tmp_path):
    """When the disk is full (here: a limit on file size), the error names the folder, and no part of a file stays."""
    script = textwrap.dedent("""
        import pathlib, resource, sys
        from perdure.errors import SetupError
        from perdure.store.blobs import BlobStore
        root = pathlib.Path(sys.argv[1])
        store = BlobStore(root)
        small = store.put(b"small")
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        try:
            store.put(b"x" * 100_000)
        except SetupError as error:
            print(error.message)
        assert store.get(small) == b"small"
        print([path.name for path in root.rglob("*") if path.is_file()] == [small.sha256])
    """)
    done = subprocess.run(
        [sys.executable, "-c", script, tmp_path / "blobs"], capture_output=True, text=True, check=True
    )
    assert f"{tmp_path / 'blobs'} is full" in done.stdout
    assert done.stdout.endswith("True\n")


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    """A blob folder in the place of which a file lies is a set-up error, before anything starts."""
    (tmp_path / "blobs").write_text("a file")
    with pytest.raises(SetupError, match="cannot be written"):
        BlobStore(tmp_path / "blobs").put(b"data")


def test_a_blob_is_on_the_disk_before_it_has_its_name(blobs, monkeypatch):
    """The bytes are synced under another name, then renamed, then the folder is synced: also for a blob found there."""
    synced = []

    def record(descriptor):
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        synced.append((path.is_dir(), blobs._path(ref.sha256).exists()))

    ref = BlobRef(sha256=hashlib.sha256(b"data").hexdigest(), size_bytes=4)
    blobs._path(ref.sha256).parent.mkdir(parents=True)
    monkeypatch.setattr(os, "fsync", record)
    assert blobs.put(b"data") == ref
    assert synced == [(False, False), (True, True)]
    blobs.put(b"data")
    assert synced[2:] == [(True, True)]


def test_a_killed_writer_leaves_no_blob_under_its_name(tmp_path):
    """A process killed while it writes leaves at most a file that no reference names."""
    script = textwrap.dedent("""
        import os, pathlib, signal, sys
        from perdure.store.blobs import BlobStore
        os.fsync = lambda descriptor: os.kill(os.getpid(), signal.SIGKILL)
        BlobStore(pathlib.Path(sys.argv[1])).put(b"never whole")
    """)
    (tmp_path / "blobs").mkdir()
    killed = subprocess.run([sys.executable, "-c", script, tmp_path / "blobs"], capture_output=True)
    assert killed.returncode == -9
    ref = BlobStore(tmp_path / "else").put(b"never whole")
    with pytest.raises(NotFound):
        BlobStore(tmp_path / "blobs").get(ref)
    assert BlobStore(tmp_path / "blobs").put(b"never whole") == ref
