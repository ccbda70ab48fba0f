"""Commits as they are: read whole in a few passes, decoded without ever failing."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from perdure.contracts.base import JsonDict
from perdure.workspace.git import GitError, Repository

# One `cat-file --batch` for this many commits: few processes, and never the whole history's bytes in memory.
_BATCH = 4000
_SHORT = 7

_CODEC_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,40}")
_NO_CHARSETS = frozenset({"unicode-escape", "raw-unicode-escape", "idna", "punycode", "undefined"})


@dataclass(frozen=True)
class Commit:
    """One commit."""

    id: str
    short: str
    """At least seven digits; as many as tell it from the others that were read with it."""
    subject: str
    """The first line with text; empty for an empty message."""
    body: str
    """Everything after the subject, with ``\\n`` line ends and without blank lines around it."""
    author: str
    at: str
    """Author time as UTC ISO 8601; empty when the commit holds none that a calendar has."""
    parents: tuple[str, ...]

    @property
    def message(self) -> str:
        """Subject and body as one message."""
        return f"{self.subject}\n\n{self.body}" if self.body else self.subject

    @property
    def is_merge(self) -> bool:
        """Whether it has several parents: it adds nothing of its own."""
        return len(self.parents) > 1

    def to_json(self) -> JsonDict:
        """Return plain JSON; inverse of :func:`commit_from_json`."""
        return {
            "id": self.id,
            "short": self.short,
            "subject": self.subject,
            "body": self.body,
            "author": self.author,
            "at": self.at,
            "parents": list(self.parents),
        }


def commit_from_json(value: JsonDict) -> Commit:
    """Return the commit that :meth:`Commit.to_json` wrote."""
    return Commit(**{**value, "parents": tuple(value["parents"])})


def read_commits(
    repository: Repository, head: str, *, since: str = "", path: str = "", most: int | None = None
) -> list[Commit]:
    """Return the commits reachable from ``head`` and not from ``since``, newest first, a child before its parents.

    ``since`` is a commit id, or empty for the whole history. ``path`` keeps commits that change something beneath it
    (merges left out: they add nothing of their own). ``most`` cuts the oldest off.
    """
    limits = ([f"--max-count={most}"] if most else []) + ([f"^{since}"] if since else [])
    paths = ["--full-history", "--no-merges", "--", path] if path else []
    ids = repository.read("rev-list", "--topo-order", head, *limits, *paths).decode("ascii").split()
    return read_listed(repository, ids)


def read_listed(repository: Repository, ids: Sequence[str]) -> list[Commit]:
    """Return the commits of these ids, in their order."""
    width = unique_width(ids)
    return [parse_commit(name, data, width) for name, data in _read_objects(repository, ids)]


def read_tag_commits(repository: Repository) -> dict[str, str]:
    """Return the commit of each tag that names one, by tag."""
    template = "--format=%(refname:strip=2)%00%(objecttype)%00%(objectname)%00%(*objecttype)%00%(*objectname)"
    lines = repository.read("for-each-ref", template, "refs/tags").decode("utf-8", "surrogateescape").split("\n")
    commits = {}
    for line in filter(None, lines):
        name, kind, oid, inner_kind, inner = line.split("\0")
        if "commit" in (kind, inner_kind):
            commits[name] = oid if kind == "commit" else inner
    return commits


def parse_commit(name: str, data: bytes, width: int = _SHORT) -> Commit:
    """Read a raw commit object. Never fails: what cannot be decoded is replaced, what is missing is empty."""
    header, _, message = data.partition(b"\n\n")
    fields = _read_header(header)
    text = decode_message(message, fields.get(b"encoding", [b""])[0])
    subject, body = _split_message(text)
    author, at = _read_person(decode_message(fields.get(b"author", [b""])[0], fields.get(b"encoding", [b""])[0]))
    parents = tuple(parent.decode("ascii", "replace") for parent in fields.get(b"parent", []))
    return Commit(name, name[:width], subject, body, author, at, parents)


def decode_message(data: bytes, encoding: bytes = b"") -> str:
    """Decode by the commit's encoding header (which may be wrong, quoted or unknown), then UTF-8, then by replacement.

    NUL bytes and lone surrogates, which JSON and terminals choke on, are replaced too.
    """
    name = _codec_name(encoding) if encoding else ""
    try:
        text = data.decode(name) if name else None
    except (UnicodeError, LookupError, ValueError):
        text = None
    if text is None:
        return data.decode("utf-8", "replace").replace("\0", "\ufffd")  # which never gives a lone surrogate
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode("utf-8")


def _codec_name(encoding: bytes) -> str:
    """Return the header's charset, or nothing when it names none: a header must not make us unescape something.

    Codecs that are no text (zlib, hex) need no word here: ``bytes.decode`` refuses them.
    """
    name = encoding.decode("ascii", "replace").strip().strip("\"'")
    if not _CODEC_NAME.fullmatch(name):
        return ""
    try:
        return "" if codecs.lookup(name).name in _NO_CHARSETS else name
    except LookupError:
        return ""


def _split_message(text: str) -> tuple[str, str]:
    lines = (text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text).strip("\n").split("\n")
    while len(lines) > 1 and not lines[0].strip():
        lines.pop(0)
    return lines[0].strip(), "\n".join(line.rstrip() for line in lines[1:]).strip("\n")


def _read_header(header: bytes) -> dict[bytes, list[bytes]]:
    """Fields of a commit header; continuation lines (signatures) belong to the field before and are dropped."""
    fields: dict[bytes, list[bytes]] = {}
    for line in header.split(b"\n"):
        key, _, value = line.partition(b" ")
        if key:
            fields.setdefault(key, []).append(value)
    return fields


def _read_person(text: str) -> tuple[str, str]:
    name, _, rest = text.partition("<")
    stamp = rest.rpartition(">")[2].split()
    try:
        at = datetime.fromtimestamp(int(stamp[0]), UTC).isoformat()
    except (IndexError, ValueError, OverflowError, OSError):
        at = ""
    return name.strip(), at


def unique_width(ids: Sequence[str]) -> int:
    """The fewest digits, at least seven, that tell all ``ids`` apart."""
    width = _SHORT
    while width < 64 and len({name[:width] for name in ids}) < len(ids):
        width += 1
    return width


def _read_objects(repository: Repository, ids: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    for start in range(0, len(ids), _BATCH):
        batch = ids[start : start + _BATCH]
        data = repository.read("cat-file", "--batch", stdin="".join(f"{name}\n" for name in batch).encode())
        yield from _split_batch(data)


def _split_batch(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Split the answer of ``cat-file --batch``: ``<id> <type> <size>``, the bytes, a line end; again."""
    position = 0
    while position < len(data):
        end = data.index(b"\n", position)
        words = data[position:end].split()
        if len(words) != 3:
            raise GitError(f"git cat-file could not give a commit: {data[position:end].decode('utf-8', 'replace')!r}.")
        size = int(words[2])
        yield words[0].decode("ascii"), data[end + 1 : end + 1 + size]
        position = end + 1 + size + 1
