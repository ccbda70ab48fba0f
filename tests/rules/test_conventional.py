"""Conventional Commits 1.0.0, item by item, and the road the reader takes where the specification is silent."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.rules.release.conventional import Footer, parse_conventional


def test_type_scope_mark_and_description_are_read() -> None:
    """Items 1, 4, 5, 13: a noun, an optional scope in parentheses, an optional !, colon and space, a description."""
    found = parse_conventional("feat(parser)!: arrays may be nested")
    assert found is not None
    assert (found.type, found.scope, found.description) == ("feat", "parser", "arrays may be nested")
    assert found.breaking and found.breaking_note == ""


@pytest.mark.parametrize(
    "message",
    [
        "",
        "add a parser",
        "feat:no blank after the colon",
        "feat: ",
        "feat : a blank before the colon",
        "feat(): an empty scope",
        "feat(a: an open scope",
        "feat(a)(b): two scopes",
        "feat!(a): the mark before the scope",
        "Merge branch 'feat: x'",
        ": nothing before the colon",
        "two words: and a colon",
        "https://example.org: a place",
    ],
)
def test_other_first_lines_follow_no_convention(message: str) -> None:
    """A first line that is not of the form gives nothing, whatever follows it."""
    assert parse_conventional(message + "\n\nBREAKING CHANGE: no") is None


def test_types_are_in_any_case() -> None:
    """Item 15: types are not case sensitive."""
    assert [parse_conventional(f"{word}: x").type for word in ("Feat", "FIX", "Docs")] == ["feat", "fix", "docs"]  # type: ignore[union-attr]


def test_body_and_footers_are_split() -> None:
    """Items 6 to 10: the body begins after a blank line and may hold paragraphs; footers come after another one."""
    message = (
        "fix: prevent racing of requests\n\nIntroduce a request id.\nDismiss others.\n\nRemove time limits.\n\n"
        "Reviewed-by: Z\nRefs: #123\nFixes #42"
    )
    found = parse_conventional(message)
    assert found is not None
    assert found.body == "Introduce a request id.\nDismiss others.\n\nRemove time limits."
    assert found.footers == (Footer("Reviewed-by", "Z"), Footer("Refs", "#123"), Footer("Fixes", "#42"))
    assert not found.breaking


def test_a_footer_goes_on_until_the_next_one() -> None:
    """Item 10: a footer's value may hold spaces and newlines, and ends where the next token begins."""
    found = parse_conventional("fix: x\n\nNote: one\ntwo\n\nthree\nRefs: 4")
    assert found is not None
    assert found.footers == (Footer("Note", "one\ntwo\n\nthree"), Footer("Refs", "4"))


@pytest.mark.parametrize("scope", ["parser", "api/v2", "core, ui", "@scope/package", "a.b", "über"])
def test_a_scope_is_whatever_stands_in_the_parentheses(scope: str) -> None:
    """Item 4: a noun in parentheses; what people write there is kept as it is."""
    found = parse_conventional(f"fix({scope}): x")
    assert found is not None and (found.scope, found.description) == (scope, "x")


def test_mark_and_footer_may_stand_together() -> None:
    """Items 12 and 13: the footer's note is told, the mark alone leaves the description to tell it."""
    found = parse_conventional("refactor(a)!: drop the old way\n\nBREAKING CHANGE: use the new one\nAcked-by: Y")
    assert found is not None and found.breaking
    assert found.breaking_note == "use the new one" and found.footers[1] == Footer("Acked-by", "Y")


def test_a_body_needs_no_footer_and_a_footer_no_body() -> None:
    """Items 6 and 8: each comes one blank line after what stands before it, and each may be missing."""
    body, footer = parse_conventional("docs: x\n\nSome words."), parse_conventional("docs: x\n\nRefs #7")
    assert body is not None and (body.body, body.footers) == ("Some words.", ())
    assert footer is not None and (footer.body, footer.footers) == ("", (Footer("Refs", "#7"),))


@pytest.mark.parametrize("token", ["BREAKING CHANGE", "BREAKING-CHANGE"])
def test_breaking_footer_is_breaking_for_any_type(token: str) -> None:
    """Items 11, 12 and 16: both spellings say that something breaks, whatever the type."""
    found = parse_conventional(f"chore: drop Node 16\n\n{token}: Node 18 is\nneeded now.\n\nMore words.")
    assert found is not None
    assert found.breaking and found.breaking_note == "Node 18 is needed now."


def test_breaking_must_be_in_upper_case() -> None:
    """Item 15: BREAKING CHANGE must be written in upper case."""
    found = parse_conventional("fix: x\n\nbreaking change: y")
    assert found is not None and not found.breaking


def test_breaking_is_found_inside_a_body() -> None:
    """A line that begins with BREAKING CHANGE: counts even without a blank line above it."""
    found = parse_conventional("fix: x\n\nSome words.\nBREAKING CHANGE: the old form\nis gone\n\nmore")
    assert found is not None
    assert found.breaking and found.breaking_note == "the old form is gone"


def test_words_that_only_mention_a_breaking_change_do_not_count() -> None:
    """In the middle of a line, and without its colon, BREAKING CHANGE is prose."""
    found = parse_conventional("fix: x\n\nThis is no BREAKING CHANGE: it is\nBREAKING CHANGE in name only")
    assert found is not None and not found.breaking


def test_windows_line_ends_read_the_same() -> None:
    """CRLF and LF give the same commit."""
    message = "\n\nfeat(a)!: b\n\nbody\n\nBREAKING CHANGE: c\nRefs: 1\n"
    assert parse_conventional(message.replace("\n", "\r\n")) == parse_conventional(message)


@given(st.text(max_size=200))
def test_no_text_is_an_error(message: str) -> None:
    """Whatever a message holds, reading it gives a commit or nothing."""
    found = parse_conventional(message)
    assert found is None or found.description


_WORD = st.from_regex(r"[a-z]{1,8}", fullmatch=True)
_TEXT = st.from_regex(r"[a-z0-9#.]([a-z0-9 #.]{0,20}[a-z0-9#.])?", fullmatch=True)


_PROSE = _TEXT.filter(lambda text: re.match(r"[a-z][a-z0-9]* #\S", text) is None)  # else it is a footer: "refs #1"


def test_number_sign_without_a_number_is_no_footer() -> None:
    """``Refs #133`` is one; a paragraph that ends with the sign is prose."""
    found = parse_conventional("fix: x\n\nb #\n\nRefs #133")
    assert found is not None
    assert (found.body, [(one.token, one.value) for one in found.footers]) == ("b #", [("Refs", "#133")])


@given(_WORD, st.none() | _WORD, st.booleans(), _TEXT, st.lists(_PROSE, max_size=3), st.none() | _TEXT)
def test_what_is_written_is_read(
    kind: str, scope: str | None, mark: bool, text: str, body: list[str], breaking: str | None
) -> None:
    """Every message made by the specification's grammar reads back as its parts."""
    header = f"{kind}{f'({scope})' if scope else ''}{'!' if mark else ''}: {text}"
    footer = [f"BREAKING CHANGE: {breaking}"] if breaking else []
    found = parse_conventional("\n\n".join([header, *body, *footer]))
    assert found is not None
    assert (found.type, found.scope, found.description) == (kind, scope or "", text)
    assert found.breaking == (mark or breaking is not None)
    assert found.breaking_note == (breaking or "")
    assert found.body == "\n\n".join(body)
