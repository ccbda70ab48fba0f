"""Reading files: ranges, huge ones, binary ones, and nothing outside of the workspace."""

from __future__ import annotations

import os

import pytest

from perdure.testing.tools import ToolBench
from perdure.tools.files_glob import GLOB
from perdure.tools.files_read import LIMIT_BYTES, READ
from perdure.tools.files_write import EDIT, REMOVE, WRITE


def put(bench: ToolBench, path: str, content: str | bytes) -> None:
    file = bench.workspace / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content.encode() if isinstance(content, str) else content)


def test_file_is_given_with_what_was_read_of_it(bench: ToolBench) -> None:
    """The text as it is, behind a line that says which lines and how large the file is."""
    put(bench, "a.txt", "one\ntwo\n")
    outcome = bench.call(READ, path="a.txt")
    assert (outcome.status, outcome.text) == ("ok", "[a.txt: lines 1 to 2; the end of 8 bytes]\none\ntwo\n")


def test_range_of_lines_says_how_to_go_on(bench: ToolBench) -> None:
    """A piece ends at a line and names the next one."""
    put(bench, "a.txt", "".join(f"line {n}\n" for n in range(1, 101)))
    outcome = bench.call(READ, path="a.txt", start=40, lines=2)
    assert outcome.text == "[a.txt: lines 40 to 41; more follows, start=42 of 792 bytes]\nline 40\nline 41\n"
    assert "lines 100 to 100; the end" in bench.call(READ, path="a.txt", start=100).text
    assert "There is no line 150" in bench.call(READ, path="a.txt", start=150).text


def test_every_byte_of_a_long_file_can_be_read_in_pieces(bench: ToolBench) -> None:
    """Going on where each piece says gives the whole file, whatever its lines are."""
    lines = [f"{n} {'x' * (n % 700)}\n" for n in range(1, 400)]
    put(bench, "a.txt", "".join(lines))
    read, start = "", 1
    while start:
        head, _, text = bench.call(READ, path="a.txt", start=start).text.partition("\n")
        read += text
        start = int(head.partition("start=")[2].split()[0]) if "start=" in head else 0
    assert read == "".join(lines)


def test_line_longer_than_a_piece_is_read_by_bytes(bench: ToolBench) -> None:
    """A minified file is given by offsets."""
    put(bench, "a.js", "x" * (3 * LIMIT_BYTES))
    assert f"more follows, offset={LIMIT_BYTES}" in bench.call(READ, path="a.js").text
    outcome = bench.call(READ, path="a.js", offset=2 * LIMIT_BYTES)
    assert "; the end" in outcome.text.partition("\n")[0]
    assert len(outcome.text.partition("\n")[2]) == LIMIT_BYTES


def test_no_piece_parts_a_character_or_passes_the_limit(bench: ToolBench) -> None:
    """Pieces of a long line of many-byte characters join to the whole; bytes that are no text are shown within it."""
    text = "aä€😀" * 20_000
    put(bench, "long", text)
    put(bench, "noise", b"\xff" * 100_000)
    read, offset = "", 0
    while offset >= 0:
        head, _, piece = bench.call(READ, path="long", offset=offset).text.partition("\n")
        read += piece
        offset = int(head.partition("offset=")[2].split()[0]) if "offset=" in head else -1
    assert read == text
    assert len(bench.call(READ, path="noise").text.encode()) <= READ.spec.output_limit_bytes


def test_huge_file_is_not_read_whole(bench: ToolBench) -> None:
    """Of ten gigabytes (sparse) one piece is read."""
    with (bench.workspace / "big").open("wb") as file:
        file.write(b"first\n" + b"x" * 10_000 + b"\n")
        file.truncate(10 << 30)
    outcome = bench.call(READ, path="big", lines=1)
    assert outcome.text.partition("\n")[2] == "first\n"
    assert "MB into the file" in bench.call(READ, path="big", start=5).text


def test_binary_file_is_named_and_not_shown(bench: ToolBench) -> None:
    """A model gets no bytes that are no text."""
    put(bench, "a.bin", b"\x7fELF\0\1\2")
    assert bench.call(READ, path="a.bin").text == "[a.bin: 7 bytes, binary; it begins with 7f 45 4c 46 00 01 02]"
    put(bench, "latin", "größe".encode("latin-1"))
    assert "not all of it is UTF-8" in bench.call(READ, path="latin").text


@pytest.mark.parametrize(
    "path", ["../secret", "a/../../secret", "/etc/passwd", ".git/config", "a/.GIT/x", "a\0b", "a//b", "", "."]
)
def test_path_that_leaves_the_workspace_is_refused(bench: ToolBench, path: str) -> None:
    """No path leads out, into a git directory, or to no file, for reading and for changing."""
    put(bench, ".git/config", "SECRET")
    for outcome in (
        bench.call(READ, path=path),
        bench.call(WRITE, path=path, content="x"),
        bench.call(EDIT, path=path, edits=[{"old": "SECRET", "new": "x"}]),
        bench.call(REMOVE, path=path),
    ):
        assert outcome.status == "error"
        assert "SECRET" not in outcome.text
    assert (bench.workspace.parent / "secret").read_text() == "SECRET"


def test_no_link_is_followed(bench: ToolBench) -> None:
    """A link to a file, a link on the way, a pipe and a folder are told and not opened."""
    (bench.workspace / "link").symlink_to(bench.workspace.parent / "secret")
    (bench.workspace / "out").symlink_to(bench.workspace.parent)
    (bench.workspace / "folder").mkdir()
    os.mkfifo(bench.workspace / "pipe")
    for path in ("link", "out/secret", "folder", "pipe"):
        for outcome in (bench.call(READ, path=path), bench.call(WRITE, path=path, content="x")):
            assert (outcome.status, "SECRET" in outcome.text) == ("error", False), path
    listed = bench.call(GLOB).text
    assert "link (link)" in listed and "out (link)" in listed and "pipe (no file)" in listed and "secret" not in listed


def test_glob_lists_what_matches_sorted_with_sizes(bench: ToolBench) -> None:
    """`**` stands for any folders, none too; hidden git directories are not shown."""
    for path in ("b.py", "a.py", "src/deep/c.py", "src/d.txt", ".git/hooks/x.py"):
        put(bench, path, "12345")
    assert bench.call(GLOB, pattern="**/*.py").text == "[3 matches **/*.py]\na.py 5\nb.py 5\nsrc/deep/c.py 5"
    assert bench.call(GLOB, pattern="*", within="src").text == "[1 match *]\nsrc/d.txt 5"
    assert "src/deep/" in bench.call(GLOB, folders=True).text
    assert bench.call(GLOB, within="nowhere").status == "error"


def test_glob_of_very_many_and_very_deep_files_ends(bench: ToolBench) -> None:
    """A thousand are shown and the count told; folders in folders without end are passed over."""
    for number in range(1200):
        (bench.workspace / f"f{number:04}").touch()
    folder = bench.workspace
    for _ in range(90):
        folder = folder / "d"
    folder.mkdir(parents=True)
    outcome = bench.call(GLOB)
    assert "1200 matches **, the first 1000 are shown" in outcome.text
    assert outcome.blob is not None or len(outcome.text) <= GLOB.spec.output_limit_bytes


def test_wrong_arguments_are_told_with_what_was_expected(bench: ToolBench) -> None:
    """A model can mend its call: each wrong argument is named."""
    assert "`path` is missing" in bench.call(READ).text
    assert "`pth` is not an argument; it takes path, start" in bench.call(READ, pth="a").text
    assert "`start`: Input should be greater than or equal to 1, got 0" in bench.call(READ, path="a", start=0).text
