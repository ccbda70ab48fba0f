"""Two processes at once: the ledger lets exactly one of them through, and says why not to the other."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap

import pytest

from perdure.store import audit
from perdure.store.ledger import Ledger
from perdure.store.signing import public_keys
from tests.store.ledger_kit import Scene

ROUNDS = 5

RUNNER = textwrap.dedent("""
    import json, pathlib, sys
    from perdure.contracts.decisions import SignedDecision
    from perdure.errors import PerdureError
    from perdure.store.ledger import BeginEffect, Ledger
    from datetime import datetime, UTC

    at = datetime(2026, 11, 30, 10, 12, tzinfo=UTC)
    for line in sys.stdin:
        ask = json.loads(line)
        try:
            if "open" in ask:
                ledger = Ledger.open(ask["open"])
                answer = "opened"
            elif "close" in ask:
                ledger.close()
                answer = "closed"
            elif "begin" in ask:
                answer = "attempt %d" % ledger.begin_effect(BeginEffect(**ask["begin"]), at=at).attempts
            else:
                signed = SignedDecision.model_validate(ask["decide"])
                answer = "recorded %s" % ledger.record_decision(signed, thread=ask["thread"], at=at)
        except PerdureError as error:
            answer = type(error).__name__
        print(answer, flush=True)
""")


class Process:
    """Another process with the ledger open; does one thing when told."""

    def __init__(self):
        argv = [sys.executable, "-c", RUNNER]
        self._process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def tell(self, **ask):
        self._process.stdin.write(json.dumps(ask) + "\n")
        self._process.stdin.flush()

    def answer(self):
        return self._process.stdout.readline().strip()

    def end(self):
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


@pytest.fixture(scope="module")
def processes():
    """Two processes that stay for all races: starting one takes longer than a race."""
    both = [Process(), Process()]
    yield both
    for process in both:
        process.end()


@pytest.fixture
def pair(processes, ledger_url, ledger):
    """Two processes with one ledger open."""
    assert _race(processes, {"open": ledger_url}, {"open": ledger_url}) == ["opened", "opened"]
    yield processes
    assert _race(processes, {"close": ""}, {"close": ""}) == ["closed", "closed"]


def _race(pair, first, second):
    pair[0].tell(**first)
    pair[1].tell(**second)
    return [pair[0].answer(), pair[1].answer()]


def _begin(job_id, plan, **more):
    application = f"apply/{job_id.removeprefix('job/')}/{plan.round}"
    return {
        "begin": {
            "application_id": application,
            "job_id": job_id,
            "thread": "releases",
            "digest": plan.digest,
            "index": 0,
            "direction": "do",
            "effect_id": "write-0",
            "kind": "files.write",
            "target": "git:/srv/orders/.git",
            "irreversible": False,
        }
        | more
    }


def _is_whole(scene: Scene):
    report = audit.audit(scene.ledger, scene.blobs, public_keys(scene.key._folder))
    return [one for one in report.findings if one.severity in ("gap", "tampered")] == []


def test_two_workers_begin_one_effect_once(scene, pair):
    """The same effect begun by two workers is one intent with two attempts, and the permit is spent once."""
    for number in range(ROUNDS):
        job_id, plan, application = scene.approved(f"race-{number}")
        answers = _race(pair, _begin(job_id, plan), _begin(job_id, plan))
        assert sorted(answers) == ["attempt 1", "attempt 2"]
        kinds = scene.kinds(job_id)
        assert (kinds.count("permit.spent"), kinds.count("effect.intent")) == (1, 1)
        scene.apply(job_id, plan)
        assert scene.ledger.permit(plan.digest).application_id == application
    assert _is_whole(scene)


def test_two_applications_race_for_one_target(scene, pair):
    """Of two applications that want the same target at once, one gets it; the other one's permit stays unspent."""
    for number in range(ROUNDS):
        one, other = scene.approved(f"one-{number}"), scene.approved(f"other-{number}")
        answers = _race(pair, _begin(*one[:2]), _begin(*other[:2]))
        assert sorted(answers) == ["TargetBusy", "attempt 1"]
        winner, loser = (one, other) if answers[0] == "attempt 1" else (other, one)
        assert scene.ledger.permit(loser[1].digest).state == "granted"
        scene.apply(*winner[:2])
    assert _is_whole(scene)


def test_withdraw_races_the_first_effect(scene, pair):
    """Either the withdrawal is recorded and nothing starts, or the effect starts and the withdrawal is refused."""
    seen = set()
    for number in range(ROUNDS):
        job_id, plan, _ = scene.approved(f"race-{number}")
        signed = scene.sign("withdraw", job_id, plan)
        decide = {"decide": signed.model_dump(mode="json"), "thread": "releases"}
        asks = [decide, _begin(job_id, plan)]
        answers = _race(pair, *asks) if number % 2 else _race(pair, *asks[::-1])[::-1]
        assert answers in (["recorded True", "Refused"], ["Conflict", "attempt 1"])
        withdrawn = answers[0] == "recorded True"
        seen.add(withdrawn)
        assert scene.ledger.permit(plan.digest).state == ("withdrawn" if withdrawn else "spent")
        assert ("effect.intent" in scene.kinds(job_id)) is not withdrawn
        if not withdrawn:
            scene.apply(job_id, plan)
    assert seen
    assert _is_whole(scene)


def test_the_same_decision_from_two_doors_is_one_decision(scene, pair):
    """A decision sent twice at once is new for one sender and known for the other; it lies in the ledger once."""
    job_id = scene.admit()
    plan = scene.freeze(job_id)
    scene.open_gate(job_id, plan)
    for number in range(ROUNDS):
        signed = scene.sign("approve", job_id, plan, id=f"d-race-{number}")
        decide = {"decide": signed.model_dump(mode="json"), "thread": "releases"}
        assert sorted(_race(pair, decide, decide)) == ["recorded False", "recorded True"]
    assert len(scene.ledger.decisions(digest=plan.digest)) == ROUNDS
    assert _is_whole(scene)


def test_contradicting_decisions_under_one_id_leave_one(scene, pair):
    """Of two different decisions under one id one is recorded, the other refused."""
    job_id = scene.admit()
    plan = scene.freeze(job_id)
    scene.open_gate(job_id, plan)
    for number in range(ROUNDS):
        asks = [
            {
                "decide": scene.sign(kind, job_id, plan, id=f"d-{number}-same").model_dump(mode="json"),
                "thread": "releases",
            }
            for kind in ("approve", "reject")
        ]
        assert sorted(_race(pair, *asks)) == ["Conflict", "recorded True"]
    assert _is_whole(scene)


def test_a_second_ledger_sees_what_the_first_wrote(scene, ledger_url):
    """What one process was told is there is there for the next one."""
    job_id = scene.admit()
    other = Ledger.open(ledger_url)
    assert other.job("@last").job_id == job_id
    assert other.head() == scene.ledger.head()
    other.close()
