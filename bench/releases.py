"""A whole release, from the command to done, beside the same git commands in a script; and how it splits."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

from bench.home import PERDURE, Home, new_id
from bench.kit import Figure, Samples, cpu_seconds, run
from bench.projects import RELEASE_SCRIPT, Project, copy_project, git, make_project
from bench.watch import Seen

RELEASE_BUDGET_SECONDS = 3.0
DECISION_BUDGET_MS = 300.0
STAGES = ("submit", "gather", "analyze", "draft", "verify", "freeze", "gate", "apply", "end")


def measure_releases(home: Home, runs: int, say: Callable[[str], None]) -> list[Figure]:
    """Release ``runs`` copies of a project by Perdure and as many by the script, turn by turn."""
    made = make_project(home.folder / "orders", "orders")
    samples = Samples()
    for number in range(-1, runs):
        ours = copy_project(made, home.folder / "orders", f"ours-{number}")
        theirs = copy_project(made, home.folder / "orders", f"theirs-{number}")
        say(f"release {number + 1} of {runs}" if number >= 0 else "a release to warm up")
        if number < 0:
            _release(home, ours, Samples())
            continue
        samples.begin()
        script = run(["sh", RELEASE_SCRIPT, theirs.path], env=home.environ)
        samples.add(script=script.wall, script_cpu=script.cpu)
        _release(home, ours, samples)
        _check_same(ours, theirs)
        samples.add(
            over=samples["release"][-1] - samples["script"][-1],
            over_cpu=samples["release_cpu"][-1] - samples["script_cpu"][-1],
        )
    return [
        samples.figure("script", "release by a script", "s", note="describe, log, edit, commit, tag, push"),
        samples.figure("release", "release by Perdure", "s", note="`perdure run` → plan → approved → done"),
        samples.figure("over", "release, over the script", "s", budget=RELEASE_BUDGET_SECONDS),
        samples.figure("release_cpu", "release by Perdure, CPU", "s", note="CLI, API, worker and its children, server"),
        *(samples.figure(f"{name}_cpu", f"  of it: {name}", "s", note=_CPU[name]) for name in _CPU),
        samples.figure("script_cpu", "release by a script, CPU", "s"),
        *(samples.figure(name, f"  of it: {name}", "ms", note=_ABOUT[name]) for name in STAGES),
        samples.figure("decision", "decision to first effect", "ms", budget=DECISION_BUDGET_MS, note=_ABOUT["posted"]),
    ]


_CPU = {"temporal": "", "worker": "with its git, sandbox and renderer", "api": "", "cli": "`perdure run --detach`"}
_ABOUT = {
    "submit": "`perdure run` begun → job in the ledger",
    "gather": "→ last source's result",
    "analyze": "→ its result",
    "draft": "→ its result",
    "verify": "→ last check's result",
    "freeze": "→ plan frozen",
    "gate": "→ gate open (job carried on as a new run)",
    "apply": "first intent → application closed",
    "end": "→ job done",
    "posted": "the client's POST sent → first intent in the ledger",
}


def _release(home: Home, project: Project, samples: Samples) -> None:
    cpu, begun = _cpu(home), time.time()
    request = new_id()
    answers: list[float] = []
    command: list[str | Path] = [PERDURE, "run", "release", "--detach", "--no-start", "--json", "--request-id", request]
    client = threading.Thread(target=lambda: answers.append(run(command, env=home.environ, cwd=project.path).cpu))
    client.start()
    job_id = home.ledger.wait_request(request)
    home.ledger.wait(job_id, "job.phase", phase="waiting")
    client.join()
    digest = home.digest(job_id)
    posted = time.time()
    home.approve(digest)
    done = home.ledger.wait(job_id, "job.phase", phase="done")
    split = _split(home.ledger.events(job_id), begun, posted)
    used = {f"{name}_cpu": after - cpu[name] for name, after in _cpu(home).items()} | {"cli_cpu": sum(answers)}
    samples.add(release=done.seen - begun, release_cpu=sum(used.values()), **used, **split)


def _split(events: list[Seen], begun: float, posted: float) -> dict[str, float]:
    """Milliseconds of each stage, from when its last event was visible."""
    marks = [
        _last(events, "job.admitted"),
        *(_last(events, "stage", stage=stage) for stage in ("gather", "analyze", "draft", "verify")),
        _last(events, "plan.frozen"),
        _last(events, "job.phase", phase="waiting"),
    ]
    split = {name: (mark - before) * 1000 for name, before, mark in zip(STAGES, [begun, *marks], marks, strict=False)}
    first, closed = _first(events, "effect.intent"), _last(events, "application.closed")
    done = _last(events, "job.phase", phase="done")
    more = {"apply": closed - first, "end": done - closed, "decision": first - posted}
    return {**split, **{name: seconds * 1000 for name, seconds in more.items()}}


def _last(events: list[Seen], kind: str, **said: str) -> float:
    return max(event.seen for event in events if event.kind == kind and event.says(**said))


def _first(events: list[Seen], kind: str) -> float:
    return min(event.seen for event in events if event.kind == kind)


def _cpu(home: Home) -> dict[str, float]:
    """CPU seconds of the installation's processes so far, with those of their children that have ended."""
    return {name: cpu_seconds(home.pid(name), children=True) for name in ("temporal", "worker", "api")}


def _check_same(ours: Project, theirs: Project) -> None:
    """Both ways must end in the same kind of release, or the comparison says nothing."""
    for project in (ours, theirs):
        head, tag, remote = (
            git(project.path, "rev-parse", "main"),
            git(project.path, "rev-parse", "v1.3.0^{commit}"),
            git(project.remote, "rev-parse", "main"),
        )
        if not head == tag == remote:
            raise RuntimeError(f"{project.path} was not released: main {head}, v1.3.0 {tag}, remote {remote}")
