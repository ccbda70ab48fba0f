"""What effects that move one ref of a local repository share: old and new ids decide what is found."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from perdure.contracts.base import JsonDict
from perdure.effects.arguments import moved_away, repository_in
from perdure.effects.base import Found, Probe
from perdure.errors import PerdureError, UserError
from perdure.workspace.git import GitError, Repository
from perdure.workspace.private import signature_environment
from perdure.workspace.refs import is_object_id, is_ref, short_ref, zero_id


def at_now(repository: Repository, ref: str) -> str:
    """The id that ``ref`` is at; the zero id when there is none."""
    return repository.resolve(ref) or zero_id(repository.object_format)


def find_commit(repository: Repository, step: str, name: str, given: str) -> str:
    """Return the id of the commit that an id, a branch or a tag names.

    Raises:
        UserError: there is none.
    """
    names = [given] if is_object_id(given) or is_ref(given) else [f"refs/heads/{given}", f"refs/tags/{given}"]
    for one in names:
        if not is_object_id(one) and (not is_ref(one) or repository.resolve(one) is None):
            continue
        try:
            found = repository.read("rev-parse", "--verify", "--quiet", "--end-of-options", f"{one}^{{commit}}")
            return found.decode().strip()
        except GitError:
            continue  # an id that is not here, or of something else
    expected = "expected the id of a commit, a branch or a tag that is here"
    raise UserError(f"Step {step!r}: `{name}` is {given!r}; {expected}.")


def is_none(oid: str) -> bool:
    """Whether an id stands for "no such ref"."""
    return not oid.strip("0")


def shown(oid: str) -> str:
    """An id as people read it."""
    return "absent" if is_none(oid) else oid[:7]


def probe_ref(body: JsonDict) -> Probe:
    """Look where the body's ref is."""
    try:
        repository = repository_in(body)
        if problems := moved_away(repository, body):
            return Probe(Found.foreign, problems[0])
        found = at_now(repository, body["ref"])
    except (PerdureError, OSError) as error:
        return Probe(Found.unknown, str(error))
    name = short_ref(body["ref"])
    if found == body["new"]:
        return Probe(Found.done, f"{name} is {shown(found)}")
    if found == body["old"]:
        return Probe(Found.not_done, f"{name} is {shown(found)}")
    return Probe(Found.foreign, f"{name} is {shown(found)}; expected {shown(body['old'])} or {shown(body['new'])}")


def check_ref(repository: Repository, body: JsonDict) -> list[str]:
    """Say so when the ref is not at its old id."""
    found = at_now(repository, body["ref"])
    if found == body["old"]:
        return []
    return [f"{short_ref(body['ref'])} is {shown(found)}; expected {shown(body['old'])}."]


def signed_note(key: str) -> str:
    """What a reviewer reads of an object that is signed with ``key``; empty for an unsigned one."""
    return f" (signed with {key})" if key else ""


def log_environment(who: Mapping[str, str]) -> dict[str, str]:
    """The reflog's identity, as fixed at planning: name, email, at."""
    return signature_environment(who["name"], who["email"], datetime.fromisoformat(who["at"]))
