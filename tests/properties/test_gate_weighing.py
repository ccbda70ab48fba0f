"""A gate under any sequence of decisions: a state machine against a model that only knows the rule's sentences."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from perdure.contracts.decisions import Decision
from perdure.contracts.plan import ApprovalRule, Envelope, Plan, ReviewRule, content_digest
from perdure.policy.gates import weigh

START = datetime(2026, 11, 30, tzinfo=UTC)
LIFETIME = timedelta(hours=20)
DIGEST, OTHER = "ab" * 32, "cd" * 32
JOB = "job/releases/one"
PEOPLE = ("ada", "bo", "cy", "di")
GROUPS = ("maintainers", "security", "guests")

groups = st.frozensets(st.sampled_from((*GROUPS, "*")), max_size=3)
rules = st.builds(
    ReviewRule,
    approvals=st.lists(
        st.builds(ApprovalRule, group=st.sampled_from(GROUPS[:2]), count=st.integers(1, 3)), min_size=1, max_size=2
    ),
    requester_may_approve=st.booleans(),
)


class GateMachine(RuleBasedStateMachine):
    """People decide in any order, on this plan and others, in time and late; decisions arrive again."""

    @initialize(review=rules, authors=st.frozensets(st.sampled_from(PEOPLE), max_size=2))
    def open(self, review, authors):
        envelope = Envelope(
            job_id=JOB,
            thread="releases",
            round=1,
            requester="ada",
            authors=sorted(authors),
            template="release",
            template_digest=OTHER,
            rule=review,
            created_at=START,
            expires_at=START + LIFETIME,
        )
        self.plan = Plan(content=content_digest([]), envelope=envelope, effects=[])
        self.now = START
        self.decisions: list[Decision] = []
        self.words: dict[str, Decision] = {}

    @rule(hours=st.integers(1, 8))
    def wait(self, hours):
        self.now += timedelta(hours=hours)

    @rule(
        by=st.sampled_from(PEOPLE),
        kind=st.sampled_from(("approve", "reject", "request_changes", "withdraw")),
        belongs=groups,
        digest=st.sampled_from((DIGEST, DIGEST, DIGEST, OTHER)),
        job_id=st.sampled_from((JOB, JOB, JOB, "job/releases/two")),
    )
    def decide(self, by, kind, belongs, digest, job_id):
        decision = Decision(
            id=f"d-{len(self.decisions)}",
            kind=kind,
            job_id=job_id,
            digest=digest,
            by=by,
            groups=sorted(belongs),
            at=self.now,
            head="0" * 64,
        )
        self.decisions.append(decision)
        in_time = self.now < self.plan.envelope.expires_at
        if digest == DIGEST and job_id == JOB and in_time:
            self._hear(decision)

    @rule(position=st.integers(0, 30))
    def tell_again(self, position):
        if self.decisions:
            self.decisions.append(self.decisions[position % len(self.decisions)])

    @rule()
    def cancel_elsewhere(self):
        self.decisions.append(
            Decision(id=f"c-{len(self.decisions)}", kind="cancel", job_id=JOB, by="bo", at=self.now, head="0" * 64)
        )

    @invariant()
    def outcome_is_what_the_sentences_say(self):
        weighing = self._weigh()
        kinds = {word.kind for word in self.words.values()}
        if "reject" in kinds:
            assert weighing.outcome == "denied"
        elif "request_changes" in kinds:
            assert weighing.outcome == "changes_requested"
        elif self._is_satisfied():
            assert weighing.outcome == "satisfied"
        elif self.now >= self.plan.envelope.expires_at:
            assert weighing.outcome == "denied"
        else:
            assert weighing.outcome in ("pending", "withdrawn")

    @invariant()
    def an_approval_is_by_people_who_may(self):
        weighing = self._weigh()
        if weighing.outcome != "satisfied":
            return
        assert weighing.by and not weighing.missing
        own = {"ada", *self.plan.envelope.authors}
        if not self.plan.envelope.rule.requester_may_approve:
            assert not own & set(weighing.by)
        assert weighing.self_approved == bool(own & set(weighing.by))

    @invariant()
    def nobody_is_dropped_without_a_word(self):
        weighing = self._weigh()
        told = {decision.id for decision in self.decisions if decision.kind != "cancel"}
        ignored = [one.decision_id for one in weighing.ignored]
        assert len(ignored) == len(set(ignored))
        assert set(ignored) | {word.id for word in self.words.values()} == told
        assert all(one.why for one in weighing.ignored)

    @invariant()
    def weighing_is_a_function_of_the_record(self):
        again = [*self.decisions, *self.decisions]
        assert weigh(self.plan, DIGEST, again, now=self.now) == self._weigh()

    def _weigh(self):
        return weigh(self.plan, DIGEST, self.decisions, now=self.now)

    def _hear(self, decision):
        """The model: a person's word is kept when it counts; a no that does not still unsays the own yes."""
        earlier = self.words.get(decision.by)
        if decision.kind == "withdraw":
            if earlier is not None:
                self.words[decision.by] = decision
        elif self._may(decision):
            self.words[decision.by] = decision
        elif decision.kind != "approve" and earlier is not None and earlier.kind == "approve":
            del self.words[decision.by]

    def _may(self, decision):
        wanted = {needed.group for needed in self.plan.envelope.rule.approvals}
        if not (wanted & set(decision.groups) or "*" in decision.groups):
            return False
        own = decision.by == "ada" or decision.by in self.plan.envelope.authors
        return decision.kind != "approve" or self.plan.envelope.rule.requester_may_approve or not own

    def _is_satisfied(self):
        approvals = [word for word in self.words.values() if word.kind == "approve"]
        return all(
            sum(1 for word in approvals if {needed.group, "*"} & set(word.groups)) >= needed.count
            for needed in self.plan.envelope.rule.approvals
        )


GateMachine.TestCase.settings = settings(max_examples=150, stateful_step_count=25, deadline=None)
test_a_gate_never_amounts_to_more_than_people_said = GateMachine.TestCase
