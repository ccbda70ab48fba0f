"""Pull requests of GitHub and merge requests of GitLab: found by our branch and commit, opened, closed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol
from urllib.parse import quote

from perdure.contracts.base import JsonDict
from perdure.effects.forge_place import GITLAB, ForgePlace
from perdure.effects.http_call import Answer, Http, NoAnswer

State = Literal["open", "merged", "closed"]
_ORDER: tuple[State, ...] = ("merged", "open", "closed")


@dataclass(frozen=True)
class Request:
    """One request as the forge shows it."""

    number: int
    state: State
    sha: str
    """The commit that it proposes; empty while a forge has not looked yet."""
    url: str
    merge_commit: str = ""
    """What merging gave, as the forge says."""


@dataclass(frozen=True)
class Proposal:
    """What is proposed: branches by their short names."""

    branch: str
    base: str
    commit: str
    title: str
    text: str


class Requests(Protocol):
    """Requests of one project. Raises ``NoAnswer`` for silence and ``EffectFailed`` for a 4xx."""

    def find(self, proposal: Proposal) -> Request | None:
        """Return the request that proposes exactly our commit; one that was merged before one that is open."""
        ...

    def open(self, proposal: Proposal) -> Request:
        """Open it."""
        ...

    def close(self, request: Request) -> None:
        """Close it without merging; one that is closed stays so."""
        ...


def requests_of(place: ForgePlace, http: Http) -> Requests:
    """Return what speaks the place's language."""
    return _MergeRequests(place, http) if place.flavour == GITLAB else _PullRequests(place, http)


class _PullRequests:
    """GitHub's."""

    def __init__(self, place: ForgePlace, http: Http) -> None:
        self._place = place
        self._http = http

    def find(self, proposal: Proposal) -> Request | None:
        owner = self._place.project.partition("/")[0]
        head, base = quote(f"{owner}:{proposal.branch}", safe=""), quote(proposal.base, safe="")
        url = f"{self._place.root}/pulls?state=all&per_page=100&head={head}&base={base}"
        found = _good(self._place, self._http.ask("GET", url), "read pull requests").json()
        return _pick([self._read(item) for item in found], proposal)

    def open(self, proposal: Proposal) -> Request:
        content = {"title": proposal.title, "body": proposal.text, "head": proposal.branch, "base": proposal.base}
        answer = self._http.ask("POST", f"{self._place.root}/pulls", content=content)
        if answer.status == 422 and b"already exists" in answer.body:
            raise NoAnswer(f"a pull request of {proposal.branch} is there meanwhile; looking again")
        return self._read(_good(self._place, answer, "open a pull request").json())

    def close(self, request: Request) -> None:
        answer = self._http.ask("PATCH", f"{self._place.root}/pulls/{request.number}", content={"state": "closed"})
        if answer.status != 422:  # merged meanwhile: the next look says so
            _good(self._place, answer, "close a pull request")

    @staticmethod
    def _read(item: JsonDict) -> Request:
        state: State = "merged" if item.get("merged_at") else "open" if item["state"] == "open" else "closed"
        merge_commit = str(item.get("merge_commit_sha") or "") if state == "merged" else ""
        return Request(item["number"], state, str(item["head"]["sha"] or ""), item.get("html_url", ""), merge_commit)


class _MergeRequests:
    """GitLab's."""

    def __init__(self, place: ForgePlace, http: Http) -> None:
        self._place = place
        self._http = http

    def find(self, proposal: Proposal) -> Request | None:
        branch, base = quote(proposal.branch, safe=""), quote(proposal.base, safe="")
        query = f"state=all&per_page=100&source_branch={branch}&target_branch={base}"
        answer = self._http.ask("GET", f"{self._place.root}/merge_requests?{query}")
        found = _good(self._place, answer, "read merge requests").json()
        return _pick([self._read(item) for item in found], proposal)

    def open(self, proposal: Proposal) -> Request:
        content = {
            "source_branch": proposal.branch,
            "target_branch": proposal.base,
            "title": proposal.title,
            "description": proposal.text,
        }
        answer = self._http.ask("POST", f"{self._place.root}/merge_requests", content=content)
        if answer.status == 409:
            raise NoAnswer(f"a merge request of {proposal.branch} is there meanwhile; looking again")
        return self._read(_good(self._place, answer, "open a merge request").json())

    def close(self, request: Request) -> None:
        url = f"{self._place.root}/merge_requests/{request.number}"
        answer = self._http.ask("PUT", url, content={"state_event": "close"})
        if answer.status not in (405, 409, 422):  # merged meanwhile: the next look says so
            _good(self._place, answer, "close a merge request")

    @staticmethod
    def _read(item: JsonDict) -> Request:
        states: dict[str, State] = {"merged": "merged", "closed": "closed"}
        state = states.get(item["state"], "open")
        commit = str(item.get("merge_commit_sha") or item.get("squash_commit_sha") or "") if state == "merged" else ""
        return Request(item["iid"], state, str(item.get("sha") or ""), item.get("web_url", ""), commit)


def _pick(found: list[Request], proposal: Proposal) -> Request | None:
    ours = [request for request in found if request.sha in ("", proposal.commit)]
    ours.sort(key=lambda request: (_ORDER.index(request.state), -request.number))
    return ours[0] if ours else None


def _good(place: ForgePlace, answer: Answer, what: str) -> Answer:
    if answer.is_good:
        return answer
    raise place.refuse(answer, what)
