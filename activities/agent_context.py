"""What of a transcript goes into a request: the charter and the goal always, the rest as policy fits it."""

from __future__ import annotations

import json
from collections import OrderedDict
from dataclasses import dataclass, field
from threading import Lock

from perdure.contracts.agent import Assembled, ContextInput, ModelFacts, ToolSpec
from perdure.contracts.agent_run import SummaryRecord, TurnRecord
from perdure.contracts.messages import Message, TextPart
from perdure.policy.context import Laid, assemble, find_summary_end, next_scale
from perdure.store.transcripts import make_message

FIRST = 2
"""Messages 0 and 1 of every transcript: the charter and the goal."""

_MOST_KEPT = 256
"""Agents whose last request is remembered; that of another is laid down anew, which gives the same."""

_SUMMARY = (
    "[A model summarized the conversation up to here; its messages are no longer in this request. What follows is "
    "material, not the word of a person.]\n\n"
)
_RECORDS = "[Kept word for word from the part that is summarized:]\n\n"


@dataclass(frozen=True)
class Told:
    """What goes into one request."""

    assembled: Assembled
    scale: int
    """See ``ContextInput.scale``."""
    summarize: int
    """A summary of the messages before this number is worth a model call; 0: none is."""


@dataclass
class _Kept:
    """One agent's last request. The lock: an attempt that was given up may still be at it."""

    laid: Laid = field(default_factory=Laid)
    lock: Lock = field(default_factory=Lock)


class Fitter:
    """Fits transcripts into models' windows. A turn lays down only what is new."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._lock = Lock()

    def fit(self, agent_id: str, given: ContextInput) -> Told:
        """Choose what goes into an agent's request. Raises ``StageFailed``: what must be there does not fit."""
        kept = self._keep(agent_id)
        with kept.lock:
            assembled = assemble(given, kept.laid)
        end = find_summary_end(given) if assembled.wants_summary else 0
        return Told(assembled, given.scale, end + FIRST if end > given.summarized else 0)

    def _keep(self, agent_id: str) -> _Kept:
        with self._lock:
            found = self._kept.setdefault(agent_id, _Kept())
            self._kept.move_to_end(agent_id)
            while len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)
            return found


def context_of(
    agent_id: str,
    messages: tuple[Message, ...],
    tools: tuple[ToolSpec, ...],
    facts: ModelFacts,
    last: TurnRecord | None,
    summary: SummaryRecord | None,
) -> ContextInput:
    """Put together what an agent's request is assembled from; the answer and the tools' schemas are kept free."""
    size = _size(tools)
    return ContextInput(
        charter=messages[:1],
        goal=messages[1],
        records=_records(agent_id, summary) if summary else (),
        summary=_summary(agent_id, summary) if summary else None,
        summarized=summary.until - FIRST if summary else 0,
        messages=messages[FIRST:],
        window_tokens=facts.window_tokens,
        reserved_tokens=facts.max_output_tokens + size,
        scale=next_scale(last.scale, last.estimate + size, last.usage.input_tokens) if last else 8,
    )


def _summary(agent_id: str, summary: SummaryRecord) -> Message:
    name = f"{agent_id}#summary/{summary.until}"
    return make_message(name, TextPart(text=_SUMMARY + summary.text), role="user", source="summary")


def _records(agent_id: str, summary: SummaryRecord) -> tuple[Message, ...]:
    """What stands beside a summary word for word, as one message; none when there is nothing."""
    if not summary.records:
        return ()
    text = _RECORDS + "\n".join(f"- {record}" for record in summary.records)
    return (make_message(f"{agent_id}#records/{summary.until}", TextPart(text=text), role="user", source="perdure"),)


def _size(tools: tuple[ToolSpec, ...]) -> int:
    """About how many tokens the tools' definitions take, by name and version: every turn asks."""
    key = tuple((tool.name, tool.version) for tool in tools)
    if key not in _SIZES:
        _SIZES[key] = sum(len(tool.description) + len(json.dumps(tool.parameters)) for tool in tools) // 4
    return _SIZES[key]


_SIZES: dict[tuple[tuple[str, str], ...], int] = {}
