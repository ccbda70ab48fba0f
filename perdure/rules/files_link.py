"""files.link: where a symbolic link points now."""

from __future__ import annotations

import os
from pathlib import Path

from perdure.contracts.base import JsonDict
from perdure.errors import UserError
from perdure.rules.base import Rule, RuleContext, RuleResult
from perdure.workspace.beneath import read_entry

NAME = "files.link"
_LINK = "120000"


def read_link(arguments: JsonDict, context: RuleContext) -> RuleResult:
    """Return path and target; the target is null where nothing is.

    Raises:
        UserError: the path is not absolute, its folder is not there, or a file or folder stands where a link should.
    """
    given = Path(str(arguments["path"]))
    if not given.is_absolute() or given.name in ("", "..") or not given.parent.is_dir():
        raise UserError(f"{NAME}: `path` is {str(given)!r}; expected the absolute path of a link in a folder there is.")
    found = read_entry(given.parent.resolve(), os.fsencode(given.name))
    if found is not None and found.mode != _LINK:
        raise UserError(f"{NAME}: {given} is a file or folder; expected a symbolic link, or nothing.")
    target = None if found is None else os.fsdecode(found.data)
    said = f"{given} is absent" if target is None else f"{given} points to {target}"
    return RuleResult({"rule": NAME, "path": str(given), "target": target}, said)


RULE = Rule(
    name=NAME,
    rule_class="source",
    run=read_link,
    needs=frozenset({"path"}),
    about="Where a symbolic link points now: `target`, null where nothing is.",
)
