"""No effect without a declared inverse, and back newest first."""

from __future__ import annotations

from tests.promises.kept import Kept

PROMISE = "No effect without a declared inverse; irreversible ones are behind an approval."

_ARBITER = "perdure/store/arbiter.py"
_ON_ARBITER = "tests/store/test_arbiter.py"
_ON_APPLYING = "tests/activities/test_applying.py"

KEPT: tuple[Kept, ...] = (
    Kept(
        PROMISE,
        _ARBITER,
        '    if begin.irreversible and begin.direction == "do" and not plan.needs_gate:\n',
        "    if False:\n",
        f"{_ON_ARBITER}::test_an_irreversible_effect_needs_a_gate",
    ),
    Kept(
        PROMISE,
        "activities/effects.py",
        "        if any(effect.inverse.irreversible for effect in plan.effects):\n",
        "        if False:\n",
        f"{_ON_APPLYING}::test_application_of_an_irreversible_effect_needs_an_approval",
    ),
    Kept(
        PROMISE,
        "activities/backward.py",
        "        if inverse.only_before_irreversible and self._is_final_after(question, plan):\n",
        "        if False:\n",
        f"{_ON_APPLYING}::test_undo_of_what_a_later_final_effect_rests_on_is_refused",
    ),
    Kept(
        PROMISE,
        _ARBITER,
        "        if row.index > begin.index and not row.is_final:\n",
        "        if False:\n",
        f"{_ON_ARBITER}::test_only_what_was_done_is_taken_back_newest_first",
    ),
)
