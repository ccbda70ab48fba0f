"""URLs as an agent writes them: read strictly, written one way only, and whether their host may be asked."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urljoin, urlsplit

from perdure.errors import ToolFault
from perdure.policy.patterns import matches

_PORTS = {"http": 80, "https": 443}
_HOST = re.compile(r"[a-z0-9]([a-z0-9.-]{0,252}[a-z0-9])?|\[[0-9a-f:.]+\]")
_PORT = re.compile(r":(\d+)$")
_FORBIDDEN = re.compile(r"[^\x21-\x7e]|[\\\"<>^`{|}]")
_LONGEST = 2000


@dataclass(frozen=True)
class Link:
    """A checked URL."""

    scheme: str
    host: str
    """Lower case, without a last dot; an IPv6 address in brackets."""
    port: int
    target: str
    """Path and query, ``/`` at least."""

    @property
    def authority(self) -> str:
        """The host, with its port where it is not the scheme's own."""
        return self.host if self.port == _PORTS[self.scheme] else f"{self.host}:{self.port}"

    @property
    def name(self) -> str:
        """The host without brackets, for the resolver and for TLS."""
        return self.host.strip("[]")

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.target}"


def read_link(text: str) -> Link:
    """Read an absolute http or https URL. What browsers and libraries read differently is refused, not repaired.

    Raises:
        ToolFault: it is none, carries a user or password, or holds signs that have to be written as %XX.
    """
    if len(text) > _LONGEST or _FORBIDDEN.search(text):
        raise ToolFault(f"{text[:80]!r} is no URL that is asked; write other signs than plain ASCII as %XX.")
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise ToolFault(f"{text[:80]!r} is no URL: {error}.") from None
    if parts.scheme not in _PORTS or not parts.netloc:
        raise ToolFault(f"{text[:80]!r} is not asked; expected https://host/path or http://host/path.")
    if "@" in parts.netloc:
        raise ToolFault("A URL with a user or a password in it is not asked. Leave out what stands before the @.")
    host = parts.netloc.rpartition(":")[0] if re.search(r":\d*$", parts.netloc) else parts.netloc
    host = host.lower().removesuffix(".")
    if not _HOST.fullmatch(host) or ".." in host or port == 0:
        raise ToolFault(f"{parts.netloc[:80]!r} is no host; expected a name like api.example.org (IDNs as xn--…).")
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Link(parts.scheme, host, port or _PORTS[parts.scheme], _without_dots(target))


def follow(link: Link, location: str) -> Link:
    """Return where a redirect leads.

    Raises:
        ToolFault: to no URL that is asked, or from https to http.
    """
    following = read_link(urljoin(str(link), location.partition("#")[0]))
    if link.scheme == "https" and following.scheme == "http":
        raise ToolFault(f"{link.host} redirects from https to {following}, which is not encrypted; that was left.")
    return following


def refuse_host(link: Link, hosts: Sequence[str]) -> None:
    """Raise ``ToolFault`` unless one of ``hosts`` allows the link's: ``example.org``, ``*.example.org``, ``host:port``.

    A name without a port stands for the ports of http and https.
    """
    for allowed in hosts:
        port = _PORT.search(allowed)
        name = allowed.lower()[: port.start()] if port else allowed.lower()
        is_port = str(link.port) == port.group(1) if port else link.port in _PORTS.values()
        if is_port and matches(name.removesuffix("."), link.host):
            return
    listed = ", ".join(hosts) or "none"
    raise ToolFault(f"{link.authority} may not be asked; hosts of this job: {listed}. A person can allow more.")


def _without_dots(target: str) -> str:
    """Resolve ``.`` and ``..`` of the path: permissions see what the server will."""
    path, mark, query = target.partition("?")
    kept: list[str] = []
    for part in path.split("/")[1:]:
        plain = part.lower().replace("%2e", ".")
        if plain == "..":
            kept = kept[:-1]
        elif plain != ".":
            kept.append(part)
    if path.rsplit("/", 1)[-1].lower().replace("%2e", ".") in (".", ".."):
        kept.append("")
    return "/" + "/".join(kept) + mark + query
