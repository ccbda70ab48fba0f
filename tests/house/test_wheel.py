"""The wheel that people install, built the long way round (from an sdist) and used away from any checkout."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from tests.house.kit import ROOT, tracked_files

ROOMS = ("workflows", "activities", "templates", "worker.py")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist and the wheel built from it."""
    folder = tmp_path_factory.mktemp("dist")
    argv = [sys.executable, "-P", "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(argv, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def installed(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clean environment with the wheel in it; returns its ``bin``.

    The dependencies are the ones of this environment, by a line in a .pth file: Python reads no .pth file of a folder
    named in another one, so the editable install of this checkout is not seen.
    """
    home = tmp_path_factory.mktemp("installed") / "venv"
    venv.create(home, with_pip=False, symlinks=True)
    python = home / "bin" / "python"
    (wheel,) = built.glob("*.whl")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(python)]
    subprocess.run([*pip, "install", "--quiet", "--no-deps", "--no-index", str(wheel)], check=True, capture_output=True)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = home / "lib" / version / "site-packages"
    (packages / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    return home / "bin"


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A user's folder with modules whose names are ours."""
    for name in ("worker.py", "workflows.py", "perdure.py"):
        (tmp_path / name).write_text("raise SystemExit('the current folder was imported')\n")
    return tmp_path


def run(argv: list[str | Path], folder: Path) -> str:
    """Run to a good end; return stdout."""
    ended = subprocess.run([str(word) for word in argv], cwd=folder, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_wheel_installs_one_name_and_carries_every_room(built: Path) -> None:
    """Only ``perdure`` lands in site-packages; each tracked file of the application's rooms lies in perdure/_app."""
    (wheel,) = built.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    tops = {name.split("/", 1)[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"perdure"}
    rooms = {f"perdure/_app/{path}" for path in tracked_files() if path.parts[0] in ROOMS}
    assert "perdure/_app/worker.py" in rooms
    assert rooms - names == set()
    library = {str(path) for path in tracked_files() if path.parts[0] == "perdure"}
    assert library - names == set()


def test_sdist_has_what_the_wheel_is_built_from(built: Path) -> None:
    """The sdist holds library, rooms and licence, and neither tests nor CI."""
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        tops = {name.split("/")[1] for name in archive.getnames() if "/" in name}
    assert {"perdure", "LICENSE", "README.md", "pyproject.toml", *ROOMS} <= tops
    assert not tops & {"tests", ".ci", "bench"}


def test_installed_application_is_found_from_the_package(installed: Path, elsewhere: Path) -> None:
    """The application is the one inside the wheel, whatever modules the current folder holds."""
    code = "import perdure.application as a; print(a.root()); print(a.load('worker').__file__)"
    root, worker = run([installed / "python", "-P", "-c", code], elsewhere).split()
    assert Path(root).parts[-2:] == ("perdure", "_app")
    assert Path(root).is_relative_to(installed.parent)
    assert Path(worker) == Path(root) / "worker.py"


def test_installed_workflows_and_activities_load(installed: Path, elsewhere: Path) -> None:
    """Each module of the rooms inside the wheel imports from another folder."""
    modules = sorted(
        ".".join(path.with_suffix("").parts)
        for path in tracked_files()
        if path.parts[0] in ("workflows", "activities") and path.suffix == ".py" and path.stem != "__init__"
    )
    code = f"import perdure.application as a; print([a.load(name).__name__ for name in {modules}] == {modules})"
    assert run([installed / "python", "-P", "-c", code], elsewhere).strip() == "True"


def test_installed_command_shows_its_help(installed: Path, elsewhere: Path) -> None:
    """``perdure --help`` works from another folder."""
    assert "perdure" in run([installed / "perdure", "--help"], elsewhere)


def test_shipped_templates_are_read_from_the_wheel(installed: Path, elsewhere: Path) -> None:
    """The installed application has the release template."""
    code = "import perdure.application as a; print((a.root() / 'templates/jobs/release.yaml').is_file())"
    assert run([installed / "python", "-P", "-c", code], elsewhere).strip() == "True"
