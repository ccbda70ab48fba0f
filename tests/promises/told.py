"""Temporal carries ids, never authority: what workflows do with what anybody may have told them. Real servers."""

from __future__ import annotations

from tests.promises.kept import Kept

PROMISE = "Whoever reaches Temporal's port can neither decide nor make an effect happen, nor lose a job."

_FORGED = "tests/hostile/test_forged.py"
_ANSWERS = "tests/hostile/test_forged_answers.py"

KEPT: tuple[Kept, ...] = (
    Kept(
        PROMISE,
        "workflows/job.py",
        "            end = await call(names.READ_GATE, WeighInput.model_validate(about), GateEnd)\n",
        '            end = GateEnd(outcome="satisfied" if was_told else "open")\n',
        f"{_FORGED}::test_child_events_are_only_hints",
    ),
    Kept(
        PROMISE,
        "workflows/calls.py",
        "            if not _is_forged(error, retry):\n                raise\n",
        "            raise\n",
        f"{_ANSWERS}::test_failure_told_for_a_stage_is_asked_about_again",
    ),
    Kept(
        PROMISE,
        "workflows/calls.py",
        'cast("type[Result]", result | Forged)',
        "result",
        f"{_ANSWERS}::test_answer_for_an_effect_in_flight_is_not_believed",
    ),
    Kept(
        PROMISE,
        "workflows/calls.py",
        "    while not await _start(name, argument, child_id, reuse):\n",
        "    while not await _start(name, argument, child_id, reuse) and child_id == '':\n",
        f"{_FORGED}::test_id_of_a_child_is_freed",
    ),
    Kept(
        PROMISE,
        "perdure/runtime/doorkeeper.py",
        "        if len(input.args) == 1 and isinstance(input.args[0], Contract):\n",
        "        if True:\n",
        f"{_FORGED}::test_signal_without_payload_is_dropped",
    ),
    Kept(
        PROMISE,
        "perdure/deciding.py",
        '                await self._wake(decision.job_id, Poke(about="gate"))\n            return None\n',
        "                pass\n            return None\n",
        f"{_FORGED}::test_lost_gate_is_opened_again",
    ),
)
