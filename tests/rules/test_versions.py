"""Schemes order versions and step them; what is no version is none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.errors import UserError
from perdure.rules.release.versions import SCHEMES, Bump, find_scheme, is_zero_major

SEMVER, PEP440, PATCH = SCHEMES["semver"], SCHEMES["pep440"], SCHEMES["always-patch"]


@pytest.mark.parametrize(
    ("last", "bump", "following"),
    [
        ("1.2.3", "patch", "1.2.4"),
        ("1.2.3", "minor", "1.3.0"),
        ("1.2.3", "major", "2.0.0"),
        ("0.9.9", "minor", "0.10.0"),
        ("1.2.3+build.5", "patch", "1.2.4"),
    ],
)
def test_semver_steps(last: str, bump: Bump, following: str) -> None:
    """A step raises its part and empties those behind it."""
    assert SEMVER.bump(last, bump) == following


@pytest.mark.parametrize(
    ("last", "bump", "following"),
    [
        ("1.2.3", "patch", "1.2.4"),
        ("1.2", "minor", "1.3"),
        ("1.2", "patch", "1.2.1"),
        ("2", "minor", "2.1"),
        ("1.2.3", "major", "2.0.0"),
        ("1!1.2.3", "minor", "1!1.3.0"),
        ("1.2.3.post4", "patch", "1.2.4"),
        ("1.2.3.4", "patch", "1.2.4.0"),
    ],
)
def test_pep440_steps_keep_epoch_and_width(last: str, bump: Bump, following: str) -> None:
    """A step keeps the epoch and as many components as there were; post-releases fall away."""
    assert PEP440.bump(last, bump) == following


def test_always_patch_is_always_the_next_patch() -> None:
    """Whatever changed, the next release is a patch."""
    assert [PATCH.bump("1.2.3", bump) for bump in ("patch", "minor", "major")] == ["1.2.4"] * 3


def test_semver_precedence_is_the_specifications() -> None:
    """Item 11's example is in order, numbers compare as numbers, and a release is above its pre-releases."""
    labels = ["alpha", "alpha.1", "alpha.beta", "beta", "beta.2", "beta.11", "rc.1"]
    order = [*(f"1.0.0-{label}" for label in labels), "1.0.0", "1.0.1", "1.10.0"]
    assert sorted([*order[4:], *order[:4]], key=SEMVER.key) == order


@pytest.mark.parametrize(
    ("lower", "higher"),
    [
        ("1.0.0-9", "1.0.0-a"),  # 11.4.3: numbers are below words
        ("1.0.0-2", "1.0.0-11"),  # 11.4.1: numbers are compared as numbers
        ("1.0.0-r100", "1.0.0-r2"),  # 11.4.2: words are compared by their letters, in ASCII order
        ("1.0.0-RC", "1.0.0-rc"),
        ("1.0.0-a.b", "1.0.0-a-b"),
        ("1.0.0-a", "1.0.0-a.0"),  # 11.4.4: more fields are above fewer
        ("1.0.0-0", "1.0.0"),  # 11.3
        ("0.0.0-foo", "0.0.0"),
        ("1.9.9", "1.10.0"),  # 11.2
        ("1.99.99", "2.0.0-0"),
        ("1.0.0-alpha+b.2", "1.0.0-beta+a.1"),
        ("9007199254740991.0.0", "9007199254740993.0.0"),  # beyond what a float tells apart
    ],
)
def test_semver_precedence_in_its_corners(lower: str, higher: str) -> None:
    """Item 11 by its rules: fields are compared from the left, numbers as numbers, words as ASCII."""
    assert SEMVER.key(lower) < SEMVER.key(higher) and not SEMVER.key(higher) < SEMVER.key(lower)


@pytest.mark.parametrize("text", ["1.2.3+a", "1.2.3+a.01", "1.2.3+0-0"])
def test_build_metadata_has_no_precedence(text: str) -> None:
    """Item 10: versions that differ in it alone are equal, and such a release is final."""
    assert SEMVER.is_legal(text) and SEMVER.key(text) == SEMVER.key("1.2.3") and SEMVER.is_final(text)


@pytest.mark.parametrize(
    "text", ["", "1", "1.2", "v1.2.3", "01.2.3", "1.2.3-", "1.2.3-01", "1.2.3.4", "1.2٢.3", " 1.2.3"]
)
def test_what_is_no_semantic_version(text: str) -> None:
    """Shorter, longer, padded and foreign digits are no semantic versions."""
    assert not SEMVER.is_legal(text)
    with pytest.raises(ValueError, match="not a semantic version"):
        SEMVER.key(text)


@pytest.mark.parametrize("text", ["", "x", "1.2-", "1.2 ", "1.٢"])
def test_what_is_no_python_version(text: str) -> None:
    """Text that PEP 440 does not know, or knows only after trimming, is no version."""
    assert not PEP440.is_legal(text)


@pytest.mark.parametrize(
    ("scheme", "candidate", "other", "final"),
    [
        (SEMVER, "2.0.0-rc.1", "2.0.0-nightly.20260101", "2.0.0"),
        (SEMVER, "2.0.0-beta", "2.0.0-dev.3", "2.0.0"),
        (PEP440, "2.0rc1", "2.0rc1.dev3", "2.0"),
        (PEP440, "2.0a1", "2.0.dev1", "2.0"),
    ],
)
def test_candidates_lead_to_a_release_and_nightly_builds_do_not(
    scheme: object, candidate: str, other: str, final: str
) -> None:
    """A release candidate counts towards its final version; development builds count towards nothing."""
    assert scheme in (SEMVER, PEP440)
    chosen = SEMVER if scheme is SEMVER else PEP440
    assert chosen.is_candidate(candidate) and not chosen.is_final(candidate)
    assert not chosen.is_candidate(other) and not chosen.is_final(other)
    assert chosen.final(candidate) == final and chosen.is_final(final)


def test_initial_development_is_below_one() -> None:
    """0.x is initial development, in an epoch it is not."""
    assert is_zero_major(SEMVER, "0.9.1") and is_zero_major(PEP440, "0.1")
    assert not is_zero_major(SEMVER, "1.0.0") and not is_zero_major(PEP440, "1!0.1")


@pytest.mark.parametrize(
    ("older", "newer"),
    [("2025.12.1", "2026.01.0"), ("26.04", "26.10"), ("2026.4", "2026.04.1"), ("2026.1rc1", "2026.1")],
)
def test_calendar_versions_are_ordered_by_their_numbers(older: str, newer: str) -> None:
    """Padding is no difference, and a version with fewer parts comes before one with a counter."""
    scheme = find_scheme("calver")
    assert scheme.is_legal(older) and scheme.key(older) < scheme.key(newer)
    assert not scheme.is_legal("2026") and not scheme.is_legal("2026.x")


def test_unknown_scheme_names_the_known_ones() -> None:
    """A scheme that does not exist is answered with those that do."""
    with pytest.raises(UserError, match="semver, pep440, calver, always-patch"):
        find_scheme("semantic")


_NUMBERS = st.tuples(*[st.integers(0, 200)] * 3)


@given(_NUMBERS, st.sampled_from(["patch", "minor", "major"]), st.sampled_from(sorted(SCHEMES.keys() - {"calver"})))
def test_every_step_goes_up(numbers: tuple[int, int, int], bump: Bump, name: str) -> None:
    """Whatever the version, the scheme and the step, what follows is a legal, final and higher version."""
    scheme, last = SCHEMES[name], ".".join(map(str, numbers))
    following = scheme.bump(last, bump)
    assert scheme.is_legal(following) and scheme.is_final(following)
    assert scheme.key(following) > scheme.key(last)
