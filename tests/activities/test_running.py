"""What an activity's failure is told as: a full disk is nobody's fault, wherever it was met."""

from __future__ import annotations

import errno
import os
from datetime import timedelta

import pytest
from temporalio.api.failure.v1 import Failure
from temporalio.converter import PayloadConverter
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.running import again_later, in_thread
from perdure.contracts import names
from perdure.errors import StageFailed
from perdure.runtime.failures import BoundedFailureConverter
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


async def test_what_is_temporals_already_is_not_its_own_cause() -> None:
    """An expected "not yet" keeps its type and its pause; caused by itself it could never be told to the server."""

    def wait() -> None:
        try:
            raise StageFailed("taken")
        except StageFailed as taken:
            raise again_later("not yet", "StillRunning", after=timedelta(seconds=3)) from taken

    async def activity() -> None:
        await in_thread(wait)

    with pytest.raises(ApplicationError) as caught:
        await ActivityEnvironment().run(activity)
    error = caught.value
    assert (error.type, error.next_retry_delay) == ("StillRunning", timedelta(seconds=3))
    assert isinstance(error.__cause__, StageFailed)
    failure = Failure()
    BoundedFailureConverter().to_failure(error, PayloadConverter.default, failure)
    assert failure.application_failure_info.type == "StillRunning"
