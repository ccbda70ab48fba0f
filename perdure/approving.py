"""Standing approvals from the front doors: made from one call's plan, listed, taken back. Signed like any decision."""

from __future__ import annotations

import asyncio
import json
from datetime import datetime, timedelta

from perdure.contracts.decisions import Decision, Revocation, StandingScope
from perdure.contracts.http_standing import RevokeRequest, StandingRequest, StandingView
from perdure.contracts.names import CALL_ROUNDS
from perdure.contracts.plan import Plan
from perdure.deciding import Decider
from perdure.errors import NotFound, Refused, UserError
from perdure.policy.authorize import Principal
from perdure.policy.gates import may_decide
from perdure.policy.names import suggest
from perdure.policy.people import Today
from perdure.policy.standing import covers, revoked_by, scope_of
from perdure.policy.targets import hash_arguments
from perdure.store.ledger import Ledger
from perdure.store.reading import Reader


class Approvals:
    """Makes, lists and revokes standing approvals of principals who were authorized before."""

    def __init__(self, ledger: Ledger, reader: Reader, decider: Decider) -> None:
        self._ledger = ledger
        self._reader = reader
        self._decider = decider

    async def add(self, principal: Principal, request: StandingRequest, *, now: datetime) -> StandingView:
        """Let calls like the one of a plan go, from now on; one that waits goes at once.

        Raises:
            NotFound: no such plan.
            UserError: it is no call's plan, or the patterns do not even match it.
            Refused: this person's approval would not count, or the passphrase does not open the key.
        """
        row = await asyncio.to_thread(self._ledger.plan, request.digest)
        plan = await asyncio.to_thread(self._reader.load_plan, row)
        if row.round < CALL_ROUNDS:
            raise UserError(f"Plan {row.digest[:8]} is no single call of an agent; only such calls can stand approved.")
        scope = _scope(plan, request, now)
        if not covers(scope, plan):
            raise UserError(
                f"The patterns do not match the call of plan {row.digest[:8]} itself ({plan.effects[0].summary}). "
                "Nothing was approved."
            )
        who = await asyncio.to_thread(self._decider.who, principal)
        _refuse_unheard(plan, who, await asyncio.to_thread(self._reader.today), now)
        said = {"id": request.decision_id, "kind": "standing", "job_id": row.job_id, "digest": row.digest}
        if await asyncio.to_thread(self._ledger.decision, request.decision_id) is None:  # else: asked for again
            await self._decider.say(principal, request.passphrase, **said, comment=scope.model_dump_json())
        return await asyncio.to_thread(self.view, request.decision_id, now=now)

    async def revoke(
        self, principal: Principal, approval: str, request: RevokeRequest, *, now: datetime
    ) -> StandingView:
        """Take one back: no call goes by it from now on. Raises ``NotFound``, ``Conflict`` when it was before."""
        word = await asyncio.to_thread(self._word, approval)
        comment = Revocation(approval=word.id, comment=request.comment).model_dump_json()
        said = {"id": request.decision_id, "kind": "revoke", "job_id": word.job_id, "digest": word.digest}
        await self._decider.say(principal, request.passphrase, **said, comment=comment)
        return await asyncio.to_thread(self.view, word.id, now=now)

    def list(self, thread: str | None, *, now: datetime) -> list[StandingView]:
        """Return standing approvals of a thread (``None``: of all), newest first, those that stand no more too."""
        words = [signed.decision for signed in self._ledger.standing_words(thread)]
        uses = self._ledger.count_uses(thread)
        revoked = {revoked_by(word): word.by for word in words if revoked_by(word)}
        found = [(word, scope) for word in words if (scope := scope_of(word)) is not None]
        return [self._view(word, scope, uses.get(word.id, 0), revoked.get(word.id, ""), now) for word, scope in found][
            ::-1
        ]

    def view(self, approval: str, *, now: datetime) -> StandingView:
        """Return one. Raises ``NotFound``."""
        word = self._word(approval)
        return next(one for one in self.list(None, now=now) if one.id == word.id)

    def _word(self, approval: str) -> Decision:
        """The decision whose id begins so, when just one does."""
        known = {word.decision.id: word.decision for word in self._ledger.standing_words(None)}
        standing = {id: word for id, word in known.items() if word.kind == "standing"}
        found = [word for id, word in standing.items() if id == approval] or [
            word for id, word in standing.items() if approval and id.startswith(approval)
        ]
        if len(found) != 1:
            raise NotFound(f"No standing approval is called {approval!r}.{suggest(approval, standing, 'approvals')}")
        return found[0]

    def _view(self, word: Decision, scope: StandingScope, used: int, revoked: str, now: datetime) -> StandingView:
        state = "revoked" if revoked else "ended" if now >= scope.until else "stands"
        if state == "stands" and scope.uses and used >= scope.uses:
            state = "used up"
        about = scope.model_dump(include={"thread", "tool", "arguments", "until", "uses", "comment"})
        exactly = self._summary(word.digest) if scope.arguments_hash else ""
        said = {"id": word.id, "by": word.by, "digest": word.digest, "since": word.at, "revoked_by": revoked}
        target = "" if exactly and scope.target == "*" else scope.target
        return StandingView.model_validate(
            {**about, **said, "state": state, "used": used, "target": target, "exactly": exactly}
        )

    def _summary(self, digest: str) -> str:
        return self._reader.load_plan(self._ledger.plan(digest)).effects[0].summary


def _refuse_unheard(plan: Plan, principal: Principal, today: Today, now: datetime) -> None:
    """Raise ``Refused`` when this person's approval would count nowhere."""
    about = {"job_id": plan.envelope.job_id, "by": principal.name, "groups": list(principal.groups), "at": now}
    word = Decision.model_validate({"id": "", "kind": "approve", "head": "", **about})
    if why := may_decide(plan.envelope, word, today):
        raise Refused(f"A standing approval would not count: {why}. Nothing was approved.")


def _scope(plan: Plan, request: StandingRequest, now: datetime) -> StandingScope:
    envelope, body = plan.envelope, plan.effects[0].body
    is_exact = not request.target and not request.arguments
    return StandingScope(
        thread=envelope.thread,
        template_digest=envelope.template_digest,
        tool=body["tool"],
        tool_digest=body["tool_digest"],
        arguments_hash=hash_arguments(json.loads(body["arguments"])) if is_exact else "",
        target=request.target or "*",
        arguments=request.arguments,
        until=now + timedelta(seconds=request.lasts_seconds),
        uses=request.uses,
        comment=request.comment,
    )
