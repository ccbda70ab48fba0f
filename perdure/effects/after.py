"""What a step asks once its effect is done or taken back: a command that settles it, and a look whether all is well."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from perdure.contracts.base import JsonDict
from perdure.contracts.plan import After
from perdure.contracts.template import StepVerify
from perdure.effects.arguments import command_argument, content_of
from perdure.effects.base import EffectContext, EffectRequest, Finished
from perdure.effects.http_address import open_page
from perdure.effects.http_call import place_of, read_page_url
from perdure.effects.shell_run import look_by, prepare_command
from perdure.errors import PerdureError

_PAUSE_SECONDS = 0.5
_SETTLING_LIMIT = timedelta(minutes=5)


def plan_after(request: EffectRequest, settle: Any, verify: StepVerify | None, rendered: JsonDict) -> After | None:
    """Return what comes after a step's effect; ``rendered`` is ``verify`` with its expressions resolved.

    Raises:
        UserError: a command is no list of words, or a URL cannot be asked.
    """
    if not settle and verify is None:
        return None
    after = After(
        settle=command_argument(request, "settle", settle) if settle else [],
        on_worker=request.runs_on == "worker",
        content=content_of(request),
    )
    if verify is None:
        return after
    run, http, within = rendered.get("run"), rendered.get("http"), verify.within
    looks = {
        "run": command_argument(request, "verify.run", run) if run else [],
        "http": read_page_url(request.id, "verify.http", str(http)) if http else "",
        "status": verify.status,
        "within_seconds": int(within.total_seconds()) if within is not None else 0,
    }
    return after.model_copy(update=looks)


def ways_after(after: After | None) -> list[str]:
    """Hosts that it asks, for the reviewer."""
    return [place_of(after.http)] if after is not None and after.http else []


def seconds_after(after: After | None) -> int:
    """How long it may take."""
    if after is None:
        return 0
    return after.within_seconds + (int(_SETTLING_LIMIT.total_seconds()) if after.settle or after.run else 30)


def find_problems_after(after: After, context: EffectContext, *, only_settle: bool) -> list[str]:
    """Run what settles, then look until all is well or the time is over; one sentence when it is not.

    Both are repeatable by declaration: a later attempt does them again. ``only_settle``: the effect was taken back, and
    what the step looks for is not expected.
    """
    body: JsonDict = {"content": after.content, "secrets": {}, "env": {}, "on_worker": after.on_worker}
    if after.settle and (problem := _settle(after, body, context)):
        return [problem]
    if only_settle or not (after.run or after.http):
        return []
    problem = look_until_well(lambda: _look(after, body, context), after.within_seconds)
    return [problem] if problem else []


def look_until_well(look: Callable[[], str], seconds: float, is_stopped: Callable[[], bool] = lambda: False) -> str:
    """Look until nothing is wrong, or for so long; return what was wrong last."""
    deadline = time.monotonic() + seconds
    while (problem := look()) and time.monotonic() < deadline and not is_stopped():
        time.sleep(_PAUSE_SECONDS)
    return problem


def _settle(after: After, body: JsonDict, context: EffectContext) -> str:
    def settle() -> Finished:
        with prepare_command(body, after.settle, context, _SETTLING_LIMIT) as (launch, cwd):
            return context.runner.run(launch.argv, env=launch.env, cwd=cwd, limit=_SETTLING_LIMIT, pass_fds=launch.fds)

    return _problem_of(after.settle, settle)


def _look(after: After, body: JsonDict, context: EffectContext) -> str:
    if after.http:
        return ask_status(after.http, after.status)
    return _problem_of(after.run, lambda: look_by(body, after.run, context))


def _problem_of(argv: list[str], run: Callable[[], Finished]) -> str:
    try:
        ended = run()
    except (PerdureError, OSError) as error:
        return f"`{' '.join(argv)}` could not be run: {error}"
    return "" if ended.code == 0 else f"`{' '.join(argv)}` ended with {ended.code}"


def ask_status(url: str, status: int) -> str:
    """Ask a URL once; say what is wrong with its answer, nothing when it has the status."""
    try:
        answer = open_page(url).ask("GET", url, headers={"Cache-Control": "no-cache"})
    except PerdureError as error:
        return error.message
    return "" if answer.status == status else f"{url} answers {answer.status} instead of {status}"
