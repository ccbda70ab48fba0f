"""What the reviewer sees is the plan, whole, and nothing that could deceive."""

import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from perdure.contracts.base import path_text
from perdure.contracts.decisions import Weighing
from perdure.contracts.http import JobView, Review
from perdure.contracts.job import JobPhase
from perdure.contracts.plan import ApprovalRule, Envelope, FileChange, Inverse, Plan, PlannedEffect, ReviewRule, freeze
from perdure.contracts.plan import read_plan as parse_plan
from perdure.errors import NotFound, Tampered
from perdure.store.blobs import BlobStore
from perdure.store.diffs import diff_changes
from perdure.store.review import build_review, describe_difference, stream_difference

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


@pytest.fixture
def blobs(tmp_path: Path) -> BlobStore:
    return BlobStore(tmp_path / "blobs")


def change(
    blobs: BlobStore, path: str | bytes, old: bytes | None, new: bytes | None, modes: str = "100644 100644"
) -> FileChange:
    before, after = modes.split(" ")
    return FileChange(
        path=path_text(path if isinstance(path, bytes) else path.encode()),
        old=None if old is None else blobs.put(old),
        new=None if new is None else blobs.put(new),
        old_mode="" if old is None else before,
        new_mode="" if new is None else after,
    )


def effect(name: str, summary: str = "", **body: object) -> PlannedEffect:
    inverse = Inverse(kind="git.tag", version=1, body={"back": name})
    return PlannedEffect(
        id=name, kind="git.tag", version=1, summary=summary or name, body=dict(body), target="t", inverse=inverse
    )


def plan_of(
    changes: list[FileChange], effects: list[PlannedEffect], title: str = "1.2.0 → 1.3.0", **more: object
) -> Plan:
    envelope = Envelope(
        job_id="job/t/1",
        thread="t",
        round=1,
        requester="ada",
        template="release",
        template_digest="0" * 64,
        rule=ReviewRule(approvals=[ApprovalRule(group="maintainers")]),
        title=title,
        changes=changes,
        created_at=NOW,
        expires_at=NOW + timedelta(days=7),
        **more,  # type: ignore[arg-type]
    )
    digest, data = freeze(envelope, effects)
    return parse_plan(digest, data)


def review_of(
    plan: Plan, blobs: BlobStore, intents: list[object] | None = None, previous: Plan | None = None
) -> Review:
    job = JobView(
        job_id="job/t/1",
        number=1,
        name="t/1",
        thread="t",
        template="release",
        phase=JobPhase.waiting,
        requester="ada",
        created_at=NOW,
        updated_at=NOW,
    )
    return build_review(
        plan,
        "a" * 64,
        blobs,
        job=job,
        state="open",
        weighing=Weighing(outcome="pending", missing=["1 from maintainers"]),
        intents=intents or [],  # type: ignore[arg-type]
    )


def test_what_an_effect_writes_is_in_the_diff(blobs: BlobStore) -> None:
    """A file that is written beside the draft is shown line by line, with its hazards: nobody approves a hash."""
    written = change(blobs, ".github/workflows/ci.yml", b"on: push\n", b"on: push\nrun: evil\n")
    body = {"root": "/srv/page", **written.model_dump(mode="json")}
    note = effect("note", **body).model_copy(update={"kind": "files.write"})
    review = review_of(plan_of([change(blobs, "VERSION", b"1\n", b"2\n")], [note]), blobs)
    assert "+run: evil" in review.diff and "+2" in review.diff
    assert (review.files, review.added) == (2, 2)
    assert any("ci.yml" in hazard for hazard in review.hazards)
    other = change(blobs, ".github/workflows/ci.yml", b"on: push\n", b"on: push\nrun: good\n")
    new = note.model_copy(update={"body": {"root": "/srv/page", **other.model_dump(mode="json")}})
    assert "+run: good" in describe_difference(plan_of([], [note]), plan_of([], [new]), blobs)


def test_the_diff_applies_to_the_old_files_and_gives_the_new_ones(blobs: BlobStore, tmp_path: Path) -> None:
    """The diff is a patch that git itself accepts, whatever is added, removed, changed or made executable."""
    changes = [
        change(blobs, "kept/a.txt", b"1\n2\n3\n4\n5\n6\n7\n8\n9\n", b"1\n2\nthree\n4\n5\n6\n7\n8\n9\nten"),
        change(blobs, "new.py", None, b"print()\n"),
        change(blobs, "gone.txt", b"bye\n", None),
        change(blobs, "run.sh", b"x\n", b"x\n", "100644 100755"),
    ]
    for item in changes:
        if item.old:
            place = tmp_path / "tree" / item.path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(blobs.get(item.old))
    diff = diff_changes(changes, blobs.get)
    subprocess.run(["git", "apply", "-"], cwd=tmp_path / "tree", input=diff.text.encode(), check=True)
    for item in changes:
        place = tmp_path / "tree" / item.path
        assert (place.read_bytes() if place.exists() else None) == (blobs.get(item.new) if item.new else None)
    assert (diff.files, diff.added, diff.removed) == (4, 3, 2)


def test_nothing_in_a_changed_file_is_ever_cut(blobs: BlobStore) -> None:
    """Three megabytes of changed lines are three megabytes of diff."""
    new = b"".join(b"line %07d of a long file\n" % number for number in range(110_000))
    diff = diff_changes([change(blobs, "big.txt", None, new)], blobs.get)
    assert diff.added == 110_000
    assert diff.text.count("\n+line") == 110_000


def test_content_cannot_pose_as_another_file(blobs: BlobStore) -> None:
    """Lines that look like git's own headers stay inside their file's hunk."""
    trap = b"diff --git a/old/1 b/new/1\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"
    diff = diff_changes([change(blobs, "a", None, trap), change(blobs, "b", b"x\n", b"y\n")], blobs.get)
    assert diff.text.count("\ndiff --git ") == 1
    assert "+diff --git a/old/1 b/new/1\n+--- a/x\n" in diff.text
    assert (diff.files, diff.added, diff.removed) == (2, 7, 1)


def test_names_and_content_are_shown_safely(blobs: BlobStore) -> None:
    """Escapes, bidi, carriage returns, newlines in names and bytes that are no UTF-8 are written out."""
    diff = diff_changes(
        [
            change(blobs, "a\n+++ b/evil\u202e", b"x\n", b"\x1b[2K\r\xe9\n"),
            change(blobs, b"caf\xe9", b"x\n", b"y\n"),
        ],
        blobs.get,
    )
    assert "+++ b/a^J+++ b/evil⟨U+202E⟩\n" in diff.text
    assert "+^[[2K^M⟨0xE9⟩\n" in diff.text
    assert "diff --git a/caf⟨0xE9⟩ b/caf⟨0xE9⟩" in diff.text
    assert "\x1b" not in diff.text


def test_an_attribute_file_of_the_repository_steers_nothing(blobs: BlobStore) -> None:
    """``*.py -diff`` in the plan's own .gitattributes does not hide a change."""
    diff = diff_changes(
        [change(blobs, ".gitattributes", None, b"* -diff binary\n"), change(blobs, "a.py", b"1\n", b"2\n")], blobs.get
    )
    assert "-1\n+2\n" in diff.text


@pytest.mark.parametrize(
    ("old", "new", "modes", "said"),
    [
        (None, b"\0png", " 100644", "Binary: absent → 4 bytes SHA-256"),
        (None, b"", " 100644", "Content: absent → 0 bytes SHA-256"),
        (b"a", b"b", "160000 160000", "Submodule"),
    ],
)
def test_what_has_no_lines_is_named_exactly(
    blobs: BlobStore, old: bytes | None, new: bytes, modes: str, said: str
) -> None:
    """A binary, an empty file and a submodule stand in the diff by size and hash: nothing is passed over."""
    assert said in diff_changes([change(blobs, "x", old, new, modes)], blobs.get).text


def test_a_blob_that_was_changed_or_lost_is_never_half_shown(blobs: BlobStore, tmp_path: Path) -> None:
    """A review of damaged evidence is refused, not shown in part."""
    item = change(blobs, "a", b"old\n", b"new\n")
    assert item.new is not None
    place = next(path for path in tmp_path.rglob("*") if path.name == item.new.sha256)
    place.chmod(0o600)
    place.write_bytes(b"NEW\n")
    with pytest.raises(Tampered):
        review_of(plan_of([item], [effect("tag")]), blobs)
    place.unlink()
    with pytest.raises(NotFound):
        review_of(plan_of([item], [effect("tag")]), blobs)


class _Fate:
    def __init__(self, index: int, direction: str, state: str, detail: str = "") -> None:
        self.index, self.direction, self.state, self.detail = index, direction, state, detail


def test_each_effect_is_shown_with_what_has_become_of_it(blobs: BlobStore) -> None:
    """Not begun, done, taken back, or stuck in taking back: the newest word stands."""
    plan = plan_of([], [effect(name) for name in "abcd"])
    fates = [
        _Fate(0, "do", "done"),
        _Fate(0, "undo", "done"),
        _Fate(1, "do", "done", "ok"),
        _Fate(2, "do", "done"),
        _Fate(2, "undo", "unknown", "remote is silent"),
    ]
    shown = review_of(plan, blobs, list(fates)).effects
    assert [view.state for view in shown] == ["undone", "done", "unknown", ""]
    assert shown[2].detail == "taking back: remote is silent"


def test_the_difference_from_the_last_decided_plan(blobs: BlobStore) -> None:
    """A redraft says what differs in title, effects and files, and shows the diff between the two drafts alone."""
    base = change(blobs, "VERSION", b"1.2.0\n", b"1.3.0\n")
    same = change(blobs, "same", b"a\n", b"b\n")
    before = plan_of([base, same], [effect("commit"), effect("tag", "v1.3.0", ref="v1.3.0")])
    after = plan_of(
        [change(blobs, "VERSION", b"1.2.0\n", b"2.0.0\n"), same],
        [effect("commit"), effect("tag", "v2.0.0", ref="v2.0.0"), effect("push")],
        title="1.2.0 → 2.0.0",
        findings=["beware \x1b"],
    )
    items, _, diff = describe_difference(before, after, blobs).partition("\n\n")
    assert items.splitlines() == [
        "title: 1.2.0 → 1.3.0 ⇒ 1.2.0 → 2.0.0",
        "finding new: beware ^[",
        "effect tag: v1.3.0 ⇒ v2.0.0",
        "effect new: push git.tag push",
        "file 'VERSION' differs from the previous plan's result",
    ]
    assert "-1.3.0\n+2.0.0\n" in diff
    assert "same" not in diff


def test_an_effect_that_changed_behind_the_same_summary_is_named(blobs: BlobStore) -> None:
    """A body that differs under an equal summary line does not pass as unchanged."""
    before, after = (
        plan_of([], [effect("tag", "v1", ref="a", old="0")]),
        plan_of([], [effect("tag", "v1", ref="a", old="1")]),
    )
    assert "effect tag: v1: body (old) differ" in describe_difference(before, after, blobs)


def test_a_commit_made_again_of_the_same_files_is_called_that(blobs: BlobStore) -> None:
    """The id differs with the time it was made; the reviewer is told that the files do not."""
    files = [change(blobs, "VERSION", b"1.2.0\n", b"1.3.0\n")]

    def commit(new: str, **more: str) -> PlannedEffect:
        return effect("commit", "1 file", new=new, **more).model_copy(update={"kind": "git.commit"})

    before, after = plan_of(files, [commit("a" * 40)]), plan_of(files, [commit("b" * 40)])
    said = "effect commit: same files, another commit (aaaaaaa ⇒ bbbbbbb)"
    assert said in describe_difference(before, after, blobs)
    other_ref = plan_of(files, [commit("b" * 40, ref="refs/heads/next")])
    assert "body (new, ref) differ" in describe_difference(before, other_ref, blobs)


def test_the_same_effects_again_are_said_to_be_the_same(blobs: BlobStore) -> None:
    """After an unrelated change the reviewer is told that what would be applied is equal to the byte."""
    before, after = plan_of([], [effect("tag")]), plan_of([], [effect("tag")], reasons=["because"])
    assert describe_difference(before, after, blobs) == "reason new: because\nThe effects are the same, to the byte."


def test_a_first_plan_has_no_difference(blobs: BlobStore) -> None:
    """Without a decided plan before it there is nothing to compare."""
    assert review_of(plan_of([], [effect("tag")]), blobs).since_previous == ""


def test_references_are_needed_only_for_what_changes(blobs: BlobStore) -> None:
    """A plan without file changes has an empty diff."""
    diff = diff_changes([], blobs.get)
    assert (diff.text, diff.files) == ("", 0)


def test_a_large_diff_is_measured_in_the_review_and_streamed_whole(blobs: BlobStore) -> None:
    """Above 1 MB the review says size and lines and keeps every hazard; the stream gives each byte, in small pieces."""
    new = b"".join(b"line %07d of a long file \xe2\x80\xae\n" % number for number in range(60_000))
    hook = change(blobs, ".github/workflows/ci.yml", b"on: push\n", b"on: push\nrun: evil\n")
    plan = plan_of([change(blobs, "big.txt", None, new), hook], [effect("tag")])
    review = review_of(plan, blobs)
    pieces = list(stream_difference(None, plan, blobs))
    text = "".join(pieces)
    assert (review.diff, review.files, review.added) == ("", 2, 60_001)
    assert review.diff_bytes == len(text.encode())
    assert any("ci.yml" in hazard for hazard in review.hazards)
    assert text.count("⟨U+202E⟩\n") == 60_000 and "+run: evil\n" in text
    assert max(map(len, pieces)) < 200_000
