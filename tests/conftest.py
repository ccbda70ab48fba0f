"""What every test process shares."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def _drained() -> Iterator[None]:
    """The Temporal SDK's threads may still call in while the interpreter ends; see perdure.runtime.exit."""
    yield
    gc.collect()
    time.sleep(0.05)
