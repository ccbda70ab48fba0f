"""Break every promise once and see its test turn red: ``python -m tests.promises.sweep [words that names contain]``.

Works on a copy of the tree. First every named test must be green as it is; then, for each line of the table in turn,
the line is taken away and its test alone is run: it must fail. A test that cannot even be collected then does not
count as red, since it would be for any broken line.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.promises.kept import Kept
from tests.promises.table import PROMISES

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("perdure", "workflows", "activities", "templates", "tests", "worker.py", "pyproject.toml")
GREEN, RED = 0, 1
LIMIT_SECONDS = 300
"""For one test; all of them together, as they are, may take as long as each its share."""
SHARE_SECONDS = 30


@contextmanager
def copied_tree() -> Iterator[Path]:
    """A copy of what the tests need, gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="promises-") as folder:
        tree = Path(folder) / "tree"
        tree.mkdir()
        for part in PARTS:
            source = ROOT / part
            if source.is_dir():
                shutil.copytree(source, tree / part, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy2(source, tree / part)
        yield tree


def run_tests(tree: Path, tests: Iterable[str]) -> tuple[int, str]:
    """Run tests of a tree; return pytest's exit code and the end of what it wrote."""
    named = sorted(set(tests))
    limit = max(LIMIT_SECONDS, SHARE_SECONDS * len(named))
    environ = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    argv = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "-m",
        "not torture",
        *named,
    ]
    try:
        ended = subprocess.run(argv, cwd=tree, env=environ, capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return RED, f"it did not end within {limit} s"
    return ended.returncode, (ended.stdout + ended.stderr)[-3000:]


@contextmanager
def broken(tree: Path, kept: Kept) -> Iterator[None]:
    """The tree without one line."""
    path = tree / kept.file
    whole = path.read_text(encoding="utf-8")
    assert whole.count(kept.line) == 1, f"{kept.file} does not hold this exactly once:\n{kept.line}"
    path.write_text(whole.replace(kept.line, kept.without), encoding="utf-8")
    try:
        yield
    finally:
        path.write_text(whole, encoding="utf-8")


def break_one(tree: Path, kept: Kept) -> str:
    """Take one line away; return why that is not noticed, or nothing when its test turns red."""
    with broken(tree, kept):
        code, said = run_tests(tree, [kept.test])
    if code == RED:
        return ""
    what = "is green without it" if code == GREEN else f"ended with {code}"
    return f"{kept.test} {what}\n    {kept.line.strip()}\n{said if code != GREEN else ''}"


def sweep(kept_ones: Sequence[Kept]) -> list[str]:
    """Break each promise; return what nobody noticed."""
    with copied_tree() as tree:
        code, said = run_tests(tree, sorted({kept.test for kept in kept_ones}))
        if code != GREEN:
            return [f"The tests are not green as it is:\n{said}"]
        unnoticed = []
        for number, kept in enumerate(kept_ones, 1):
            start = time.monotonic()
            problem = break_one(tree, kept)
            state = "NOT NOTICED" if problem else "red"
            print(f"{number:3}/{len(kept_ones)} {state:12} {time.monotonic() - start:5.1f} s  {kept.name}", flush=True)
            unnoticed += [problem] if problem else []
        return unnoticed


def main(words: Sequence[str]) -> int:
    """Sweep over the table, or over the entries whose name contains one of the words."""
    chosen = [kept for kept in PROMISES if not words or any(word in kept.name for word in words)]
    unnoticed = sweep(chosen)
    print(f"{len(chosen)} lines taken away, {len(unnoticed)} not noticed")
    for problem in unnoticed:
        print(f"- {problem}", file=sys.stderr)
    return 1 if unnoticed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
