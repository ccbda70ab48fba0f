"""Routes about schedules: jobs that are made again and again, by a clock."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from perdure.api.asking import Asked, Asking
from perdure.contracts.schedules import NextFire, ScheduleEdit, ScheduleRequest, ScheduleView, ScheduleWordRequest
from perdure.policy.authorize import authorize

MOST_NEXT = 1000

router = APIRouter()


@router.get("/schedules")
async def list_schedules(client: Asked, principal: Asking, thread: str | None = None) -> list[ScheduleView]:
    """Schedules by name, each with its last fire and how that ended."""
    return await client.read(principal, lambda: client.scheduler.reader.list(thread))


@router.post("/schedules")
async def add_schedule(request: ScheduleRequest, client: Asked, principal: Asking) -> ScheduleView:
    """Make a schedule, or see what it would need. The same decision id again is a no-op."""
    authorize(principal, "submit" if request.only_check else "decide")
    return await client.scheduler.add(principal, request)


@router.get("/schedules/{name}")
async def show_schedule(name: str, client: Asked, principal: Asking) -> ScheduleView:
    """One schedule with its fires: those that became jobs, and those that did not, with why."""
    return await client.read(principal, lambda: client.scheduler.reader.view(name))


@router.get("/schedules/{name}/next")
async def preview_fires(
    name: str,
    client: Asked,
    principal: Asking,
    count: Annotated[int, Query(ge=1, le=MOST_NEXT)] = 10,
    after: str = "",
) -> list[NextFire]:
    """The next fires, and what happens in missing and doubled hours between them."""
    return await client.read(principal, lambda: client.scheduler.next(name, count=count, after=after))


@router.post("/schedules/{name}/edit")
async def edit_schedule(name: str, request: ScheduleEdit, client: Asked, principal: Asking) -> ScheduleView:
    """Give a schedule another definition."""
    authorize(principal, "decide")
    return await client.scheduler.edit(principal, name, request)


@router.post("/schedules/{name}/words")
async def say_about_schedule(name: str, request: ScheduleWordRequest, client: Asked, principal: Asking) -> ScheduleView:
    """Pause, resume, trigger, backfill or delete. To pause, the right to submit is enough: it only brakes."""
    authorize(principal, "submit" if request.kind == "pause" and "decide" not in principal.may else "decide")
    return await client.scheduler.say(principal, name, request)
