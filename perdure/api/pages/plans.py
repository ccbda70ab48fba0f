"""The pages about plans: what waits, one plan whole, and a decision on exactly that one."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator
from typing import Any, Literal, get_args
from urllib.parse import urlencode

from starlette.responses import Response

from perdure.api.pages.answers import flowing_page, go_to, page
from perdure.api.pages.rendering import Pages
from perdure.api.pages.sessions import Form
from perdure.api.pages.signing_in import SignedIn, read_form
from perdure.api.problems import status_of
from perdure.client import Client
from perdure.contracts.http import DecideAnswer, DecideRequest, Review
from perdure.errors import Conflict, PerdureError, UserError
from perdure.waiting import WaitingReader, Worth

Kind = Literal["approve", "reject", "request_changes", "withdraw"]
DONE: dict[str, str] = {
    "approve": "Approved.",
    "reject": "Rejected.",
    "request_changes": "Sent back to draft.",
    "withdraw": "Withdrawn.",
}
MOST_COMMENT = 4000
_MOST_LISTED = 25
"""Weighing each takes milliseconds, and a page should be there within 300 ms (1,767 open: 220 to 290, measured)."""


class PlanPages:
    """Handlers of requests whose visitor is known."""

    def __init__(self, client: Client, pages: Pages) -> None:
        self._client = client
        self._pages = pages
        self._waiting = WaitingReader(client.ledger, client.reader)

    async def list(self, asked: SignedIn) -> Response:
        """What waits: for this person, or all of it."""
        query = asked.request.query_params
        thread, everything = query.get("thread", ""), query.get("show") == "all"
        before = int(found) if (found := query.get("before", "")).isascii() and found.isdigit() else 0
        principal, now = asked.principal, self._client.now()

        def look() -> dict[str, Any]:
            found = self._waiting.plans(
                principal,
                only_wanted=not everything,
                thread=thread,
                before=min(before, 2**31),
                limit=_MOST_LISTED,
                at=now,
            )
            held = [] if before else self._waiting.held(principal, only_own=not everything, thread=thread)
            return {"found": found, "held": held}

        facts = await self._client.read(principal, look)
        kept = {"show": "all" if everything else "", "thread": thread}
        links = {
            "mine": _link(kept | {"show": ""}),
            "all": _link(kept | {"show": "all"}),
            "older": _link(kept | {"before": str(facts["found"].next)}),
        }
        more = {"everything": everything, "thread": thread, "links": links, "principal": principal}
        return page(await asyncio.to_thread(self._pages.render, "waiting", facts | more))

    async def show(self, asked: SignedIn) -> Response:
        """One plan, whole, by its digest or a beginning that names just one."""
        return await self._show(asked, asked.request.path_params["digest"])

    async def decide(self, asked: SignedIn) -> Response:
        """Take a form that was shown with this plan, once, and lead back to the plan by GET."""
        digest = asked.request.path_params["digest"]
        fields = await read_form(asked.request)
        form = asked.session.take(fields.get("form", ""), digest)
        if form is None:
            raise Conflict(
                "This form was answered already, or it is too old. Nothing was done now. "
                f"Look at the plan again: /plans/{digest[:8]}"
            )
        try:
            answer = await self._client.decide(asked.principal, digest, _request_of(fields, form))
        except PerdureError as error:
            return await self._show(asked, digest, trouble=error, comment=fields.get("comment", ""))
        asked.session.said[digest] = _say(fields["kind"], answer)
        return go_to(f"/plans/{digest}")

    async def _show(
        self, asked: SignedIn, digest: str, *, trouble: PerdureError | None = None, comment: str = ""
    ) -> Response:
        principal = asked.principal
        facts = await self._client.read(principal, lambda: self._facts(asked, digest))
        review: Review = facts["review"]
        facts |= {
            "principal": principal,
            "trouble": trouble.message if trouble else "",
            "comment": comment,
            "said": asked.session.said.pop(review.digest, ""),
            "form": asked.session.offer(Form(review.digest, review.since_digest)),
        }
        if not trouble and (review.diff_bytes > len(review.diff) or review.since_previous_left_out_bytes):
            return flowing_page(self._pages.stream("plan", facts))
        text = await asyncio.to_thread(self._pages.render, "plan", facts)
        return page(text, status_of(trouble) if trouble else 200)

    def _facts(self, asked: SignedIn, digest: str) -> dict[str, Any]:
        reader, now = self._client.reader, self._client.now()
        review = reader.review_plan(digest, now=now, viewer=asked.principal.name)
        row = self._client.ledger.plan(review.digest)
        worth = self._waiting.worth(asked.principal, row, reader.load_plan(row), now=now)
        return {
            "review": review,
            "worth": worth,
            "kinds": _kinds(review, worth),
            "has_passphrase": self._client.key().has_passphrase,
            "diff": self._diff(review, asked.principal.name),
            "since": self._since(review, asked.principal.name),
        }

    def _diff(self, review: Review, viewer: str) -> Iterator[str]:
        """What of the diff is too large for the review, in pieces of whole lines."""
        if review.diff or not review.diff_bytes:
            return iter(())
        return self._client.reader.stream_diff(review.digest, since_previous=False, viewer=viewer)

    def _since(self, review: Review, viewer: str) -> Iterator[str]:
        if not review.since_previous_left_out_bytes:
            return iter(())
        return self._client.reader.stream_diff(review.digest, since_previous=True, viewer=viewer)


def _kinds(review: Review, worth: Worth) -> list[str]:
    """The decisions that would count now, if this person made them."""
    if worth.no_right:
        return []
    stands = worth.said is not None and worth.said.kind == "approve"
    begun = any(view.state for view in review.effects)
    kinds = ["withdraw"] if stands and review.state in ("open", "satisfied") and not begun else []
    if review.state != "open":
        return kinds
    yes = [] if worth.no_yes or stands else ["approve"]
    no = [] if worth.no_no else ["request_changes", "reject"]
    return [*yes, *no, *kinds]


def _request_of(fields: dict[str, str], form: Form) -> DecideRequest:
    kind, comment = fields.get("kind", ""), fields.get("comment", "").strip()
    if kind not in get_args(Kind):
        raise UserError(f"Choose what you decide: {', '.join(DONE)}. Nothing was decided.")
    if len(comment) > MOST_COMMENT:
        raise UserError(f"The comment has {len(comment)} characters; at most {MOST_COMMENT} are kept. Shorten it.")
    return DecideRequest.model_validate(
        {
            "kind": kind,
            "decision_id": f"page-{hashlib.sha256(fields['form'].encode()).hexdigest()[:32]}",
            "comment": comment,
            "since": form.since or None,
            "passphrase": fields.get("passphrase", ""),
        }
    )


def _say(kind: str, answer: DecideAnswer) -> str:
    weighing = answer.weighing
    why = next((one.why for one in weighing.ignored if one.decision_id == answer.decision_id), "")
    if why:
        return f"Recorded, but it does not count: {why}."
    if weighing.outcome == "pending" and weighing.missing:
        return f"{DONE[kind]} Still needed: {', '.join(weighing.missing)}."
    return DONE[kind]


def _link(query: dict[str, str]) -> str:
    return "/?" + urlencode({name: value for name, value in query.items() if value})
