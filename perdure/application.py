"""Finds and loads the application (``worker.py``, ``workflows/``, ``activities/``, ``templates/``) of this library.

The rooms of the application are imported plainly, so their folder must come first on ``sys.path``; it is found from
where this package lies, never from the current folder, which may hold anybody's ``workflows``.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

from perdure.errors import SetupError

_PACKAGE = Path(__file__).resolve().parent


def root() -> Path:
    """Return the folder of the application: the checkout around this package, else the copy inside the installed wheel.

    Raises:
        SetupError: neither is there: the installation is incomplete.
    """
    for folder in (_PACKAGE.parent, _PACKAGE / "_app"):
        if (folder / "worker.py").is_file() and (folder / "workflows").is_dir():
            return folder
    raise SetupError(
        f"Perdure's application (worker.py, workflows/) is neither beside {_PACKAGE} nor inside it. "
        "The installation is incomplete: install the package again."
    )


def load(name: str) -> ModuleType:
    """Import module ``name`` (``worker``, ``workflows.job``, …) of the application; its folder goes first on the path.

    Raises:
        SetupError: the application is not there, or another module of that name was imported before.
    """
    folder = root()
    if str(folder) in sys.path:
        sys.path.remove(str(folder))
    sys.path.insert(0, str(folder))
    module = importlib.import_module(name)
    origin = Path(module.__file__ or "").resolve()
    if not origin.is_relative_to(folder):
        raise SetupError(
            f"Module {name!r} came from {origin}; expected it beneath {folder}. Start the worker with `python -P`."
        )
    return module
