"""Every kind of effect by its name: those that come with Perdure, and users' that settings name with a version."""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import Any

from perdure.effects.base import Effect
from perdure.effects.files_link import FilesLink
from perdure.effects.files_write import FilesWrite
from perdure.effects.forge_pull_request import ForgePullRequest
from perdure.effects.forge_release import ForgeRelease
from perdure.effects.git_branch import GitBranch
from perdure.effects.git_commit import GitCommit
from perdure.effects.git_push import GitPush
from perdure.effects.git_revert import GitRevert
from perdure.effects.git_tag import GitTag
from perdure.effects.git_tag_merged import GitTagMerged
from perdure.effects.http_request import HttpRequest
from perdure.effects.notify_send import NotifySend
from perdure.effects.shell_run import ShellRun
from perdure.effects.sql_execute import SqlExecute
from perdure.effects.sqlite_backup import SqliteBackup
from perdure.entries import load_named
from perdure.errors import SetupError

_KIND = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+")
_FACTS = (("kind", str), ("version", int), ("always_reversible", bool), ("settle", timedelta))
_METHODS = ("plan", "check", "probe", "do", "verify")


def shipped_effects() -> list[Effect]:
    """The kinds that come with Perdure, in the order of the reference."""
    effects: list[Effect] = [GitCommit(), GitTag(), GitPush(), FilesWrite(), FilesLink(), ShellRun()]
    effects += [ForgePullRequest(), GitTagMerged(), ForgeRelease()]
    effects += [HttpRequest(), SqlExecute(), SqliteBackup(), NotifySend(), GitBranch(), GitRevert()]
    return effects


def default_effects(named: Sequence[str] = ()) -> dict[str, Effect]:
    """Return every kind by its name: the shipped ones, then those of ``named`` entry points, ``name@version`` each.

    An entry point that is not named is never imported, whatever is installed.

    Raises:
        SetupError: as :func:`load_entry` says.
    """
    found = {effect.kind: effect for effect in shipped_effects()}
    for entry in named:
        effects, _ = load_entry(entry, taken=found)
        found |= {effect.kind: effect for effect in effects}
    return found


def load_entry(named: str, *, taken: Collection[str]) -> tuple[list[Effect], str]:
    """Import the kinds of one entry point; return them and "<name> <version>".

    Raises:
        SetupError: it is not there in that version, gives no effects, or takes a name that is taken.
    """
    loaded, origin, where = load_named("effects", named)
    effects: list[Any] = [one() if inspect.isclass(one) else one for one in loaded]
    if not effects:
        raise SetupError(f"[effects]: {named} ({where}) gives no effects; expected one, or a list of them.")
    for effect in effects:
        if problem := find_fault(effect):
            raise SetupError(f"[effects]: {named} ({where}): {problem}")
    kinds = [effect.kind for effect in effects]
    for kind in kinds:
        if kind in taken or kinds.count(kind) > 1:
            raise SetupError(f"[effects]: {named} brings {kind!r}, and there is an effect of that name.")
    return effects, origin


def find_fault(effect: Any) -> str:
    """Say why something is no effect; empty when it is one."""
    name = type(effect).__name__
    for fact, kind in _FACTS:
        found = getattr(effect, fact, None)
        if not isinstance(found, kind) or (kind is int and isinstance(found, bool)):
            return f"{name} is no effect: its `{fact}` is {found!r}; expected {kind.__name__}."
    for method in _METHODS:
        if not callable(getattr(effect, method, None)):
            return f"{name} is no effect: it has no method `{method}`. An effect has {', '.join(_METHODS)}."
    if not _KIND.fullmatch(effect.kind) or effect.version < 1:
        return f"{name}: kind {effect.kind!r}, version {effect.version}; expected one like acme.ticket, from 1 on."
    return ""
