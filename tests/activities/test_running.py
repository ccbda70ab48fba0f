"""What an activity's failure is told as: a full disk is nobody's fault, wherever it was met."""

from __future__ import annotations

import errno
import os

import pytest
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.running import in_thread
from perdure.contracts import names
from perdure.errors import StageFailed
from perdure.workspace.git_process import GitError

FULL = os.strerror(errno.ENOSPC)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (OSError(errno.ENOSPC, FULL), names.STORE_TROUBLE),
        (
            GitError("git checkout-index failed", code=128, stderr=f"cannot write a: {FULL}"),
            names.STORE_TROUBLE,
        ),
        (OSError(errno.EACCES, os.strerror(errno.EACCES)), "PermissionError"),
        (StageFailed("no such commit"), "StageFailed"),
    ],
)
async def test_a_full_disk_spends_no_attempt(error: Exception, kind: str) -> None:
    """Beneath a workspace as beneath the stores it is trouble that passes, and its words fit a pending failure."""

    def fail() -> None:
        raise error

    async def activity() -> None:
        await in_thread(fail)

    with pytest.raises(ApplicationError) as caught:
        await ActivityEnvironment().run(activity)
    assert caught.value.type == kind
    if kind == names.STORE_TROUBLE:
        assert not caught.value.non_retryable and caught.value.__cause__ is None
        assert "disk is full" in caught.value.message
