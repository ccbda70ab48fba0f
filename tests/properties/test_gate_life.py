"""The whole of a gate on a real ledger: whatever people, settings and clocks do, nothing begins without its rule."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from activities.applying import Applier
from activities.effects import EffectActivities
from activities.ledger import Decisions, LedgerActivities
from perdure.contracts.application import OpenApplicationInput
from perdure.contracts.decisions import Decision, GateInput, WeighInput
from perdure.contracts.job import AdmitInput, PlanRef
from perdure.contracts.names import application_id, gate_id
from perdure.contracts.people import Person
from perdure.contracts.plan import ApprovalRule, Envelope, EscalationRule, ReviewRule, content_digest, freeze
from perdure.effects.registry import default_effects
from perdure.errors import PerdureError
from perdure.policy.people import Today
from perdure.store.blobs import BlobStore
from perdure.store.ledger import Ledger
from perdure.store.rows import BeginEffect
from perdure.store.signing import DecisionKey, public_keys
from tests.store.ledger_kit import make_effect

START = datetime(2026, 11, 30, tzinfo=UTC)
JOB, THREAD = "job/ops/one", "ops"
NAMES = ("ada", "bo", "cy", "di")
"""ada asked for the job."""
GROUPS = ("dba", "sre", "oncall")
KINDS = (*["approve"] * 5, "break_glass", "withdraw", "request_changes", "reject")

names = st.sampled_from(NAMES)
group_sets = st.sampled_from((list(GROUPS), ["dba", "sre"], ["dba"], ["sre"], ["oncall"], []))
seldom = st.sampled_from((False, False, False, False, True))


@st.composite
def review_rules(draw):
    """Any rule of at most two groups, in any order, with or without escalation and glass."""
    first = ApprovalRule(group="dba", count=draw(st.integers(1, 2)))
    second = ApprovalRule(group="sre", after=draw(st.sampled_from(([], ["dba"]))))
    late = EscalationRule(group="oncall", after_seconds=6 * 3600, stands_for=["dba"])
    return ReviewRule(
        approvals=draw(st.sampled_from(([first], [first, second]))),
        policy="production",
        requester_may_approve=draw(st.sampled_from((True, True, False))),
        authors_may_approve=draw(st.booleans()),
        expires_after_seconds=draw(st.sampled_from((10, 40))) * 3600,
        escalations=draw(st.sampled_from(([], [late]))),
        break_glass=draw(st.sampled_from(([], ["oncall"]))),
    )


@cache
def empty_ledger() -> Path:
    """A ledger with its tables, to be copied: making them takes longer than a whole example."""
    path = Path(tempfile.mkdtemp(prefix="gate-life-")) / "ledger.db"
    Ledger.open(f"sqlite:///{path}").close()
    return path


class GateLife(RuleBasedStateMachine):
    """One job whose plan is decided, edited, weighed and begun in any order, by anybody, at any time."""

    @initialize(pinned=review_rules(), known=st.fixed_dictionaries(dict.fromkeys(NAMES, group_sets)))
    def open(self, pinned, known):
        self.home = Path(tempfile.mkdtemp(prefix="gate-life-"))
        shutil.copyfile(empty_ledger(), self.home / "ledger.db")
        self.ledger, self.blobs = Ledger.open(f"sqlite:///{self.home / 'ledger.db'}"), BlobStore(self.home / "blobs")
        self.key, self.strange = DecisionKey.create(self.home / "keys"), DecisionKey.create(self.home / "strange")
        self.now, self.number, self.round = START, 0, 0
        self.everybody = {name: Person(groups=list(groups)) for name, groups in known.items()}
        self.today = Today(people=dict(self.everybody), policies={"production": pinned})
        self.true_words: list[Decision] = []
        self.given: list[Decision] = []
        self.plans: dict[str, tuple[PlanRef, Envelope]] = {}
        self.satisfied: set[str] = set()
        self.begun: set[str] = set()
        keys = public_keys(self.home / "keys")
        decisions = Decisions(self.ledger, lambda: keys, lambda: self.today)
        effects = default_effects()
        folders = (self.home / "locks", self.home / "scratch")
        applier = Applier(self.ledger, self.blobs, decisions, effects, *folders, lambda _names: {})
        self.gates = LedgerActivities(self.ledger, self.blobs, decisions, lambda: self.now)
        self.applications = EffectActivities(self.ledger, self.blobs, decisions, effects, applier, now=lambda: self.now)
        spec = self.blobs.put(b"{}")
        self.ledger.admit_job(AdmitInput(job_id=JOB, spec=spec, template="rotate", requester="ada"), at=self.now)
        self.draft(pinned, [])

    def teardown(self):
        if hasattr(self, "home"):
            self.ledger.close()
            shutil.rmtree(self.home)

    @rule(hours=st.integers(-3, 6))
    def move_the_clock(self, hours):
        """Time passes; now and then somebody sets the clock back."""
        self.now += timedelta(hours=hours)

    @rule(order=st.permutations(NAMES))
    def everybody_approves(self, order):
        """So that many plans may go, and what may not go stands out."""
        for by in order:
            self.decide_one(by, "approve", False, False, True)
        self.weigh_now()

    @rule(by=names, kind=st.sampled_from(KINDS), older=seldom, forged=seldom, reason=st.booleans())
    def decide(self, by, kind, older, forged, reason):
        self.decide_one(by, kind, older, forged, reason)

    def decide_one(self, by, kind, older, forged, reason):
        digest = next(iter(self.plans)) if older else self.digest
        groups = self.today.people[by].groups if by in self.today.people else []
        word = self.word(by, kind, digest=digest, job_id=JOB, groups=groups, comment="why" if reason else "")
        signed = (self.strange if forged and kind == "approve" else self.key).sign(word)
        try:
            self.ledger.record_decision(signed, thread=THREAD, at=self.now)
        except PerdureError:
            return
        if signed.key_id == self.key.sign(word).key_id:
            self.true_words.append(word)

    @rule(by=names, to=names, hours=st.integers(1, 8))
    def delegate(self, by, to, hours):
        until = (self.now + timedelta(hours=hours)).isoformat()
        groups = self.today.people[by].groups if by in self.today.people else []
        if groups and by != to:
            comment = json.dumps({"to": to, "groups": groups, "until": until})
            word = self.word(by, "delegate", digest="", job_id="", groups=groups, comment=comment)
            self.ledger.record_delegation(self.key.sign(word), at=self.now)
            self.given.append(word)

    @rule(name=names, groups=group_sets, there=st.booleans())
    def change_people(self, name, groups, there):
        """Somebody is taken out, or gets other groups."""
        people = {other: one for other, one in self.today.people.items() if other != name}
        if there:
            people[name] = Person(groups=groups)
        self.today = Today(people=people, policies=self.today.policies)

    @rule(other=review_rules(), there=st.sampled_from((True, True, True, False)))
    def change_the_policy(self, other, there):
        """It is tightened, loosened, or taken away."""
        self.today = Today(people=self.today.people, policies={"production": other} if there else {})

    @rule()
    def weigh(self):
        """The gate asks the ledger how it ends."""
        self.weigh_now()

    def weigh_now(self):
        plan, envelope = self.plans[self.digest]
        question = WeighInput(gate_id=gate_id(JOB, plan.round), job_id=JOB, digest=plan.digest, ref=plan.ref)
        if self.digest in self.satisfied:
            return
        end = self.gates.end_gate(question)
        if end.outcome == "satisfied":
            assert self.may_go(plan.digest), end
            self.satisfied.add(plan.digest)
        elif end.outcome in ("changes_requested", "denied", "expired"):
            self.draft(envelope.rule, [word.by for word in self.true_words if word.kind == "request_changes"])

    @rule(older=seldom)
    def begin_as_the_applier_does(self, older):
        """Today's people and policies are asked once more before the first effect."""
        plan, _ = self.plans[next(iter(self.plans)) if older else self.digest]
        about = {"application_id": application_id(JOB, plan.round), "job_id": JOB, "digest": plan.digest}
        opened = self.applications._open(OpenApplicationInput.model_validate({**about, "ref": plan.ref}))
        if opened.state == "ready":
            assert self.may_go(plan.digest)
            self.try_to_begin(plan)

    @rule(older=seldom)
    def begin_without_asking(self, older):
        """Whoever reaches Temporal's port may ask for an effect at any time: the ledger says no."""
        self.try_to_begin(self.plans[next(iter(self.plans)) if older else self.digest][0])

    @invariant()
    def nothing_began_that_was_not_satisfied(self):
        assert self.begun <= self.satisfied
        assert {row.digest for row in self.ledger.intents()} == self.begun

    def try_to_begin(self, plan):
        begin = BeginEffect(
            application_id=application_id(JOB, plan.round),
            job_id=JOB,
            thread=THREAD,
            digest=plan.digest,
            index=0,
            direction="do",
            effect_id="write-0",
            kind="files.write",
            target="t",
            irreversible=False,
        )
        try:
            self.ledger.begin_effect(begin, at=self.now)
        except PerdureError:
            return
        self.begun.add(plan.digest)

    def draft(self, pinned, authors):
        """The next plan, at an open gate."""
        self.round += 1
        envelope = Envelope(
            job_id=JOB,
            thread=THREAD,
            round=self.round,
            requester="ada",
            authors=sorted(set(authors)),
            template="rotate",
            template_digest=hashlib.sha256(b"").hexdigest(),
            rule=pinned,
            created_at=self.now,
            expires_at=self.now + timedelta(seconds=pinned.expires_after_seconds),
        )
        effects = [make_effect(self.round)]
        self.digest, data = freeze(envelope, effects)
        plan = PlanRef(
            digest=self.digest,
            content=content_digest(effects),
            ref=self.blobs.put(data),
            effects=1,
            round=self.round,
            expires_at=envelope.expires_at,
        )
        self.plans[self.digest] = (plan, envelope)
        self.ledger.record_plan(job_id=JOB, plan=plan, envelope=envelope, at=self.now)
        about = {"gate_id": gate_id(JOB, self.round), "job_id": JOB, "digest": self.digest, "ref": plan.ref}
        self.ledger.open_gate(GateInput.model_validate({**about, "expires_at": plan.expires_at}), at=self.now)

    def word(self, by, kind, **more):
        self.number += 1
        about = {"id": f"d-{self.number}", "kind": kind, "by": by, "at": self.now, "head": self.ledger.head()}
        return Decision.model_validate({**about, **more})

    def may_go(self, digest):
        """The rule's sentences, said again without the code that weighs: what must be true if a plan may go."""
        envelope, policies = self.plans[digest][1], self.today.policies
        if "production" not in policies:
            return False
        wanted = (envelope.rule, policies["production"])
        end = min(envelope.created_at + timedelta(seconds=one.expires_after_seconds) for one in wanted)
        heard = [word for word in self.true_words if word.digest == digest and word.at < end]
        last = {word.by: word for word in heard}
        if self.is_glass_broken(last, wanted):
            return True
        yes = [word for word in heard if word.kind == "approve" and last[word.by].kind in ("approve", "break_glass")]
        return all(self.is_enough(need, yes, envelope, wanted) for one in wanted for need in one.approvals)

    def is_glass_broken(self, last, wanted):
        return any(
            word.kind == "break_glass"
            and word.comment
            and "oncall" in word.groups
            and "oncall" in self.groups_today(word.by)
            and all("oncall" in one.break_glass for one in wanted)
            for word in last.values()
        )

    def is_enough(self, need, yes, envelope, wanted):
        """So many people, with so many authorities, of whom none is barred."""
        barred = set()
        if not all(one.requester_may_approve for one in wanted):
            barred |= {"ada", *envelope.authors}
        if not all(one.authors_may_approve for one in wanted):
            barred |= set(envelope.authors)
        people, authorities = set(), set()
        for word in yes:
            found = self.authorities(word, need.group, envelope, wanted) - barred
            if found and word.by not in barred and word.by in self.today.people:
                people.add(word.by)
                authorities |= found
        return min(len(people), len(authorities)) >= need.count

    def authorities(self, word, group, envelope, wanted):
        due = all(one.escalations for one in wanted) and word.at >= envelope.created_at + timedelta(hours=6)
        groups = {group, "oncall"} if due and group == "dba" else {group}
        found = {word.by} if groups & set(word.groups) & self.groups_today(word.by) else set()
        for given in self.given:
            said = json.loads(given.comment)
            in_time = given.at <= word.at < datetime.fromisoformat(said["until"])
            if said["to"] == word.by and in_time and groups & set(said["groups"]) & self.groups_today(given.by):
                found.add(given.by)
        return found

    def groups_today(self, name):
        return set(self.today.people[name].groups) if name in self.today.people else set()


GateLife.TestCase.settings = settings(max_examples=25, stateful_step_count=14, deadline=None)
test_nothing_begins_without_its_rule = GateLife.TestCase
