"""People's delegations from the front doors: made, listed, taken back. Signed like any decision."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from perdure.contracts.decisions import Decision, Delegation
from perdure.contracts.http_people import (
    DelegateRequest,
    DelegationView,
    EndDelegationRequest,
    PeopleView,
    PersonView,
)
from perdure.deciding import Decider
from perdure.errors import NotFound, UserError
from perdure.policy.authorize import Principal, refuse_agent
from perdure.policy.names import suggest
from perdure.policy.people import delegation_of, is_in, stands
from perdure.store.ledger import Ledger
from perdure.store.reading import Reader


class Delegations:
    """Makes, lists and ends delegations of principals who were authorized before."""

    def __init__(self, ledger: Ledger, reader: Reader, decider: Decider) -> None:
        self._ledger = ledger
        self._reader = reader
        self._decider = decider

    def add(self, principal: Principal, request: DelegateRequest, *, now: datetime) -> DelegationView:
        """Let somebody decide in one's place from now on.

        Raises:
            UserError: a group that this person is not in; to oneself, an agent or whom the settings do not name.
            Refused: the passphrase does not open the key.
        """
        self._check(principal, request)
        if self._ledger.decision(request.decision_id) is None:  # else: asked for again
            until = now + timedelta(seconds=request.lasts_seconds)
            given = Delegation(to=request.to, groups=request.groups, until=until, comment=request.comment)
            said = {"id": request.decision_id, "kind": "delegate", "comment": given.model_dump_json()}
            self._decider.delegate(principal, request.passphrase, **said)
        return self._view_of(request.decision_id, now)

    def end(
        self, principal: Principal, delegation: str, request: EndDelegationRequest, *, now: datetime
    ) -> DelegationView:
        """Take one back, by its id or a beginning that names just one. Raises ``NotFound``, ``Conflict``."""
        word = self._find(delegation)
        said = {"id": request.decision_id, "kind": "undelegate", "comment": word.id}
        self._decider.delegate(principal, request.passphrase, **said)
        return self._view_of(word.id, now)

    def view(self, *, now: datetime) -> PeopleView:
        """Return who is who today."""
        today = self._reader.today()
        people = today.people or {}
        return PeopleView(
            named=today.people is not None,
            people=[
                PersonView(name=name, groups=one.groups, acts_for=one.acts_for) for name, one in sorted(people.items())
            ],
            policies=sorted((today.policies or {}).values(), key=lambda policy: policy.policy),
            delegations=[
                _view(word, given, today.delegations, now)
                for word in reversed(today.delegations)
                if (given := delegation_of(word)) is not None
            ],
        )

    def _check(self, principal: Principal, request: DelegateRequest) -> None:
        who = self._decider.who(principal)
        refuse_agent(who)
        groups = who.groups
        if foreign := [group for group in request.groups if not is_in(groups, group)]:
            raise UserError(
                f"{principal.name} is not in {', '.join(foreign)} (groups: {', '.join(groups) or 'none'}), and cannot "
                "delegate it. Nothing was recorded."
            )
        people = self._reader.today().people
        if people is not None and (request.to not in people or people[request.to].acts_for):
            known = suggest(request.to, people, "people")
            raise UserError(f"{request.to!r} is nobody who could decide.{known} Nothing was recorded.")

    def _view_of(self, delegation: str, now: datetime) -> DelegationView:
        return next(one for one in self.view(now=now).delegations if one.id == delegation)

    def _find(self, delegation: str) -> Decision:
        words = {one.decision.id: one.decision for one in self._ledger.delegations()}
        known = {id: word for id, word in words.items() if word.kind == "delegate"}
        found = [word for id, word in known.items() if delegation and id.startswith(delegation)]
        exact = known.get(delegation)
        if exact is None and len(found) != 1:
            raise NotFound(f"No delegation is called {delegation!r}.{suggest(delegation, known, 'delegations')}")
        return exact or found[0]


def _view(word: Decision, given: Delegation, words: Sequence[Decision], now: datetime) -> DelegationView:
    about = given.model_dump()
    return DelegationView(id=word.id, by=word.by, since=word.at, stands=stands(word, words, now), **about)
