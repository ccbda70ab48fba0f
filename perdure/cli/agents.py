"""How agents are written: turns, calls, cost, and how far people's words have come."""

from __future__ import annotations

from collections.abc import Sequence

from perdure.cli.paper import Paper, Span
from perdure.cli.words import clock
from perdure.contracts.agent import Spent
from perdure.contracts.http import AgentView, WordView

_MARKS: dict[str, Span] = {"done": ("✓ ", "good"), "answered": ("✓ ", "good"), "working": ("◆ ", "busy")}


def write_agents(paper: Paper, agents: Sequence[AgentView]) -> None:
    """Write each agent of a job in a few lines."""
    for agent in agents:
        mark = _MARKS.get(agent.state, ("◆ ", "warn"))
        used = f"{agent.turns} turns, {agent.calls} calls, {agent.tokens} tokens, {_usd(agent)}"
        whose = f"of agent {agent.parent} · " if agent.parent else ""
        about = f"{whose}{agent.task} · " if agent.task else ""
        paper.line(
            "  ", mark, (f"agent {agent.ordinal} ", "title"), f"{about}{agent.state} · {used} · dial {agent.dial}"
        )
        if agent.children.turns:
            below = f"{agent.children.turns} turns, {agent.children.calls} calls, {_usd(agent.children)}"
            paper.line("    ", (f"and by its agents: {below}", "dim"))
        if agent.sentence:
            paper.line("    ", agent.sentence)
        counts = {**agent.tools, **{f"[{status}]": count for status, count in agent.trouble.items()}}
        names = [*agent.models, *(f"{name} ×{count}" for name, count in counts.items())]
        if names:
            paper.line("    ", (", ".join(names), "dim"))
        for word in agent.words:
            paper.line("    ", *_say(word))


def _usd(used: AgentView | Spent) -> str:
    return f"{used.cost_microdollars / 1e6:.4f} USD" + (" and more, unknown" if used.unknown_cost else "")


def _say(word: WordView) -> list[Span | str]:
    place = f"in the request of turn {word.turn}" if word.turn else "accepted"
    text = f": {word.text}" if word.text else ""
    return [(word.kind, "title"), f" by {word.by} on {clock(word.at)}{text}  ", (place, "dim")]
