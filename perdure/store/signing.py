"""Signatures on decisions: Ed25519 over canonical JSON. Only the API holds the private key; the worker verifies."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from perdure.contracts.canonical import DECISION_PREFIX, canonical_bytes
from perdure.contracts.decisions import Decision, SignedDecision
from perdure.errors import Conflict, Refused, SetupError, Tampered

_PRIVATE = "decision.pem"
_PUBLIC = "decision-{key_id}.pub"
_ENCRYPTED_MARK = b"ENCRYPTED PRIVATE KEY"


class DecisionKey:
    """The private key that signs people's decisions, kept as PEM (0600), encrypted when it has a passphrase.

    The private key is read and opened for each signature and forgotten afterwards.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @classmethod
    def create(cls, folder: Path, passphrase: str = "") -> DecisionKey:
        """Make a key in ``folder``; its public half stays beside it under a name of its own.

        Raises:
            Conflict: there is a key already; it is left alone.
            SetupError: the folder cannot be written.
        """
        private = Ed25519PrivateKey.generate()
        public = private.public_key().public_bytes_raw()
        key_id = key_id_of(public)
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            # The public half goes first: a key that can sign is never without one that verifies.
            _write_new(folder / _PUBLIC.format(key_id=key_id), public.hex().encode("ascii") + b"\n", 0o644)
            _write_new(folder / _PRIVATE, _pem(private, passphrase), 0o600)
        except FileExistsError:
            (folder / _PUBLIC.format(key_id=key_id)).unlink(missing_ok=True)
            raise Conflict(f"{folder / _PRIVATE} exists already. It was left as it is.") from None
        except OSError as error:
            raise SetupError(f"The decision key cannot be written to {folder} ({error.strerror}).") from error
        return cls(folder)

    @classmethod
    def load(cls, folder: Path) -> DecisionKey:
        """Find the key in ``folder`` without opening it.

        Raises:
            SetupError: there is none, or others than its owner may read it.
        """
        path = folder / _PRIVATE
        try:
            mode = path.stat().st_mode
        except OSError as error:
            raise SetupError(
                f"There is no decision key at {path} ({error.strerror}). `perdure up` makes one; "
                "without it nobody can decide."
            ) from error
        if mode & 0o077:
            raise SetupError(f"{path} can be read by others (mode {mode & 0o777:o}). Run `chmod 600 {path}`.")
        if not public_keys(folder):
            raise SetupError(f"{folder} holds a decision key but no public half (decision-*.pub). Restore a backup.")
        return cls(folder)

    @property
    def needs_passphrase(self) -> bool:
        """Whether the key is encrypted."""
        return _ENCRYPTED_MARK in (self._folder / _PRIVATE).read_bytes()

    def sign(self, decision: Decision, passphrase: str = "") -> SignedDecision:
        """Sign a decision. Ed25519 is deterministic: the same decision gives the same signature.

        Raises:
            Refused: the key has a passphrase and it is missing or wrong.
        """
        private = self._open(passphrase)
        key_id = key_id_of(private.public_key().public_bytes_raw())
        return SignedDecision(decision=decision, signature=private.sign(signed_bytes(decision)).hex(), key_id=key_id)

    def change_passphrase(self, old: str, new: str) -> None:
        """Encrypt the key under ``new`` (empty: not at all). It stays the same key: what it signed stays valid.

        Raises:
            Refused: ``old`` does not open it.
            SetupError: the folder cannot be written; the key is as it was.
        """
        data = _pem(self._open(old), new)
        draft = self._folder / f".{_PRIVATE}.new"
        try:
            draft.unlink(missing_ok=True)
            _write_new(draft, data, 0o600)
            draft.replace(self._folder / _PRIVATE)
        except OSError as error:
            raise SetupError(f"The decision key cannot be written to {self._folder} ({error.strerror}).") from error

    def _open(self, passphrase: str) -> Ed25519PrivateKey:
        data = (self._folder / _PRIVATE).read_bytes()
        encrypted = _ENCRYPTED_MARK in data
        if encrypted and not passphrase:
            raise Refused("The decision key has a passphrase and none was given. Nothing was decided.")
        try:
            key = load_pem_private_key(data, passphrase.encode("utf-8") if encrypted else None)
        except ValueError:
            if encrypted:
                raise Refused("The passphrase does not open the decision key. Nothing was decided.") from None
            raise Tampered(f"{self._folder / _PRIVATE} is not a private key. Restore it from a backup.") from None
        if not isinstance(key, Ed25519PrivateKey):
            raise Tampered(f"{self._folder / _PRIVATE} holds another kind of key; expected Ed25519.")
        return key


def key_id_of(public: bytes) -> str:
    """Return the name of a raw public key (32 bytes): the first 16 hex digits of its SHA-256."""
    return hashlib.sha256(public).hexdigest()[:16]


def public_keys(folder: Path) -> dict[str, bytes]:
    """Return the raw public keys in ``folder`` by key id, retired ones too; empty when there is none.

    Raises:
        Tampered: a file's name does not belong to the key inside.
    """
    keys = {}
    for path in sorted(folder.glob("decision-*.pub")):
        key_id = path.stem.removeprefix("decision-")
        try:
            public = bytes.fromhex(path.read_text("ascii"))
        except ValueError:
            public = b""
        if key_id_of(public) != key_id:
            raise Tampered(f"{path} does not hold the key that its name says. Restore it from a backup.")
        keys[key_id] = public
    return keys


_LATER = ("door", "since")


def signed_bytes(decision: Decision) -> bytes:
    """Return the bytes under a decision's signature.

    A field that came later is left out while it is empty: what was signed before it was there verifies for good.
    """
    said = {name: value for name, value in decision.model_dump(mode="json").items() if value or name not in _LATER}
    return DECISION_PREFIX + canonical_bytes(said)


def verify(signed: SignedDecision, public_keys: Mapping[str, bytes]) -> bool:
    """Whether the signature is by a known key and over exactly this decision. Never raises for bad input."""
    public = public_keys.get(signed.key_id)
    if public is None:
        return False
    try:
        signature = bytes.fromhex(signed.signature)
        Ed25519PublicKey.from_public_bytes(public).verify(signature, signed_bytes(signed.decision))
    except (InvalidSignature, ValueError):
        return False
    return True


def _pem(private: Ed25519PrivateKey, passphrase: str) -> bytes:
    encryption: KeySerializationEncryption = NoEncryption()
    if passphrase:
        encryption = BestAvailableEncryption(passphrase.encode("utf-8"))
    return private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)


def _write_new(path: Path, data: bytes, mode: int) -> None:
    """Write a file that must not exist yet; whoever looks sees all of it or none."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        path.hardlink_to(name)
    finally:
        Path(name).unlink()
