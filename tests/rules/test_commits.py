"""Commit messages are bytes: none of them is an error, and many are read in one pass."""

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.rules.git_commits import Commit, commit_from_json, decode_message, parse_commit, read_commits, unique_width
from perdure.workspace.git import open_repository
from tests.rules.kit import make_repository, save, write_history
from tests.support.repositories import git

ID = "a" * 40


def raw(message: bytes, *headers: bytes) -> bytes:
    """A raw commit object."""
    lines = [b"tree " + b"0" * 40, b"author M \xc3\x84 <m@example.org> 1764500000 +0100", *headers]
    return b"\n".join(lines) + b"\n\n" + message


def test_subject_body_author_and_time_are_read() -> None:
    """The first line is the subject, the rest without outer blank lines the body; the time is UTC."""
    commit = parse_commit(ID, raw(b"\n\nfix: x  \r\n\r\nbody\r\nmore\r\n\r\n"))
    assert (commit.subject, commit.body) == ("fix: x", "body\nmore")
    assert (commit.author, commit.at) == ("M Ä", "2025-11-30T10:53:20+00:00")
    assert (commit.short, commit.parents) == ("aaaaaaa", ())


@pytest.mark.parametrize(
    ("data", "header", "text"),
    [
        ("füx".encode("latin-1"), b"encoding ISO-8859-1", "füx"),
        ("füx".encode("latin-1"), b'encoding "latin1"', "füx"),
        ("füx".encode(), b"encoding no-such-thing", "füx"),
        ("füx".encode(), b"encoding ascii", "füx"),
        (b"f\xfcx", b"encoding utf-8", "f\ufffdx"),
        (b"x\x9cK", b"encoding zlib", "x\ufffdK"),
        (b"a\\x41", b"encoding unicode_escape", "a\\x41"),
        (b"a-", b"encoding punycode", "a-"),
        (b"a\0b", b"encoding utf-8", "a\ufffdb"),
    ],
)
def test_encodings_are_tried_in_order(data: bytes, header: bytes, text: str) -> None:
    """The commit's own encoding first (wrong, quoted or unknown ones are passed over), then UTF-8, then replacement."""
    assert parse_commit(ID, raw(data, header)).subject == text


def test_an_empty_message_is_a_commit_without_subject() -> None:
    """An empty message is no error."""
    assert parse_commit(ID, raw(b"")).message == ""


def test_a_signature_is_no_header() -> None:
    """Continuation lines of a signature or a merged tag name no parents and no encoding."""
    signed = (b"gpgsig -----BEGIN", b" parent " + b"f" * 40, b" encoding zlib", b" ")
    commit = parse_commit(ID, raw(b"feat: x", b"parent " + b"b" * 40, *signed))
    assert commit.parents == ("b" * 40,) and commit.subject == "feat: x"


@pytest.mark.parametrize("stamp", [b"99999999999999999 +0000", b"x", b""])
def test_a_time_outside_the_calendar_is_empty(stamp: bytes) -> None:
    """A commit with an impossible time is read without it."""
    assert parse_commit(ID, b"author A <a> " + stamp + b"\n\nx").at == ""


@given(st.binary(max_size=300), st.binary(max_size=20).filter(lambda data: b"\n" not in data))
def test_no_bytes_are_an_error(data: bytes, encoding: bytes) -> None:
    """Whatever bytes a message and its encoding header hold, the text can be written as JSON and shown."""
    text = decode_message(data, encoding)
    assert text.encode() is not None and "\0" not in text
    commit = parse_commit(ID, raw(data, b"encoding " + encoding))
    assert commit_from_json(commit.to_json()) == commit


def test_merges_with_many_parents_and_root_commits_are_read(tmp_path: Path) -> None:
    """An octopus merge names all its parents, a root none; children come before their parents."""
    path = make_repository(tmp_path)
    root = save(path, "feat: root")
    for name in ("a", "b", "c"):
        git(path, "switch", "-q", "-c", name, root)
        save(path, f"feat: {name}", {name: name})
    git(path, "switch", "-q", "main")
    git(path, "merge", "-q", "--no-ff", "-m", "Merge all", "a", "b", "c")
    commits = read_commits(open_repository(path), git(path, "rev-parse", "HEAD"))
    assert commits[0].is_merge and len(commits[0].parents) == 4
    assert commits[-1].id == root and commits[-1].parents == ()
    order = {commit.id: place for place, commit in enumerate(commits)}
    assert all(order[commit.id] < order[parent] for commit in commits for parent in commit.parents)


def test_a_huge_message_is_read_whole(tmp_path: Path) -> None:
    """A message of 97 kB keeps its last line, where footers stand."""
    path = make_repository(tmp_path)
    (tmp_path / "message").write_text("feat: x\n\n" + "word " * 20_000 + "\n\nBREAKING CHANGE: end\n")
    git(path, "commit", "-q", "--allow-empty", "-F", str(tmp_path / "message"))
    commit = read_commits(open_repository(path), git(path, "rev-parse", "HEAD"))[0]
    assert len(commit.body) > 97_000 and commit.body.endswith("BREAKING CHANGE: end")


def test_a_path_keeps_commits_that_change_something_beneath_it(tmp_path: Path) -> None:
    """For one package of many, only commits beneath its folder count; merges are left out."""
    path = make_repository(tmp_path)
    save(path, "feat: a", {"pkg/a/x": "1"})
    save(path, "feat: b", {"pkg/b/x": "1"})
    git(path, "switch", "-q", "-c", "side")
    save(path, "fix: a", {"pkg/a/x": "2"})
    git(path, "switch", "-q", "main")
    git(path, "merge", "-q", "--no-ff", "-m", "Merge side", "side")
    found = read_commits(open_repository(path), git(path, "rev-parse", "HEAD"), path="pkg/a")
    assert [commit.subject for commit in found] == ["fix: a", "feat: a"]


def test_forty_thousand_commits_are_read_in_seconds(tmp_path: Path) -> None:
    """A history of 40,000 commits is read by a few processes, not one each: in seconds, even on a busy machine."""
    path = make_repository(tmp_path)
    write_history(path, (f"feat(part{n % 7}): change number {n}\n\nSome words.\n" for n in range(40_000)))
    started = time.process_time()
    commits = read_commits(open_repository(path), git(path, "rev-parse", "refs/heads/main"))
    assert len(commits) == 40_000 and commits[0].subject == "feat(part1): change number 39999"
    assert time.process_time() - started < 8
    assert len({commit.short for commit in commits}) == 40_000


def test_short_ids_tell_commits_apart() -> None:
    """Where seven digits are not enough, all short ids of a range are longer."""
    assert unique_width(["abcdefg1" + "0" * 32, "abcdefg2" + "0" * 32]) == 8
    assert unique_width([]) == 7


def test_a_commit_comes_back_from_json() -> None:
    """What goes to a blob between stages is the same commit afterwards."""
    commit = Commit(ID, "aaaaaaa", "s", "b", "a", "", ("b" * 40,))
    assert commit_from_json(commit.to_json()) == commit
