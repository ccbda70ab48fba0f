"""What needs no model: sources, analyses, draft steps and checks, each one a function by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, Protocol

from perdure.contracts.base import JsonDict
from perdure.contracts.decisions import Edits
from perdure.contracts.memory import Memory
from perdure.contracts.plan import FileChange
from perdure.effects.base import Blobs

RuleClass = Literal["source", "analysis", "draft", "check"]


class DraftSpace(Protocol):
    """The private workspace that a draft step writes to; made by ``perdure.workspace``."""

    @property
    def root(self) -> Path:
        """The workspace's folder, holding the base commit's files."""
        ...

    def read(self, path: str) -> bytes | None:
        """A regular file's bytes at ``path`` (relative, ``path_text`` form); ``None`` when absent.

        Raises ``UserError`` for a symbolic link or a path that leaves the workspace.
        """
        ...

    def write(self, path: str, data: bytes) -> None:
        """Replace a regular file's bytes, keeping its mode; a new file is 0644. Links are never followed."""
        ...


@dataclass(frozen=True)
class RuleContext:
    """What a rule gets beside its ``with``."""

    blobs: Blobs
    now: datetime
    """The time of the job's round; the same on every attempt."""
    inputs: JsonDict
    """The job's inputs, typed and complete."""
    results: JsonDict
    """What earlier stages gave: ``{"gather": {…}, "analyze": {…}, "draft": {…}}``."""
    edits: list[Edits] = field(default_factory=list)
    """Reviewers' edits so far, oldest first; a later one wins."""
    space: DraftSpace | None = None
    """Set for draft steps and checks."""
    secrets: Callable[[list[str]], Mapping[str, str]] = lambda _wanted: {}
    """Gets names marked ``secret:<name>``; gives the values of those that are known, by name. Never part of a value."""
    remembered: Memory = field(default_factory=Memory)
    """Filled for analyses: what people decided on the plans of the thread's other jobs."""


@dataclass(frozen=True)
class RuleResult:
    """What a rule gives."""

    value: Any
    """Plain JSON without floats; what templates see under the step's name."""
    summary: str = ""
    """One line for the timeline: "14 commits since v1.2.0"."""
    status: Literal["ok", "failed"] = "ok"
    """``failed`` only from a check: the verdict is red, ``summary`` says why."""
    findings: list[str] = field(default_factory=list)
    """Sentences that the reviewer should see."""


RuleFunction = Callable[[JsonDict, RuleContext], RuleResult]

EditCheck = Callable[[JsonDict, JsonDict, JsonDict], list[str]]
"""Gets (a reviewer's ``Edits.changes``, the rule's value in the plan, all results of the plan's stages).

Returns why they cannot be made, one sentence each."""


@dataclass(frozen=True)
class Refinement:
    """How a model's answer may refine a rule's value: its words, never its facts. Functions of (value, answer)."""

    schema: Callable[[JsonDict], JsonDict]
    """The JSON schema of an answer about this value (what ``policy.answers`` reads)."""
    find_problems: Callable[[JsonDict, JsonDict], list[str]]
    """What an answer that fits the schema would change beyond words, one sentence each, for the model."""
    apply: Callable[[JsonDict, JsonDict, str], RuleResult]
    """Gets (value, answer, name of the model); gives the value with what may be taken, and findings of what was not."""
    is_needed: Callable[[JsonDict], bool] = lambda _value: True
    """Whether there is anything to refine; else nobody is asked."""


@dataclass(frozen=True)
class Rule:
    """A named rule."""

    name: str
    rule_class: RuleClass
    run: RuleFunction
    needs: frozenset[str] = frozenset()
    """Keys of ``with`` that must be there."""
    takes: frozenset[str] = frozenset()
    """Keys of ``with`` that may be there."""
    about: str = ""
    """One line for the reference."""
    check_edits: EditCheck | None = None
    """Of an analysis whose value reviewers may edit: asked before an edit is recorded."""
    refinement: Refinement | None = None
    """Of an analysis whose words a model may choose (`use` with `prompt`)."""

    @property
    def shape(self) -> tuple[str, frozenset[str], frozenset[str], bool]:
        """What a template must know of it (``policy.templates.RuleShape``)."""
        return self.rule_class, self.needs, self.takes, self.refinement is not None


__all__ = [
    "DraftSpace",
    "EditCheck",
    "FileChange",
    "Refinement",
    "Rule",
    "RuleClass",
    "RuleContext",
    "RuleFunction",
    "RuleResult",
]
