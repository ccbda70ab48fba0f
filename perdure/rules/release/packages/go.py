"""Go modules of one repository: versions come from tags, and a requirement is a minimum that nobody must raise."""

from __future__ import annotations

import re

from perdure.rules.git_tree import join
from perdure.rules.release.files.tree import CommitFiles
from perdure.rules.release.packages.model import Package

MANIFEST = "go.mod"
_MODULE = re.compile(r"^module[ \t]+\"?(?P<path>[^\s\"]+)", re.MULTILINE)
_MAJOR = re.compile(r"/v[2-9][0-9]*\Z")


def read_module(files: CommitFiles, folder: str) -> Package | str:
    """Return the module in ``folder``, or why there is none to release."""
    path = join(folder, MANIFEST)
    match = _MODULE.search(files.read(path).decode("utf-8", "replace"))
    if match is None:
        return f"{path} names no module"
    name = folder or _MAJOR.sub("", match["path"]).rpartition("/")[2]
    return Package(name, folder, "go", "", path)
