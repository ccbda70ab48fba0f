"""``setup.py``: the ``version`` of the ``setup(…)`` call, written there or as a constant of the same file."""

from __future__ import annotations

import ast

from perdure.rules.release.files.base import Found, Place, VersionFormat, is_version_like, quoted_place
from perdure.rules.release.files.python_text import Constant, PythonText


def find_setup(text: str) -> Found:
    """Find the version in the syntax tree; nothing of the file is run."""
    try:
        module = PythonText(text)
    except ValueError as error:
        return Found(notes=(f"it cannot be read as Python ({error}), so it is not written",))
    calls = [node for node in ast.walk(module.tree) if isinstance(node, ast.Call) and _is_setup(node.func)]
    values = [(_keyword(call, "version"), _keyword(call, "name")) for call in calls]
    told = [(version, name) for version, name in values if version is not None]
    if len(told) != 1:
        return Found(notes=("it calls setup(version=…) more than once, so it is not written",) if told else ())
    version, name = told[0]
    place = _find_place(module, version)
    named = module.read_constant(name)
    notes = () if place else ("its version is computed, so it is not written",)
    return Found((place,) if place else (), named.value if named else "", notes)


def _find_place(module: PythonText, value: ast.expr | None) -> Place | None:
    where, constant = "setup(version=…)", module.read_constant(value)
    if constant is None and isinstance(value, ast.Name):
        where, constant = value.id, _read_name(module, value.id)
    if constant is None or not is_version_like(constant.value):
        return None
    return quoted_place(where, constant.value, constant.span)


def _read_name(module: PythonText, name: str) -> Constant | None:
    """A name that is given two values is not known."""
    values = module.assignments(name)
    return module.read_constant(values[0]) if len(values) == 1 else None


def _is_setup(function: ast.expr) -> bool:
    name = function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")
    return name == "setup"


def _keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((keyword.value for keyword in call.keywords if keyword.arg == name), None)


SETUP_PY = VersionFormat("setup-py", ("setup.py",), find_setup, "python")
