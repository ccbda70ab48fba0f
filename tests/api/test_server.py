"""The API listens where only its owner can come, once."""

import os
import socket
import stat
from pathlib import Path

import pytest

from perdure.api.server import host_names, tcp_socket, unix_socket
from perdure.errors import SetupError


def test_socket_and_folder_are_for_their_owner_alone(tmp_path: Path) -> None:
    """Whatever the umask: the folder is 0700, the socket 0600, and both are gone or closed afterwards."""
    path = tmp_path / "run" / "api.sock"
    before = os.umask(0)
    try:
        with unix_socket(path):
            assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            assert os.umask(0) == 0
    finally:
        os.umask(before)
    assert not path.exists()


@pytest.mark.parametrize("mode", [0o750, 0o701, 0o777])
def test_a_folder_that_others_can_enter_is_refused(tmp_path: Path, mode: int) -> None:
    """Whoever can enter the folder could speak for the owner; the message says what to do."""
    (tmp_path / "run").mkdir()
    (tmp_path / "run").chmod(mode)
    with pytest.raises(SetupError, match="chmod 700"), unix_socket(tmp_path / "run" / "api.sock"):
        pass


def test_a_link_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    """A link could lead to a folder that somebody else sees."""
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (tmp_path / "run").symlink_to("elsewhere")
    with pytest.raises(SetupError), unix_socket(tmp_path / "run" / "api.sock"):
        pass


def test_a_stale_socket_is_replaced(tmp_path: Path) -> None:
    """After a SIGKILL the file is still there; the next API takes its place."""
    path = tmp_path / "run" / "api.sock"
    path.parent.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    with unix_socket(path), socket.socket(socket.AF_UNIX) as caller:
        caller.connect(str(path))


def test_a_second_api_is_told_and_takes_nothing(tmp_path: Path) -> None:
    """Two APIs on one data folder: the second ends with a message, the first goes on listening."""
    path = tmp_path / "run" / "api.sock"
    with unix_socket(path):
        with pytest.raises(SetupError, match="Another API"), unix_socket(path):
            pass
        with socket.socket(socket.AF_UNIX) as caller:
            caller.connect(str(path))


def test_a_path_that_no_socket_can_have(tmp_path: Path) -> None:
    """A path beyond what the kernel takes is said to be the reason."""
    with pytest.raises(SetupError, match="shorter --data"), unix_socket(tmp_path / ("x" * 120) / "api.sock"):
        pass


def test_a_port_in_use_is_said(tmp_path: Path) -> None:
    """A taken port and a host that is not ours: the address and what to do."""
    with tcp_socket("127.0.0.1:0") as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SetupError, match=rf"127\.0\.0\.1:{port} .*--listen"), tcp_socket(f"127.0.0.1:{port}"):
            pass


@pytest.mark.parametrize("listen", ["nonsense", "127.0.0.1:", "127.0.0.1:99999", "no.such.host.invalid:1"])
def test_an_address_that_is_none_is_said(listen: str) -> None:
    """No port, a port beyond the last one, an unknown host: never another address than the one that was asked for."""
    with pytest.raises(SetupError, match=listen), tcp_socket(listen):
        pass


def test_the_host_names_are_the_address_unless_told() -> None:
    """Without PERDURE_ALLOWED_HOSTS exactly host:port is answered, with the port that was really taken."""
    with tcp_socket("127.0.0.1:0") as listener:
        port = listener.getsockname()[1]
        assert host_names("127.0.0.1:0", listener, ()) == (f"127.0.0.1:{port}",)
        assert host_names("127.0.0.1:0", listener, ("perdure.example",)) == ("perdure.example",)
