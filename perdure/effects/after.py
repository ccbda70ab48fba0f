"""What a step asks once its effect is done or taken back: a command that settles it, and a look whether all is well."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

from perdure.contracts.base import JsonDict
from perdure.contracts.plan import After
from perdure.contracts.template import StepVerify
from perdure.effects.arguments import command_argument
from perdure.effects.base import EffectContext, EffectRequest
from perdure.effects.http_address import choose_for
from perdure.effects.http_call import LOOK_LIMIT, Http, place_of, read_base_url
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
    looks = rendered if verify is not None else {}
    if looks.get("http"):
        read_base_url(request.id, "verify.http", str(looks["http"]).partition("?")[0], carries_secret=False)
    within = verify.within if verify is not None else None
    return After(
        settle=command_argument(request, "settle", settle) if settle else [],
        run=command_argument(request, "verify.run", looks["run"]) if looks.get("run") else [],
        http=str(looks.get("http") or ""),
        status=verify.status if verify is not None else 200,
        within_seconds=int(within.total_seconds()) if within is not None else 0,
        on_worker=request.runs_on == "worker",
        content={key: request.draft[key] for key in ("repository", "commit", "pack")} if request.draft else None,
    )


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
    deadline = time.monotonic() + after.within_seconds
    while (problem := _look(after, body, context)) and time.monotonic() < deadline:
        time.sleep(_PAUSE_SECONDS)
    return [problem] if problem else []


def _settle(after: After, body: JsonDict, context: EffectContext) -> str:
    try:
        with prepare_command(body, after.settle, context, _SETTLING_LIMIT) as (launch, cwd):
            limit = _SETTLING_LIMIT
            ended = context.runner.run(launch.argv, env=launch.env, cwd=cwd, limit=limit, pass_fds=launch.fds)
    except (PerdureError, OSError) as error:
        return f"`{' '.join(after.settle)}` could not be run: {error}"
    return "" if ended.code == 0 else f"`{' '.join(after.settle)}` ended with {ended.code}"


def _look(after: After, body: JsonDict, context: EffectContext) -> str:
    if after.http:
        return ask_status(after.http, after.status)
    try:
        ended = look_by(body, after.run, context)
    except (PerdureError, OSError) as error:
        return f"`{' '.join(after.run)}` could not be run: {error}"
    return "" if ended.code == 0 else f"`{' '.join(after.run)}` ended with {ended.code}"


def ask_status(url: str, status: int, limit: timedelta = LOOK_LIMIT) -> str:
    """Ask a URL once; say what is wrong with its answer, nothing when it has the status."""
    try:
        http = Http([place_of(url)], limit, headers={}, choose=lambda place: choose_for(place, private=False))
        answer = http.ask("GET", url, headers={"Cache-Control": "no-cache"})
    except PerdureError as error:
        return error.message
    return "" if answer.status == status else f"{url} answers {answer.status} instead of {status}"
