"""Work done as another user, in a fork that ends with it."""

from __future__ import annotations

import os
import pickle
import traceback
import warnings
from collections.abc import Callable
from typing import TypeVar

from tests.hostile.escapes.worker import become

T = TypeVar("T")

PLAIN = 65534
"""A user with no right of its own; root is none of it."""

USERS = (0, PLAIN) if os.geteuid() == 0 else (os.geteuid(),)
"""Who runs the worker: root and a plain user where the tests may become both."""


def run_as(uid: int, work: Callable[[], T]) -> T:
    """Return what ``work`` returns when ``uid`` does it; what it raises fails the test with its traceback."""
    out, into = os.pipe()
    with warnings.catch_warnings():  # Python 3.12 warns of threads; the child uses what this thread holds only
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        _answer(uid, work, into)
    os.close(into)
    with os.fdopen(out, "rb") as file:
        answer = file.read()
    os.waitpid(child, 0)
    is_fine, value = pickle.loads(answer)  # written by the fork above
    assert is_fine, value
    return value  # type: ignore[no-any-return]


def _answer(uid: int, work: Callable[[], object], into: int) -> None:
    try:
        become(uid)
        said: tuple[bool, object] = (True, work())
    except BaseException:
        said = (False, traceback.format_exc())
    with os.fdopen(into, "wb") as file:
        pickle.dump(said, file)
    os._exit(0)
