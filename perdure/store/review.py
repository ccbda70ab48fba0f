"""A plan as a reviewer sees it: from its stored bytes, its blobs and what the ledger says has become of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from perdure.contracts.base import BlobRef, JsonDict
from perdure.contracts.decisions import Weighing
from perdure.contracts.http import EffectView, GateState, JobView, Review
from perdure.contracts.plan import Envelope, FileChange, Plan, PlannedEffect
from perdure.contracts.visible import visible
from perdure.effects.base import Blobs
from perdure.policy.hazards import name_hazards, shown_path
from perdure.policy.review_rules import describe_rule
from perdure.store.diffs import diff_changes, stream_changes

_FILES_WRITE = "files.write"
"""The kind of effect whose body is a file's old and new content."""

LARGEST_INLINE_BYTES = 1_000_000
"""A larger diff is not part of an answer but streamed: as JSON, 20 MB took 17 s and 326 MB of the API (measured)."""

_COMMIT, _REVERT = "git.commit", "git.revert"
_OF_A_COMMIT = {"new", "old", "pack"}
"""What differs in the body of a commit that was made again of the same files."""


class Intent(Protocol):
    """The part of a ledger's intent row that a review shows."""

    @property
    def index(self) -> int: ...
    @property
    def direction(self) -> str: ...
    @property
    def state(self) -> str: ...
    @property
    def detail(self) -> str: ...


def build_review(
    plan: Plan,
    digest: str,
    blobs: Blobs,
    *,
    job: JobView,
    state: GateState,
    weighing: Weighing,
    intents: Sequence[Intent],
    previous: tuple[str, Plan] | None = None,
) -> Review:
    """Return the whole review of ``plan``, which the caller has read from bytes that hash to ``digest``.

    ``previous``: digest and plan that whoever looks decided last of the job, for the difference. Every blob is verified
    when read: raises ``Tampered`` or ``NotFound`` rather than show a part.
    """
    envelope = plan.envelope
    changes = changes_of(plan)
    diff = diff_changes(changes, blobs.get, most_bytes=LARGEST_INLINE_BYTES)
    since, since_bytes = _describe(previous[1], plan, blobs, LARGEST_INLINE_BYTES) if previous else ("", 0)
    return Review(
        job=job,
        digest=digest,
        content=plan.content,
        round=envelope.round,
        title=envelope.title,
        reasons=envelope.reasons,
        rule=envelope.rule,
        requester=envelope.requester,
        authors=envelope.authors,
        effects=_show_effects(plan, digest, intents),
        verdicts=envelope.verdicts,
        findings=envelope.findings,
        settles=envelope.settles,
        hazards=name_hazards(changes, blobs.get),
        diff=diff.text,
        diff_bytes=diff.size_bytes,
        files=diff.files,
        added=diff.added,
        removed=diff.removed,
        since_previous=since,
        since_digest=previous[0] if previous else "",
        since_previous_left_out_bytes=since_bytes,
        weighing=weighing,
        state=state,
        expires_at=envelope.expires_at,
    )


def changes_of(plan: Plan) -> list[FileChange]:
    """Every file that the plan changes: those of its draft, and those that an effect writes beside it."""
    written = [effect.body for effect in plan.effects if effect.kind == _FILES_WRITE]
    fields = FileChange.model_fields
    beside = [FileChange.model_validate({name: body[name] for name in fields if name in body}) for body in written]
    reverted = [change for effect in plan.effects if effect.kind == _REVERT for change in effect.body["changes"]]
    return [*plan.envelope.changes, *beside, *(FileChange.model_validate(change) for change in reverted)]


def _show_effects(plan: Plan, digest: str, intents: Sequence[Intent]) -> list[EffectView]:
    """Each effect with its fate and what it would do."""
    seen = {forecast.effect: forecast for forecast in plan.envelope.forecasts}
    views = [show_effect(effect, digest, index, intents) for index, effect in enumerate(plan.effects)]
    return [
        view.model_copy(update={"would": one.would, "would_detail": one.detail}) if one else view
        for view, one in ((view, seen.get(view.effect.id)) for view in views)
    ]


def show_effect(effect: PlannedEffect, digest: str, index: int, intents: Sequence[Intent]) -> EffectView:
    """Return one effect with its fate. What undoing has come to stands over what doing had come to."""
    fates = {intent.direction: intent for intent in intents if intent.index == index}
    undo, do = fates.get("undo"), fates.get("do")
    if undo is not None:
        state = "undone" if undo.state in {"done", "already"} else undo.state
        return EffectView(effect=effect, digest=digest, state=state, detail=f"taking back: {undo.detail}".rstrip(": "))
    return EffectView(effect=effect, digest=digest, state=do.state if do else "", detail=do.detail if do else "")


def describe_difference(before: Plan, after: Plan, blobs: Blobs) -> str:
    """Return what differs from the plan before, one item a line, then the diff between the two drafts.

    Says so when nothing that would be applied differs. Safe for a terminal.
    """
    return _describe(before, after, blobs, None)[0]


def stream_difference(before: Plan | None, after: Plan, blobs: Blobs) -> Iterator[str]:
    """Give the diff between two drafts, or without one before that of the plan itself, in pieces of whole lines."""
    changes = list(_between(before, after)) if before else changes_of(after)
    return (piece.text for piece in stream_changes(changes, blobs.get))


def _describe(before: Plan, after: Plan, blobs: Blobs, most_bytes: int | None) -> tuple[str, int]:
    """The difference, and the size of its diff where that was larger than ``most_bytes`` and left out."""
    items = [visible(item) for item in (*_compare_envelopes(before, after), *_compare_effects(before, after))]
    if before.content == after.content:
        items.append("The effects are the same, to the byte.")
    changes = list(_between(before, after))
    items += [f"file {shown_path(change)} {_verb(change)}" for change in changes]
    diff = diff_changes(changes, blobs.get, most_bytes=most_bytes)
    if diff.size_bytes and not diff.text:
        items.append(
            f"The diff between the two plans has {diff.size_bytes} bytes, +{diff.added} −{diff.removed} lines."
        )
    return "\n".join(items) + (f"\n\n{diff.text}" if diff.text else ""), 0 if diff.text else diff.size_bytes


def _compare_envelopes(before: Plan, after: Plan) -> Iterator[str]:
    old, new = before.envelope, after.envelope
    if old.title != new.title:
        yield f"title: {old.title or '–'} ⇒ {new.title or '–'}"
    if old.base_commit != new.base_commit:
        yield f"base: {old.base_commit[:12] or '–'} ⇒ {new.base_commit[:12] or '–'}"
    for label, olds, news in (
        ("reason", old.reasons, new.reasons),
        ("finding", old.findings, new.findings),
        ("author", old.authors, new.authors),
        ("approval", _approvals(before), _approvals(after)),
        ("step", _forecasts(old), _forecasts(new)),
        ("check", _verdicts(before), _verdicts(after)),
        ("settled by an approval", _settled(old), _settled(new)),
    ):
        yield from (f"{label} gone: {item}" for item in olds if item not in news)
        yield from (f"{label} new: {item}" for item in news if item not in olds)


def _approvals(plan: Plan) -> list[str]:
    rule = plan.envelope.rule
    own = "the requester may approve" if rule.requester_may_approve else "the requester may not approve"
    return [*describe_rule(rule), own]


def _forecasts(envelope: Envelope) -> list[str]:
    words = {
        "change": "would change something",
        "nothing": "would change nothing",
        "unknown": "would do what nobody can tell",
    }
    return [f"{one.effect} {words[one.would]}" for one in envelope.forecasts]


def _settled(envelope: Envelope) -> list[str]:
    return [f"{one.name} = {one.value} ({one.about})" for one in envelope.settles]


def _verdicts(plan: Plan) -> list[str]:
    return [f"{verdict.check} {verdict.status} {verdict.detail}".rstrip() for verdict in plan.envelope.verdicts]


def _compare_effects(before: Plan, after: Plan) -> Iterator[str]:
    olds, news = ({effect.id: effect for effect in plan.effects} for plan in (before, after))
    same_files = changes_of(before) == changes_of(after)
    yield from (
        f"effect gone: {effect.id} {effect.kind} {effect.summary}" for key, effect in olds.items() if key not in news
    )
    for key, effect in news.items():
        if key not in olds:
            yield f"effect new: {key} {effect.kind} {effect.summary}"
        elif olds[key] != effect:
            yield f"effect {key}: {_compare_effect(olds[key], effect, same_files=same_files)}"
    shared = [key for key in olds if key in news]
    if shared != [key for key in news if key in olds]:
        yield f"order of effects: {', '.join(olds)} ⇒ {', '.join(news)}"


def _compare_effect(old: PlannedEffect, new: PlannedEffect, *, same_files: bool) -> str:
    if old.summary != new.summary:
        return f"{old.summary} ⇒ {new.summary}"
    fields = [name for name in PlannedEffect.model_fields if getattr(old, name) != getattr(new, name)]
    if same_files and _is_another_commit(old, new, fields):
        return f"same files, another commit ({str(old.body['new'])[:7]} ⇒ {str(new.body['new'])[:7]})"
    if "body" in fields:
        keys = sorted(key for key in old.body.keys() | new.body.keys() if old.body.get(key) != new.body.get(key))
        fields[fields.index("body")] = f"body ({', '.join(keys)})"
    return f"{new.summary}: {', '.join(fields)} differ"


def _is_another_commit(old: PlannedEffect, new: PlannedEffect, fields: list[str]) -> bool:
    """Whether two commits differ by nothing but their id: made at another time, or on another base."""
    if old.kind != _COMMIT or not set(fields) <= {"body", "inverse", "artifacts"}:
        return False
    before, after = _but_for_time(old.body), _but_for_time(new.body)
    return {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)} <= _OF_A_COMMIT


def _but_for_time(body: JsonDict) -> JsonDict:
    who = body.get("who")
    return {**body, "who": {**who, "at": ""}} if isinstance(who, dict) else body


def _between(before: Plan, after: Plan) -> Iterator[FileChange]:
    """Changes that lead from what the plan before would have left to what this one would."""
    olds, news = ({change.path: change for change in changes_of(plan)} for plan in (before, after))
    for path in sorted(olds.keys() | news.keys()):
        old, new = _left_by(olds.get(path), news.get(path)), _left_by(news.get(path), olds.get(path))
        if old != new:
            yield FileChange(path=path, old=old[0], new=new[0], old_mode=old[1], new_mode=new[1])


def _left_by(change: FileChange | None, other: FileChange | None) -> tuple[BlobRef | None, str]:
    """What a plan leaves at a path; one that does not touch it leaves what the other one found there."""
    if change is not None:
        return change.new, change.new_mode
    return (other.old, other.old_mode) if other else (None, "")


def _verb(change: FileChange) -> str:
    if change.old is None and not change.old_mode:
        return "is there only in this plan's result"
    if change.new is None and not change.new_mode:
        return "is no longer there in this plan's result"
    return "differs from the previous plan's result"
