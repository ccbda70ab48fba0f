"""``perdure effects``: the kinds of change that a template's apply steps may name."""

from __future__ import annotations

import click

from perdure.cli.catalog import EFFECTS
from perdure.cli.lazy import CONTEXT, LazyGroup
from perdure.cli.paper import Row, Span
from perdure.cli.session import Session, command
from perdure.contracts.http import EffectKindView
from perdure.errors import NotFound
from perdure.policy.names import suggest


@click.group(
    "effects",
    cls=LazyGroup,
    sections=EFFECTS,
    context_settings=CONTEXT,
    examples=[
        ("perdure effects list", "what there is, and how it is taken back"),
        ("perdure effects show sql.execute", "what a step of it takes"),
    ],
)
def effects() -> None:
    """Kinds of effect that a template may name: shipped ones, and those that the settings file names with a version.

    Each has its undo built in, or a step says how it is taken back, that nothing has to be, or why it cannot be.
    """


@command("list", examples=[("perdure effects list --json", "for programs")])
def list_effects(session: Session) -> None:
    """List the kinds of effect."""
    found = _read(session)
    if session.as_json:
        session.answer(found)
        return
    rows: list[Row] = [[(one.kind, "title"), _undo(one), one.origin, one.about.split("\n\n")[0]] for one in found]
    session.paper.table(rows, header=("KIND", "UNDO", "FROM", "HOW IT IS TAKEN BACK"), shrink=3)


@command("show", examples=[("perdure effects show http.request", "its arguments")])
@click.argument("kind")
def show_effect(session: Session, kind: str) -> None:
    """Show one kind of effect: what a step of it takes, how it is undone, when a "not done" counts."""
    found = _read(session)
    one = next((view for view in found if view.kind == kind), None)
    if one is None:
        raise NotFound(f"There is no effect {kind!r}.{suggest(kind, [view.kind for view in found], 'effects')}")
    if session.as_json:
        session.answer(one)
        return
    paper = session.paper
    paper.line((one.kind, "title"), f"  version {one.version}  ", _undo(one), f"  from {one.origin}")
    paper.line(one.about)
    paper.lines(one.takes, indent="  ")
    if one.settle_seconds:
        paper.line((f'A "not done" counts {one.settle_seconds} s after it was begun.', "dim"))
    if one.parks:
        paper.line(("Somebody outside finishes it; the job waits meanwhile.", "dim"))


def _read(session: Session) -> list[EffectKindView]:
    with session.door() as door:
        return door.get("/v1/effects", list[EffectKindView])


def _undo(view: EffectKindView) -> Span:
    return ("built in", "good") if view.always_reversible else ("declared by the step", "warn")
