"""At most once, and known: intents, order, locks, ends that are written."""

from __future__ import annotations

from tests.promises.kept import Kept

PROMISE = "At most once, and known."

_ARBITER = "perdure/store/arbiter.py"
_APPLYING = "activities/applying.py"
_ON_ARBITER = "tests/store/test_arbiter.py"
_ON_PAUSING = "tests/activities/test_pausing.py"
_ON_APPLYING = "tests/activities/test_applying.py"

KEPT: tuple[Kept, ...] = (
    Kept(
        PROMISE,
        _APPLYING,
        "        if prior is not None and prior.is_final:\n",
        "        if False:\n",
        f"{_ON_APPLYING}::test_end_that_is_written_is_repeated",
    ),
    Kept(
        PROMISE,
        _APPLYING,
        '        if question.direction == "do" and (behind := self._first_behind(question)) is not None:\n',
        "        if (behind := None) is not None:\n",
        f"{_ON_APPLYING}::test_effect_before_comes_first",
    ),
    Kept(
        PROMISE,
        "activities/backward.py",
        "        if forward is not None and not forward.is_final:\n",
        "        if False:\n",
        f"{_ON_APPLYING}::test_effect_of_unknown_fate_is_not_taken_for_one_that_never_happened",
    ),
    Kept(
        PROMISE,
        "activities/turns.py",
        "            while not _is_ours(turn):\n",
        "            while False:\n",
        f"{_ON_APPLYING}::test_attempt_that_still_runs_is_waited_for",
    ),
    Kept(
        PROMISE,
        _ARBITER,
        '    if found.is_final:\n        raise Refused(f"{what}: it ended',
        '    if False:\n        raise Refused(f"{what}: it ended',
        f"{_ON_ARBITER}::test_an_effect_that_ended_never_starts_again",
    ),
    Kept(
        PROMISE,
        _ARBITER,
        '        if answer is None or answer.decision.answer != "not_done":\n',
        "        if False:\n",
        f"{_ON_ARBITER}::test_unknown_starts_again_only_after_a_person_said_not_done",
    ),
    Kept(
        PROMISE,
        _ARBITER,
        '        if ends.get(index) not in GOES_ON:\n            raise Refused(f"{what}: effect {index + 1} before',
        '        if False:\n            raise Refused(f"{what}: effect {index + 1} before',
        f"{_ON_ARBITER}::test_effects_start_in_order",
    ),
    Kept(
        PROMISE,
        _ARBITER,
        "    elif holder.application_id != permit.application_id:\n",
        "    elif False:\n",
        f"{_ON_ARBITER}::test_a_target_is_held_until_the_application_closes",
    ),
    Kept(
        PROMISE,
        _ARBITER,
        '        if close.state == "applied" and ends.get((index, "do")) not in GOES_ON:\n',
        "        if False:\n",
        f"{_ON_ARBITER}::test_an_application_is_applied_when_every_effect_has_ended_well",
    ),
    Kept(
        PROMISE,
        _ARBITER,
        '    if close.state in ("applied", "undone"):\n        raise Conflict(',
        "    if False:\n        raise Conflict(",
        f"{_ON_ARBITER}::test_nothing_was_applied_without_a_permit",
    ),
    Kept(
        PROMISE,
        "perdure/workspace/processes.py",
        "pass_fds=(lock, *pass_fds))\n",
        "pass_fds=pass_fds)\n",
        "tests/workspace/test_processes.py::test_command_of_a_dead_worker_keeps_the_target_locked_until_it_is_ended",
    ),
    Kept(
        PROMISE,
        "perdure/workspace/beneath.py",
        "        if not _is_same(_entry_at(folder, name), expected):\n            os.unlink(spare, dir_fd=folder)\n",
        "        if False:\n            os.unlink(spare, dir_fd=folder)\n",
        "tests/workspace/test_beneath.py::test_what_changed_since_it_was_read_is_left_alone",
    ),
    Kept(
        PROMISE,
        "activities/deeds.py",
        'state != "done" or not detail.startswith(NOT_AS_PROMISED) or planned',
        'state != "done" or planned is not None or planned',
        "tests/activities/test_after.py::test_effect_after_which_not_all_is_well_is_taken_back",
    ),
    Kept(
        PROMISE,
        "perdure/effects/sql_postgres.py",
        "[lock_number(name)])\n            return True\n",
        "[0])\n            return True\n",
        "tests/effects/test_sql_execute.py::test_waits_for_the_transaction_of_a_dead_worker",
    ),
    Kept(
        PROMISE,
        "activities/pausing.py",
        "            if not self._decisions.may_go_on(question.digest, question.index):\n",
        "            if False:\n",
        f"{_ON_PAUSING}::test_step_waits_for_a_word_that_is_signed_for_it",
    ),
    Kept(
        PROMISE,
        "activities/pausing.py",
        "            elif found.found in (Found.not_done, Found.foreign):\n",
        "            elif False:\n",
        f"{_ON_PAUSING}::test_failed_step_is_not_tried_while_one_before_it_is_lost",
    ),
    Kept(
        PROMISE,
        _APPLYING,
        "        if prior.detail.startswith(NOT_AS_PROMISED):\n",
        "        if False:\n",
        f"{_ON_PAUSING}::test_stopped_step_that_happened_is_taken_back",
    ),
)
