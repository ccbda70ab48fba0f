"""The client of the API: one connection, contracts in and out, errors as the classes of ``perdure.errors``."""

from __future__ import annotations

import re
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import httpx
from pydantic import BaseModel, TypeAdapter, ValidationError

from perdure import errors
from perdure.contracts.http import Problem
from perdure.runtime.state import is_running
from perdure.settings import Settings

T = TypeVar("T")
Query = dict[str, Any]

CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 60.0
"""How long one answer may take: a plan with a large diff is computed when it is asked for."""
ASK_AGAIN_SECONDS = (0.2, 0.5, 1.0, 2.0)
"""Waits between attempts when a connection broke. Every request of ours names an id: a second one is the same one."""


class Unreachable(errors.SetupError):
    """Nobody answers at the door."""


class Door:
    """Asks the API. Every method may be called again: reads change nothing, writes carry an id of the caller's."""

    def __init__(self, client: httpx.Client, where: str, data: Path | None = None) -> None:
        """``data``: folder of the installation behind the socket ``where``; ``None`` when it is on another machine."""
        self._client = client
        self._where = where
        self._data = data
        self._is_connected = False
        self._was_answered = False
        self._was_supervised = False

    def is_open(self) -> bool:
        """Whether somebody listens here. Of another machine that is not known before it is asked: true."""
        try:
            self._knock()
        except OSError:
            return False
        return True

    def is_stopped(self) -> bool:
        """Whether nothing is left of the installation that answered before: nobody will start its API again.

        False where that cannot be known: another machine, or an API that something else than our supervisor keeps.
        """
        return self._was_supervised and self._data is not None and not is_running(self._data)

    def get(self, path: str, kind: type[T], **query: Any) -> T:
        """Read one value of ``kind``."""
        return _parse(kind, self._ask("GET", path, query))

    def read_bytes(self, path: str, **query: Any) -> bytes:
        """Read raw bytes."""
        return self._ask("GET", path, query).content

    def stream_lines(self, path: str, **query: Any) -> Iterator[str]:
        """Read text line by line as it comes. Raises ``Unreachable`` when it breaks off: what came is not all."""
        sent = {key: _plain(value) for key, value in query.items() if value is not None}
        try:
            self._knock()
            with self._client.stream("GET", path, params=sent) as response:
                if response.is_error:
                    response.read()
                    raise _problem(response)
                yield from response.iter_lines()
        except (httpx.TransportError, OSError) as error:
            self._is_connected = False
            raise self._unreachable(error) from error

    def post(self, path: str, body: BaseModel | Query, kind: type[T], **query: Any) -> T:
        """Send a contract and read the answer; a connection that breaks is tried again with the same id."""
        return _parse(kind, self._persist(lambda: self._ask("POST", path, query, body)))

    def delete(self, path: str, kind: type[T], **query: Any) -> T:
        """Remove what the query names."""
        return _parse(kind, self._ask("DELETE", path, query))

    def _persist(self, ask: Callable[[], httpx.Response]) -> httpx.Response:
        for pause in ASK_AGAIN_SECONDS:
            try:
                return ask()
            except Unreachable:
                if not self._may_come_back():
                    raise
                time.sleep(pause)
        return ask()

    def _may_come_back(self) -> bool:
        if self._was_answered:
            return not self.is_stopped()
        return self._data is not None and self.is_open()

    def _ask(self, method: str, path: str, query: Query, body: BaseModel | Query | None = None) -> httpx.Response:
        sent = {key: _plain(value) for key, value in query.items() if value is not None}
        content = body.model_dump(mode="json") if isinstance(body, BaseModel) else body
        try:
            self._knock()
            response = self._client.request(method, path, params=sent, json=content)
        except (httpx.TransportError, OSError) as error:
            self._is_connected = False
            raise self._unreachable(error) from error
        if not self._was_answered:
            self._was_supervised = self._data is not None and is_running(self._data)
        self._is_connected = self._was_answered = True
        if response.is_error:
            raise _problem(response)
        return response

    def _knock(self) -> None:
        """See whether somebody listens before a connection is made: httpcore leaves the socket of a vain one open."""
        if self._data is not None and not self._is_connected:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
                probe.settimeout(CONNECT_SECONDS)
                probe.connect(self._where)

    def _unreachable(self, error: Exception) -> Unreachable:
        if isinstance(error, httpx.ReadTimeout):
            return Unreachable(
                f"Perdure at {self._where} did not answer within {ANSWER_SECONDS:.0f} s. See `perdure status`."
            )
        if self.is_stopped():
            return Unreachable(
                "Perdure was stopped or killed meanwhile: nothing of it runs. Open jobs keep their place. "
                "`perdure up` starts it again, and they go on."
            )
        if self._was_answered:
            return Unreachable(f"Perdure at {self._where} broke off ({_reason(error)}). See `perdure status`.")
        advice = "Start it with `perdure up`." if self._data is not None else "See that PERDURE_API is its address."
        return Unreachable(f"No Perdure answers at {self._where} ({_reason(error)}). {advice}")


@contextmanager
def open_door(settings: Settings) -> Iterator[Door]:
    """Connect to the API: ``PERDURE_API`` when set, else the installation's Unix socket."""
    headers = {"Authorization": f"Bearer {settings.token}"} if settings.token else {}
    remote = settings.api_url
    transport = None if remote else _unix_transport(str(settings.socket))
    timeout = httpx.Timeout(ANSWER_SECONDS, connect=CONNECT_SECONDS)
    # trust_env: a proxy in the environment must never see a token or a plan.
    client = httpx.Client(
        base_url=remote or "http://perdure", transport=transport, headers=headers, timeout=timeout, trust_env=False
    )
    with client:
        yield Door(client, remote or str(settings.socket), None if remote else settings.data)


def _unix_transport(path: str) -> httpx.HTTPTransport:
    """Connections over a Unix socket, where there is no TLS.

    The context that trusts nobody is never used; without one httpx reads the machine's certificates (50 ms of a command
    of 350 ms, measured).
    """
    return httpx.HTTPTransport(uds=path, verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))


def _reason(error: Exception) -> str:
    """What the system said, without its number: "No such file or directory"."""
    return re.sub(r"^\[Errno -?\d+\] ", "", str(error)) or type(error).__name__


def _plain(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value


def _parse(kind: type[T], response: httpx.Response) -> T:
    try:
        return TypeAdapter(kind).validate_json(response.content)
    except ValidationError as error:
        raise errors.SetupError(
            f"The running Perdure answered {response.url.path} in a form that this version does not know "
            f"({error.error_count()} differences). It is probably another version: `perdure down`, then `perdure up`."
        ) from error


def _problem(response: httpx.Response) -> errors.PerdureError:
    try:
        problem = Problem.model_validate_json(response.content)
    except ValidationError:
        return errors.SetupError(
            f"The API answered {response.url.path} with status {response.status_code} and no explanation."
        )
    kind = getattr(errors, problem.kind, errors.PerdureError)
    is_ours = isinstance(kind, type) and issubclass(kind, errors.PerdureError)
    error = kind(problem.message) if is_ours else errors.PerdureError(problem.message)
    error.exit_code = problem.exit_code
    assert isinstance(error, errors.PerdureError)
    return error
