"""``python -m bench.release FILE``: judge the release rules on every pair of the file's tag series."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from bench.release.judge import RIVALS, Verdict, judge_series
from bench.release.series import Series, read_series
from perdure.errors import PerdureError

_SHOWN_SUBJECTS = 4


def main() -> int:
    """Judge, print, and return 0; 64 when the file cannot be read."""
    options = _parse()
    try:
        series = read_series(Path(options.file))
        with ProcessPoolExecutor(max_workers=options.processes) as pool:
            every = _show(series, pool.map(judge_all, series))
    except (PerdureError, OSError) as error:
        print(error, file=sys.stderr)
        return 64
    print(_describe("all", every, ""))
    print(_describe("of these, decided by their commits", [one for one in every if one.by_commits], ""))
    return 0


def _show(series: Sequence[Series], judged: Iterator[tuple[list[Verdict], float]]) -> list[Verdict]:
    """Print each series as soon as it is judged, and return all verdicts."""
    every: list[Verdict] = []
    for one, (verdicts, seconds) in zip(series, judged, strict=True):
        print(_describe(one.name, verdicts, f"{seconds:.0f} s"))
        print(_describe("  by commits", [verdict for verdict in verdicts if verdict.by_commits], ""))
        print("".join(_explain(verdict) for verdict in verdicts if not verdict.agrees), end="", flush=True)
        every += verdicts
    return every


def judge_all(series: Series) -> tuple[list[Verdict], float]:
    """Return a series' verdicts and how many seconds they took."""
    begun = time.perf_counter()
    return judge_series(series), time.perf_counter() - begun


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m bench.release", description=__doc__)
    parser.add_argument("file", help="one series a line: REPOSITORY [FORM] [scheme=…] [path=…] [TAG…]")
    parser.add_argument("--processes", type=int, default=2, help="series judged at once")
    return parser.parse_args()


def _describe(name: str, verdicts: Sequence[Verdict], note: str) -> str:
    """One line: agreement of the version, recall of the entries, and the rivals."""
    count = len(verdicts)
    found, items = sum(one.recall.found for one in verdicts), sum(one.recall.items for one in verdicts)
    rivals = "  ".join(f"{rival} {_share(sum(one.rivals[rival] for one in verdicts), count)}" for rival in RIVALS)
    agreed = _share(sum(one.agrees for one in verdicts), count)
    abstained = sum(not one.proposed for one in verdicts)
    return (
        f"{name}: {count} releases  version {agreed} ({abstained} abstained)  entries {_share(found, items)} "
        f"of {items}  | {rivals}  {note}".rstrip()
    )


def _explain(verdict: Verdict) -> str:
    pair = verdict.pair
    told = ", by commits" if verdict.by_commits else ""
    lines = [f"  {pair.last.name} → {pair.target.name}{told}: proposed {verdict.proposed or 'nothing'}"]
    lines += [f"      {reason}" for reason in verdict.reasons]
    lines += [f"      · {subject}" for subject in verdict.subjects[:_SHOWN_SUBJECTS]]
    more = len(verdict.subjects) - _SHOWN_SUBJECTS
    return "\n".join(lines + ([f"      · and {more} more"] if more > 0 else [])) + "\n"


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "–"


if __name__ == "__main__":
    sys.exit(main())
