"""The proposed version follows from the entries; no version breaks a rule."""

import pytest

from perdure.rules.release.bump import FIRST_VERSION, Last, find_illegal, suggest_version
from perdure.rules.release.entries import Entry
from perdure.rules.release.tags import TagForm
from perdure.rules.release.versions import SCHEMES, Bump

SEMVER = SCHEMES["semver"]
FORM = TagForm("v", "")


def entry(bump: Bump, reason: str = "feat: x", *, name: str = "a1b2c3d") -> Entry:
    """An entry that moves the version so far."""
    return Entry(name, "Added", "x", (name,), bump, breaking=bump == "major", reason=reason)


def test_the_strongest_entry_decides_and_is_the_reason() -> None:
    """The highest step among the entries is taken, and the reasons quote those that call for it, newest first."""
    added = [entry("minor", "feat: b", name="b" * 7), entry("minor", "feat: c", name="c" * 7)]
    entries = [entry("patch", "fix: a"), *added]
    found = suggest_version(entries, Last("1.2.0"), SEMVER)
    assert (found.version, found.bump) == ("1.3.0", "minor")
    assert found.reasons == ['minor: "feat: b" (bbbbbbb)', 'minor: "feat: c" (ccccccc)']


def test_many_reasons_are_counted() -> None:
    """After three quoted reasons the rest is a number."""
    found = suggest_version([entry("patch")] * 5, Last("1.2.0"), SEMVER)
    assert len(found.reasons) == 4 and found.reasons[-1] == "patch: and 2 more"


def test_breaking_is_major_from_one_on_and_minor_before() -> None:
    """A breaking change is a major step; in 0.x it is a minor one, and the reason says so."""
    assert suggest_version([entry("major")], Last("1.2.3"), SEMVER).version == "2.0.0"
    early = suggest_version([entry("major")], Last("0.4.2"), SEMVER)
    assert (early.version, early.bump) == ("0.5.0", "minor")
    assert "initial development" in early.reasons[0]


@pytest.mark.parametrize(
    ("manifest", "version"),
    [("0.1.0", "0.1.0"), ("3.4.0", "3.4.0"), ("1.0.0-dev", "1.0.0"), ("", FIRST_VERSION), ("0.0.0", FIRST_VERSION)],
)
def test_a_first_release_takes_the_version_in_the_manifest(manifest: str, version: str) -> None:
    """Without a release before, the manifest's version is the first one; a placeholder or nothing gives 0.1.0."""
    found = suggest_version([entry("major")], Last("", manifest=manifest), SEMVER)
    assert (found.version, found.bump) == (version, "first")
    assert found.reasons[0].startswith("No release yet")


def test_a_manifest_of_another_scheme_is_said() -> None:
    """A manifest's version that the scheme does not know is no first version, and the reason quotes it."""
    found = suggest_version([entry("patch")], Last("", manifest="1.0"), SEMVER)
    assert found.version == FIRST_VERSION and "'1.0'" in found.reasons[0]


def test_leaving_a_pre_release_drops_its_suffix() -> None:
    """With only pre-releases behind it, the next release is their final version."""
    assert suggest_version([entry("minor")], Last("1.0.0-rc.2"), SEMVER).version == "1.0.0"


@pytest.mark.parametrize(
    ("candidate", "bump", "version"),
    [("2.0.0-rc.1", "minor", "2.0.0"), ("1.3.0-rc.1", "minor", "1.3.0"), ("1.2.1-rc.1", "minor", "1.3.0")],
)
def test_a_tagged_candidate_is_not_fallen_behind(candidate: str, bump: Bump, version: str) -> None:
    """A pre-release above the last final one is the least that comes next; more change still goes further."""
    assert suggest_version([entry(bump)], Last("1.2.0", candidate), SEMVER).version == version


@pytest.mark.parametrize(
    ("version", "rule"),
    [
        ("1.2", "is no version of scheme='semver'"),
        ("1.2.0", "is not above the last release 1.2.0"),
        ("1.1.9", "is not above the last release 1.2.0"),
        ("1.2.0-rc.1", "is not above the last release 1.2.0"),
        ("1.2.0+more", "is not above the last release 1.2.0"),
        ("1.4.0", "The tag v1.4.0 exists already"),
        ("1.4.0+more", "equals that of the tag v1.4.0"),
    ],
)
def test_an_illegal_version_is_refused_by_the_name_of_its_rule(version: str, rule: str) -> None:
    """Not a version, not above the last one, used already: each says which rule it breaks."""
    assert rule in find_illegal(version, Last("1.2.0"), ["v1.2.0", "v1.4.0"], FORM, SEMVER)


@pytest.mark.parametrize("version", ["1.2.1", "1.3.0-rc.1", "9.0.0"])
def test_any_higher_unused_version_is_legal(version: str) -> None:
    """A reviewer may choose any legal version above the last one."""
    assert find_illegal(version, Last("1.2.0"), ["v1.2.0"], FORM, SEMVER) == ""
