"""Remotes: which URL a name means, and what lies there. Only file, https, ssh and git are spoken."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from perdure.errors import UserError
from perdure.scratch import scratch_folder
from perdure.settings import connection_environment
from perdure.workspace.config import Config, config_text, user_config
from perdure.workspace.git import Repository
from perdure.workspace.git_process import run_git
from perdure.workspace.refs import is_object_id, is_ref
from perdure.workspace.view import write_git_dir

_SCHEMES = ("file", "https", "ssh", "git")
_SCP_LIKE = re.compile(r"(?P<host>(?:[^@/:\s]+@)?[^/:\s@-][^/:\s]*):(?P<path>[^:].*)\Z")
_USER_PROGRAMS = ("credential.", "http.", "ssh.", "core.sshcommand", "safe.directory", "protocol.version")
"""What connecting may take from the *user's* own configuration. A repository's values of these keys are never used."""


@dataclass(frozen=True)
class Remote:
    """A configured remote, resolved."""

    name: str
    url: str
    """Where a push goes, without user info (an ssh user is kept: it is no secret and part of the address)."""
    secret_url: str = field(default="", repr=False)
    """The same with the configured user info; equal to ``url`` when there is none. Never shown or stored."""


def find_remote(repository: Repository, name: str) -> Remote | None:
    """Return the remote ``name``, or ``None`` when it is not configured.

    Raises:
        UserError: its URL is of a kind that is not spoken, lies inside the repository itself, or there are several.
    """
    pushing = repository.configs.get(f"remote.{name}.pushurl")
    urls = pushing or repository.configs.get(f"remote.{name}.url")
    if not urls:
        return None
    if len(set(urls)) > 1:
        raise UserError(f"Remote {name!r} pushes to {len(urls)} URLs; expected one. Name a remote with a single URL.")
    keys = ("insteadof",) if pushing else ("pushinsteadof", "insteadof")
    rewritten = _rewrite(urls[-1], keys, user_config(), repository.configs)
    secret = _absolute(rewritten, repository)
    return Remote(name, without_user_info(secret), secret)


def _rewrite(url: str, keys: tuple[str, ...], *configs: Config) -> str:
    """Apply ``url.<base>.insteadOf``: the longest match wins, as in git."""
    for key in keys:
        found = [
            (prefix, entry.removeprefix("url.").removesuffix(f".{key}"))
            for config in configs
            for entry, prefixes in config.items()
            if entry.startswith("url.") and entry.endswith(f".{key}")
            for prefix in prefixes
            if url.startswith(prefix)
        ]
        if found:
            prefix, base = max(found, key=lambda item: len(item[0]))
            return base + url[len(prefix) :]
    return url


def _absolute(url: str, repository: Repository) -> str:
    if any(letter < " " or letter == "\x7f" for letter in url) or url.startswith("-") or "::" in url.split("/")[0]:
        raise UserError(f"The remote URL {url!r} is not one that is pushed to; expected a path, or https, ssh or git.")
    scheme = urlsplit(url).scheme if "://" in url else ""
    if scheme and scheme not in _SCHEMES:
        raise UserError(f"The remote URL {without_user_info(url)!r} uses {scheme!r}; expected https, ssh, git or file.")
    if scheme == "file":
        return _local(Path(urlsplit(url).path), repository)
    if scheme or _SCP_LIKE.match(url):
        return url
    return _local(repository.place / url, repository)


def _local(path: Path, repository: Repository) -> str:
    real = path.resolve()
    inside = [folder for folder in (repository.work_tree, repository.git_dir, repository.common_dir) if folder]
    if any(real.is_relative_to(folder) for folder in inside):
        # Pushing runs the receiving side's hooks on this machine; hooks that the repository itself brings never run.
        raise UserError(f"The remote {path} lies inside the repository itself. Name a remote outside of it.")
    return str(real)


def without_user_info(url: str) -> str:
    """Return ``url`` without name and password; an ssh URL keeps the name, which belongs to its address."""
    if "://" not in url:
        return url
    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    keep = f"{user.partition(':')[0]}@" if at and parts.scheme == "ssh" and user else ""
    return urlunsplit(parts._replace(netloc=keep + host))


def without_secrets(text: str, remote: Remote) -> str:
    """Return what git said without the user info of the configured URL."""
    if remote.secret_url in ("", remote.url):
        return text
    user = urlsplit(remote.secret_url).netloc.rpartition("@")[0]
    for secret in (remote.secret_url, user, user.partition(":")[2]):
        text = text.replace(secret, "…") if secret else text
    return text


@contextmanager
def connection(remote: Remote, *, object_format: str = "sha1") -> Iterator[tuple[Path, dict[str, str]]]:
    """Give (a private git directory, the environment) from which git may talk to ``remote``; gone afterwards.

    Credentials, proxies and the ssh program come from the user's own configuration, never from the repository's.
    User info of the configured URL is put into a private file, never into argv or the environment.
    """
    with scratch_folder("remote") as folder:
        write_git_dir(folder, object_format=object_format, head="ref: refs/heads/none")
        (folder / "refs").mkdir()
        user = folder / "user-config"
        user.write_text(config_text(_user_settings(remote)), encoding="utf-8")
        user.chmod(0o600)
        yield folder, {**connection_environment(), "GIT_CONFIG_GLOBAL": str(user), "HOME": str(Path.home())}


def _user_settings(remote: Remote) -> list[tuple[str, str]]:
    chosen = [
        (key, value) for key, values in user_config().items() if key.startswith(_USER_PROGRAMS) for value in values
    ]
    if remote.secret_url and remote.secret_url != remote.url:
        chosen.append((f"url.{remote.secret_url}.insteadof", remote.url))
    return chosen


def read_remote_refs(
    remote: Remote, *, limit: timedelta = timedelta(seconds=60), env: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return what ``remote`` has now: object id by full ref name (heads and tags; no peeled entries), sorted.

    Raises:
        GitError: it does not answer within ``limit``, or refuses.
    """
    with connection(remote) as (folder, connected):
        args = ("ls-remote", "--quiet", "--refs", "--heads", "--tags", "--", remote.url)
        listed = run_git(folder, *args, env={**connected, **(env or {})}, limit=limit)
    return parse_remote_refs(listed)


def parse_remote_refs(listed: bytes) -> dict[str, str]:
    """Parse ``git ls-remote``; a line that is no ref name git allows is left out."""
    refs = {}
    for line in listed.decode("utf-8", "surrogateescape").splitlines():
        oid, _, ref = line.partition("\t")
        if is_object_id(oid) and is_ref(ref):
            refs[ref] = oid
    return dict(sorted(refs.items()))
