"""The shipped example runbooks on the real thing: applied, killed in the middle, taken back, applied again."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from perdure.catalog import Catalog, load_entry
from perdure.contracts.http import JobView
from perdure.contracts.job import JobPhase
from perdure.effects.registry import default_effects
from perdure.policy.templates import check_template, parse_template
from perdure.rules.registry import default_rules
from tests.crash.points import apply_points, undo_points
from tests.runbooks.plays import RUNBOOKS, BlueGreen, Bulk, Credentials, Play, Postgresql, Sqlite
from tests.support.installation import Installation
from tests.support.records import Records, serve_records

NAMES = ("blue-green", "bulk-update", "migrate-postgresql", "migrate-sqlite", "rotate-credentials")


@pytest.fixture
def records() -> Iterator[Records]:
    """A service over HTTP."""
    with serve_records() as served:
        yield served


@pytest.fixture
def plays(tmp_path: Path, records: Records, postgres: str, home: Installation) -> dict[str, Play]:
    """All five worlds by name, made when a test needs them."""
    made: list[Play] = [
        Credentials.make(tmp_path / uuid.uuid4().hex[:8]),
        Sqlite.make(tmp_path / "sqlite"),
        BlueGreen.make(tmp_path / "traffic", records),
        Bulk.make(records),
        Postgresql.make(postgres, home),
    ]
    return {play.name: play for play in made}


def start(home: Installation, play: Play) -> JobView:
    """Submit a runbook."""
    return home.run(play.name, RUNBOOKS, **play.inputs)


def apply(home: Installation, job: JobView) -> JobView:
    """Approve a runbook and see it through; a person says go on where it waits for one."""
    home.approve(job)
    now = home.wait(job, JobPhase.done, JobPhase.paused)
    while now.phase is JobPhase.paused:
        body = {"decision_id": uuid.uuid4().hex[:12], "kind": "resume"}
        home.persist(f"/v1/steer?ref={job.job_id}", body)
        now = home.wait(job, JobPhase.done)
    return now


def test_there_are_five_and_they_run_as_they_stand() -> None:
    """Each is a valid template with what is shipped."""
    assert sorted(path.stem for path in RUNBOOKS.glob("*.yaml")) == sorted(NAMES)
    rules = {key: rule.shape for key, rule in default_rules().items()}
    effects = {kind: effect.always_reversible for kind, effect in default_effects().items()}
    for name in NAMES:
        entry = Catalog(RUNBOOKS).find(name, Path("/"))
        load_entry(entry, check=lambda found: check_template(found, rules=rules, effects=effects, tools=()))


@pytest.mark.timeout(900)
def test_killed_in_the_middle_all_are_applied_taken_back_and_applied_again(
    home: Installation, plays: dict[str, Play]
) -> None:
    """Five at once and a worker that dies in a step: each step happened once, and all is as before after the undo."""
    before = {name: play.look() for name, play in plays.items()}
    with home.dying_worker("effect.do[sql.execute]#3:after"):
        jobs = {name: start(home, play) for name, play in plays.items()}
        done = [apply(home, job) for job in jobs.values()]
        for play in plays.values():
            play.assert_applied()
        undone = [home.undo(job) for job in done]
        for undo in undone:
            home.approve(undo)
        for undo in undone:
            home.done(undo)
        assert {name: play.look() for name, play in plays.items()} == before
        again = [start(home, play) for play in plays.values()]
        for job in again:
            apply(home, job)
    for play in plays.values():
        play.assert_applied()


def kinds(name: str) -> list[str]:
    """Kinds of effect of an example."""
    steps = parse_template((RUNBOOKS / f"{name}.yaml").read_text(), path=name).apply
    return list(dict.fromkeys(step.effect for step in steps))


@pytest.mark.torture
@pytest.mark.parametrize(
    ("name", "point"), [(name, point) for name in NAMES for point in apply_points(kinds(name), foreseen=True)]
)
def test_killed_anywhere_it_is_applied_once(home: Installation, plays: dict[str, Play], name: str, point: str) -> None:
    """Any step of any example, before and after everything that it does."""
    with home.dying_worker(point):
        apply(home, start(home, plays[name]))
    plays[name].assert_applied()


@pytest.mark.torture
@pytest.mark.parametrize(
    ("name", "point"),
    [
        (name, point)
        for name in NAMES
        for point in undo_points([kind for kind in kinds(name) if kind != "sqlite.backup"])
    ],
)
def test_killed_while_undone_it_is_as_before(home: Installation, plays: dict[str, Play], name: str, point: str) -> None:
    """Taken back, whatever dies on the way."""
    before = plays[name].look()
    first = home.start_worker()
    done = apply(home, start(home, plays[name]))
    first.kill()
    first.wait()
    with home.dying_worker(point):
        undo = home.undo(done)
        home.approve(undo)
        home.done(undo)
    assert plays[name].look() == before
