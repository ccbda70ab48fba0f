"""What was approved is what is applied: bytes are hashed again, drift stops, decisions bind to a digest."""

from __future__ import annotations

from tests.promises.kept import Kept

PROMISE = "What was approved is what is applied."

_ARBITER = "perdure/store/arbiter.py"
_PERMITS = "perdure/store/permits.py"
_PLAN = "perdure/contracts/plan.py"
_GATES = "perdure/policy/gates.py"
_APPLYING = "activities/applying.py"
_ON_ARBITER = "tests/store/test_arbiter.py"
_ON_DECISIONS = "tests/store/test_decisions.py"
_ON_GATES = "tests/policy/test_gates.py"
_ON_APPLYING = "tests/activities/test_applying.py"

KEPT: tuple[Kept, ...] = (
    Kept(
        PROMISE,
        "perdure/effects/sql_sqlite.py",
        '            connection.execute("PRAGMA query_only = ON")\n',
        "",
        "tests/rules/test_sources.py::test_query_changes_nothing",
    ),
    Kept(
        PROMISE,
        _PLAN,
        "    if found != digest:\n",
        "    if found == '':\n",
        "tests/contracts/test_plan.py::test_changed_bytes_are_another_plan",
    ),
    Kept(
        PROMISE,
        _PLAN,
        '    if digest_of(CONTENT_PREFIX, canonical_bytes(effects)) != raw["content"]:\n',
        "    if not effects:\n",
        "tests/contracts/test_plan.py::test_effects_must_be_those_that_the_content_names",
    ),
    Kept(
        PROMISE,
        "perdure/contracts/canonical.py",
        '    _refuse_floats(value, "$")\n',
        "",
        "tests/contracts/test_plan.py::test_floats_are_never_hashed",
    ),
    Kept(
        PROMISE,
        _ARBITER,
        '    if permit is None:\n        raise Refused(f"{what}: nobody was permitted',
        '    if False:\n        raise Refused(f"{what}: nobody was permitted',
        f"{_ON_ARBITER}::test_an_effect_without_a_permit_is_refused",
    ),
    Kept(
        PROMISE,
        _ARBITER,
        "    if (permit.application_id, permit.job_id) != (begin.application_id, begin.job_id):\n",
        "    if False:\n",
        f"{_ON_ARBITER}::test_a_permit_serves_its_own_application_only",
    ),
    Kept(
        PROMISE,
        _ARBITER,
        "    if not 0 <= begin.index < plan.effects:\n",
        "    if False:\n",
        f"{_ON_ARBITER}::test_an_effect_that_is_not_in_the_plan_is_refused",
    ),
    Kept(
        PROMISE,
        _PERMITS,
        "    if plan.needs_gate and plan.state != SATISFIED:\n",
        "    if False:\n",
        f"{_ON_DECISIONS}::test_a_permit_needs_a_satisfied_gate",
    ),
    Kept(
        PROMISE,
        _PERMITS,
        "    if (found.job_id, found.application_id) != (job_id, application_id):\n",
        "    if False:\n",
        f"{_ON_DECISIONS}::test_a_permit_is_granted_to_one_application",
    ),
    Kept(
        PROMISE,
        _APPLYING,
        "                drift = self._find_drift_now(deed, context)\n",
        "                drift: list[str] = []\n",
        f"{_ON_APPLYING}::test_drift_stops_before_the_effect",
    ),
    Kept(
        PROMISE,
        _APPLYING,
        "            problems = effect.check(planned.body, context)\n",
        "            problems: list[str] = []\n",
        f"{_ON_APPLYING}::test_drift_is_found_before_the_first_effect",
    ),
    Kept(
        PROMISE,
        "activities/effects.py",
        '            if weighing.outcome != "satisfied":\n',
        "            if False:\n",
        f"{_ON_APPLYING}::test_decisions_are_weighed_again_when_an_application_opens",
    ),
    Kept(
        PROMISE,
        "activities/effects.py",
        "            if known is None or known.version != effect.version:\n",
        "            if known is None:\n",
        f"{_ON_APPLYING}::test_effect_of_another_version_is_not_applied",
    ),
    Kept(
        PROMISE,
        _GATES,
        "    if decision.digest != gate.digest:\n",
        "    if False:\n",
        f"{_ON_GATES}::test_a_decision_on_something_else_is_ignored",
    ),
    Kept(
        PROMISE,
        "perdure/effects/git_push.py",
        '            if (seen := found.get(item["ref"], zero_id(repository.object_format))) != item["old"]:\n',
        '            if (seen := found.get(item["ref"], zero_id(repository.object_format))) == "":\n',
        "tests/effects/test_git_push.py::test_moved_remote_is_drift_and_is_not_overwritten",
    ),
    Kept(
        PROMISE,
        "perdure/effects/files_write.py",
        '            if not _is(body, "old", found, context.blobs):\n',
        "            if False:\n",
        "tests/effects/test_files_write.py::test_foreign_change_is_left_alone_in_both_directions",
    ),
    Kept(
        PROMISE,
        "perdure/workspace/writing.py",
        '            line = f"delete {ref}\\0{old}\\0"\n',
        '            line = f"delete {ref}\\0\\0"\n',
        "tests/effects/test_git_tag.py::test_tag_that_moves_at_the_last_moment_is_kept",
    ),
    Kept(
        PROMISE,
        "activities/effects.py",
        "        return self._preflight(plan)\n",
        "        return []\n",
        "tests/activities/test_pausing.py::test_red_preflight_is_drift_before_anything_begins",
    ),
    Kept(
        PROMISE,
        "perdure/effects/forecast.py",
        "    if problems:  # a step before may make it so; nobody can tell before it has happened\n",
        "    if False:\n",
        "tests/effects/test_forecast.py::test_step_that_could_not_begin_now_is_not_drawn_as_a_change",
    ),
)
