"""A plan on paper: the short form before a question, and the whole one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from perdure.cli.door import Door
from perdure.cli.paper import Paper, Row, Span, cut, joined
from perdure.cli.words import EFFECTS, VERDICTS, WOULD, counted, deadline
from perdure.contracts.http import EffectView, Review
from perdure.contracts.plan import Inverse
from perdure.reviewing import (
    ON_FAILURE,
    after_words,
    body_lines,
    is_short,
    is_unknown,
    needs_words,
    on_worker,
    repositories_of,
    runs_on_worker,
    state_words,
    wanted_groups,
    way_back,
)

SHORT = 8
"""Digits of a digest that people type."""

_HEAD_COLUMNS = 160
"""A commit's subject may have 100 KB: the short form shows so much of it, `perdure review` all."""


def print_plan(paper: Paper, review: Review) -> None:
    """Write the short form: what is decided, each effect with its way back, and what must not be missed."""
    title = cut(review.title, _HEAD_COLUMNS)
    head: list[Row] = [[("PLAN ", "title"), (review.digest[:SHORT], "digest")], [(title, "title")]]
    head += [[(cut(reason, _HEAD_COLUMNS), "dim")] for reason in review.reasons[:1]]
    paper.line(*joined(head))
    paper.table([_effect_row(at, view) for at, view in enumerate(review.effects, 1)], shrink=2)
    for row in _remarks(review):
        paper.line("  ", *row)
    if review.since_previous:
        paper.line((f"  since the last plan that you decided, {review.since_digest[:SHORT]}:", "title"))
        paper.lines(review.since_previous, indent="    ")


def review_lines(paper: Paper, review: Review, door: Door, *, diff: bool = True) -> Iterator[str]:
    """Give the whole review, painted, line by line: nothing left out, the diff last. ``door`` gives a large one."""
    yield from _head(paper, review)
    yield from _effects(paper, review)
    yield from _section(paper, "Checks", [_verdict_row(review, at) for at in range(len(review.verdicts))])
    yield from _section(paper, "Read before the diff", [[("! ", "warn"), text] for text in review.hazards])
    yield from _section(paper, "Remarks", [["– ", text] for text in review.findings])
    yield from _section(paper, "An approval also settles, for later jobs of the thread", _settled(review))
    since = f"Since the last plan that you decided, {review.since_digest[:SHORT]}"
    yield from _section(paper, since, [[line] for line in review.since_previous.splitlines()])
    if diff and review.since_previous_left_out_bytes:
        lines = door.stream_lines("/v1/diff", digest=review.digest, since_previous=True)
        yield from paint_diff(paper, lines)
    if diff and has_diff(review):
        yield from _title(paper, f"Diff   {size_of(review)}")
        yield from diff_lines(paper, review, door)
    yield ""
    yield from _foot(paper, review)


def diff_lines(paper: Paper, review: Review, door: Door) -> Iterator[str]:
    """Give the whole diff line by line, coloured as people know it; one that is not in the review as it comes."""
    if review.diff:
        yield from paint_diff(paper, review.diff.removesuffix("\n").split("\n"))
    elif review.diff_bytes:
        yield from paint_diff(paper, door.stream_lines("/v1/diff", digest=review.digest))


def has_diff(review: Review) -> bool:
    """Whether files change, also when the diff is too large to be in the review."""
    return bool(review.diff or review.diff_bytes)


def paint_diff(paper: Paper, lines: Iterable[str]) -> Iterator[str]:
    """Colour the lines of a diff."""
    for line in lines:
        yield paper.code(line, _diff_style(line))


def size_of(review: Review) -> str:
    """ "2 files +19 −3"."""
    return f"{counted(review.files, 'file')} +{review.added} −{review.removed}"


def back_span(inverse: Inverse) -> Span:
    """How an effect is undone, or why not; what cannot be undone is loud."""
    return way_back(inverse), "bad" if inverse.irreversible else "dim"


def _effect_row(number: int, view: EffectView) -> Row:
    effect = view.effect
    row: list[Span] = [(str(number), "title"), effect.kind, effect.summary, back_span(effect.inverse)]
    if view.state:
        return [*row, _state(view)]
    return [*row, WOULD[view.would]] if view.would else row


def _state(view: EffectView) -> Span:
    mark = EFFECTS.get(view.state, ("·", "dim"))
    text = f"{mark[0]} {view.state}" + (f": {view.detail}" if view.detail else "")
    return text, mark[1]


def _remarks(review: Review) -> Iterator[Row]:
    yield from _loud(review)
    for view in review.effects:
        if is_unknown(view):
            yield [
                ("? ", "bad"),
                (f"{view.effect.id}: nobody can tell what it would change: {view.would_detail}", "warn"),
            ]
    for place in on_worker(review):
        yield [("! ", "warn"), (f"{place} on the worker itself, not in the sandbox", "warn")]
    for text in review.hazards:
        yield [("! ", "warn"), (text, "warn")]
    for verdict in review.verdicts:
        if verdict.status != "passed":
            yield [VERDICTS[verdict.status], f" {verdict.check}: {verdict.detail or verdict.status.replace('_', ' ')}"]
    for text in review.findings:
        yield [("– ", "dim"), text]
    for one in review.settles:
        yield [("– ", "dim"), f"An approval also settles {one.name} = {one.value}: {one.because}."]


def _loud(review: Review) -> Iterator[Row]:
    """What nobody may overlook about how a plan was decided, or is to be."""
    if review.weighing.broken_glass:
        yield [("!! GLASS BROKEN ", "bad"), (f"by {review.weighing.broken_glass}", "bad")]
    for note in review.weighing.notes:
        yield [("! ", "warn"), (note, "warn")]


def _settled(review: Review) -> list[Row]:
    return [[f"{one.name} = {one.value}", (f"   {one.because}", "dim")] for one in review.settles]


def _head(paper: Paper, review: Review) -> Iterator[str]:
    paint = paper.paint
    yield paint(("PLAN ", "title"), (review.digest, "digest"))
    yield paint("  ", (review.title, "title"))
    for reason in review.reasons:
        yield paint("  ", reason)
    asked = f"{review.job.name}, round {review.round}, asked for by {review.requester}"
    authors = f", edited by {', '.join(review.authors)}" if review.authors else ""
    yield paint("  ", (asked + authors, "dim"))
    for place in repositories_of(review):
        yield paint("  ", (f"in {place}", "dim"))


def _effects(paper: Paper, review: Review) -> Iterator[str]:
    yield from _title(paper, "What happens, in this order")
    for number, view in enumerate(review.effects, 1):
        effect = view.effect
        state: list[Span] = ["   ", _state(view)] if view.state else []
        yield paper.paint("  ", (f"{number} {effect.kind}", "title"), f"  {effect.summary}", *state)
        yield paper.paint("    ", back_span(effect.inverse))
        if view.would:
            yield paper.paint("    ", WOULD[view.would], f" when the plan was made: {view.would_detail}")
        for condition in effect.requires:
            yield paper.paint("    only if ", condition)
        if runs_on_worker(effect):
            yield paper.paint(("    runs on the worker itself, not in the sandbox", "warn"))
        if effect.pause:
            yield paper.paint(("    waits for `perdure resume` before it begins", "warn"))
        if effect.on_failure != "undo_all":
            yield paper.paint("    if it fails: ", ON_FAILURE[effect.on_failure])
        for told in after_words(effect.after):
            yield paper.paint("    then ", told)
        for way in effect.ways_out:
            yield paper.paint("    may reach ", (way, "warn"))
        yield from _body(paper, effect.body)


def _body(paper: Paper, body: dict[str, Any]) -> Iterator[str]:
    """Exactly what will be done; a text of several lines is set as such, so that it can be read."""
    for key, lines in body_lines(body):
        if is_short(lines):
            yield paper.paint("    ", (f"{key}: ", "dim"), lines[0])
            continue
        yield paper.paint("    ", (f"{key}:", "dim"))
        yield from ("      " + paper.code(line) for line in lines)


def _verdict_row(review: Review, at: int) -> Row:
    verdict = review.verdicts[at]
    before = f"   (before this plan: {verdict.baseline})" if verdict.baseline else ""
    return [
        VERDICTS[verdict.status],
        f" {verdict.check}",
        (f"  {verdict.detail}" if verdict.detail else ""),
        (before, "dim"),
    ]


def _title(paper: Paper, title: str) -> Iterator[str]:
    yield ""
    yield paper.paint((title, "title"))


def _section(paper: Paper, title: str, rows: list[Row]) -> Iterator[str]:
    if rows:
        yield from _title(paper, title)
    for row in rows:
        yield paper.paint("  ", *row)


def _foot(paper: Paper, review: Review) -> Iterator[str]:
    for row in _loud(review):
        yield paper.paint(*row)
    yield paper.paint(("Needs ", "dim"), needs_words(review))
    missing = ", ".join(review.weighing.missing)
    if missing != wanted_groups(review) and review.state == "open":
        yield paper.paint(("Still missing ", "dim"), missing)
    for ignored in review.weighing.ignored:
        yield paper.paint(("Does not count ", "dim"), f"{ignored.by}: {ignored.why}")
    if review.state != "open":
        yield paper.paint(("This plan is ", "dim"), state_words(review))
        return
    yield paper.paint(("Open ", "dim"), deadline(review.expires_at))
    short = review.digest[:SHORT]
    yield paper.paint(
        ("Decide: ", "dim"), (f"perdure approve {short}", "hint"), " · ", (f"perdure reject {short}", "hint")
    )


def _diff_style(line: str) -> str:
    if line.startswith(("+++", "---", "diff ", "index ")):
        return "title"
    if line.startswith("@@"):
        return "hunk"
    return {"+": "added", "-": "removed"}.get(line[:1], "")
