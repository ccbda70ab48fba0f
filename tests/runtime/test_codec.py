"""Payloads: encrypted, bound to their workflow, small."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from temporalio.api.common.v1 import Payload
from temporalio.api.failure.v1 import Failure
from temporalio.converter import ActivitySerializationContext, DataConverter, WorkflowSerializationContext
from temporalio.exceptions import ApplicationError, FailureError

from perdure.contracts.base import MAX_PAYLOAD_BYTES, Contract, Forged
from perdure.errors import PerdureError, SetupError
from perdure.runtime.codec import ENCRYPTED, MAX_VALUE_BYTES, converter_for, data_converter
from perdure.runtime.forgery import MissingKey
from perdure.runtime.payload_keys import PayloadKeys, key_id, load_keys, make_key

KEY, OTHER = bytes(range(32)), bytes(range(1, 33))
KEYS = PayloadKeys(key_id(KEY), {key_id(KEY): KEY})


def converter(workflow_id: str, keys: PayloadKeys = KEYS) -> DataConverter:
    return converter_for(keys).with_context(WorkflowSerializationContext("default", workflow_id))


def sealed(value: Any, workflow_id: str = "job/a/1", keys: PayloadKeys = KEYS) -> Payload:
    return asyncio.run(converter(workflow_id, keys).encode([value]))[0]


def opened(payload: Payload, workflow_id: str = "job/a/1", keys: PayloadKeys = KEYS) -> Any:
    return asyncio.run(converter(workflow_id, keys).decode([payload]))[0]


def refusal(payload: Payload, workflow_id: str = "job/a/1") -> ApplicationError:
    with pytest.raises(ApplicationError) as caught:
        opened(payload, workflow_id)
    return caught.value


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner, max_size=3)))
def test_what_is_sealed_opens_to_the_same_value(value: Any) -> None:
    """Decoding gives back what was encoded."""
    assert opened(sealed(value)) == value


def test_stored_bytes_do_not_hold_the_text_and_never_repeat() -> None:
    """What is stored tells neither the text nor that two texts are equal."""
    first, second = sealed("the password is swordfish"), sealed("the password is swordfish")
    assert b"swordfish" not in first.SerializeToString()
    assert first.data != second.data


@given(st.data())
def test_one_changed_bit_is_refused(data: st.DataObject) -> None:
    """A payload changed anywhere is refused by name, not retryable."""
    payload = sealed("text")
    bit = data.draw(st.integers(0, len(payload.data) * 8 - 1))
    changed = bytearray(payload.data)
    changed[bit // 8] ^= 1 << bit % 8
    payload.data = bytes(changed)
    error = refusal(payload)
    assert (error.type, error.non_retryable) == ("Forged", True)


def test_payload_of_another_workflow_is_refused() -> None:
    """A payload cannot be moved from one workflow to another."""
    assert refusal(sealed("approve", "gate/a/1/1"), "gate/b/1/1").type == "Forged"


@pytest.mark.parametrize("encoding", [b"json/plain", b"", b"binary/null", b"binary/perdure-refused"])
def test_unencrypted_payload_is_refused(encoding: bytes) -> None:
    """What anybody could have written is refused, whatever it calls itself."""
    error = refusal(Payload(metadata={"encoding": encoding}, data=b'"approve"'))
    assert "is not encrypted" in error.message or error.type == "Forged"


def test_short_payload_is_refused() -> None:
    """A payload too short for a nonce is refused like any other forgery."""
    metadata = {"encoding": ENCRYPTED, "perdure-key": KEYS.current.encode()}
    assert refusal(Payload(metadata=metadata, data=b"x")).type == "Forged"


def test_key_that_nobody_knows_fails_the_task_alone() -> None:
    """A worker of another installation must not fail our workflow, nor we theirs: it is no workflow's failure."""
    with pytest.raises(MissingKey, match=key_id(OTHER)) as caught:
        opened(sealed("x", keys=PayloadKeys(key_id(OTHER), {key_id(OTHER): OTHER})))
    assert not isinstance(caught.value, PerdureError | FailureError)


def test_newer_key_of_ours_waits_for_a_worker_that_has_it() -> None:
    """A payload under a key that an older one of ours vouches for is waited for, whatever it is: it is no forgery."""
    both = PayloadKeys(key_id(OTHER), {key_id(KEY): KEY, key_id(OTHER): OTHER})
    with pytest.raises(SetupError, match=key_id(OTHER)):
        opened(sealed("x", keys=both))


@pytest.mark.parametrize("vouchers", [b"", b",", b"00" * 16, "ä".encode()])
def test_key_that_vouches_for_itself_is_unknown(vouchers: bytes) -> None:
    """Without a key of ours nobody can make us wait."""
    payload = sealed("x", keys=PayloadKeys(key_id(OTHER), {key_id(OTHER): OTHER}))
    payload.metadata["perdure-vouchers"] = vouchers
    with pytest.raises(MissingKey):
        opened(payload)


def test_voucher_is_for_one_key() -> None:
    """A voucher that was seen in a history vouches for no other key."""
    both = PayloadKeys(key_id(OTHER), {key_id(KEY): KEY, key_id(OTHER): OTHER})
    payload = sealed("x", keys=both)
    payload.metadata["perdure-key"] = b"deadbeef"
    with pytest.raises(MissingKey):
        opened(payload)


def test_older_keys_still_open_and_the_last_one_seals() -> None:
    """After a new key was added, old payloads open and new ones use the new key."""
    both = PayloadKeys(key_id(OTHER), {key_id(KEY): KEY, key_id(OTHER): OTHER})
    assert opened(sealed("old"), keys=both) == "old"
    assert sealed("new", keys=both).metadata["perdure-key"].decode() == key_id(OTHER)


def test_payload_without_a_workflow_is_not_sealed() -> None:
    """A payload bound to nothing could be moved anywhere, so there is none."""
    with pytest.raises(ValueError, match="without a workflow"):
        asyncio.run(converter_for(KEYS).encode(["x"]))


def test_largest_value_is_stored_in_16_kilobytes() -> None:
    """The largest value that is let through takes at most 16 KB in a history, however many keys there were."""
    room = MAX_VALUE_BYTES - Payload(metadata={"encoding": b"json/plain"}, data=b"x" * 10_000).ByteSize() + 10_000 - 2
    assert sealed("x" * room).ByteSize() <= MAX_PAYLOAD_BYTES
    many = [bytes([number]) * 32 for number in range(9)]
    rotated = PayloadKeys(key_id(many[-1]), {key_id(key): key for key in many})
    assert sealed("x" * room, keys=rotated).ByteSize() <= MAX_PAYLOAD_BYTES
    with pytest.raises(ApplicationError) as caught:
        sealed("x" * (room + 1))
    assert (caught.value.type, caught.value.non_retryable) == ("TooLarge", True)
    assert str(MAX_VALUE_BYTES) in caught.value.message


def told(error: BaseException) -> tuple[Failure, BaseException]:
    """A failure as the server stores it, and as the other side reads it."""

    async def both() -> tuple[Failure, BaseException]:
        failure = Failure()
        await converter("job/a/1").encode_failure(error, failure)
        stored = Failure.FromString(failure.SerializeToString())
        return stored, await converter("job/a/1").decode_failure(failure)

    return asyncio.run(both())


class Answer(Contract):
    """What an activity might answer."""

    text: str


@pytest.mark.parametrize("forgery", ["plain", "other key", "other workflow", "other shape", "bytes", "null"])
def test_forged_answer_is_told_to_whom_asks_for_it(forgery: str) -> None:
    """Whoever asks for an answer or a forgery gets the forgery as a value, and may ask again."""
    payload = {
        "plain": Payload(metadata={"encoding": b"json/plain"}, data=b'{"text": "x"}'),
        "other key": sealed(Answer(text="x"), keys=PayloadKeys(key_id(OTHER), {key_id(OTHER): OTHER})),
        "other workflow": sealed(Answer(text="x"), "job/a/2"),
        "other shape": sealed({"text": "x", "more": 1}),
        "bytes": sealed(b"\0"),
        "null": sealed(None),
    }[forgery]
    read = asyncio.run(converter("job/a/1").decode([payload], [Answer | Forged]))[0]
    assert isinstance(read, Forged)
    assert asyncio.run(converter("job/a/1").decode([sealed(Answer(text="x"))], [Answer | Forged])) == [Answer(text="x")]


ACTIVITY = ActivitySerializationContext("default", "job/a/1", "job", "say", "1", "queue", False)


@pytest.mark.parametrize("forgery", ["plain", "other key", "details"])
def test_failure_that_no_worker_of_ours_reported_is_no_failure(forgery: str) -> None:
    """A failure needs no payload, so anybody can report one of an activity; it is told from ours."""
    failure = Failure(message="it failed", encoded_attributes=None)
    failure.application_failure_info.type = "StageFailed"
    if forgery == "other key":
        others = converter_for(PayloadKeys(key_id(OTHER), {key_id(OTHER): OTHER})).with_context(ACTIVITY)
        asyncio.run(others.encode_failure(ApplicationError("it failed", type="StageFailed"), failure))
    if forgery == "details":
        failure.Clear()
        failure.timeout_failure_info.last_heartbeat_details.payloads.append(Payload(data=b"x"))
    read = asyncio.run(converter_for(KEYS).with_context(ACTIVITY).decode_failure(failure))
    assert isinstance(read, ApplicationError)
    assert (read.type, read.non_retryable) == ("Forged", True)


def test_failure_that_a_worker_of_ours_reported_is_read() -> None:
    """A failure of an activity arrives with its text, type and causes."""
    failure = Failure()
    error = ApplicationError("asked", type="Asked")
    error.__cause__ = ValueError("why")
    ours = converter_for(KEYS).with_context(ACTIVITY)
    asyncio.run(ours.encode_failure(error, failure))
    read = asyncio.run(ours.decode_failure(failure))
    assert isinstance(read, ApplicationError)
    assert (read.message, read.type, str(read.__cause__)) == ("asked", "Asked", "ValueError: why")


def test_failure_text_is_encrypted() -> None:
    """Neither the message nor the stack of a failure is readable in a history; the other side reads both."""
    try:
        raise ApplicationError("swordfish", type="Asked")
    except ApplicationError as error:
        stored, read = told(error)
    assert b"swordfish" not in stored.SerializeToString()
    assert isinstance(read, ApplicationError)
    assert (read.message, read.type) == ("swordfish", "Asked")


def test_long_failure_is_cut_and_still_told() -> None:
    """A failure longer than a payload may be is told short, with its type, its finality and its cause."""
    cause = ValueError("c" * 50_000)
    error = ApplicationError("é" * 50_000, {"big": "x" * 50_000}, type="Asked", non_retryable=True)
    error.__cause__ = cause
    stored, read = told(error)
    assert stored.ByteSize() < MAX_PAYLOAD_BYTES
    assert isinstance(read, ApplicationError)
    assert (read.type, read.non_retryable) == ("Asked", True)
    assert read.message.startswith("éé")


def test_long_cause_is_cut() -> None:
    """Every failure of a chain of causes is short enough."""
    error = ApplicationError("short", type="Asked")
    error.__cause__ = ValueError("c" * 50_000)
    stored, read = told(error)
    assert stored.ByteSize() < MAX_PAYLOAD_BYTES
    assert str(read.__cause__).startswith("ValueError: ccc")


def test_key_is_made_once(tmp_path: Path) -> None:
    """The first key is made when asked, private to its owner, and the same one is used from then on."""
    folder = tmp_path / "keys"
    made = make_key(folder)
    assert make_key(folder) == made == load_keys(folder)
    assert (folder / "payload.key").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in folder.iterdir()] == ["payload.key"]


def test_key_bytes_are_not_shown(tmp_path: Path) -> None:
    """Printing the keys prints no key."""
    keys = make_key(tmp_path)
    assert next(iter(keys.by_id.values())).hex() not in repr(keys)
    assert repr(next(iter(keys.by_id.values()))) not in repr(keys)


def test_missing_key_says_what_to_do(tmp_path: Path) -> None:
    """Without its key an installation is not silently given another one."""
    with pytest.raises(SetupError, match=r"payload\.key is missing.*Restore it from a backup"):
        data_converter(tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("text", ["", "abc\n", "zz" * 32 + "\n", "00" * 32 + "\n" + "11" * 20 + "\n"])
def test_damaged_key_says_so(tmp_path: Path, text: str) -> None:
    """A half-written key is named, not used."""
    path = tmp_path / "payload.key"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(SetupError, match=r"payload\.key is (damaged|empty)"):
        load_keys(tmp_path)


def test_key_open_to_others_is_refused(tmp_path: Path) -> None:
    """A key that others can read is refused with the command that closes it."""
    make_key(tmp_path)
    (tmp_path / "payload.key").chmod(0o644)
    with pytest.raises(SetupError, match="chmod 600"):
        load_keys(tmp_path)
