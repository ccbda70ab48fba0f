"""A plan on paper: the short form before a question, and the whole one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from perdure.cli.door import Door
from perdure.cli.paper import Paper, Row, Span, cut, joined
from perdure.cli.words import EFFECTS, VERDICTS, WOULD, counted, deadline
from perdure.contracts.http import EffectView, Review
from perdure.contracts.plan import After, Inverse

SHORT = 8
"""Digits of a digest that people type."""

_HEAD_COLUMNS = 160
"""A commit's subject may have 100 KB: the short form shows so much of it, `perdure review` all."""

_LONG_VALUE = 200
"""A value in an effect's body from this length on is set on lines of its own."""


_ON_FAILURE = {"pause": "a person says how it goes on", "report": "it is said at the end, and nothing is undone"}


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


def repositories_of(review: Review) -> list[str]:
    """The repositories that the plan's effects change: clones of one origin share a thread, and its name."""
    found = [view.effect.body.get("repository") for view in review.effects]
    return sorted({place for place in found if isinstance(place, str)})


def size_of(review: Review) -> str:
    """ "2 files +19 −3"."""
    return f"{counted(review.files, 'file')} +{review.added} −{review.removed}"


def way_back(inverse: Inverse) -> Span:
    """How an effect is undone, or why not."""
    if inverse.irreversible:
        return f"no undo: {inverse.irreversible}", "bad"
    if inverse.none_needed:
        return f"nothing to undo: {inverse.none_needed}", "dim"
    return f"undo: {inverse.summary}", "dim"


def _effect_row(number: int, view: EffectView) -> Row:
    effect = view.effect
    row: list[Span] = [(str(number), "title"), effect.kind, effect.summary, way_back(effect.inverse)]
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
        if view.would == "unknown" and not view.state:
            yield [
                ("? ", "bad"),
                (f"{view.effect.id}: nobody can tell what it would change: {view.would_detail}", "warn"),
            ]
    for place in _on_worker(review):
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


def _on_worker(review: Review) -> Iterator[str]:
    """What runs outside of the sandbox."""
    for view in review.effects:
        after = view.effect.after
        if view.effect.kind == "shell.run" and view.effect.runs_on == "worker":
            yield f"{view.effect.id} runs"
        elif after is not None and after.on_worker and (after.settle or after.run):
            yield f"{view.effect.id} runs what comes after it"


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
        yield paper.paint("    ", way_back(effect.inverse))
        if view.would:
            yield paper.paint("    ", WOULD[view.would], f" when the plan was made: {view.would_detail}")
        for condition in effect.requires:
            yield paper.paint("    only if ", condition)
        if effect.runs_on == "worker" and effect.kind == "shell.run":
            yield paper.paint(("    runs on the worker itself, not in the sandbox", "warn"))
        if effect.pause:
            yield paper.paint(("    waits for `perdure resume` before it begins", "warn"))
        if effect.on_failure != "undo_all":
            yield paper.paint("    if it fails: ", _ON_FAILURE[effect.on_failure])
        for told in _after(effect.after):
            yield paper.paint("    then ", told)
        for way in effect.ways_out:
            yield paper.paint("    may reach ", (way, "warn"))
        yield from _body(paper, effect.body)


def _after(after: After | None) -> Iterator[str]:
    """What comes after an effect, in words."""
    if after is None:
        return
    where = " on the worker itself" if after.on_worker else " in the sandbox"
    if after.settle:
        yield f"runs `{' '.join(after.settle)}`{where}, also when it was taken back"
    within = f" within {after.within_seconds} s" if after.within_seconds else ""
    if after.run:
        yield f"looks: `{' '.join(after.run)}`{where} ends with 0{within}"
    if after.http:
        yield f"looks: {after.http} answers {after.status}{within}"


def _body(paper: Paper, body: dict[str, Any]) -> Iterator[str]:
    """Exactly what will be done; a text of several lines is set as such, so that it can be read."""
    for key, value in body.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        lines = text.splitlines() or [""]
        if len(lines) == 1 and len(text) < _LONG_VALUE:
            yield paper.paint("    ", (f"{key}: ", "dim"), text)
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
    groups = ", ".join(f"{rule.count} from {rule.group}" for rule in review.rule.approvals)
    wanted = groups or "nobody's approval: all of it can be undone"
    own = "" if review.rule.requester_may_approve else ", not whoever asked for it"
    policy = f" (policy {review.rule.policy})" if review.rule.policy else ""
    yield paper.paint(("Needs ", "dim"), wanted + own + policy)
    missing = ", ".join(review.weighing.missing)
    if missing != groups and review.state == "open":
        yield paper.paint(("Still missing ", "dim"), missing)
    for ignored in review.weighing.ignored:
        yield paper.paint(("Does not count ", "dim"), f"{ignored.by}: {ignored.why}")
    if review.state != "open":
        by = f" by {', '.join(review.weighing.by)}" if review.weighing.by else ""
        self_approved = ", self-approved" if review.weighing.self_approved else ""
        yield paper.paint(("This plan is ", "dim"), review.state.replace("_", " ") + by + self_approved)
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
