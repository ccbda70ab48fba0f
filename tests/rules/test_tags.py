"""Tag forms match as a whole; which tags are releases is never guessed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.errors import UserError
from perdure.rules.release.tags import TagForm, find_release_tags, guess_forms, parse_tag_form, refuse_unmatched
from perdure.rules.release.versions import SCHEMES

SEMVER, PEP440 = SCHEMES["semver"], SCHEMES["pep440"]


@pytest.mark.parametrize(
    ("form", "name", "version"),
    [
        ("v{version}", "v1.2.3", "1.2.3"),
        ("{version}", "1.2.3", "1.2.3"),
        ("pkg-v{version}", "pkg-v1.2.3-rc.1", "1.2.3-rc.1"),
        ("@scope/pkg@{version}", "@scope/pkg@1.2.3", "1.2.3"),
        ("pkg/v{version}", "pkg/v1.2.3", "1.2.3"),
        ("{version}-final", "1.2.3-final", "1.2.3"),
        ("curl-{version:_}", "curl-8_20_0", "8.20.0"),
        ("rel_{version:_}", "rel_2_0_0b1", "2.0.0b1"),
        ("rel_{version:_}", "rel_2.0.0", ""),
        ("v{version}", "xv1.2.3", ""),
        ("{version}-final", "1.2.3", ""),
        ("v{version}", "v", ""),
        ("a{version}a", "a", ""),
    ],
)
def test_a_form_matches_as_a_whole(form: str, name: str, version: str) -> None:
    """The version is what stands between the form's beginning and end; anything before or after is no match."""
    assert parse_tag_form(form).read(name) == version


@pytest.mark.parametrize(
    "form", ["v1.2.3", "", "{version}{version}", "{package}-{version}", "v{}", "{version", "v{version}}"]
)
def test_a_form_has_exactly_one_version(form: str) -> None:
    """A form without a version, with two, or with another placeholder is refused with an example."""
    with pytest.raises(UserError, match=r"Expected \{version\} exactly once"):
        parse_tag_form(form)


def test_underscores_are_written_back() -> None:
    """A tag with underscores is written as it is read, and such tags are offered as a form of their own."""
    form = parse_tag_form("curl-{version:_}")
    assert (form.write("8.21.0"), str(form)) == ("curl-8_21_0", "curl-{version:_}")
    guesses = guess_forms(["curl-8_20_0", "curl-8_19_0", "curl-7_1"])
    assert [(str(guess), count) for guess, _, count in guesses] == [("curl-{version:_}", 3)]


@pytest.mark.parametrize(
    "form", ["v {version}", "-{version}", "a..{version}", "{version}.lock", "a~{version}", "/{version}"]
)
def test_a_form_gives_names_that_git_allows(form: str) -> None:
    """A form whose names git would refuse, or read as an option, is refused."""
    with pytest.raises(UserError, match="git does not allow"):
        parse_tag_form(form)


def test_only_whole_versions_of_the_scheme_are_releases() -> None:
    """Moving tags, other packages', nightly words and other schemes do not count; the highest version comes first."""
    names = [
        "v1",
        "v1.2",
        "v1.10.0",
        "v1.9.0",
        "v1.9.0-rc.1",
        "1.11.0",
        "app-v2.0.0",
        "v2.0.0.1",
        "nightly",
        "v2024.01.02",
    ]
    found = find_release_tags(names, TagForm("v", ""), SEMVER)
    assert [tag.version for tag in found] == ["1.10.0", "1.9.0", "1.9.0-rc.1"]


def test_forms_are_guessed_from_what_looks_like_a_version() -> None:
    """Candidates are ordered by how many tags have them, each with an example that exists."""
    guesses = guess_forms(["curl-8_20_0", "curl-8_19_0", "v1", "release-2.0", "latest"])
    assert [(str(form), count) for form, _, count in guesses] == [("curl-{version:_}", 2), ("release-{version}", 1)]
    assert guesses[0][1] in ("curl-8_20_0", "curl-8_19_0")


def test_tags_that_look_like_versions_but_match_nothing_stop_and_ask() -> None:
    """The question names the candidate forms; the last release is never guessed."""
    with pytest.raises(
        UserError, match=r"tag='app-{version}' \(2 such as app-1\.\d\.0\); tag='{version}' \(1 such as 3\.0\.0\)"
    ):
        refuse_unmatched(["app-1.0.0", "app-1.1.0", "3.0.0"], TagForm("v", ""), SEMVER)


def test_tags_of_the_right_form_in_another_scheme_are_told_apart() -> None:
    """When the form fits and the versions do not, the way out is another scheme."""
    with pytest.raises(UserError, match="try another scheme"):
        refuse_unmatched(["v1.2", "v1.3"], TagForm("v", ""), SEMVER)
    assert find_release_tags(["v1.2", "v1.10"], TagForm("v", ""), PEP440)[0].name == "v1.10"


def test_tags_that_look_like_no_version_are_no_question() -> None:
    """Moving and nightly tags alone mean that there was no release yet."""
    refuse_unmatched(["v1", "latest", "nightly-2026-01-01", "{1.2}"], TagForm("v", ""), SEMVER)


@given(
    st.from_regex(r"[a-z@]{0,3}", fullmatch=True), st.from_regex(r"(-[a-z]{1,3})?", fullmatch=True), st.integers(0, 99)
)
def test_what_a_form_writes_it_reads(prefix: str, suffix: str, number: int) -> None:
    """A tag's name holds its version whatever stands around it."""
    form = TagForm(prefix, suffix)
    assert form.read(form.write(f"1.{number}.0")) == f"1.{number}.0"
