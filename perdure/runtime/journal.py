"""Which activities are in flight, written where the next worker finds it.

Temporal learns of a dead worker only when an activity's time limit passes, minutes later. So each activity is named in
a small file before it starts; a worker that starts alone on its data folder fails the ones that its dead predecessors
left, and Temporal gives them out again at once. The file outlives the activity for a moment: its result may still be on
the way when the worker dies. Failing an activity that ended, or a later attempt of it, is answered with "not found" and
changes nothing. Each worker also leaves its identity, by which the server knows what it was given (see ``lost``).
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import json
import logging
import os
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from temporalio import activity
from temporalio.client import Client
from temporalio.converter import ActivitySerializationContext
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from perdure.runtime.lost import fail_lost, predecessor_died
from perdure.runtime.state import pid_in, process_name, write_whole

LINGER = timedelta(seconds=1)
"""How long an entry stays after its activity returned: nearly always the server has the result by then, and what it has
not it remembers (see ``lost``). Each one costs a successor a question, before it polls: later, the server's "not found"
would undo that an execution was let go of by the dead worker's queue."""
END = ".json"
WORKER_END = ".worker"

log = logging.getLogger("perdure.journal")


@dataclass(frozen=True)
class Entry:
    """One activity task that a worker process began."""

    token: str
    """Temporal's task token, base64; it names the attempt too."""
    namespace: str
    workflow_id: str
    workflow_type: str
    activity_id: str
    activity_type: str
    task_queue: str
    attempt: int
    process: str
    """See :func:`perdure.runtime.state.process_name`."""


class JournalInterceptor(Interceptor):
    """Keeps the journal of one worker process in ``folder``."""

    def __init__(self, folder: Path, *, linger: timedelta = LINGER) -> None:
        self._folder = folder
        self._linger = linger
        self._process = process_name(os.getpid())

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        """See base class."""
        return _Journaling(next, self._folder, self._process, self._linger)


class _Journaling(ActivityInboundInterceptor):
    def __init__(self, next: ActivityInboundInterceptor, folder: Path, process: str, linger: timedelta) -> None:
        super().__init__(next)
        self._folder = folder
        self._process = process
        self._linger = linger

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        info = activity.info()
        if info.is_local:  # its worker runs it again with the workflow task
            return await self.next.execute_activity(input)
        path = _begin(self._folder, info, self._process)
        try:
            return await self.next.execute_activity(input)
        finally:
            asyncio.get_running_loop().call_later(self._linger.total_seconds(), _end, path)


def _begin(folder: Path, info: activity.Info, process: str) -> Path:
    """Write the entry. In the event loop: it is one small unsynced file. SIGKILL cannot lose it, and after a power cut
    the activity's own time limit is good enough.

    A full disk or a lost folder must not stop the activity; it only waits longer if this worker dies.
    """
    entry = Entry(
        token=base64.b64encode(info.task_token).decode("ascii"),
        namespace=info.namespace,
        workflow_id=info.workflow_id or "",
        workflow_type=info.workflow_type or "",
        activity_id=info.activity_id,
        activity_type=info.activity_type,
        task_queue=info.task_queue,
        attempt=info.attempt,
        process=process,
    )
    path = folder / (hashlib.sha256(info.task_token).hexdigest()[:32] + END)
    text = json.dumps(vars(entry))
    try:
        try:
            write_whole(path, text)
        except FileNotFoundError:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_whole(path, text)
    except OSError as error:
        log.warning("activity %s of %s is not in the journal: %s", info.activity_type, info.workflow_id, error)
    return path


def _end(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)


async def fail_predecessors(client: Client, folder: Path) -> int:
    """Fail, retryably, what dead workers of this data folder left in flight. Returns how many the server took.

    Entries of processes that still run are left alone. Call it before polling, holding the worker's lock; ``client``
    must be the one that will poll, since its identity is written down for the successor.
    """
    entries = await asyncio.to_thread(_left_by_the_dead, folder)
    taken = sum(await asyncio.gather(*(_fail(client, path, entry) for path, entry in entries)))
    dead = await asyncio.to_thread(_dead_workers, folder)
    if dead:
        taken += await fail_lost(client, dead.values())
    await asyncio.to_thread(_sign_in, folder, client.identity, dead)
    return taken


def _dead_workers(folder: Path) -> dict[Path, str]:
    """The identities that dead workers polled with, by the file that says so."""
    found = {}
    for path in folder.glob("*" + WORKER_END):
        with contextlib.suppress(FileNotFoundError):  # it just signed out
            process, _, identity = path.read_text("utf-8").partition("\n")
            if not _is_alive(process):
                found[path] = identity
    return found


def _sign_in(folder: Path, identity: str, dead: dict[Path, str]) -> None:
    """Leave this worker's identity in the place of its dead predecessors'. A full disk is no reason not to work."""
    name = hashlib.sha256(identity.encode()).hexdigest()[:32] + WORKER_END
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(folder / name, f"{process_name(os.getpid())}\n{identity}")
    except OSError as error:
        log.warning("worker %s could not sign in: %s", identity, error)
    for path in dead:
        _end(path)


def sign_out(folder: Path) -> None:
    """Say that this process's worker ended in order: everything it was given is answered. May be called twice."""
    mine = process_name(os.getpid())
    for path in folder.glob("*" + WORKER_END):
        with contextlib.suppress(OSError):
            if path.read_text("utf-8").partition("\n")[0] == mine:
                path.unlink()


def _left_by_the_dead(folder: Path) -> list[tuple[Path, Entry]]:
    found = []
    for path in sorted(folder.glob("*" + END)):
        try:
            entry = Entry(**json.loads(path.read_text("utf-8")))
        except FileNotFoundError:
            continue  # its own process just ended it
        except (ValueError, TypeError) as error:
            log.warning("journal entry %s cannot be read and is dropped: %s", path, error)
            _end(path)
            continue
        if not _is_alive(entry.process):
            found.append((path, entry))
    return found


def _is_alive(process: str) -> bool:
    pid = pid_in(process)
    return pid > 0 and process_name(pid) == process


async def _fail(client: Client, path: Path, entry: Entry) -> bool:
    context = ActivitySerializationContext(
        namespace=entry.namespace,
        activity_id=entry.activity_id,
        activity_type=entry.activity_type,
        activity_task_queue=entry.task_queue,
        workflow_id=entry.workflow_id,
        workflow_type=entry.workflow_type,
        is_local=False,
    )
    handle = client.get_async_activity_handle(task_token=base64.b64decode(entry.token)).with_context(context)
    try:
        await handle.fail(predecessor_died(entry.activity_type, entry.attempt))
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            log.warning("activity %s of %s could not be failed: %s", entry.activity_type, entry.workflow_id, error)
            return False  # the entry stays for the next start
        _end(path)
        return False
    log.info("activity %s of %s goes on after its worker died", entry.activity_type, entry.workflow_id)
    _end(path)
    return True
