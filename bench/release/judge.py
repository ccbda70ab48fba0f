"""One release judged: the plan of the rules, and beside it what simpler rules would have said."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.release.deciding import Telling, find_deciding, plain_step, tell
from bench.release.hiding import Past, open_past
from bench.release.series import Pair, Series, find_pairs, open_series
from bench.release.truth import Recall, count_recall, read_truth
from perdure.contracts.base import JsonDict
from perdure.errors import PerdureError
from perdure.rules.base import RuleContext
from perdure.rules.git_commits import Commit, commit_from_json
from perdure.rules.registry import default_rules
from perdure.rules.release.entries import read_entries
from perdure.rules.release.versions import Bump, VersionScheme
from perdure.store.blobs import BlobStore
from perdure.workspace.git import Repository

RIVALS = ("always patch", "plain Conventional Commits")


@dataclass(frozen=True)
class Verdict:
    """One pair: what was released, what the plan says, and whether simpler rules agree."""

    pair: Pair
    proposed: str
    """Empty: the plan abstained; ``reasons`` says why."""
    agrees: bool
    reasons: list[str]
    recall: Recall = field(default_factory=lambda: Recall(0, 0))
    rivals: dict[str, bool] = field(default_factory=dict)
    telling: Telling = field(default_factory=Telling)
    by_commits: bool = False
    """Whether the project decided this release by its commits (``bench.release.deciding``)."""
    subjects: list[str] = field(default_factory=list)
    """Of the range, newest first."""


def judge_series(series: Series) -> list[Verdict]:
    """Judge every pair of a series, oldest first."""
    verdicts = list(_judge_pairs(series))
    deciding = find_deciding([verdict.telling for verdict in verdicts])
    return [replace(verdict, by_commits=by) for verdict, by in zip(verdicts, deciding, strict=True)]


def _judge_pairs(series: Series) -> Iterator[Verdict]:
    repository, form, scheme = open_series(series)
    with TemporaryDirectory(prefix="perdure-judge-") as folder:
        for pair in find_pairs(series, repository, form, scheme):
            past = open_past(repository, pair, Path(folder, "past.git"), form, scheme)
            yield _judge_pair(series, repository, pair, past, str(form), scheme, Path(folder))


def _judge_pair(
    series: Series, repository: Repository, pair: Pair, past: Past, form: str, scheme: VersionScheme, folder: Path
) -> Verdict:
    try:
        gathered, release = _propose(series, past, form, folder)
    except PerdureError as error:
        return Verdict(pair, "", agrees=False, reasons=[str(error)], rivals=dict.fromkeys(RIVALS, False))
    commits = [commit_from_json(value) for value in gathered["history"]["commits"]]
    entries = read_entries(release)
    proposed = release["version"] if entries else ""
    truth = read_truth(repository, pair.commit, gathered["history"]["path"], pair.target.version)
    return Verdict(
        pair,
        proposed,
        agrees=_is_same(proposed, pair.target.version, scheme),
        reasons=release["reasons"] if entries else ["nothing to release"],
        recall=count_recall(truth, entries),
        rivals=_judge_rivals(pair, commits, scheme),
        telling=tell(pair, commits, scheme),
        subjects=[commit.subject for commit in commits],
    )


def _propose(series: Series, past: Past, form: str, folder: Path) -> tuple[JsonDict, JsonDict]:
    """Run the shipped template's sources and its analysis, as a job would."""
    inputs = {"scheme": series.scheme, "remote": ""}
    now = datetime.fromisoformat(past.at) if past.at else datetime.now(UTC)
    rules, context = default_rules(), RuleContext(BlobStore(folder / "blobs"), now, inputs, {})
    common: dict[str, Any] = {"repo": {"path": str(past.path)}, "path": series.path}
    history = {**common, "tag": form, "scheme": series.scheme, "remote": ""}
    gathered = {
        "history": rules["git.history"].run(history, context).value,
        "files": rules["release.version_files"].run(common, context).value,
        "notes": rules["release.change_files"].run(common, context).value,
    }
    proposed = rules["release.propose"].run({"from": gathered, "scheme": series.scheme}, context)
    return gathered, proposed.value


def _judge_rivals(pair: Pair, commits: Sequence[Commit], scheme: VersionScheme) -> dict[str, bool]:
    steps: tuple[Bump, ...] = ("patch", plain_step(commits))
    if scheme.name == "calver":
        return dict.fromkeys(RIVALS, False)
    return {
        rival: _is_same(scheme.bump(pair.last.version, step), pair.target.version, scheme)
        for rival, step in zip(RIVALS, steps, strict=True)
    }


def _is_same(one: str, other: str, scheme: VersionScheme) -> bool:
    return scheme.is_legal(one) and bool(scheme.key(one) == scheme.key(other))
