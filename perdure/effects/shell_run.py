"""shell.run: a command of the template, on a fresh checkout of the approved content; sandboxed unless said otherwise.

What it did is told by the template's probe: exit 0 "there and ours", 1 "not there", anything else "cannot be told".
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

from perdure.contracts.base import JsonDict
from perdure.contracts.plan import Inverse
from perdure.effects.arguments import blob_in, command_argument, content_of, know_arguments, repository_in
from perdure.effects.base import (
    SECRET_MARK,
    EffectContext,
    EffectDraft,
    EffectRequest,
    Finished,
    Found,
    Probe,
    problems_of,
)
from perdure.effects.http_call import place_of
from perdure.effects.published import await_shown, look_at, read_published
from perdure.errors import EffectFailed, EffectUnknown, PerdureError, UserError
from perdure.settings import host_environment
from perdure.workspace.commands import Command, LimitMet, run_command
from perdure.workspace.copies import export_tree
from perdure.workspace.sandbox import Launch, Sandbox, refuse_network

_PROBE_LIMIT = timedelta(minutes=1)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


class ShellRun:
    """Undone by the template's own command, or declared irreversible."""

    kind: ClassVar[str] = "shell.run"
    version: ClassVar[int] = 1
    always_reversible: ClassVar[bool] = False
    settle: ClassVar[timedelta] = timedelta(0)

    def plan(self, request: EffectRequest, context: EffectContext) -> EffectDraft:
        """``with``: run (argv), env (texts by name), secret (a name) or secrets (names by variable), network."""
        know_arguments(request, self.kind, ("run", "env", "secret", "secrets", "network"))
        on_worker = request.runs_on == "worker"
        if not on_worker:
            refuse_network(request.arguments.get("network") or [])
            Sandbox.find()
        run = command_argument(request, "run", request.arguments.get("run"))
        published = read_published(request)
        _refuse_published(request, published)
        body: JsonDict = {
            "run": run,
            "env": _environment(request),
            "secrets": _secrets(request),
            "on_worker": on_worker,
            "probe": None if published else _optional(request, "probe", request.probe),
            "require": _optional(request, "require", request.require),
            "gone": False,
            "limit_seconds": max(1, int(request.attempt_limit.total_seconds() * 0.9)),
            "content": content_of(request),
        }
        if published:
            body |= {"published": published, "settle_seconds": published["within_seconds"]}
        hosts = [place_of(published["url"])] if published else []
        return EffectDraft(
            body=body,
            summary=" ".join(run)[:200],
            target=f"shell:{' '.join(run)}"[:300],
            inverse=self._inverse(request, body),
            requires=[f"`{' '.join(body['require'])}` ends with 0"] if body["require"] else [],
            artifacts=[pack] if body["content"] and (pack := blob_in(body["content"], "pack")) else [],
            runs_on="worker" if on_worker else "sandbox",
            ways_out=[*hosts, *(f"{SECRET_MARK}{name}" for name in sorted(set(body["secrets"].values())))],
        )

    def _inverse(self, request: EffectRequest, body: JsonDict) -> Inverse:
        undo: Any = request.undo
        if request.irreversible:
            return Inverse(summary="cannot be undone", irreversible=request.irreversible)
        if undo == "none_needed":
            return Inverse(summary="nothing to undo", none_needed="the template says that nothing has to be undone")
        if undo is None:
            raise UserError(
                f"Step {request.id!r}: shell.run needs `undo: [program, …]`, `undo: none_needed` or "
                "`irreversible: <why>`."
            )
        argv = command_argument(request, "undo", undo)
        back = {**body, "run": argv, "gone": True, "require": None}
        return Inverse(summary=" ".join(argv)[:200], kind=self.kind, version=self.version, body=back)

    def check(self, body: JsonDict, context: EffectContext) -> list[str]:
        """The template's ``require`` command, where there is one, ends with 0; an index can be asked."""
        if "published" in body and (probe := self.probe(body, context)).found in (Found.unknown, Found.foreign):
            return [probe.detail]
        if not body["require"]:
            return []
        try:
            done = look_by(body, body["require"], context)
        except (PerdureError, OSError) as error:
            return [f"`{' '.join(body['require'])}` could not be run: {error}"]
        return [] if done.code == 0 else [f"`{' '.join(body['require'])}` ended with {done.code}: {_tail(done)}"]

    def probe(self, body: JsonDict, context: EffectContext) -> Probe:
        """Run the template's probe, or ask its index. Without one nothing can be told."""
        if "published" in body:
            return _turned(body, look_at(body["published"]))
        if not body["probe"]:
            return Probe(Found.unknown, "the template gives no probe for this command")
        try:
            done = look_by(body, body["probe"], context)
        except (PerdureError, OSError) as error:
            return Probe(Found.unknown, f"the probe could not be run: {error}")
        detail = f"the probe ended with {done.code}"
        if done.code not in (0, 1):
            return Probe(Found.unknown, f"{detail}: {_tail(done)}")
        return Probe(Found.done if (done.code == 1) == body["gone"] else Found.not_done, detail)

    def do(self, body: JsonDict, context: EffectContext) -> JsonDict:
        """Run the command once. A code other than 0 is a failure only when the probe proves that nothing happened."""
        missing = [name for name in body["secrets"].values() if name not in context.secrets]
        if missing:
            raise EffectFailed(f"No secret named {', '.join(missing)} is known here. Nothing was run.")
        limit = timedelta(seconds=body["limit_seconds"])
        with prepare_command(body, body["run"], context, limit) as (launch, cwd):
            done = context.runner.run(launch.argv, env=launch.env, cwd=cwd, limit=limit, pass_fds=launch.fds)
        log = _scrub(done.output, context.secrets)
        if done.code != 0 and (probe := self._settled(body, context)).found is not Found.done:
            kind = EffectFailed if probe.found is Found.not_done else EffectUnknown
            raise kind(f"{body['run'][0]} ended with {done.code} ({probe.detail}). It wrote: {_last(log)}")
        return {"code": done.code, "log": context.blobs.put(log).model_dump()}

    def verify(self, body: JsonDict, context: EffectContext) -> list[str]:
        """The probe, where there is one, finds it done; an index is given the time that it may need.

        Raises:
            EffectUnknown: an index does not show it, or shows something else, although the command has ended well.
        """
        if "published" in body:
            probe = self._settled(body, context)
            if probe.found is not Found.done:
                raise EffectUnknown(f"`{body['run'][0]}` ended with 0, but {probe.detail}")
            return []
        if not body["probe"]:
            return []
        return problems_of(self.probe(body, context))

    def _settled(self, body: JsonDict, context: EffectContext) -> Probe:
        """What the probe finds once a no is a no."""
        if "published" not in body or body["gone"]:
            return self.probe(body, context)
        return await_shown(body["published"])


def _turned(body: JsonDict, probe: Probe) -> Probe:
    """A look at an index, for the way there or back."""
    turned = {Found.done: Found.not_done, Found.not_done: Found.done}
    return Probe(turned.get(probe.found, probe.found), probe.detail) if body["gone"] else probe


def _refuse_published(request: EffectRequest, published: JsonDict | None) -> None:
    """What is there before the plan is not what it publishes. An index that is silent now is asked again later."""
    probe = look_at(published) if published else None
    if probe and probe.found in (Found.done, Found.foreign):
        raise UserError(f"Step {request.id!r}: {probe.detail} already. Choose another version.")


def _optional(request: EffectRequest, name: str, value: Any) -> list[str] | None:
    return command_argument(request, name, value) if value else None


def _environment(request: EffectRequest) -> dict[str, str]:
    given: Any = request.arguments.get("env") or {}
    if not isinstance(given, Mapping) or not all(_NAME.match(str(name)) for name in given):
        raise UserError(f"Step {request.id!r}: `env` is {given!r}; expected texts by variable name.")
    return {str(name): str(value) for name, value in given.items()}


def _secrets(request: EffectRequest) -> dict[str, str]:
    """Names of secrets by the variable that carries them: ``registry-token`` comes as ``REGISTRY_TOKEN``."""
    one: Any = request.arguments.get("secret")
    many: Any = request.arguments.get("secrets") or {}
    if one:
        many = {re.sub(r"[^A-Z0-9]", "_", str(one).upper()): one, **many}
    if not isinstance(many, Mapping) or not all(_NAME.match(str(k)) and isinstance(v, str) for k, v in many.items()):
        raise UserError(f"Step {request.id!r}: `secrets` is {many!r}; expected names of secrets by variable name.")
    return dict(many)


def look_by(body: JsonDict, argv: list[str], context: EffectContext) -> Finished:
    """Run a command that only reads: outside of the target's lock, because it may run before the effect began."""
    with prepare_command(body, argv, context, _PROBE_LIMIT) as (launch, cwd):
        command = Command(launch.argv, launch.env, cwd, limit=_PROBE_LIMIT, pass_fds=launch.fds)
        try:
            done = run_command(command)
        except LimitMet as met:
            raise EffectUnknown(met.message) from None
    return Finished(done.code, _scrub(done.output, context.secrets))


@contextmanager
def prepare_command(
    body: JsonDict, argv: list[str], context: EffectContext, limit: timedelta
) -> Iterator[tuple[Launch, Path]]:
    """Give what runs the command on a fresh export of the approved content, and the folder to start it in."""
    folder = Path(tempfile.mkdtemp(prefix="run-", dir=context.scratch)) / "tree"
    content = body["content"]
    if content:
        pack = blob_in(content, "pack")
        export_tree(repository_in(content), content["commit"], pack, context.blobs, folder, with_git=True)
    else:
        folder.mkdir()
    secrets = {variable: context.secrets[name] for variable, name in body["secrets"].items() if name in context.secrets}
    extra = {**body["env"], **secrets}
    if body["on_worker"]:
        yield Launch(argv, {**host_environment(), **extra}, ()), folder
        return
    with Sandbox.find().launch(argv, workspace=folder, env=extra, limit=limit) as launch:
        yield launch, Path("/")


def _scrub(output: bytes, secrets: Mapping[str, str]) -> bytes:
    for value in secrets.values():
        if value:
            output = output.replace(value.encode(), b"[secret]")
    return output


def _tail(done: Finished) -> str:
    return _last(done.output)


def _last(output: bytes) -> str:
    return output[-500:].decode("utf-8", "replace").strip() or "nothing"
