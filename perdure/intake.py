"""From what a person typed to a pinned job: template found and trusted, inputs typed, thread named."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from perdure.catalog import Catalog, CatalogEntry, describe_entry, load_entry
from perdure.contracts import names
from perdure.contracts.base import JsonDict
from perdure.contracts.http import SubmitRequest, TemplateView
from perdure.contracts.job import JobSpec
from perdure.contracts.plan import ReviewRule
from perdure.contracts.template import Template
from perdure.errors import Refused, UserError
from perdure.policy.inputs import resolve_inputs
from perdure.policy.template_tools import named_tools
from perdure.policy.templates import check_template
from perdure.rules.base import Rule
from perdure.workspace.git import open_repository

MAX_THREAD = 80
"""Characters of a thread's name that are kept: it is part of workflow ids and of what people type."""


class Rendering(Protocol):
    """Evaluates template expressions where a runaway one can be killed."""

    def render(self, value: Any, context: Mapping[str, Any]) -> Any: ...


class Trust(Protocol):
    """Knows which templates the owner lets run."""

    def is_trusted(self, digest: str) -> bool: ...

    def was_trusted(self, path: str) -> bool: ...


@dataclass(frozen=True)
class Prepared:
    """A job before it is admitted."""

    job_id: str
    thread: str
    spec: JobSpec


FindPolicies = Callable[[], Mapping[str, ReviewRule]]
"""Reads the policies of today by name."""

FindTools = Callable[[Collection[str]], Collection[str]]
"""Gives the names of the tools that there are; told which ones are asked for, since finding users' takes a while."""


FindKinds = Callable[[Collection[str]], Mapping[str, bool]]
"""Gives the kinds of effect that there are, and whether each always has an inverse; told which are asked for."""


class Intake:
    """Makes jobs from requests, and looks at templates. ``trust`` is the ledger."""

    def __init__(
        self,
        catalog: Catalog,
        trust: Trust,
        renderer: Rendering,
        *,
        rules: Mapping[str, Rule],
        effects: FindKinds,
        tools: FindTools,
        policies: FindPolicies = dict,
    ) -> None:
        self._policies = policies
        self._tools = tools
        self._catalog = catalog
        self._trust = trust
        self._renderer = renderer
        self._rules = rules
        self._effects = effects

    def prepare(self, request: SubmitRequest, requester: str) -> Prepared:
        """Return the job that ``request`` asks for. The same request in the same world gives the same job.

        Raises:
            NotFound: no such template.
            Refused: the template comes from a repository and nobody trusts it yet.
            UserError: the template or the inputs are wrong; says every problem.
        """
        folder = _absolute(request.folder)
        entry = self._catalog.find(request.template, folder)
        if entry.needs_trust and not self._trust.is_trusted(entry.digest):
            raise Refused(_say_untrusted(entry, edited=self._trust.was_trusted(str(entry.path))))
        template = load_entry(entry, check=self._check)
        inputs = resolve_inputs(template, request.inputs, folder=str(folder), describe_repository=describe_repository)
        thread = names.slug(str(self._renderer.render(template.thread_name, {"inputs": inputs})))[:MAX_THREAD]
        spec = JobSpec(
            template=template.name,
            template_source=entry.text,
            template_digest=entry.digest,
            inputs=inputs,
            requester=requester,
            plan_only=request.plan_only,
        )
        return Prepared(str(names.JobId(thread, request.request_id)), thread, spec)

    def list_all(self, folder: str) -> list[TemplateView]:
        """Return every template seen from ``folder``, with what is wrong with it."""
        return [self._describe(entry) for entry in self._catalog.list(_absolute(folder))]

    def show(self, name: str, folder: str) -> TemplateView:
        """Return one template, whole. Raises ``NotFound`` with the nearest name."""
        return self._describe(self._catalog.find(name, _absolute(folder)))

    def validate(self, text: str, path: str) -> TemplateView:
        """Return how a text would be listed; ``problem`` holds every problem with its line."""
        digest = hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
        entry = CatalogEntry(Path(path).stem, "repository", Path(path), text, digest)
        return self._describe(entry)

    def _describe(self, entry: CatalogEntry) -> TemplateView:
        trusted = not entry.needs_trust or self._trust.is_trusted(entry.digest)
        view = describe_entry(entry, trusted=trusted, check=self._check)
        return view if trusted else view.model_copy(update={"edited": self._trust.was_trusted(str(entry.path))})

    def _check(self, template: Template) -> None:
        rules = {name: rule.shape for name, rule in self._rules.items()}
        tools = self._tools(named_tools(template))
        kinds = self._effects({step.effect for step in template.apply})
        check_template(template, rules=rules, effects=kinds, tools=tools, policies=self._policies())


def _say_untrusted(entry: CatalogEntry, *, edited: bool) -> str:
    said = (
        "its text has changed since it was trusted" if edited else "is not trusted yet: it would run with your rights"
    )
    return (
        f"Template {entry.name!r} comes with the repository ({entry.path}) and {said}. Read it with "
        f"`perdure templates show {entry.name}`, then `perdure templates trust {entry.name}`. An edited template asks "
        "again."
    )


def describe_repository(folder: Path) -> JsonDict:
    """Return ``{path, slug, identity}`` of the repository around ``folder``. Raises ``UserError`` without one."""
    repository = open_repository(folder)
    return {"path": str(repository.place), "slug": repository.slug, "identity": repository.identity}


def _absolute(folder: str) -> Path:
    path = Path(folder)
    if not path.is_absolute() or "\0" in folder:
        raise UserError(f"The folder is {folder!r}; expected an absolute path, as `pwd` prints it.")
    return path
