"""Names of refs and object ids, judged by our own reading: nothing crafted reaches git as an option or a path."""

from __future__ import annotations

import re

from perdure.errors import UserError

_OBJECT_ID = re.compile(r"(?:[0-9a-f]{40}|[0-9a-f]{64})\Z")
_FORBIDDEN = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//")


def is_object_id(text: str) -> bool:
    """Whether ``text`` is a whole object id, SHA-1 or SHA-256, in lower-case hex."""
    return _OBJECT_ID.match(text) is not None


def is_ref(name: str) -> bool:
    """Whether ``name`` is a full ref name (``refs/…``) by the rules of git-check-ref-format."""
    if not name.startswith("refs/") or name.endswith(("/", ".")) or _FORBIDDEN.search(name):
        return False
    if any("\ud800" <= letter <= "\udfff" for letter in name):
        return False
    parts = name.split("/")
    return len(parts) >= 3 and all(_is_part(part) for part in parts)


def _is_part(part: str) -> bool:
    return bool(part) and not part.startswith((".", "-")) and not part.endswith(".lock")


def zero_id(object_format: str) -> str:
    """The id that stands for "no such ref"."""
    return "0" * (64 if object_format == "sha256" else 40)


def full_ref(kind: str, name: str) -> str:
    """Return ``refs/<kind>/<name>``; a ``name`` that is whole already is kept. ``kind`` is ``heads`` or ``tags``.

    Raises:
        UserError: git would not allow the name, or it is of another kind.
    """
    ref = name if name.startswith("refs/") else f"refs/{kind}/{name}"
    if not ref.startswith(f"refs/{kind}/") or not is_ref(ref):
        noun = "branch" if kind == "heads" else "tag"
        raise UserError(
            f"{name!r} is not a name git allows for a {noun}. Expected letters, digits, '-', '_', '.' and '/', "
            "no '..', no leading '-' or '.', no '.lock' at the end."
        )
    return ref


def short_ref(ref: str) -> str:
    """Return a ref as people say it: ``refs/heads/main`` is ``main``."""
    for prefix in ("refs/heads/", "refs/tags/", "refs/"):
        if ref.startswith(prefix):
            return ref[len(prefix) :]
    return ref
