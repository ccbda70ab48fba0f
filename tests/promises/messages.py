"""Being told: nobody is forgotten by a crash, nothing is told that no longer holds, and no address gets out."""

from __future__ import annotations

from tests.promises.kept import Kept

PROMISE = "Who has to decide is told, once, also when the worker dies over it; a message decides nothing."

_COURIER = "tests/activities/test_notify.py"
_STORE = "tests/store/test_outbox.py"

KEPT: tuple[Kept, ...] = (
    Kept(
        PROMISE,
        "perdure/store/outbox.py",
        "            doubt, until = row.is_doubtful or bool(row.sender), time_text(at + patience)\n",
        "            doubt, until = row.is_doubtful, time_text(at + patience)\n",
        f"{_COURIER}::test_what_the_dead_were_sending_says_that_it_may_have_been_told",
    ),
    Kept(
        PROMISE,
        "perdure/store/outbox.py",
        "            if connection.execute(_TOLD).scalar_one() >= upto:\n                return False\n",
        "",
        f"{_STORE}::test_record_is_untold_until_its_messages_are_written",
    ),
    Kept(
        PROMISE,
        "activities/notify.py",
        "        if row.state != OPEN:\n            return None\n",
        "",
        f"{_COURIER}::test_decided_plan_reminds_nobody",
    ),
    Kept(
        PROMISE,
        "perdure/notify/carrying.py",
        '    return {"how": how, "why": _without(words, url)[:300]}\n',
        '    return {"how": how, "why": words[:300]}\n',
        f"{_COURIER}::test_message_that_is_refused_is_sent_again_with_its_own_key",
    ),
    Kept(
        PROMISE,
        "activities/notify.py",
        "                    await asyncio.to_thread(self.take_over)\n",
        "                    pass\n",
        "tests/crash/test_told.py::test_killed_worker_tells_again_with_the_same_key_and_says_so",
    ),
)
