"""Each door proves who is asking before anything else happens."""

import json
import socket
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from perdure.api.doors import MAX_BODY_BYTES, PRINCIPAL, TcpDoor, UnixDoor
from perdure.policy.authorize import local_owner
from perdure.store.ledger import Ledger
from tests.api.serving import Listening, serving

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


async def who_is_asking(scope: Scope, receive: Receive, send: Send) -> None:
    """An application that answers with the principal that the door let in, after reading the body."""
    if scope["type"] == "lifespan":
        for kind in ("startup", "shutdown"):
            assert (await receive())["type"] == f"lifespan.{kind}"
            await send({"type": f"lifespan.{kind}.complete"})
        return
    more = True
    while more:
        more = (await receive()).get("more_body", False)
    principal = scope[PRINCIPAL]
    body = {"name": principal.name, "groups": list(principal.groups), "may": sorted(principal.may)}
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
    await send({"type": "http.response.body", "body": json.dumps(body).encode()})


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ledger]:
    ledger = Ledger.open(f"sqlite:///{tmp_path_factory.mktemp('ledger') / 'ledger.db'}")
    yield ledger
    ledger.close()


@pytest.fixture(scope="module")
def listening(ledger: Ledger, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listening]:
    def make_doors(address: str) -> tuple[ASGIApp, ASGIApp]:
        return UnixDoor(who_is_asking, ledger, local_owner("ada")), TcpDoor(who_is_asking, ledger, [address])

    with serving(tmp_path_factory.mktemp("data"), who_is_asking, make_doors) as listening:
        yield listening


@pytest.fixture
def token(ledger: Ledger) -> str:
    return ledger.add_token("ci", ["robots"], ["read", "submit"], at=NOW).text


def test_without_a_token_the_unix_socket_speaks_for_the_owner(listening: Listening) -> None:
    """Whoever can use the socket has the owner's uid, and is the owner."""
    with listening.unix() as client:
        asking = client.get("/").json()
    assert (asking["name"], asking["groups"]) == ("ada", ["*"])
    assert {"submit", "decide", "own"} <= set(asking["may"])


def test_a_token_narrows_the_unix_socket_to_what_it_may(listening: Listening, token: str) -> None:
    """With a token even the owner's socket gives the token's name, groups and rights, no more."""
    with listening.unix(token) as client:
        assert client.get("/").json() == {"name": "ci", "groups": ["robots"], "may": ["read", "submit"]}


@pytest.mark.parametrize("header", ["Bearer", "Bearer perdure_wrong", "Basic YTpi", "bearer\t x"])
def test_a_wrong_token_is_no_fall_back_to_the_owner(listening: Listening, header: str) -> None:
    """A header that names no token is refused at both doors; it never means "no token"."""
    for client in (listening.unix(), listening.tcp()):
        with client:
            answer = client.get("/", headers={"Authorization": header})
        assert answer.status_code == 401
        assert answer.json()["kind"] == "Refused"
        assert answer.headers["www-authenticate"] == "Bearer"


def test_a_revoked_token_opens_nothing(listening: Listening, ledger: Ledger) -> None:
    """From the moment of its revocation a token is unknown, at both doors."""
    made = ledger.add_token("gone", [], ["decide"], at=NOW)
    with listening.tcp(made.text) as client:
        assert client.get("/").status_code == 200
        ledger.revoke_token(made.id, at=NOW)
        assert client.get("/").status_code == 401


def test_two_authorizations_are_refused(listening: Listening, token: str) -> None:
    """A request with two tokens is ambiguous; it is turned away."""
    with listening.tcp() as client:
        answer = client.get("/", headers=[("Authorization", f"Bearer {token}"), ("Authorization", "Bearer x")])
    assert answer.status_code == 401


def test_tcp_answers_nothing_without_a_token(listening: Listening) -> None:
    """There is no anonymous TCP."""
    with listening.tcp() as client:
        assert client.get("/v1/health").status_code == 401


@pytest.mark.parametrize("host", ["localhost", "evil.example", "127.0.0.1", "127.0.0.1:1", ""])
def test_another_host_name_is_not_served(listening: Listening, token: str, host: str) -> None:
    """Only the exact Host is answered, so that a rebound DNS name reaches nothing."""
    with listening.tcp(token) as client:
        assert client.get("/", headers={"Host": host}).status_code == 421


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost", ""])
def test_a_page_of_another_origin_is_turned_away(listening: Listening, token: str, origin: str) -> None:
    """A browser says where a page comes from; any other place than ours is refused, token or not."""
    with listening.tcp(token) as client:
        answer = client.get("/", headers={"Origin": origin})
    assert answer.status_code == 403
    assert "access-control-allow-origin" not in answer.headers


def test_our_own_origin_is_let_in(listening: Listening, token: str) -> None:
    """Our own pages may ask."""
    with listening.tcp(token) as client:
        assert client.get("/", headers={"Origin": f"http://{listening.address}"}).status_code == 200


def test_no_preflight_is_ever_granted(listening: Listening) -> None:
    """An OPTIONS request gets no permission to go on."""
    with listening.tcp() as client:
        answer = client.options(
            "/", headers={"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
        )
    assert answer.status_code == 403
    assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("application/json", 200),
        ("application/json; charset=utf-8", 200),
        ("text/plain", 415),
        ("application/x-www-form-urlencoded", 415),
        ("multipart/form-data; boundary=x", 415),
        ("", 415),
    ],
)
def test_a_body_is_json_or_refused(listening: Listening, token: str, kind: str, status: int) -> None:
    """What a web form can send without asking first is refused at both doors."""
    for client in (listening.unix(token), listening.tcp(token)):
        with client:
            answer = client.post("/", content=b"{}", headers={"Content-Type": kind} if kind else {})
        assert answer.status_code == status


def raw_request(listening: Listening, lines: list[bytes]) -> bytes:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(listening.path))
        connection.sendall(b"".join(lines))
        connection.settimeout(10)
        answer = b""
        while part := connection.recv(65536):
            answer += part
        return answer


def test_a_large_body_is_refused_before_it_is_read(listening: Listening) -> None:
    """A promised length beyond the limit is not waited for."""
    head = ["POST / HTTP/1.1", "Host: x", "Content-Type: application/json", f"Content-Length: {MAX_BODY_BYTES + 1}"]
    assert raw_request(listening, ["\r\n".join([*head, "", ""]).encode()]).startswith(b"HTTP/1.1 413 ")


def test_what_is_no_http_gets_an_error_and_no_more(listening: Listening) -> None:
    """Garbage ends the connection; the server goes on."""
    assert b"400 Bad Request" in raw_request(listening, [b"\x16\x03\x01 hello\r\n\r\n"])
    with listening.unix() as client:
        assert client.get("/").status_code == 200


def test_a_websocket_is_not_spoken(listening: Listening) -> None:
    """An upgrade is not followed: the request is answered as plain HTTP behind the same door."""
    upgrade = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Key": "eA==",
        "Sec-WebSocket-Version": "13",
    }
    with listening.tcp() as client:
        assert client.get("/", headers=upgrade).status_code == 401


def test_a_process_of_another_uid_is_hung_up_on(ledger: Ledger, tmp_path: Path) -> None:
    """The kernel says who connects: another uid gets no byte, not even with a good token."""
    token = ledger.add_token("ci", [], ["read"], at=NOW).text

    def make_doors(address: str) -> tuple[ASGIApp, ASGIApp]:
        return UnixDoor(who_is_asking, ledger, local_owner("ada")), TcpDoor(who_is_asking, ledger, [address])

    with serving(tmp_path, who_is_asking, make_doors, uid=54321) as listening:
        with listening.unix(token) as client, pytest.raises(httpx.TransportError):
            client.get("/")
        with listening.tcp(token) as client:
            assert client.get("/").status_code == 200


def test_a_ledger_that_cannot_be_asked_shuts_the_door(tmp_path: Path) -> None:
    """When tokens cannot be looked up, nobody is let in, and the answer says what is wrong."""
    ledger = Ledger.open(f"sqlite:///{tmp_path / 'ledger.db'}")
    ledger.close()
    for part in tmp_path.glob("ledger.db*"):
        part.unlink()
    (tmp_path / "ledger.db").mkdir()

    def make_doors(address: str) -> tuple[ASGIApp, ASGIApp]:
        return UnixDoor(who_is_asking, ledger, local_owner("ada")), TcpDoor(who_is_asking, ledger, [address])

    with serving(tmp_path, who_is_asking, make_doors) as listening, listening.unix("perdure_x") as client:
        answer = client.get("/")
    assert answer.status_code == 503
    assert answer.json()["kind"] == "SetupError"
