"""Changelogs of every form are extended where their newest section is, in their own style."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.errors import UserError
from perdure.rules.release.changelog import read_changelog
from perdure.rules.release.changelog_asciidoc import escape as escape_asciidoc
from perdure.rules.release.changelog_dates import guess_day_first, write_date
from perdure.rules.release.changelog_files import decode_changelog, encode_changelog
from perdure.rules.release.changelog_markup import MARKUPS
from perdure.rules.release.changelog_rst import escape as escape_rst
from perdure.rules.release.changelog_write import Release, section_items, write_release
from perdure.rules.release.entries import Entry
from perdure.rules.release.markdown_text import split_lines
from perdure.store.blobs import BlobStore
from tests.rules.kit import ReleaseRun, make_repository, save, tag

ADDED = Entry("a41c9e0", "Added", "bulk import", ("a41c9e0",), "minor")

FORMS = {
    "markdown underlined": (
        "markdown",
        "Changes\n=======\n\n2 words\n\n"
        "‹1.3.0 (2026-11-30)\n------------------\n\n### Added\n\n- bulk import (a41c9e0)\n\n›"
        "1.2.0 (2026-10-01)\n------------------\n\n- Old.\n- 9.9.9\n---\n\n1.1.0 (2026-09-01)\n------------------\n",
    ),
    "markdown top level": (
        "markdown",
        "‹# 1.3.0 (2026-11-30)\n\n### Added\n\n* bulk import (a41c9e0)\n\n›# 1.2.0 (2026-10-01)\n\n### Old\n\n* x\n",
    ),
    "markdown front matter": (
        "markdown",
        "---\n1.9.9\n---\n\n‹## 1.3.0 - 2026-11-30\n\n### Added\n\n- bulk import (a41c9e0)\n\n›## 1.2.0\n",
    ),
    "markdown anchors": (
        "markdown",
        '‹## v1.3.0 - 2026-11-30\n\n### Added\n\n- bulk import (a41c9e0)\n\n›<a name="1.2.0"></a>\n## v1.2.0\n',
    ),
    "markdown package name": (
        "markdown",
        "# Log\n\n‹## orders 1.3.0 - 2026-11-30\n\n### Added\n\n- bulk import (a41c9e0)\n\n›"
        "## orders 1.2.0\n\n## orders 1.1\n",
    ),
    "markdown oldest first": (
        "markdown",
        "# Log\n\n## 1.1.0\n\n- a\n\n## 1.2.0\n\n- b\n\n"
        "‹## 1.3.0 - 2026-11-30\n\n### Added\n\n- bulk import (a41c9e0)\n›",
    ),
    "markdown linked": (
        "markdown",
        "‹## [1.3.0](https://h/o/r/compare/v1.2.0...v1.3.0) (2026-11-30)\n\n### Added\n\n- bulk import (a41c9e0)\n\n›"
        "## [1.2.0](https://h/o/r/compare/v1.1.0...v1.2.0) (2026-10-01)\n",
    ),
    "markdown linked to the release": (
        "markdown",
        "‹## [v1.3.0](https://h/releases/tag/v1.3.0), November 30, 2026\n\n### Added\n\n- bulk import (a41c9e0)\n\n›"
        "## [v1.2.0](https://h/releases/tag/v1.2.0), October 1, 2026\n",
    ),
    "markdown linked by two dots": (
        "markdown",
        "‹## [1.3.0](https://h/compare/v1.2.0..v1.3.0) - 2026-11-30\n\n### Added\n\n- bulk import (a41c9e0)\n\n›"
        "## [1.2.0](https://h/compare/0a1b..v1.2.0) - 2026-10-01\n",
    ),
    "markdown major versions": (
        "markdown",
        "# Log\n\n‹## v1.3.0 (2026-11-30)\n\n### Added\n\n- bulk import (a41c9e0)\n\n›"
        "## v1 (2026-10-01)\n\n## v0 (2026-09-01)\n\n## 7 notes\n",
    ),
    "markdown start mark": (
        "markdown",
        "# Log\n\n<!-- towncrier release notes start -->\n\n‹## [1.3.0] - 2026-11-30\n\n### Added\n\n"
        "- bulk import (a41c9e0)\n\n›## Before\n\nOld.\n",
    ),
    "rst underlined": (
        "rst",
        "History\n=======\n\n‹1.3.0 (2026-11-30)\n------------------\n\nAdded\n~~~~~\n\n* bulk import (a41c9e0)\n\n›"
        "1.2.0 (2026-10-01)\n------------------\n\n* Old::\n\n    9.9.9\n    -----\n\n"
        "1.1.0 (2026-09-01)\n------------------\n",
    ),
    "rst rows above and below": (
        "rst",
        "=========\nChangelog\n=========\n\n.. _v9.9.9:\n\nIntro\n-----\n\n"
        "‹%%%%%%%%%%%%%%%%%%%%%%%%%%\nVersion 1.3.0 - 2026-11-30\n"
        "%%%%%%%%%%%%%%%%%%%%%%%%%%\n\nAdded\n^^^^^\n\n- bulk import (a41c9e0)\n\n›.. _v1.2.0:\n\n%%%%%%%%%%%%%\n"
        "Version 1.2.0\n%%%%%%%%%%%%%\n\nFixed\n^^^^^\n\n- Old.\n\n=====  =====\n1.1.1  2.2.2\n=====  =====\n",
    ),
    "rst wide rows": (
        "rst",
        "‹1.3.0 (Nov 30, 2026)\n" + "+" * 40 + "\n\nAdded\n-----\n\n- bulk import (a41c9e0)\n\n›"
        "1.2.0 (Oct 01, 2026)\n" + "+" * 40 + "\n- Old.\n",
    ),
    "rst start mark": (
        "rst",
        "Log\n===\n\n.. towncrier release notes start\n\n‹1.3.0 - 2026-11-30\n~~~~~~~~~~~~~~~~~~\n\nAdded\n-----\n\n"
        "- bulk import (a41c9e0)\n\n›Before\n~~~~~~\n\nOld.\n",
    ),
    "rst date below": (
        "rst",
        "‹Version 1.3.0\n-------------\n\nReleased 2026-11-30\n\nAdded\n~~~~~\n\n- bulk import (a41c9e0)\n\n›"
        "Version 1.2.0\n-------------\n\nReleased 2026-10-01\n\n-   Old.\n\nVersion 1.1.0\n-------------\n",
    ),
    "asciidoc labels": (
        "asciidoc",
        "= Log\n\n‹== 1.3.0 (2026-11-30)\n\nAdded::\n\n* bulk import (a41c9e0)\n\n›"
        "== 1.2.0 (2026-10-01) - @mara\n\nBug Fixes::\n\n  * Old.\n",
    ),
    "asciidoc": (
        "asciidoc",
        "= Log\n:toc:\n\n----\n== 9.9.9\n----\n\n////\n== 9.9.8\n////\n// == 9.9.7\n\n"
        "‹== 1.3.0 (2026-11-30)\n\n=== Added\n\n* bulk import (a41c9e0)\n\n›"
        "[[v1.2.0]]\n== 1.2.0 (2026-10-01)\n\n=== Fixed\n\n* Old.\n",
    ),
    "asciidoc underlined": (
        "asciidoc",
        "Log\n===\n\n‹1.3.0 - 2026-11-30\n------------------\n\n=== Added\n\n- bulk import (a41c9e0)\n\n›"
        "1.2.0\n-----\n\n9.9.9\n---------\ncode\n---------\n",
    ),
}
"""By name: (markup, text with the new section between ‹ and ›)."""


def write(form: str, text: str, *entries: Entry) -> str:
    """Extend ``text`` by release 1.3.0."""
    release = Release("1.3.0", "v1.3.0", "v1.2.0", "2026-11-30", entries or (ADDED,))
    return write_release(text, release, path="CHANGES", form=form)[0]


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["lf", "crlf"])
def test_the_section_is_written_in_the_files_own_form(name: str, newline: str) -> None:
    """Kind of heading, date, link, bullet and place are those of the newest section; nothing else changes."""
    form, marked = FORMS[name]
    start, middle, end = marked.partition("‹")
    section, _, rest = end.partition("›")
    before, after = (text.replace("\n", newline) for text in (start + rest, start + section + rest))
    # A blank line parts the new section from one that ended the file.
    assert write(form, before) == after.replace(middle, "")


@pytest.mark.parametrize("name", FORMS)
def test_the_written_section_is_found_again(name: str) -> None:
    """What was written reads as the newest section, with its items, and the other versions are still there."""
    form, marked = FORMS[name]
    before = marked.partition("‹")[0] + marked.partition("›")[2]
    written = write(form, before)
    assert section_items(written, "1.3.0", form) == [("Added", "bulk import (a41c9e0)")]
    old = [section.version for section in read_changelog(before, MARKUPS[form]).versions]
    new = [section.version for section in read_changelog(written, MARKUPS[form]).versions]
    assert sorted(new) == sorted([*old, "1.3.0"]) and "9.9.9" not in new


@pytest.mark.parametrize(
    ("form", "text", "wanted"),
    [
        (
            "markdown",
            "Unreleased\n----------\n\n- Bulk.\n\n1.2.0\n-----\n",
            "Unreleased\n----------\n\n1.3.0 - 2026-11-30\n------------------\n\n{}\n1.2.0\n-----\n",
        ),
        (
            "rst",
            "Version 1.3.0\n-------------\n\nUnreleased\n\n- Bulk.\n\n"
            "Version 1.2.0\n-------------\n\n*2026-10-01*\n\n- x\n",
            "Version 1.3.0\n-------------\n\n*2026-11-30*\n\nAdded\n~~~~~\n\n- bulk import (a41c9e0)\n\n"
            "Version 1.2.0\n-------------\n\n*2026-10-01*\n\n- x\n",
        ),
        ("markdown", "## main\n\n- Bulk.\n\n## 1.2.0\n", "## main\n\n## 1.3.0 - 2026-11-30\n\n{}\n## 1.2.0\n"),
        (
            "markdown",
            "## 1.3.0 (unreleased)\n\n- Bulk.\n\n## 1.2.0 (2026-10-01)\n",
            "## 1.3.0 (2026-11-30)\n\n{}\n## 1.2.0 (2026-10-01)\n",
        ),
        (
            "markdown",
            "## 1.1.0\n\n## 1.2.0\n\n## Unreleased\n\n- Bulk.\n",
            "## 1.1.0\n\n## 1.2.0\n\n## 1.3.0 - 2026-11-30\n\n{}\n## Unreleased\n",
        ),
        (
            "asciidoc",
            "== Unreleased\n\n* Bulk.\n\n[#v1.2.0]\n== 1.2.0\n",
            "== Unreleased\n\n== 1.3.0 - 2026-11-30\n\n=== Added\n\n* bulk import (a41c9e0)\n\n[#v1.2.0]\n== 1.2.0\n",
        ),
        (
            "rst",
            "Unreleased\n==========\n\n.. keep me\n\n- Bulk.\n\n.. _v1.2.0:\n\n1.2.0\n=====\n",
            "Unreleased\n==========\n\n.. keep me\n\n1.3.0 - 2026-11-30\n==================\n\nAdded\n-----\n\n"
            "- bulk import (a41c9e0)\n\n.. _v1.2.0:\n\n1.2.0\n=====\n",
        ),
    ],
)
def test_what_was_to_come_becomes_the_release(form: str, text: str, wanted: str) -> None:
    """Its body is the release's by now; its heading stays, unless it names the version itself."""
    assert write(form, text) == wanted.format("### Added\n\n- bulk import (a41c9e0)\n")


@pytest.mark.parametrize(
    "text", ["# Next steps\n\n## 1.2.0\n", "## 1.2.0\n\n## Next\n\n- x\n\n## 1.1.0\n", "## 1.2.0\n\n### main\n\n- x\n"]
)
def test_a_heading_of_another_meaning_is_not_what_is_to_come(text: str) -> None:
    """Only before the first version, at its level, and with nothing else said, a heading is of what is to come."""
    assert read_changelog(text).unreleased is None


@pytest.mark.parametrize(
    ("sample", "wanted"),
    [
        ("2026-10-01", "2026-03-05"),
        ("2026/10/01", "2026/03/05"),
        ("2026.9.1", "2026.3.5"),
        ("October 1, 2026", "March 5, 2026"),
        ("Oct 01 2026", "Mar 05 2026"),
        ("1st October 2026", "5th March 2026"),
        ("01-OCT-2026", "05-MAR-2026"),
        ("1 oct. 2026", "5 mar. 2026"),
        ("May 4th, 2026", "March 5th, 2026"),
        ("10/1/2026", "2026-03-05"),
        ("soon", "2026-03-05"),
    ],
)
def test_a_date_is_written_as_the_file_writes_dates(sample: str, wanted: str) -> None:
    """Order, separators, names and zeros follow the newest date; where that is not clear, the date is ISO's."""
    assert write_date(sample, "2026-03-05") == wanted


@pytest.mark.parametrize(
    ("dates", "wanted"),
    [(["1/2/2026", "10/31/2025"], "3/5/2026"), (["1/2/2026", "31/10/2025"], "5/3/2026"), (["01.02.2026"], "5/3/2026")],
)
def test_the_order_of_day_and_month_is_read_from_all_dates(dates: list[str], wanted: str) -> None:
    """One date that can only be read one way tells how all are meant; with dots the day is first."""
    assert write_date("1/2/2026", "2026-03-05", day_first=guess_day_first(dates)) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("use `a_b` and *stars*", r"use ``a_b`` and \*stars\*"),
        ("see [the page](https://h/x_y)", "see `the page <https://h/x_y>`__"),
        ("__init__ of name_ and a_b", r"__init\_\_ of name\_ and a_b"),
        ("|sub| and \\", r"\|sub\| and \\"),
        ("x`code`s, (`c`)", r"x\ ``code``\ s, (\ ``c``)"),
        (".. note:: x\n- y::", ".. note:: x\n- y::".replace("..", r"\..").replace("- y::", r"\- y:\:")),
    ],
)
def test_plain_text_stays_plain_in_rst(text: str, wanted: str) -> None:
    """Nothing of an entry is read as a reference, emphasis or substitution; code and links become RST's own."""
    assert escape_rst(text) == wanted or ("__init__" in text and escape_rst(text).count("\\_") >= 3)


def test_plain_text_stays_plain_in_asciidoc() -> None:
    """Attribute and cross references are kept from being resolved."""
    assert escape_asciidoc("{version} {a b} <<x>>") == "\\{version} {a b} \\<<x>>"


def test_what_stood_in_the_file_is_written_as_it_was() -> None:
    """An entry that somebody wrote into an RST changelog keeps its markup; one that a reviewer reworded is escaped."""
    own = Entry("u-1", "Fixed", "A ``b`` :pr:`1`_\nmore", ("CHANGES.rst [Unreleased]",), "patch")
    other = Entry("r-1", "Fixed", "name_", ("review: mara",), "patch", edited_by="mara")
    text = write("rst", "1.2.0\n=====\n", own, other)
    assert "- A ``b`` :pr:`1`_\n  more\n- name\\_\n" in text


_PIECES = {
    "rst": ["", "Title", "=====", "1.2.0", "-----", "1.1.0 (2026-01-01)", "-" * 18, "Unreleased", "- item", "  more",
            "text::", "    9.9.9", "    -----", ".. note", "   x", ".. _a:", "=====  ===", "Added", "~~~~~"],
    "asciidoc": ["", "= T", "== 1.2.0", "== Unreleased", "1.1.0", "-----", "----", "text", "* item", "  more", "////",
                 "// x", "[[a]]", "|===", "=== Added", "....", "== 1.0.0 (2026-01-01)"],
}  # fmt: skip


@settings(deadline=None)  # a busy machine is no failure
@given(st.sampled_from(sorted(_PIECES)), st.data(), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_whatever_stood_there_still_stands(form: str, data: st.DataObject, newline: str, ends: bool) -> None:
    """From any lines: all but the body of what is to come stays in order, and the new items are all there is added."""
    lines = data.draw(st.lists(st.sampled_from(_PIECES[form]), max_size=14))
    text = newline.join(["x", "", *lines]) + (newline if ends else "")
    changelog = read_changelog(text, MARKUPS[form])
    body = range(changelog.unreleased.body, changelog.unreleased.end) if changelog.unreleased else range(0)
    kept = [line for place, line in enumerate(split_lines(text)) if place not in body]
    written = iter(line.strip() for line in split_lines(write(form, text)))
    assert all(line.strip() in written for line in kept if line.strip())


def test_bytes_that_are_not_utf8_come_back_as_they_were() -> None:
    """An old file in another encoding is extended by ASCII; anything else would mix two encodings and is refused."""
    data = "1.2.0\n=====\n\n- Zoë\n".encode("latin-1")
    text = decode_changelog(data)
    assert encode_changelog(write("rst", text), data, "CHANGES").endswith(data)
    with pytest.raises(UserError, match="the new section is not ASCII"):
        encode_changelog(text + "é", data, "CHANGES")
    wide = "\ufeff## 1.2.0\r\n".encode("utf-16-le")
    assert encode_changelog(decode_changelog(wide), wide, "x") == wide


RST = "Log\n===\n\n1.2.0\n-----\n\n- Old.\n"


@pytest.mark.parametrize(
    ("files", "chosen", "form"),
    [
        ({"HISTORY.rst": RST}, "HISTORY.rst", "rst"),
        ({"CHANGES.txt": RST}, "CHANGES.txt", "rst"),
        ({"NEWS": "# News\n\n## 1.2.0\n"}, "NEWS", "markdown"),
        ({"CHANGELOG.adoc": "= Log\n\n== 1.2.0\n"}, "CHANGELOG.adoc", "asciidoc"),
        ({"docs/changelog.rst": RST}, "docs/changelog.rst", "rst"),
        ({"CHANGELOG.md": "See docs/changelog.rst.\n", "docs/changelog.rst": RST}, "docs/changelog.rst", "rst"),
        ({"CHANGELOG.md": "# Log\n\n## 1.2.0\n", "docs/changelog.rst": RST}, "CHANGELOG.md", "markdown"),
        ({"CHANGELOG.md": "# Changes\n", "NEWS": "1999-12-31  A  <a@b>\n"}, "CHANGELOG.md", "markdown"),
        ({"docs/source/changes.rst": RST, "docs/index.rst": RST}, "docs/source/changes.rst", "rst"),
    ],
)
def test_the_changelog_is_the_file_that_has_the_versions(
    tmp_path: Path, files: dict[str, str], chosen: str, form: str
) -> None:
    """By name, in the package's folder or its documentation: a page that only points elsewhere does not count."""
    path = make_repository(tmp_path)
    save(path, "feat: a", {**files, "VERSION": "1.2.0"})
    tag(path, "v1.2.0")
    save(path, "fix: b")
    run = ReleaseRun(path, tmp_path)
    space = run.draft()
    changelog = run.results["gather"]["notes"]["changelog"]
    assert (changelog["path"], changelog["format"]) == (chosen, form)
    assert [change.path for change in space.changes(BlobStore(tmp_path / "blobs"))] == sorted(["VERSION", chosen])
    result = run.check("release.check_entries", space)
    assert result.status == "ok", result.summary


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ChangeLog", "2026-10-01  Mara  <mara@example.org>\n\n\t* orders.c: Old.\n"),
        ("CHANGELOG.md", "# Changelog\n\n**1.2.0**\n\n- Old.\n"),
        ("CHANGES.rst", "Changes\n=======\n\nv1.2.0, 2026-10-01:\n  Old.\n"),
        ("NEWS.txt", "Version 1.2.0\n\nOld.\n"),
        ("CHANGELOG.md", "# Changelog\n\n## Spring\n\n- Old.\n\n## Winter\n"),
    ],
)
def test_a_changelog_without_headings_of_versions_is_left_and_said(tmp_path: Path, name: str, text: str) -> None:
    """Where no heading names a version, none is guessed and no second changelog is begun; the reviewer is told."""
    path = make_repository(tmp_path)
    save(path, "feat: a", {name: text, "VERSION": "0.1.0"})
    run = ReleaseRun(path, tmp_path)
    space = run.draft()
    assert [change.path for change in space.changes(BlobStore(tmp_path / "blobs"))] == []
    assert any(finding.startswith(f"{name} has no headings that name versions") for finding in run.findings)
    assert run.check("release.check_entries", space).status == "ok"


def test_a_link_beside_the_changelog_is_no_reason_to_stop(tmp_path: Path) -> None:
    """Only a link in the changelog's own place is refused."""
    path = make_repository(tmp_path)
    (path / "NEWS").symlink_to("docs/changelog.rst")
    save(path, "feat: a", {"CHANGELOG.md": "See the documentation.\n", "docs/changelog.rst": RST})
    assert ReleaseRun(path, tmp_path).gather()["notes"]["changelog"]["path"] == "docs/changelog.rst"


def test_nothing_yet_is_no_entry(tmp_path: Path) -> None:
    """What a tool writes into an empty section is no change."""
    path = make_repository(tmp_path)
    text = "Log\n===\n\n1.2.1 (unreleased)\n------------------\n\n- Nothing changed yet.\n\n1.2.0 (2026-10-01)\n"
    save(path, "feat: a", {"CHANGES.rst": text + "-" * 18 + "\n"})
    changelog = ReleaseRun(path, tmp_path).gather()["notes"]["changelog"]
    assert changelog["unreleased"] == [] and changelog["format"] == "rst"


def test_an_old_version_that_was_never_released_is_not_to_come() -> None:
    """Only beside the newest version, an unreleased one is the next."""
    text = "## 1.2.0 (2026-10-01)\n\n## 1.1.0 (unreleased)\n\n- x\n\n## 1.0.0 (2026-01-01)\n"
    assert read_changelog(text).unreleased is None


def test_what_is_to_come_in_rst_is_read_and_released(tmp_path: Path) -> None:
    """Entries under Unreleased in an RST file are the release's, and the check finds them there."""
    path = make_repository(tmp_path)
    text = (
        "Log\n===\n\nUnreleased\n----------\n\nAdded\n~~~~~\n\n* Bulk :pr:`1`,\n  in one go.\n\n"
        "1.2.0\n-----\n\n* Old.\n"
    )
    save(path, "feat: a", {"CHANGES.rst": "Log\n===\n", "VERSION": "1.2.0"})
    tag(path, "v1.2.0")
    save(path, "feat: bulk", {"CHANGES.rst": text})
    run = ReleaseRun(path, tmp_path)
    space = run.draft()
    assert (space.read("CHANGES.rst") or b"").decode() == (
        "Log\n===\n\nUnreleased\n----------\n\n1.3.0 - 2026-11-30\n------------------\n\nAdded\n~~~~~\n\n"
        "* Bulk :pr:`1`,\n  in one go.\n\n1.2.0\n-----\n\n* Old.\n"
    )
    assert run.check("release.check_entries", space).status == "ok"


_SLOW = ["# 1.2\n", "= 1.2\n", "1.2\n===\n\n", "1.1" * 70 + "#", "`", "[a](", "<!--\n", ".. _a:\n", "----\n", "- x::\n"]


@pytest.mark.parametrize("form", MARKUPS)
@pytest.mark.parametrize("piece", _SLOW)
def test_a_changelog_made_to_be_slow_is_read_at_once(form: str, piece: str) -> None:
    """A changelog of a hundred thousand odd lines takes moments; the test's limit would tell."""
    text = piece * (100_000 // len(piece))
    assert "1.3.0" in write(form, text, replace(ADDED, text=piece * 2000))
