"""Template texts and registries for these tests."""

from __future__ import annotations

from pathlib import Path

RULES: dict[str, tuple[str, set[str], set[str], bool]] = {
    "git.history": ("source", {"repo"}, {"path", "tag"}, False),
    "notes.read": ("source", set(), {"path"}, False),
    "notes.sum": ("analysis", {"from"}, set(), False),
    "notes.write": ("draft", set(), {"text"}, False),
    "notes.check": ("check", set(), set(), False),
}
EFFECTS = {"git.tag": True, "files.write": True, "shell.run": False}
TOOLS = ("files.read", "shell.run")

SMALL = """\
perdure: 1
name: notes
summary: Writes notes.
inputs:
  where: {type: path, default: notes.txt}
gather:
  sources:
    old: {use: notes.read, with: {path: "{{ inputs.where }}"}}
analyze:
  steps:
    sum: {use: notes.sum, with: {from: "{{ gather }}"}}
  finish_when: "{{ analyze.sum.lines == 0 }}"
draft:
  message: "notes: {{ analyze.sum.lines }}"
  steps:
    - {use: notes.write, with: {text: "{{ analyze.sum.text }}"}}
verify:
  checks:
    fine: {use: notes.check}
    test: {run: [make, test]}
review:
  approvals: [{from: maintainers}]
apply:
  - id: write
    effect: files.write
    with: {path: "{{ inputs.where }}"}
  - id: tell
    effect: shell.run
    with: {run: [tell, everybody]}
    irreversible: "Told is told."
"""
"""A template that uses every stage; each test changes one thing."""


def changed(old: str, new: str) -> str:
    """Return ``SMALL`` with the one place that reads ``old`` reading ``new``."""
    assert SMALL.count(old) == 1, f"{old!r} stands {SMALL.count(old)} times"
    return SMALL.replace(old, new)


def line_of(text: str, part: str) -> int:
    """Return the line (from 1) where ``part`` stands in ``text``."""
    return text[: text.index(part)].count("\n") + 1


SHIPPED = Path(__file__).resolve().parents[2] / "templates" / "jobs"
