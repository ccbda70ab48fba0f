"""How agents are written: turns, calls, cost, and how far people's words have come."""

from __future__ import annotations

from collections.abc import Sequence

from perdure.cli.paper import Paper, Span
from perdure.cli.words import clock
from perdure.contracts.http import AgentView, WordView

_MARKS: dict[str, Span] = {"done": ("✓ ", "good"), "answered": ("✓ ", "good"), "working": ("◆ ", "busy")}


def write_agents(paper: Paper, agents: Sequence[AgentView]) -> None:
    """Write each agent of a job in a few lines."""
    for agent in agents:
        mark = _MARKS.get(agent.state, ("◆ ", "warn"))
        cost = f"{agent.cost_microdollars / 1e6:.4f} USD" + (" and more, unknown" if agent.unknown_cost else "")
        used = f"{agent.turns} turns, {agent.calls} calls, {agent.tokens} tokens, {cost}"
        paper.line("  ", mark, (f"agent {agent.ordinal} ", "title"), f"{agent.state} · {used} · dial {agent.dial}")
        if agent.sentence:
            paper.line("    ", agent.sentence)
        counts = {**agent.tools, **{f"[{status}]": count for status, count in agent.trouble.items()}}
        about = [*agent.models, *(f"{name} ×{count}" for name, count in counts.items())]
        if about:
            paper.line("    ", (", ".join(about), "dim"))
        for word in agent.words:
            paper.line("    ", *_say(word))


def _say(word: WordView) -> list[Span | str]:
    place = f"in the request of turn {word.turn}" if word.turn else "accepted"
    text = f": {word.text}" if word.text else ""
    return [(word.kind, "title"), f" by {word.by} on {clock(word.at)}{text}  ", (place, "dim")]
