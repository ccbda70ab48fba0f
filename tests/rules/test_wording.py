"""A model may choose words, never facts."""

from __future__ import annotations

from typing import Any

import pytest

from perdure.policy.answers import check_schema, close_schema
from perdure.rules.release.entries import Entry
from perdure.rules.release.wording import WORDING, find_changes


def entry(text: str, **more: Any) -> Entry:
    """An entry from a commit."""
    about = {"id": "a41c9e0", "section": "Fixed", "sources": ("a41c9e0",), "bump": "patch", **more}
    return Entry(text=text, **about)


def release(*entries: Entry) -> dict[str, Any]:
    """As much of a ``release.propose`` value as wording needs."""
    return {
        "entries": [one.to_json() for one in entries],
        "notes": "orders 1.3.0\n\n### Fixed\n",
        "title": "1.2.0 → 1.3.0",
    }


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("bulk import", "You can now import many orders at once."),
        ("handle empty order in Docker", "Empty orders no longer fail in Docker."),
        ("docker support", "Docker is supported."),
        ("add --quiet to `orders list`", "`orders list` now takes `--quiet`."),
        ("fix utf8 names (#12)", "Names in utf8 are read correctly (#12)."),
        ("bump api timeout to 30s", "The timeout of the API is 30s now."),
        ("speed up orders.import_all", "orders.import_all is faster."),
    ],
)
def test_words_may_change(old: str, new: str) -> None:
    """Another sentence about the same names, numbers and options is wording."""
    assert list(find_changes(entry(old), new)) == []


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("wait 30 seconds", "Waits a while.", "keep '30'"),
        ("wait a while", "Waits 30 seconds.", "not bring in '30'"),
        ("add --quiet", "Added a silent mode.", "keep '--quiet'"),
        ("add a silent mode", "Added --quiet.", "not bring in '--quiet'"),
        ("fix crash (#12)", "Fixed a crash.", "keep '#12'"),
        ("fix crash", "Fixed a crash, thanks to @mallory.", "not bring in '@mallory'"),
        ("read from config.toml", "Reads the settings.", "keep 'config.toml'"),
        ("call `orders list`", "Call the list.", "keep 'orders list'"),
        ("see the page", "See https://evil.example/x.", "not bring in 'https://evil.example/x'"),
        ("runs in Docker", "Runs in containers.", "keep 'Docker'"),
        ("runs in containers", "It runs in Kubernetes.", "not bring in 'Kubernetes'"),
        ("fix crash", "Fixed a crash (deadbeef1).", "not bring in 'deadbeef1'"),
        ("fix crash", "Fixed.\n\n## Security\n\n- All is well", "one line"),
        ("fix crash", "- Fixed a crash", "plain text"),
        ("fix crash", "Fixed a <script>crash</script>", "plain text"),
        ("fix crash", "Fixed " + "a crash and " * 40, "more than wording"),
    ],
)
def test_facts_may_not(old: str, new: str, says: str) -> None:
    """What is lost, brought in, or more than one plain line is told by name."""
    assert says in " ".join(find_changes(entry(old), new))


def test_what_a_person_wrote_is_never_reworded() -> None:
    """Entries of a changelog, of change files and of reviewers stay, whatever a model answers about them."""
    mine = [entry("Bulk import.", id="u-1f2e3d"), entry("By Ana.", edited_by="ana"), entry("bulk import")]
    value = release(*mine)
    schema = close_schema(WORDING.schema(value))
    assert check_schema(schema) == []
    assert schema["properties"]["entries"]["items"]["properties"]["number"]["enum"] == [3]
    answer = {"entries": [{"number": number, "text": "Other words."} for number in (1, 2, 3)]}
    refined = WORDING.apply(value, answer, "m")
    assert [one["text"] for one in refined.value["entries"]] == ["Bulk import.", "By Ana.", "Other words."]
    assert not WORDING.is_needed(release(*mine[:2]))


def test_what_is_refused_leaves_the_rest_worded() -> None:
    """Each entry for itself: a good text is taken, a bad one is not, both are told; the notes have the same words."""
    value = release(entry("bulk import"), entry("wait 30 seconds", id="b52d0f1"))
    answer = {"entries": [{"number": 1, "text": "Import in bulk."}, {"number": 2, "text": "Waits."}]}
    assert WORDING.find_problems(value, answer) == ["Entry 2: It must keep '30' exactly."]
    refined = WORDING.apply(value, answer, "m")
    assert [one["text"] for one in refined.value["entries"]] == ["Import in bulk.", "wait 30 seconds"]
    assert "Import in bulk." in refined.value["notes"]
    assert refined.value["notes"].startswith("orders 1.3.0\n")
    assert any("b52d0f1 stays as the rules wrote it" in finding for finding in refined.findings)
    assert any('"bulk import" became "Import in bulk."' in finding for finding in refined.findings)


def test_the_same_entry_twice_is_a_problem() -> None:
    """A number given twice is told, and only the first text counts in the end."""
    value = release(entry("bulk import"))
    answer = {"entries": [{"number": 1, "text": "One."}, {"number": 1, "text": "Two."}]}
    assert WORDING.find_problems(value, answer) == ["Entry 1 is there more than once."]
    assert WORDING.apply(value, answer, "m").value["entries"][0]["text"] == "One."
