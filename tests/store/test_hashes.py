"""What the hashes of a record cover: each part by itself, so that none can be changed unseen."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perdure.store.chain import GENESIS, Header, content_hash, link_hash

HEADER = Header("releases", 1, "job.phase", "2026-11-30T10:12:00.000000Z", "ada", "job/a/1", "w", "s", "c", GENESIS)


@pytest.mark.parametrize("part", list(vars(HEADER)))
def test_a_record_is_its_whole_header(part):
    """Every part of a header enters its hash, the record before included."""
    changed = replace(HEADER, **{part: 2 if part == "seq" else "another"})
    assert changed.hash() != HEADER.hash()


def test_a_link_names_its_place_its_record_and_the_link_before():
    """No link of the global chain can be moved, put on another record, or hung on another link."""
    assert len({link_hash(1, "p", "e"), link_hash(2, "p", "e"), link_hash(1, "q", "e"), link_hash(1, "p", "f")}) == 4


def test_a_body_cannot_be_guessed_from_its_hash():
    """The salt enters the hash: after an erasure nobody can try likely bodies."""
    assert content_hash(b"one", b"{}") != content_hash(b"two", b"{}")
    assert content_hash(b"one", b"{}") != content_hash(b"one", b"[]")
