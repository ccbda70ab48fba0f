"""A changelog is extended by one section, in its own style, and everything else stays."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.errors import UserError
from perdure.rules.release.changelog import read_changelog, read_items
from perdure.rules.release.changelog_write import Release, section_lines, write_release
from perdure.rules.release.entries import Entry
from perdure.rules.release.markdown_text import split_lines

ADDED = Entry("a41c9e0", "Added", "bulk import", ("a41c9e0",), "minor")
FIXED = Entry("b52d0f1", "Fixed", "an empty order", ("b52d0f1",), "patch", scope="api")
BROKEN = Entry("c63e1a2", "Changed", "drop v1", ("c63e1a2",), "major", breaking=True)

SECTION = "### Added\n\n- bulk import (a41c9e0)\n"


def write(text: str, *entries: Entry, last_tag: str = "v1.2.0") -> str:
    """Extend ``text`` by release 1.3.0."""
    release = Release("1.3.0", "v1.3.0", last_tag, "2026-11-30", entries or (ADDED,))
    return write_release(text, release, path="CHANGELOG.md")[0]


def test_a_new_changelog_has_an_empty_unreleased_section() -> None:
    """Where there is none, one is begun: title, [Unreleased], the release."""
    text = write("")
    assert text.startswith("# Changelog\n")
    assert text.endswith(f"## [Unreleased]\n\n## [1.3.0] - 2026-11-30\n\n{SECTION}")


def test_the_section_stands_before_the_newest_one() -> None:
    """Without [Unreleased] the new section comes right before the newest version; not one other byte changes."""
    before, after = "# Changes\n\nIntro.\n\n", "## [1.2.0] - 2026-10-01\n\n- Old.\n\n## [1.1.0]\n"
    assert write(before + after) == f"{before}## [1.3.0] - 2026-11-30\n\n{SECTION}\n{after}"


def test_unreleased_is_kept_and_emptied() -> None:
    """[Unreleased] keeps its heading and its comments; what stood there is the release's by now."""
    text = "# C\n\n## [Unreleased]\n<!-- write\nhere -->\n\n### Added\n\n- Bulk.\n\n## [1.2.0]\n- Old.\n"
    assert write(text) == (
        f"# C\n\n## [Unreleased]\n\n<!-- write\nhere -->\n\n## [1.3.0] - 2026-11-30\n\n{SECTION}\n## [1.2.0]\n- Old.\n"
    )


LINKED = (
    '# C\n\n## [Unreleased]\n\n- A crash [#1759]\n\n[#1759]: https://x.org/1759\n[b]: <../b> "B"\n\n- Bulk.\n'
    "  [#2]: https://x.org/2\n\n[note]: was slow\n\n```\n[c]: https://x.org/c\n```\n\n## [1.2.0]\n\n- Old [#1759].\n"
)


def test_link_definitions_are_no_items() -> None:
    """A definition under [Unreleased] shows nothing, so that it is no entry; prose and code that look like one are."""
    pending = read_changelog(LINKED).unreleased
    assert pending is not None
    found = read_items(split_lines(LINKED)[pending.body : pending.end])
    assert [text for _, text in found] == [
        "A crash [#1759]",
        "Bulk.",
        "[note]: was slow\n\n```\n[c]: https://x.org/c\n```",
    ]


def test_link_definitions_stay_when_unreleased_is_emptied() -> None:
    """They are kept where they were, each line as it was: other sections use them too."""
    kept = '[#1759]: https://x.org/1759\n[b]: <../b> "B"\n  [#2]: https://x.org/2\n'
    assert write(LINKED).startswith(
        f"# C\n\n## [Unreleased]\n\n{kept}\n## [1.3.0] - 2026-11-30\n\n{SECTION}\n## [1.2.0]"
    )


@pytest.mark.parametrize(
    ("newest", "heading", "level"),
    [
        ("## [1.2.0] - 2026-10-01", "## [1.3.0] - 2026-11-30", 3),
        ("## 1.2.0 (2026-10-01)", "## 1.3.0 (2026-11-30)", 3),
        ("# v1.2.0", "# v1.3.0 - 2026-11-30", 2),
        ("### [v1.2.0](https://x/compare/a...b) – 2026-10-01", "### [v1.3.0] – 2026-11-30", 4),
        ("## Version 1.2.0: 2026-10-01", "## Version 1.3.0: 2026-11-30", 3),
    ],
)
def test_the_heading_follows_the_newest_one(newest: str, heading: str, level: int) -> None:
    """Level, brackets, v, prefix and date are written as in the newest version's heading."""
    written = write(f"Changes\n\n{newest}\n\n* Old.\n")
    assert f"\n{heading}\n\n{'#' * level} Added\n\n* bulk import (a41c9e0)\n\n{newest}\n" in written


def test_sections_are_ordered_and_entries_marked() -> None:
    """Sections come in Keep a Changelog's order; scope, breaking and sources are shown with each entry."""
    lines = section_lines(write("", FIXED, BROKEN, ADDED), "1.3.0")
    assert lines is not None
    assert "".join(lines) == (
        "\n### Added\n\n- bulk import (a41c9e0)\n\n### Changed\n\n- **Breaking:** drop v1 (c63e1a2)\n"
        "\n### Fixed\n\n- **api:** an empty order (b52d0f1)\n"
    )


def test_links_move_on() -> None:
    """[Unreleased] is compared with the new tag, and the new version with the last one, in the file's own form."""
    links = "[unreleased]: https://h/o/r/compare/v1.2.0...HEAD\n[1.2.0]: https://h/o/r/compare/v1.1.0...v1.2.0\n"
    text = f"## [Unreleased]\n\n## [1.2.0]\n\n- Old.\n\n{links}"
    assert write(text).endswith(
        "[unreleased]: https://h/o/r/compare/v1.3.0...HEAD\n[1.3.0]: https://h/o/r/compare/v1.2.0...v1.3.0\n"
        "[1.2.0]: https://h/o/r/compare/v1.1.0...v1.2.0\n"
    )


def test_links_of_versions_alone_are_continued() -> None:
    """Where only versions are linked, the new one is linked in the same form before them."""
    text = "## [1.2.0]\n\n- Old.\n\n[1.2.0]: https://h/-/compare/v1.1.0...v1.2.0"
    assert write(text).endswith(
        "\n\n[1.3.0]: https://h/-/compare/v1.2.0...v1.3.0\n[1.2.0]: https://h/-/compare/v1.1.0...v1.2.0"
    )


@pytest.mark.parametrize(
    "url", ["https://h/branches/compare/HEAD..v1.2.0", "https://h/commits", "https://h/compare/v1.1.0...HEAD"]
)
def test_links_of_a_form_that_is_not_known_are_left_and_said(url: str) -> None:
    """A link that is not understood, or does not stand at the last release, stays; a finding says so."""
    text = f"## [Unreleased]\n\n## [1.2.0]\n\n[unreleased]: {url}\n"
    release = Release("1.3.0", "v1.3.0", "v1.2.0", "2026-11-30", [ADDED])
    written, finding = write_release(text, release, path="CHANGELOG.md")
    assert written.endswith(f"[unreleased]: {url}\n") and "[1.3.0]:" not in written
    assert url in finding


def test_a_numbered_reference_is_no_version() -> None:
    """Footnotes such as [1] are other people's links: they stay, and nothing is said."""
    text = "## 1.2.0\n\nSee [1].\n\n[1]: https://h/x\n"
    written, finding = write_release(text, Release("1.3.0", "v1.3.0", "v1.2.0", "2026-11-30", [ADDED]), path="x")
    assert written.endswith(text) and finding == ""


def test_definitions_are_no_part_of_unreleased() -> None:
    """With [Unreleased] as the only section, the links below it are not lost."""
    text = "## [Unreleased]\n\n- Bulk.\n\n[unreleased]: https://h/compare/v1.2.0...HEAD\n"
    assert "- Bulk" not in write(text) and "[unreleased]: https://h/compare/v1.3.0...HEAD\n" in write(text)


def test_headings_in_code_and_comments_are_none() -> None:
    """A version heading inside fenced code or a comment is text; the structure is found around it."""
    text = "# C\n\n```\n## [9.9.9]\n```python\n## [9.9.8]\n```\n\n<!--\n## [9.9.7]\n-->\n\n## [1.2.0]\n\n- Old.\n"
    assert [section.version for section in read_changelog(text).versions] == ["1.2.0"]
    assert write(text).index("## [1.3.0]") == text.index("## [1.2.0]")


def test_a_number_in_a_heading_is_no_version() -> None:
    """Only a heading that begins with a version is a version's."""
    text = "# Changes for 2.0 and later\n\n## [1.2.0]\n\n### 1.0 migration notes\n\n#### 1.1.0\n\n- Old.\n"
    assert [section.version for section in read_changelog(text).versions] == ["1.2.0"]


def test_windows_line_ends_and_the_byte_order_mark_are_kept() -> None:
    """A CRLF file with a mark gets CRLF lines, and the mark stays first."""
    text = "\ufeff## [1.2.0]\r\n\r\n- Old.\r\n"
    written = write(text)
    assert written == "\ufeff" + f"## [1.3.0] - 2026-11-30\n\n{SECTION}\n".replace("\n", "\r\n") + text[1:]


def test_a_version_that_has_a_section_is_refused() -> None:
    """A second section of the same version is never written."""
    with pytest.raises(UserError, match=r"has a section for 1\.3\.0 already"):
        write("## [1.3.0]\n\n- Written by hand.\n")


def test_an_empty_section_is_never_written() -> None:
    """A release without entries has no section."""
    with pytest.raises(ValueError, match="without entries"):
        write_release("", Release("1.3.0", "v1.3.0", "", "2026-11-30", []), path="CHANGELOG.md")


def test_items_keep_their_lines() -> None:
    """Entries of several lines, nested lists, code and paragraphs under [Unreleased] are read as they were meant."""
    text = (
        "Words before any list,\nover two lines.\n\n### Added\n\n  * One\n    over two lines.\n\n    A paragraph.\n"
        "    - nested\n  * Two\nlazy\n\n### Fixed\n<!-- * no -->\n- Three:\n\n  ```\n  - code\n\n  more\n  ```\n"
    )
    assert read_items(split_lines(text)) == [
        ("", "Words before any list,\nover two lines."),
        ("Added", "One\nover two lines.\n\nA paragraph.\n- nested"),
        ("Added", "Two\nlazy"),
        ("Fixed", "Three:\n\n```\n- code\n\nmore\n```"),
    ]


_LINE = st.sampled_from(
    [
        "",
        "# Title",
        "## [Unreleased]",
        "## [1.2.0]",
        "## 1.1.0 (2026-01-01)",
        "### Added",
        "- item",
        "  more",
        "text",
        "```",
        "<!--",
        "-->",
        "<!-- x -->",
        "[1.2.0]: https://h/compare/v1.1.0...v1.2.0",
        "[unreleased]: https://h/compare/v1.2.0...HEAD",
        "1.0.0",
        "-----",
    ]
)


@given(st.lists(_LINE, max_size=12), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_whatever_stood_there_still_stands(lines: list[str], newline: str, ends: bool) -> None:
    """From any text: what is not the body of [Unreleased] or its link stays, in order, and the new section is found."""
    text = newline.join(lines) + (newline if ends else "")
    if re.search(r"\A\s*\Z", text):
        text = ""
    written = write(text)
    pending = read_changelog(text).unreleased
    body = range(pending.body, pending.end) if pending else range(0)
    kept = [line for place, line in enumerate(split_lines(text)) if place not in body]
    rest = iter(line.strip() for line in split_lines(written))
    assert all(line.strip() in rest for line in kept if line.strip() and "nreleased]:" not in line)
    if "```" not in lines and "<!--" not in lines:
        assert section_lines(written, "1.3.0") is not None
