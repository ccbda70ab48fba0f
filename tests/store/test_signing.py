"""Signatures on decisions."""

from __future__ import annotations

import stat
from datetime import UTC, datetime, timedelta, timezone

import pytest

from perdure.contracts.decisions import Decision, SignedDecision
from perdure.errors import Conflict, Refused, SetupError, Tampered
from perdure.store.signing import DecisionKey, public_keys, verify

DECISION = Decision(
    id="d-1",
    kind="approve",
    job_id="job/releases/one",
    digest="ab" * 32,
    by="bo",
    groups=["maintainers"],
    at=datetime(2026, 11, 30, 10, 12, 0, 5, tzinfo=timezone(timedelta(hours=1))),
    head="0" * 64,
    comment="fine — ü",
)


def test_a_signed_decision_verifies(key, tmp_path):
    """A decision verifies with the public keys of its folder, also after it crossed a boundary as JSON."""
    signed = key.sign(DECISION)
    again = SignedDecision.model_validate_json(signed.model_dump_json())
    assert verify(again, public_keys(tmp_path / "keys"))
    assert key.sign(DECISION) == signed


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "reject"},
        {"digest": "cd" * 32},
        {"by": "eve"},
        {"groups": ["*"]},
        {"at": datetime(2026, 11, 30, 10, 12, 0, 5, tzinfo=UTC)},
        {"comment": ""},
        {"head": "1" * 64},
        {"id": "d-2"},
        {"job_id": "job/releases/two"},
    ],
)
def test_a_changed_decision_does_not_verify(key, tmp_path, change):
    """The signature covers every field."""
    signed = key.sign(DECISION)
    forged = signed.model_copy(update={"decision": DECISION.model_copy(update=change)})
    assert not verify(forged, public_keys(tmp_path / "keys"))


def test_unknown_keys_and_garbage_do_not_verify(key, tmp_path):
    """A stranger's signature, a cut one, one that is no hexadecimal: false, never an error."""
    keys = public_keys(tmp_path / "keys")
    signed = key.sign(DECISION)
    stranger = DecisionKey.create(tmp_path / "other").sign(DECISION)
    assert not verify(stranger, keys)
    assert not verify(stranger.model_copy(update={"key_id": signed.key_id}), keys)
    for signature in ("", "zz", signed.signature[:-2], "00" * 64):
        assert not verify(signed.model_copy(update={"signature": signature}), keys)
    assert not verify(signed, {})
    assert not verify(signed, {signed.key_id: b"short"})


def test_a_passphrase_is_needed_for_each_signature(tmp_path):
    """With a passphrase the key on disk is encrypted; without it, or with another one, nothing is signed."""
    DecisionKey.create(tmp_path, passphrase="correct horse")
    key = DecisionKey.load(tmp_path)
    assert key.needs_passphrase
    with pytest.raises(Refused, match="none was given"):
        key.sign(DECISION)
    with pytest.raises(Refused, match="does not open"):
        key.sign(DECISION, "wrong")
    assert verify(key.sign(DECISION, "correct horse"), public_keys(tmp_path))
    assert b"ENCRYPTED" in (tmp_path / "decision.pem").read_bytes()


def test_a_needless_passphrase_does_no_harm(key, tmp_path):
    """A key without a passphrase signs whatever was typed."""
    assert not DecisionKey.load(tmp_path / "keys").needs_passphrase
    assert verify(key.sign(DECISION, "typed anyway"), public_keys(tmp_path / "keys"))


def test_the_private_key_is_private(key, tmp_path):
    """Its file is 0600; one that others can read is refused with what to type."""
    path = tmp_path / "keys" / "decision.pem"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o640)
    with pytest.raises(SetupError, match="chmod 600"):
        DecisionKey.load(tmp_path / "keys")


def test_a_key_is_never_replaced(key, tmp_path):
    """Making a key where there is one leaves the old one, and no public key without its private half."""
    before = (tmp_path / "keys" / "decision.pem").read_bytes()
    with pytest.raises(Conflict, match="exists already"):
        DecisionKey.create(tmp_path / "keys")
    assert (tmp_path / "keys" / "decision.pem").read_bytes() == before
    assert len(list((tmp_path / "keys").iterdir())) == 2


def test_a_missing_key_says_what_makes_one(tmp_path):
    """Without a key, loading says who makes it; with no public half, that a backup is needed."""
    with pytest.raises(SetupError, match="perdure up"):
        DecisionKey.load(tmp_path)
    assert public_keys(tmp_path) == {}
    DecisionKey.create(tmp_path)
    next(tmp_path.glob("*.pub")).unlink()
    with pytest.raises(SetupError, match="public half"):
        DecisionKey.load(tmp_path)


def test_a_retired_key_still_verifies_its_decisions(tmp_path):
    """A public half that stays after its private key was replaced keeps old decisions valid."""
    old = DecisionKey.create(tmp_path).sign(DECISION)
    (tmp_path / "decision.pem").unlink()
    new = DecisionKey.create(tmp_path).sign(DECISION)
    assert old.key_id != new.key_id
    assert verify(old, public_keys(tmp_path)) and verify(new, public_keys(tmp_path))


def test_exchanged_key_files_are_noticed(key, tmp_path):
    """A public key under another key's name, or a private key that is none, is tampering."""
    public = next((tmp_path / "keys").glob("*.pub"))
    public.write_text("00" * 32)
    with pytest.raises(Tampered, match="its name says"):
        public_keys(tmp_path / "keys")
    (tmp_path / "keys" / "decision.pem").write_text("nonsense")
    with pytest.raises(Tampered, match="not a private key"):
        key.sign(DECISION)
