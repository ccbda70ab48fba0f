"""What every test process shares."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what needs a real model or browser, unless it was asked for by name: they are in no lock."""
    asked = config.getoption("-m") or ""
    off = [name for name in ("real_model", "browser") if name not in asked]
    left_out = [item for item in items if any(item.get_closest_marker(name) for name in off)]
    if left_out:
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=left_out)


@pytest.fixture(scope="session", autouse=True)
def _drained() -> Iterator[None]:
    """The Temporal SDK's threads may still call in while the interpreter ends; see perdure.runtime.exit."""
    yield
    gc.collect()
    time.sleep(0.05)
