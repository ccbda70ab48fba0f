"""A bench with an empty workspace."""

from __future__ import annotations

from pathlib import Path

import pytest

from perdure.testing.tools import ToolBench


@pytest.fixture
def bench(tmp_path: Path) -> ToolBench:
    """Tools on a folder that holds nothing yet; a secret lies beside it."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (tmp_path / "secret").write_text("SECRET")
    return ToolBench(workspace)
