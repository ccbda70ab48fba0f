"""An application's life in the ledger under any order of calls: a state machine against a model of the rules."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from perdure.errors import Conflict, NotFound, Refused
from perdure.store import audit
from perdure.store.blobs import BlobStore
from perdure.store.ledger import Ledger, TargetBusy
from perdure.store.signing import DecisionKey, public_keys
from tests.store.ledger_kit import Scene

IN_MEMORY = Path("/dev/shm")
"""Thousands of acknowledged writes: here they need not wait for a disk."""

EFFECTS = 3
FINAL = ("done", "already", "drift", "refused", "failed", "stopped")
UNBEGUN = ("already", "drift", "refused", "stopped")

indexes = st.integers(0, EFFECTS - 1)
directions = st.sampled_from(("do", "do", "undo"))


class ApplicationMachine(RuleBasedStateMachine):
    """Workers, people and crashes in any order. The model knows what the rules say; the ledger must agree each time."""

    def __init__(self):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="lifecycle-", dir=IN_MEMORY if IN_MEMORY.is_dir() else None))
        self.url = f"sqlite:///{self.folder / 'ledger.db'}"
        self.scene = Scene(
            Ledger.open(self.url), BlobStore(self.folder / "blobs"), DecisionKey.create(self.folder / "keys")
        )

    @initialize()
    def approve(self):
        self.job, self.plan, self.application = self.scene.approved(effects=EFFECTS)
        self.rival = self.scene.approved("rival", effects=1)
        self.ends: dict[tuple[int, str], str] = {}
        self.attempts: dict[tuple[int, str], int] = {}
        self.answer: dict[tuple[int, str], str] = {}
        self.spent = self.withdrawn = self.cancelled = False
        self.closed = ""
        self.holder = ""

    def teardown(self):
        report = audit.audit(self.scene.ledger, self.scene.blobs, public_keys(self.folder / "keys"))
        self.scene.ledger.close()
        shutil.rmtree(self.folder)
        assert report.ok, report.findings

    @rule(index=indexes, direction=directions)
    def begin(self, index, direction):
        key = (index, direction)
        allowed = self._may_begin(index, direction)
        try:
            intent = self.scene.begin(self.job, self.plan, index, direction)
        except Refused as refusal:
            assert not allowed or (isinstance(refusal, TargetBusy) and self.holder == "rival"), refusal
            return
        assert allowed and self.holder != "rival"
        self.spent, self.holder = True, "ours"
        self.ends[key] = "intent"
        self.attempts[key] = self.attempts.get(key, 0) + 1
        assert (intent.state, intent.attempts) == ("intent", self.attempts[key])

    @rule(index=indexes, direction=directions, state=st.sampled_from((*FINAL, "done", "unknown")))
    def finish(self, index, direction, state):
        key = (index, direction)
        before = self.ends.get(key)
        allowed = state in UNBEGUN if before is None else before == state or before not in FINAL
        try:
            self.scene.finish(self.job, self.plan, index, state, direction)
        except Conflict:
            assert not allowed
            return
        assert allowed
        if before != state:
            self.ends[key] = state
            self.answer.pop(key, None)

    @rule(index=indexes, answer=st.sampled_from(("done", "not_done", "stop")))
    def resolve(self, index, answer):
        doubtful = [key for key, state in self.ends.items() if key[0] == index and state == "unknown"]
        try:
            self.scene.decide("resolve", self.job, self.plan, effect=index, answer=answer)
        except (Conflict, NotFound):
            assert not doubtful
            return
        assert doubtful
        self.answer.update(dict.fromkeys(doubtful, answer))

    @precondition(lambda self: not self.withdrawn)
    @rule()
    def withdraw(self):
        try:
            self.scene.decide("withdraw", self.job, self.plan)
        except Conflict:
            assert self.spent
            return
        assert not self.spent
        self.withdrawn = True

    @rule()
    def cancel(self):
        self.scene.decide("cancel", self.job)
        self.cancelled = True

    @rule(state=st.sampled_from(("applied", "undone", "stuck", "cancelled")))
    def close(self, state):
        allowed = self.closed == state or (not self.closed and self._may_close(state))
        try:
            self.scene.close(self.job, self.plan, state)
        except Conflict:
            assert not allowed
            return
        assert allowed
        self.closed = state
        if self.holder == "ours":
            self.holder = ""

    @rule()
    def rival_begins(self):
        """Another application that wants the same target."""
        try:
            self.scene.begin(*self.rival[:2])
        except TargetBusy:
            assert self.holder == "ours"
            return
        except Refused:
            return  # it had begun and ended before
        assert self.holder != "ours"
        self.holder = "rival"

    @precondition(lambda self: self.holder == "rival")
    @rule()
    def rival_ends(self):
        self.scene.finish(*self.rival[:2])
        self.scene.close(*self.rival[:2])
        self.holder = ""

    @rule()
    def restart(self):
        """A worker that dies and comes back knows nothing but the ledger."""
        self.scene.ledger.close()
        self.scene.ledger = Ledger.open(self.url)

    @invariant()
    def rows_are_what_was_written(self):
        rows = self.scene.ledger.intents(application_id=self.application)
        assert {(row.index, str(row.direction)): row.state for row in rows} == self.ends
        assert {(row.index, str(row.direction)): row.attempts for row in rows if row.attempts} == self.attempts

    @invariant()
    def the_permit_is_spent_once_or_withdrawn(self):
        kinds = self.scene.kinds(self.job)
        assert kinds.count("permit.spent") == int(self.spent)
        assert kinds.count("effect.intent") == len(self.attempts)
        assert not (self.spent and self.withdrawn)
        state = self.scene.ledger.permit(self.plan.digest).state
        assert state == ("spent" if self.spent else "withdrawn" if self.withdrawn else "granted")

    def _may_close(self, state):
        """``applied``: every effect ended well; ``undone``: every end is written; a person was told of the others."""
        if state == "applied":
            forward = (self.ends.get((index, "do")) for index in range(EFFECTS))
            return all(end in ("done", "already", "failed") for end in forward) and self._is_settled()
        return state != "undone" or self._is_settled()

    def _is_settled(self):
        return all(end in FINAL for end in self.ends.values())

    def _may_begin(self, index, direction):
        """The rules of ``begin_effect`` as sentences."""
        state = self.ends.get((index, direction))
        if self.withdrawn or self.closed or state in FINAL:
            return False
        if state == "unknown" and self.answer.get((index, direction)) != "not_done":
            return False
        if direction == "do":
            going_back = any(key[1] == "undo" for key in self.ends)
            ready = all(self.ends.get((one, "do")) in ("done", "already", "failed") for one in range(index))
            return ready and not self.cancelled and not going_back
        settled = all(end in FINAL for key, end in self.ends.items() if key[0] > index)
        return settled and self.ends.get((index, "do")) in ("done", "failed")


ApplicationMachine.TestCase.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)
test_an_application_applies_each_effect_at_most_once = ApplicationMachine.TestCase
