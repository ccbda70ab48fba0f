"""Asking a server over HTTP for an effect: only hosts that the plan names, within a limit, and honest about silence."""

from __future__ import annotations

import ipaddress
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from perdure.errors import EffectFailed, EffectUnknown, LookFailed, PerdureError, UserError
from perdure.settings import proxy_for

if TYPE_CHECKING:
    import httpx

Result = TypeVar("Result")

LOOK_LIMIT = timedelta(seconds=20)
"""For all questions of one look at the world."""

_CONNECT_SECONDS = 10.0
_ANSWER_LIMIT_BYTES = 16 << 20
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.5, 15.0


class NoAnswer(EffectUnknown):
    """A server did not answer, or not so that it says anything: what it has done cannot be known."""


class NotSent(NoAnswer):
    """No connection came about: nothing was sent, so nothing was done."""


class TooBusy(NoAnswer):
    """A server says when to come back, and that is too late."""

    after_seconds: float = 0.0


def look_failed(error: PerdureError) -> LookFailed:
    """Return what a check raises of an error in looking: silence passes by itself; else the error says what to do."""
    again = "Nothing of this step has begun; it is looked at again by itself, until `perdure cancel` ends the job."
    failed = LookFailed(f"{' '.join(error.message.split()).rstrip('.')}. {again}")
    failed.after_seconds = error.after_seconds if isinstance(error, TooBusy) else None
    return failed


@dataclass(frozen=True)
class Answer:
    """What a server said: 2xx or 4xx."""

    status: int
    body: bytes
    headers: Mapping[str, str]

    @property
    def is_good(self) -> bool:
        """Whether it is a 2xx."""
        return 200 <= self.status < 300

    def json(self) -> Any:
        """Its body as JSON. Raises ``NoAnswer`` when it is none: something else than the API answered."""
        try:
            return json.loads(self.body)
        except ValueError:
            raise NoAnswer(f"the answer ({self.status}) is no JSON: {self.gist()}") from None

    def gist(self) -> str:
        """What it says, on one line."""
        return " ".join(self.body[:600].decode("utf-8", "replace").split()) or "nothing"


class Http:
    """Asks until a deadline. Follows no redirect: a token must not be led to a host that nobody has approved."""

    def __init__(
        self,
        hosts: Sequence[str],
        limit: timedelta,
        *,
        headers: Mapping[str, str],
        hidden: Sequence[str] = (),
        choose: Callable[[str], str] | None = None,
    ) -> None:
        """``hosts``: ``host`` or ``host:port`` of every place it may ask. ``hidden``: texts that no error repeats.

        ``choose`` gives the address to connect to for a URL and refuses those that must not be reached; without it the
        system's resolver is asked. Behind a proxy the proxy resolves.
        """
        self._choose = choose
        self._hosts = tuple(hosts)
        self._deadline = time.monotonic() + limit.total_seconds()
        self._headers = {"User-Agent": "perdure", **headers}
        self._hidden = [text for text in hidden if text]

    @property
    def seconds_left(self) -> float:
        """Until the deadline."""
        return self._deadline - time.monotonic()

    def ask(
        self, method: str, url: str, *, content: Any = None, data: bytes | None = None, headers: Mapping[str, str] = {}
    ) -> Answer:
        """Ask once; ``content`` goes as JSON, ``data`` as it is. "Come back later" is done when there is time for it.

        Raises:
            NoAnswer: nobody answered, or a 5xx, or it is to be asked again too late.
            EffectFailed: it answers with a redirect, or ``url`` is on a host that the plan does not name.
        """
        if place_of(url) not in self._hosts:
            raise EffectFailed(
                f"{place_of(url)} is not among the hosts that the plan names ({', '.join(self._hosts)})."
            )
        body = data if data is not None else None if content is None else json.dumps(content).encode()
        kind = {"Content-Type": "application/json"} if content is not None else {}
        while True:
            answer = self._send(method, url, body, {**self._headers, **kind, **headers})
            pause = _pause_of(answer)
            if pause is None:
                return self._judge(method, url, answer)
            if pause >= self.seconds_left:
                busy = TooBusy(f"{place_of(url)} says to come back in {pause:.0f} s ({answer.status})")
                busy.after_seconds = pause
                raise busy
            time.sleep(pause)

    def digest(self, url: str, *, headers: Mapping[str, str]) -> str | None:
        """SHA-256 of what lies at ``url``; ``None`` where the server sends elsewhere for it."""
        import hashlib

        found = hashlib.sha256()
        with self._open("GET", url, None, {**self._headers, **headers}) as stream:
            if stream.status_code != 200:
                return None
            for chunk in stream.iter_bytes():
                found.update(chunk)
        return found.hexdigest()

    def patiently(self, work: Callable[[], Result]) -> Result:
        """Return what ``work`` gives, asked again while nobody answers and there is time. It must be idempotent."""
        pause = _FIRST_PAUSE_SECONDS
        while True:
            try:
                return work()
            except TooBusy:
                raise
            except NoAnswer:
                if 2 * pause >= self.seconds_left:
                    raise
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    def clean(self, text: str) -> str:
        """``text`` without what is hidden."""
        for secret in self._hidden:
            text = text.replace(secret, "[secret]")
        return text

    def _send(self, method: str, url: str, body: bytes | None, headers: Mapping[str, str]) -> Answer:
        with self._open(method, url, body, headers) as stream:
            read = b""
            for chunk in stream.iter_bytes():
                read += chunk
                if len(read) > _ANSWER_LIMIT_BYTES:
                    raise NoAnswer(f"{place_of(url)} answers with more than {_ANSWER_LIMIT_BYTES >> 20} MiB")
            return Answer(stream.status_code, self.clean(read.decode("latin-1")).encode("latin-1"), stream.headers)

    @contextmanager
    def _open(self, method: str, url: str, body: bytes | None, headers: Mapping[str, str]) -> Iterator[httpx.Response]:
        import httpx

        left = self.seconds_left
        if left <= 0:
            raise NoAnswer(f"{place_of(url)} was not asked: the limit is met")
        limits = httpx.Timeout(left, connect=min(left, _CONNECT_SECONDS))
        how: dict[str, Any] = {"timeout": limits, "trust_env": False, "proxy": proxy_for(url)}
        if urlsplit(url).scheme == "http" and not how["proxy"]:
            how["verify"] = False  # no TLS here, no redirect to it: reading the certificates costs 30 ms a request
        sent: dict[str, Any] = {"content": body, "headers": dict(headers)}
        if self._choose and not how["proxy"]:
            url, sent = _pinned(url, self._choose(url), sent)
        try:
            with httpx.Client(**how) as client, client.stream(method, url, **sent) as stream:
                yield stream
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            said = self.clean(str(error)) or type(error).__name__
            kind = NotSent if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout) else NoAnswer
            raise kind(f"{sent['headers'].get('Host', place_of(url))} does not answer: {said}") from None

    def _judge(self, method: str, url: str, answer: Answer) -> Answer:
        if answer.status >= 500:
            raise NoAnswer(f"{place_of(url)} answers {answer.status} to {method} {urlsplit(url).path}: {answer.gist()}")
        if 300 <= answer.status < 400:
            where = self.clean(answer.headers.get("location", "elsewhere"))
            raise EffectFailed(f"{url} has moved to {where}. Redirects are not followed: name the new place.")
        return answer


def _pinned(url: str, address: str, sent: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The same request to exactly ``address``: nothing resolves the name again; TLS still asks for the host's name."""
    parts = urlsplit(url)
    host = f"[{address}]" if ":" in address else address
    place = host if parts.port is None else f"{host}:{parts.port}"
    headers = {**sent["headers"], "Host": place_of(url)}
    return parts._replace(netloc=place).geturl(), {
        **sent,
        "headers": headers,
        "extensions": {"sni_hostname": parts.hostname},
    }


def _pause_of(answer: Answer) -> float | None:
    """Seconds after which the server says that it may be asked again; ``None`` when it has answered."""
    said = answer.headers.get("retry-after", "")
    is_spent = answer.headers.get("x-ratelimit-remaining") == "0"
    if answer.status not in (403, 429, 503) or not (said or (is_spent and answer.status != 503)):
        return None
    if said.isdigit():
        return float(said)
    try:
        until = parsedate_to_datetime(said) if said else _reset_at(answer)
    except (TypeError, ValueError):
        return None
    return max(0.0, (until - datetime.now(UTC)).total_seconds())


def _reset_at(answer: Answer) -> datetime:
    return datetime.fromtimestamp(int(answer.headers.get("x-ratelimit-reset", "")), UTC)


def place_of(url: str) -> str:
    """``host`` or ``host:port`` of a URL, as a reviewer reads it among the ways out."""
    return urlsplit(url).netloc.rpartition("@")[2].lower()


def read_base_url(step: str, name: str, url: str, *, carries_secret: bool = True) -> str:
    """Return a base URL without the slash at its end.

    Raises:
        UserError: it has user info, a query or another scheme than http(s), or would carry a token unencrypted.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise UserError(f"Step {step!r}: `{name}` is {url!r}; expected a URL like https://forge.example.org/api/v4.")
    if "@" in parts.netloc:
        raise UserError(f"Step {step!r}: `{name}` holds a name or password. Leave it out and name a secret instead.")
    if carries_secret and parts.scheme == "http" and not is_loopback(parts.hostname):
        raise UserError(f"Step {step!r}: `{name}` is {url!r}: a token would travel unencrypted. Use https.")
    return url.rstrip("/")


def read_page_url(step: str, name: str, url: str) -> str:
    """Return the URL of a page that is asked without a secret; it may have a query. Raises as :func:`read_base_url`."""
    read_base_url(step, name, url.partition("?")[0], carries_secret=False)
    return url


def is_loopback(host: str) -> bool:
    """Whether a host name means this machine itself."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
