"""Calendar versions: the pattern comes from the project's own tags, the version from the day of the job."""

import os
import subprocess
from datetime import date
from pathlib import Path

import pytest

from perdure.errors import UserError
from perdure.rules.release.calver import PATTERNS, DatedVersion, guess_pattern, next_calver
from tests.rules.kit import ReleaseRun, make_repository, save
from tests.support.repositories import git


def dated(*releases: tuple[str, str]) -> list[DatedVersion]:
    """Releases by (version, day)."""
    return [DatedVersion(version, date.fromisoformat(day)) for version, day in releases]


@pytest.mark.parametrize(
    ("releases", "pattern"),
    [
        ((("2026.11.3", "2026-11-20"), ("2026.9.0", "2026-09-01")), "YYYY.MM.MICRO"),
        ((("2026.04.1", "2026-04-11"), ("2026.02.0", "2026-02-01")), "YYYY.0M.MICRO"),
        ((("26.04.1", "2026-04-29"), ("25.10", "2025-10-16")), "YY.0M.MICRO"),
        ((("2026.11.30", "2026-12-01"), ("2026.11.2", "2026-11-02")), "YYYY.MM.DD"),
        ((("2026.02.03", "2026-02-03"), ("2026.01.09.1", "2026-01-09")), "YYYY.0M.0D.MICRO"),
        ((("2026.47.0", "2026-11-20"), ("2026.2.0", "2026-01-06")), "YYYY.WW.MICRO"),
        ((("26.3", "2026-11-20"), ("26.2", "2026-08-20"), ("25.0", "2025-01-20")), "YY.MICRO"),
        ((("1.4.0", "2026-11-20"), ("1.3.0", "2026-08-20")), ""),
        ((), ""),
    ],
)
def test_the_pattern_is_what_most_releases_fit(releases: tuple[tuple[str, str], ...], pattern: str) -> None:
    """Padding, week numbers and counters are told apart by versions and the days of their tags; a day off is none."""
    assert guess_pattern(dated(*releases)) == pattern


@pytest.mark.parametrize(
    ("pattern", "last", "following"),
    [
        ("YYYY.MM.MICRO", "2026.10.4", "2026.11.0"),
        ("YYYY.MM.MICRO", "2026.11.4", "2026.11.5"),
        ("YYYY.0M.MICRO", "2026.03.1", "2026.11.0"),
        ("YY.0M.MICRO", "26.04", "26.11"),
        ("YY.0M.MICRO", "26.11", "26.11.1"),
        ("YYYY.MM.DD", "2026.11.29", "2026.11.30"),
        ("YYYY.MM.DD", "2026.11.30", "2026.11.30.1"),
        ("YY.MICRO", "26.3", "26.4"),
        ("YY.MICRO", "25.3", "26.0"),
        ("YYYY.MM.MICRO", "", "2026.11.0"),
    ],
)
def test_the_day_gives_the_version_and_a_second_one_counts(pattern: str, last: str, following: str) -> None:
    """A new date begins anew; on the same date the counter goes up, also where none was written."""
    assert next_calver(pattern, last, date(2026, 11, 30)) == following


def test_an_unknown_pattern_is_refused() -> None:
    """A pattern that nobody knows names those that are."""
    with pytest.raises(UserError, match=r"YYYY\.MM\.MICRO"):
        next_calver("YEAR.MONTH", "", date(2026, 11, 30))
    assert len(set(PATTERNS)) == len(PATTERNS)


def test_a_release_by_the_calendar(tmp_path: Path) -> None:
    """The proposal follows the tags' own pattern on the job's day, whatever the commits are, and says why."""
    path = make_repository(tmp_path)
    for version, day in (("2026.03.0", "2026-03-02"), ("2026.09.0", "2026-09-14")):
        save(path, f"feat: for {version}")
        environment = {**os.environ, "GIT_COMMITTER_DATE": f"{day}T12:00:00Z"}
        subprocess.run(["git", "-C", str(path), "tag", "-a", version, "-m", version], check=True, env=environment)
    save(path, "feat!: anything")
    inputs = {"scheme": "calver", "tag": "{version}"}
    release = ReleaseRun(path, tmp_path, inputs).propose()
    assert (release["version"], release["bump"], release["last_version"]) == ("2026.11.0", "calendar", "2026.09.0")
    assert release["reasons"] == ["2026.11.0: the day is 2026-11-30, the releases so far follow YYYY.0M.MICRO."]
    git(path, "tag", "2026.11.0")
    save(path, "fix: again")
    assert ReleaseRun(path, tmp_path, inputs).propose()["version"] == "2026.11.1"


def test_a_first_release_by_the_calendar_says_which_pattern_it_takes(tmp_path: Path) -> None:
    """Without any tag the common pattern is taken, and the reason says that no release shows one."""
    path = make_repository(tmp_path)
    save(path, "feat: begin")
    release = ReleaseRun(path, tmp_path, {"scheme": "calver"}).propose()
    assert release["version"] == "2026.11.0" and "no release shows a pattern" in release["reasons"][0]
