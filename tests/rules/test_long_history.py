"""A release of a long history is planned in little memory."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.rules.kit import make_repository, write_history
from tests.support.repositories import git

_KINDS = ("feat(part{0}): change {1}\n\nWords.\n", "fix: repair {1} (#{1})\n", "docs: {1}\n", "chore: {1}\n")
_MEASURE = """
import json, resource, sys
from pathlib import Path
from tests.rules.kit import ReleaseRun

run = ReleaseRun(Path(sys.argv[1]), Path(sys.argv[2]))
run.draft()
# Not this process's ru_maxrss: it starts with that of the process that it was forked from.
own = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
release = run.results["analyze"]["release"]
told = {"version": release["version"], "entries": len(release["entries"])}
print(json.dumps({**told, "rss_bytes": max(own, children) * 1024}))
"""


@pytest.mark.parametrize(("tagged", "version", "entries"), [(1, "1.1.0", 20_000), (200, "1.200.0", 99)])
def test_forty_thousand_commits_are_planned_in_little_memory(
    tmp_path: Path, tagged: int, version: str, entries: int
) -> None:
    """All of 40,000 commits since the only release, or the last 200 of them after 200 releases: under 300 MB from the
    first source to the drafted changelog. How long it takes stands in bench/README.md.
    """
    path = make_repository(tmp_path)
    write_history(path, (_KINDS[number % 4].format(number % 7, number) for number in range(40_000)))
    commits = git(path, "rev-list", "--reverse", "main").split()
    for number in range(tagged):
        git(path, "tag", f"v1.{number}.0", commits[number * 200])
    done = subprocess.run(
        [sys.executable, "-c", _MEASURE, str(path), str(tmp_path)], capture_output=True, text=True, check=True
    )
    told = json.loads(done.stdout)
    assert told["version"] == version and abs(told["entries"] - entries) <= 1
    assert told["rss_bytes"] < 300_000_000
