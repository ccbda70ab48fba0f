"""The evidence is complete, and a change to it is seen."""

from __future__ import annotations

from tests.promises.kept import Kept

PROMISE = "The evidence is complete, and a change to it is seen."

_EVIDENCE = "perdure/store/evidence.py"
_CHAIN = "perdure/store/chain.py"
_BLOBS = "perdure/store/blobs.py"
_ERASURE = "perdure/store/erasure.py"

KEPT: tuple[Kept, ...] = (
    Kept(
        PROMISE,
        _BLOBS,
        "        if found != ref.sha256 or len(data) != ref.size_bytes:\n",
        "        if False:\n",
        "tests/store/test_blobs.py::test_changed_bytes_are_never_returned",
    ),
    Kept(
        PROMISE,
        _BLOBS,
        "            Path(name).unlink(missing_ok=True)\n            raise\n",
        "            raise\n",
        "tests/store/test_blobs.py::test_a_full_disk_leaves_nothing_half_written",
    ),
    Kept(
        PROMISE,
        _BLOBS,
        "                os.fsync(file.fileno())\n            Path(name).replace(path)\n",
        "            Path(name).replace(path)\n",
        "tests/store/test_blobs.py::test_a_blob_is_on_the_disk_before_it_has_its_name",
    ),
    Kept(
        PROMISE,
        _CHAIN,
        '"position": position, "prev": prev}))\n',
        '"position": position}))\n',
        "tests/store/test_hashes.py::test_a_link_names_its_place_its_record_and_the_link_before",
    ),
    Kept(
        PROMISE,
        _CHAIN,
        "    return hashlib.sha256(salt + body).hexdigest()\n",
        "    return hashlib.sha256(body).hexdigest()\n",
        "tests/store/test_hashes.py::test_a_body_cannot_be_guessed_from_its_hash",
    ),
    Kept(
        PROMISE,
        _EVIDENCE,
        "        findings += [tampered(where, wrong) for wrong in _wrong_link(record, head)]\n",
        "",
        "tests/store/test_chain.py::test_every_change_to_the_file_is_named",
    ),
    Kept(
        PROMISE,
        _EVIDENCE,
        "            findings += [tampered(where, why) for why in _wrong_decision(record, public_keys, heads)]\n",
        "            pass\n",
        "tests/store/test_chain.py::test_a_decision_signed_by_a_stranger_is_named",
    ),
    Kept(
        PROMISE,
        _ERASURE,
        "    for table in (schema.transcript, schema.agent_summaries, schema.agent_turns, schema.agent_calls):\n",
        "    for table in (schema.transcript, schema.agent_turns, schema.agent_calls):\n",
        "tests/store/test_erasing.py::test_an_erased_fact_stands_in_no_table",
    ),
    Kept(
        PROMISE,
        _ERASURE,
        "    _erase_words(connection, thread)\n",
        "",
        "tests/store/test_erasing.py::test_an_erased_fact_stands_in_no_table",
    ),
    Kept(
        PROMISE,
        _ERASURE,
        "    if names:\n",
        "    if False:\n",
        "tests/store/test_erasing.py::test_a_thread_with_open_work_is_not_deleted",
    ),
)
