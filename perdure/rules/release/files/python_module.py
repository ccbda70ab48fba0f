"""``__version__`` in Python modules: ``__init__.py``, ``_version.py``, ``__about__.py`` and what a build points at."""

from __future__ import annotations

import ast

from perdure.rules.release.files.base import Found, Place, VersionFormat, is_version_like, quoted_place
from perdure.rules.release.files.python_text import PythonText

NAMES = ("__version__", "VERSION", "__VERSION__", "version")
_TUPLES = ("__version_info__", "version_info", "VERSION_INFO", "__version_tuple__")
_FOLDERS = ("", "src/", "lib/", "python/")
_FILES = ("__init__.py", "_version.py", "__about__.py", "version.py", "__version__.py", "about.py", "_about.py")


def find_module(text: str) -> Found:
    """Find plain string constants under the names that versions have, assigned once at the top of the module."""
    try:
        module = PythonText(text)
    except ValueError as error:
        return Found(notes=(f"it cannot be read as Python ({error}), so it is not written",))
    found = [place for name in NAMES if (place := _find_place(module, name))]
    # `__version__ = version = "1.2.0"` is one text with two names.
    places = {place.start: place for place in reversed(found)}
    held = [name for name in _TUPLES if any(isinstance(value, ast.Tuple) for value in module.assignments(name))]
    notes = tuple(f"{name} repeats the version as a tuple and is not written" for name in held if found)
    return Found(tuple(place for place in found if places[place.start] is place), notes=notes)


def _find_place(module: PythonText, name: str) -> Place | None:
    values = module.assignments(name)
    constant = module.read_constant(values[0]) if len(values) == 1 else None
    if constant is None or not is_version_like(constant.value):
        return None
    return quoted_place(name, constant.value, constant.span, follows=True, key=name)


def module_paths(dotted: str) -> tuple[str, ...]:
    """Where a module may lie beneath a package's folder: as a package or a file, in the usual folders."""
    path = dotted.strip(".").replace(".", "/")
    return tuple(folder + path + end for folder in _FOLDERS for end in ("/__init__.py", ".py")) if path else ()


def attribute_paths(dotted: str) -> tuple[str, ...]:
    """Where the module of ``orders.__version__`` may lie."""
    return module_paths(dotted.rpartition(".")[0])


PYTHON_MODULE = VersionFormat(
    "python-module",
    (),
    find_module,
    "python",
    patterns=tuple(f"{folder}*/{name}" for folder in _FOLDERS for name in _FILES),
)
