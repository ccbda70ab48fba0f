"""A plan's name is the hash of its stored bytes; what people decide on is what is read."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime, timedelta

import pytest

from perdure.contracts.base import path_bytes, path_text
from perdure.contracts.canonical import CONTENT_PREFIX, PLAN_PREFIX, canonical_bytes, digest_of
from perdure.contracts.plan import (
    ApprovalRule,
    Envelope,
    Inverse,
    PlannedEffect,
    ReviewRule,
    content_digest,
    freeze,
    read_plan,
)
from perdure.errors import Tampered

AT = datetime(2026, 11, 30, 10, 12, tzinfo=UTC)


def effect(number: int = 1) -> PlannedEffect:
    inverse = Inverse(summary="delete", kind="files.write", version=1, body={"new": None})
    body = {"path": f"f{number}", "new": "text"}
    return PlannedEffect(
        id=f"e{number}", kind="files.write", version=1, summary="write", body=body, target="t", inverse=inverse
    )


def envelope(title: str = "1.2.0 → 1.3.0") -> Envelope:
    return Envelope(
        job_id="job/a/1",
        thread="a",
        round=1,
        requester="ada",
        template="release",
        template_digest=hashlib.sha256(b"").hexdigest(),
        rule=ReviewRule(approvals=[ApprovalRule(group="maintainers")]),
        title=title,
        created_at=AT,
        expires_at=AT + timedelta(days=7),
    )


def test_what_was_frozen_is_read_back() -> None:
    """The same plan frozen twice has the same bytes and name, and is read back whole."""
    digest, data = freeze(envelope(), [effect(1), effect(2)])
    assert (digest, data) == freeze(envelope(), [effect(1), effect(2)])
    plan = read_plan(digest, data)
    assert (plan.envelope, plan.effects) == (envelope(), [effect(1), effect(2)])


@pytest.mark.parametrize("change", [(b'"text"', b'"evil"'), (b"ada", b"eve"), (b"2026", b"2027"), (b"}", b" }")])
def test_changed_bytes_are_another_plan(change: tuple[bytes, bytes]) -> None:
    """One changed byte anywhere, even a space, and the plan is not the one that was decided on."""
    digest, data = freeze(envelope(), [effect()])
    with pytest.raises(Tampered, match="its bytes were changed"):
        read_plan(digest, data.replace(*change))


def test_effects_must_be_those_that_the_content_names() -> None:
    """Bytes whose effects are not the ones of their content digest are refused, whatever their name is."""
    _, data = freeze(envelope(), [effect(1)])
    raw = json.loads(data)
    raw["content"] = content_digest([effect(2)])
    forged = canonical_bytes(raw)
    with pytest.raises(Tampered, match="content digest"):
        read_plan(digest_of(PLAN_PREFIX, forged), forged)


def test_name_covers_the_envelope_and_content_does_not() -> None:
    """Another envelope is another plan with the same content; another order of effects is another content."""
    one, other = (read_plan(*freeze(envelope(title), [effect(1), effect(2)])) for title in ("a", "b"))
    assert one.content == other.content
    assert freeze(envelope("a"), [effect(1)])[0] != freeze(envelope("b"), [effect(1)])[0]
    assert content_digest([effect(1), effect(2)]) != content_digest([effect(2), effect(1)])


def test_hashes_of_different_things_never_meet() -> None:
    """The same bytes have another digest as a plan than as a content: one cannot be passed for the other."""
    assert digest_of(PLAN_PREFIX, b"[]") != digest_of(CONTENT_PREFIX, b"[]")


@pytest.mark.parametrize("value", [1.5, {"a": [1, {"b": 0.1}]}, [float("nan")]])
def test_floats_are_never_hashed(value: object) -> None:
    """Two programs may print a float differently, so that no digest is over one."""
    with pytest.raises(ValueError, match=r"A float at \$"):
        canonical_bytes(value)


@pytest.mark.parametrize("raw", [b"a/b", "größe".encode(), b"\xff\xfe", b"base64:YQ==", b"a\nb"])
def test_paths_survive_as_text(raw: bytes) -> None:
    """Every path, also one that is not UTF-8, comes back from a plan byte for byte."""
    assert path_bytes(path_text(raw)) == raw
