"""Where a project lives on its forge: the API's address, which language it speaks, the project's path, the token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import quote, urlsplit

from perdure.contracts.base import JsonDict
from perdure.effects.arguments import repository_of
from perdure.effects.base import SECRET_MARK, EffectContext, EffectRequest
from perdure.effects.http_call import Answer, Http, place_of, read_base_url
from perdure.errors import EffectFailed, UserError
from perdure.workspace.remotes import find_remote

ARGUMENTS = ("forge", "api", "project", "secret", "remote", "repo")
"""What the ``with`` of a forge step may say about the place."""

GITHUB, GITLAB = "github", "gitlab"


@dataclass(frozen=True)
class ForgePlace:
    """A project on a forge."""

    flavour: str
    """``github`` or ``gitlab``."""
    api: str
    """Base URL, without user info and without a slash at its end."""
    project: str
    """``owner/name``; GitLab's may have more parts."""
    secret: str
    """Name of the secret with the token."""

    @property
    def uploads(self) -> str:
        """Base URL that assets are uploaded to."""
        if self.api == "https://api.github.com":
            return "https://uploads.github.com"
        head, found, _ = self.api.rpartition("/api/v3")
        return f"{head}/api/uploads" if found and self.flavour == GITHUB else self.api

    @property
    def root(self) -> str:
        """URL of the project in the API."""
        if self.flavour == GITLAB:
            return f"{self.api}/projects/{quote(self.project, safe='')}"
        return f"{self.api}/repos/{quote(self.project)}"

    @property
    def hosts(self) -> list[str]:
        """Every host that it may ask."""
        return list(dict.fromkeys([place_of(self.api), place_of(self.uploads)]))

    @property
    def ways_out(self) -> list[str]:
        """The same for the reviewer, with the secret's name."""
        return [*self.hosts, f"{SECRET_MARK}{self.secret}"]

    def body(self) -> JsonDict:
        """As it stands in an effect's body."""
        return {"forge": self.flavour, "api": self.api, "project": self.project, "secret": self.secret}

    def call(self, context: EffectContext, limit: timedelta) -> Http:
        """Return what asks this forge with the token.

        Raises:
            EffectFailed: the secret is not known here.
        """
        token = context.secrets.get(self.secret, "").strip()
        if not token:
            raise EffectFailed(
                f"No secret named {self.secret!r} is known here. Put the forge's token into the file "
                f"`secrets/{self.secret}` of Perdure's data folder, readable by you alone."
            )
        if self.flavour == GITLAB:
            headers = {"PRIVATE-TOKEN": token}
        else:
            headers = {"Authorization": f"Bearer {token}", "X-GitHub-Api-Version": "2022-11-28"}
            headers["Accept"] = "application/vnd.github+json"
        return Http(self.hosts, limit, headers=headers, hidden=[token])

    def refuse(self, answer: Answer, what: str) -> EffectFailed:
        """The error for a 4xx: what was asked, what was said, and what to do."""
        where, said = place_of(self.api), answer.gist()
        if answer.status == 401:
            return EffectFailed(
                f"{where} does not accept the token of secret {self.secret!r} (401). Put a valid one into the file "
                f"`secrets/{self.secret}` of Perdure's data folder."
            )
        if answer.status == 403:
            return EffectFailed(f"{where}: the token of secret {self.secret!r} may not {what} (403): {said}")
        if answer.status == 404:
            return EffectFailed(
                f"{where} knows no project {self.project!r}, or the token of secret {self.secret!r} may not {what} "
                "(404)."
            )
        return EffectFailed(f"{where} refuses to {what} ({answer.status}): {said}")


def place_in(body: JsonDict) -> ForgePlace:
    """The place that an effect's body names."""
    return ForgePlace(body["forge"], body["api"], body["project"], body["secret"])


def read_place(request: EffectRequest) -> ForgePlace:
    """Read a step's place; what it does not say is taken from the remote's URL.

    Raises:
        UserError: it says too little, or something that cannot be used.
    """
    given = request.arguments
    url = "" if given.get("api") and given.get("project") else _remote_url(request)
    host, path = _split_remote(url)
    flavour = given.get("forge") or (GITLAB if host.startswith("gitlab.") else GITHUB if host == "github.com" else "")
    if flavour not in (GITHUB, GITLAB):
        raise UserError(f"Step {request.id!r}: `forge` is {given.get('forge')!r}; expected {GITHUB} or {GITLAB}.")
    api = given.get("api") or (_default_api(flavour, host) if host else "")
    project = str(given.get("project") or path).strip("/")
    if not api or not _is_project(project):
        raise UserError(
            f"Step {request.id!r}: the project {project!r} on the forge does not follow from the remote's URL {url!r}. "
            "Give `api` (https://forge.example.org/api/v4) and `project` (owner/name)."
        )
    secret = given.get("secret") or "forge-token"
    return ForgePlace(flavour, read_base_url(request.id, "api", str(api)), project, str(secret))


def _default_api(flavour: str, host: str) -> str:
    if host == "github.com":
        return "https://api.github.com"
    return f"https://{host}/api/{'v4' if flavour == GITLAB else 'v3'}"


def _is_project(project: str) -> bool:
    parts: Sequence[str] = project.split("/")
    return len(parts) > 1 and all(part not in ("", ".", "..") for part in parts)


def _remote_url(request: EffectRequest) -> str:
    name: Any = request.arguments.get("remote") or "origin"
    remote = find_remote(repository_of(request), str(name))
    return remote.url if remote else ""


def _split_remote(url: str) -> tuple[str, str]:
    """(host, project path) of a remote's URL; empty for a path on this machine."""
    if "://" in url:
        parts = urlsplit(url)
        return parts.hostname or "", parts.path.strip("/").removesuffix(".git")
    host, colon, path = url.partition(":")
    if not colon or "/" in host:
        return "", ""
    return host.rpartition("@")[2], path.strip("/").removesuffix(".git")
