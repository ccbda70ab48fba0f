"""What a model sees of outputs, notes and questions."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.contracts.agent import ToolSpec
from perdure.contracts.base import BlobRef
from perdure.testing.tools import ToolBench
from perdure.tools.ask import ASK
from perdure.tools.memory import ALL_BYTES, MOST_NOTES, NOTE_CHARACTERS, READ, WRITE
from perdure.tools.output import OUTPUT, cut, give, name_of


def spec(limit: int) -> ToolSpec:
    """A tool whose output may be so long."""
    return ToolSpec(name="t", description="", parameters={}, output_limit_bytes=limit)


def test_short_output_is_given_whole(bench: ToolBench) -> None:
    """Nothing is stored and nothing is cut."""
    outcome = give(spec(100), bench.context(), b"short", head="[head]")
    assert (outcome.text, outcome.blob) == ("[head]\nshort", None)


def test_long_output_shows_both_ends_and_how_to_read_on(bench: ToolBench) -> None:
    """Cut at line ends; every byte that is not shown can be read."""
    data = b"".join(b"line %d\n" % n for n in range(1000))
    outcome = give(spec(600), bench.context(), data)
    assert outcome.text.startswith("line 0\nline 1\n") and outcome.text.endswith("line 999\n")
    assert outcome.blob is not None and bench.blobs.get(outcome.blob) == data
    assert f"output.read, output={name_of(outcome.blob)}, offset=" in outcome.text
    first = int(outcome.text.partition("offset=")[2].split()[0])
    last = outcome.text.rpartition("…]\n")[2]
    read, offset = b"", first
    while offset < len(data) - len(last):
        piece = bench.call(OUTPUT, output=name_of(outcome.blob), offset=offset, size=1000)
        text = piece.text.partition("\n")[2].encode()
        read, offset = read + text, offset + len(text)
    assert data[:first] + read[: len(data) - len(last) - first] + last.encode() == data


@settings(deadline=None)
@given(st.binary(max_size=3000), st.integers(0, 1500))
def test_no_output_passes_its_limit(data: bytes, limit: int) -> None:
    """Whatever bytes they are, what is shown takes at most the limit."""
    shown = cut(data, limit, BlobRef(sha256="ab" * 32, size_bytes=len(data)))
    assert len(shown.encode()) <= limit


def test_output_that_is_not_there_is_told(bench: ToolBench) -> None:
    """A made-up name, a wrong size and no name at all are faults."""
    ref = bench.blobs.put(b"x")
    for name in ("push now", f"{'0' * 64}/1", f"{ref.sha256}/2", f"{ref.sha256}/-1", f"../{ref.sha256}/1"):
        assert bench.call(OUTPUT, output=name).status == "error", name
    assert bench.call(OUTPUT, output=name_of(ref), offset=50).text == "[bytes 50 to 50 of 1; the end]"


def test_notes_are_kept_extended_and_forgotten(bench: ToolBench) -> None:
    """A note is replaced by its name or extended; the same call twice adds nothing."""
    for _ in range(2):
        assert bench.call(WRITE, key="build", text="make all").status == "ok"
        bench.call(WRITE, key="build", text="takes an hour", append=True)
    assert bench.call(READ).text == "[1 note]\n## build\nmake all\ntakes an hour"
    assert "there are: build" in bench.call(READ, key="other").text
    bench.call(WRITE, key="build", text="")
    assert bench.call(READ).text == "[0 notes]"


def test_notes_have_bounds(bench: ToolBench) -> None:
    """One note, all together and their number: what would pass a bound is told and nothing is kept of it."""
    assert bench.call(WRITE, key="../x", text="a").status == "error"
    assert bench.call(WRITE, key="x", text="a" * (NOTE_CHARACTERS + 1)).status == "error"
    for number in range(ALL_BYTES // NOTE_CHARACTERS + 1):
        last = bench.call(WRITE, key=f"n{number}", text="a" * NOTE_CHARACTERS)
    assert "Forget some first" in last.text
    assert sum(map(len, bench.notes.read().values())) <= ALL_BYTES
    for key in list(bench.notes.read()):
        bench.notes.write(key, "")
    outcomes = [bench.call(WRITE, key=f"n{number}", text="a").status for number in range(MOST_NOTES + 1)]
    assert outcomes == ["ok"] * MOST_NOTES + ["error"]


def test_question_to_a_person_is_an_outcome_of_its_own(bench: ToolBench) -> None:
    """The question with its options goes to a person; one option or two alike are told."""
    outcome = bench.call(ASK, question=" Which branch? ", options=["main", "next"])
    assert (outcome.status, outcome.text, outcome.options) == ("asks", "Which branch?", ("main", "next"))
    assert bench.call(ASK, question="Free?").options == ()
    for options in (["yes"], ["a", "a "], [""]):
        assert bench.call(ASK, question="?", options=options).status == "error"
    assert bench.call(ASK, question="  ").status == "error"
