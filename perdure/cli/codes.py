"""What the ``perdure`` command ends with, and what each number means."""

from __future__ import annotations

OK = 0
FAILED = 1
CHANGES = 2
WAITING = 3
USAGE = 64
NOT_FOUND = 66
NO_SERVER = 69
CONFLICT = 75
REFUSED = 77
DETACHED = 130

MEANINGS: dict[int, str] = {
    OK: "Done; also: there was nothing to do.",
    FAILED: "The job failed or was cancelled, or an audit or a check found something.",
    CHANGES: "`run --plan` made a plan that would change something. Nothing was changed.",
    WAITING: "Not finished: it waits for a person, or goes on in the background (`run --detach`, or left).",
    USAGE: "The call or a file is wrong: the message says what was expected.",
    NOT_FOUND: "No job, plan, template or effect of that name.",
    NO_SERVER: "No running Perdure, or the machine is not ready: `perdure up`, `perdure doctor`.",
    CONFLICT: "Too late: what you named is in another state by now.",
    REFUSED: "A policy or a person said no: rejected, expired, not permitted.",
    DETACHED: "You pressed Ctrl-C. The job goes on; the last line says how to come back.",
}
"""Keyed by exit code. The numbers from 64 on are those of sysexits.h."""
