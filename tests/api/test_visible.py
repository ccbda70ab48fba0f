"""What a reviewer reads is what is there: nothing steers the terminal, nothing hides."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.contracts.visible import is_invisible, visible, visible_bytes


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text, émigré 日本語", "plain text, émigré 日本語"),
        ("\x1b[2Jgone", "^[[2Jgone"),
        ("a\x7fb\x85c\x9b31m", "a^?b⟨U+0085⟩c⟨U+009B⟩31m"),
        ("safe\u202eevil\u2066x\u2069", "safe⟨U+202E⟩evil⟨U+2066⟩x⟨U+2069⟩"),
        ("ad\u200bmin\ufeff", "ad⟨U+200B⟩min⟨U+FEFF⟩"),
        ("soft\u00adhyphen no\u00a0break", "soft⟨U+00AD⟩hyphen no⟨U+00A0⟩break"),
        ("line\u2028para\u2029", "line⟨U+2028⟩para⟨U+2029⟩"),
        ("tag\U000e0041\U000e0100", "tag⟨U+E0041⟩⟨U+E0100⟩"),
        ("\ufdd0\uffff\ue000", "⟨U+FDD0⟩⟨U+FFFF⟩⟨U+E000⟩"),
        ("const \u3164 = 1", "const ⟨U+3164⟩ = 1"),
        ("a\nb\tc\rd", "a^Jb^Ic^Md"),
    ],
)
def test_what_steers_or_hides_is_written_out(text: str, shown: str) -> None:
    """Controls, bidi, zero-width, blank letters, private and unassigned code points are shown by name."""
    assert visible(text) == shown


def test_lines_are_kept_when_asked_for_and_only_lines() -> None:
    """A diff keeps newline and tab; a carriage return, which overwrites a line, is shown."""
    assert visible("a\n\tb\r\n", keep_lines=True) == "a\n\tb^M\n"


def test_bytes_that_are_no_utf8_are_shown_one_by_one() -> None:
    """Latin-1, cut sequences and encoded surrogates come out as their bytes."""
    assert visible_bytes(b"caf\xe9 \xf0\x9f \xed\xa0\x80") == "caf⟨0xE9⟩ ⟨0xF0⟩⟨0x9F⟩ ⟨0xED⟩⟨0xA0⟩⟨0x80⟩"


def test_an_emoji_keeps_its_one_selector_and_no_more() -> None:
    """``⚠️`` stays as it is; a run of selectors, which can carry a text, is shown."""
    assert visible("⚠\ufe0f ok") == "⚠\ufe0f ok"
    assert visible("⚠\ufe0f\ufe0e\ufe01") == "⚠\ufe0f⟨U+FE0E⟩⟨U+FE01⟩"
    assert visible("a\ufe0fb") == "a⟨U+FE0F⟩b"


@given(st.text(alphabet=st.characters()) | st.binary().map(lambda data: data.decode("utf-8", "surrogateescape")))
def test_no_text_ever_reaches_a_terminal_raw(text: str) -> None:
    """Whatever goes in, what comes out holds no control, format or surrogate character, and is stable."""
    shown = visible(text)
    assert not [char for char in shown if unicodedata.category(char) in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}]
    assert not any(is_invisible(char) for char in shown.replace("\ufe0f", ""))
    assert visible(shown) == shown
    shown.encode("utf-8")
