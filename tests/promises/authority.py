"""Least authority: only the decision key decides, and Temporal carries ids, never authority."""

from __future__ import annotations

from tests.promises.kept import Kept

PROMISE = "Least authority: deny by default, and Temporal carries ids, never authority."

_SIGNING = "perdure/store/signing.py"
_WORDS = "activities/ledger.py"
_CODEC = "perdure/runtime/codec.py"
_ON_WORDS = "tests/activities/test_words.py"
_ON_CODEC = "tests/runtime/test_codec.py"

KEPT: tuple[Kept, ...] = (
    Kept(
        PROMISE,
        _SIGNING,
        "    if public is None:\n        return False\n",
        "    if public is None:\n        return True\n",
        "tests/store/test_signing.py::test_unknown_keys_and_garbage_do_not_verify",
    ),
    Kept(
        PROMISE,
        _SIGNING,
        "        Ed25519PublicKey.from_public_bytes(public).verify(signature, signed_bytes(signed.decision))\n",
        "        Ed25519PublicKey.from_public_bytes(public)\n",
        "tests/store/test_signing.py::test_a_changed_decision_does_not_verify",
    ),
    Kept(
        PROMISE,
        _SIGNING,
        "        if encrypted and not passphrase:\n",
        "        if False:\n",
        "tests/store/test_signing.py::test_a_passphrase_is_needed_for_each_signature",
    ),
    Kept(
        PROMISE,
        _WORDS,
        "        return [signed.decision for signed in found if verify(signed, keys)]\n",
        "        return [signed.decision for signed in found]\n",
        f"{_ON_WORDS}::test_unsigned_approval_satisfies_nothing",
    ),
    Kept(
        PROMISE,
        _WORDS,
        "            if not self._ledger.was_requested(request):\n",
        "            if False:\n",
        f"{_ON_WORDS}::test_job_that_nobody_asked_for_is_not_admitted",
    ),
    Kept(
        PROMISE,
        _WORDS,
        "        if note.phase is JobPhase.done and not self._is_done(note.job_id):\n",
        "        if False:\n",
        f"{_ON_WORDS}::test_done_is_written_over_an_applied_plan_only",
    ),
    Kept(
        PROMISE,
        _WORDS,
        "        if note.said_by and not self._is_at_work(note.said_by):\n            return\n",
        "",
        f"{_ON_WORDS}::test_application_speaks_only_while_it_is_at_work",
    ),
    Kept(
        PROMISE,
        _WORDS,
        '    application = _application_of(question, plan) if end.outcome == "satisfied" else ""\n',
        '    application = ""\n',
        f"{_ON_WORDS}::test_gate_closes_with_its_permit_or_not_at_all",
    ),
    Kept(
        PROMISE,
        _CODEC,
        '            return mark_refused("is not encrypted")\n',
        "            return payload\n",
        f"{_ON_CODEC}::test_unencrypted_payload_is_refused",
    ),
    Kept(
        PROMISE,
        _CODEC,
        '        return _PREFIX + key_name.encode() + b"\\0" + self._workflow_id.encode()\n',
        '        return _PREFIX + key_name.encode() + b"\\0"\n',
        f"{_ON_CODEC}::test_payload_of_another_workflow_is_refused",
    ),
    Kept(
        PROMISE,
        _CODEC,
        "        return mark_unknown(what)\n",
        '        raise SetupError(f"A payload of {self._workflow_id!r} {what}.")\n',
        f"{_ON_CODEC}::test_key_that_vouches_for_itself_is_unknown",
    ),
    Kept(
        PROMISE,
        "perdure/runtime/failures.py",
        '        if self._of_activity and failure.HasField("application_failure_info") and not _is_sealed(failure):\n',
        "        if False:\n",
        f"{_ON_CODEC}::test_failure_that_no_worker_of_ours_reported_is_no_failure",
    ),
    Kept(
        PROMISE,
        _CODEC,
        "            if payload.ByteSize() > MAX_VALUE_BYTES:\n",
        "            if False:\n",
        f"{_ON_CODEC}::test_largest_value_is_stored_in_16_kilobytes",
    ),
    Kept(
        PROMISE,
        "perdure/policy/authorize.py",
        '    if right in allowed or (right == "read" and allowed):\n',
        "    if allowed:\n",
        "tests/policy/test_authorize.py::test_a_right_is_had_only_when_given",
    ),
)
