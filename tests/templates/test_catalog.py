"""Templates are found in three places; none hides another."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from perdure.catalog import Catalog, describe_entry, find_repository_folder, load_entry
from perdure.contracts.template import Template
from perdure.errors import NotFound, UserError
from tests.templates.texts import SMALL


def put(folder: Path, name: str, text: str = SMALL) -> Path:
    """Write a template called ``name`` and return its file."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.yaml"
    path.write_text(text.replace("name: notes", f"name: {name}"))
    return path


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A folder that looks like a repository's root."""
    root = tmp_path / "src" / "orders"
    (root / ".git").mkdir(parents=True)
    return root


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    """A catalog with one shipped and one configured template."""
    put(tmp_path / "shipped", "release")
    put(tmp_path / "configured", "deploy")
    return Catalog(tmp_path / "shipped", tmp_path / "configured")


def accept(_template: Template) -> None:
    """Find nothing wrong."""


def test_all_three_places_are_listed(catalog: Catalog, repository: Path) -> None:
    """Shipped first, then the configured folder, then the repository's own; only the last needs trust."""
    path = put(repository / ".perdure" / "jobs", "notes")
    found = [(entry.name, entry.source, entry.needs_trust) for entry in catalog.list(repository)]
    assert found == [
        ("release", "shipped", False),
        ("deploy", "configured", False),
        ("notes", "repository", True),
    ]
    entry = catalog.find("notes", repository)
    assert entry.text == path.read_text()
    assert entry.digest == hashlib.sha256(path.read_bytes()).hexdigest()


def test_an_edited_template_has_another_digest(catalog: Catalog, repository: Path) -> None:
    """Trust is for a text: one changed byte is another digest, at once."""
    path = put(repository / ".perdure" / "jobs", "notes")
    before = catalog.find("notes", repository).digest
    path.write_text(path.read_text() + "\n")
    assert catalog.find("notes", repository).digest != before


@pytest.mark.parametrize("name", ["release", "deploy"])
def test_a_repository_never_hides_another_template(catalog: Catalog, repository: Path, name: str) -> None:
    """A repository's template with a taken name is refused with what to rename, never run in the other's place."""
    put(repository / ".perdure" / "jobs", name)
    with pytest.raises(UserError, match=f"Rename the file and its `name`, for example to my-{name}"):
        catalog.find(name, repository)
    listed = [entry for entry in catalog.list(repository) if entry.name == name]
    assert [bool(entry.problem) for entry in listed] == [False, True]


def test_a_missing_template_is_told_with_the_nearest(catalog: Catalog, repository: Path) -> None:
    """A mistyped name gets the one that was meant."""
    with pytest.raises(NotFound, match=r"no template 'relaese'. Did you mean 'release'"):
        catalog.find("relaese", repository)


def test_the_search_goes_up_to_the_repositorys_root_and_no_further(tmp_path: Path, repository: Path) -> None:
    """From a folder deep inside the repository's own templates are found; above its root nothing is ours."""
    deep = repository / "a" / "b"
    deep.mkdir(parents=True)
    put(tmp_path / ".perdure" / "jobs", "planted")
    assert find_repository_folder(deep) is None
    put(repository / ".perdure" / "jobs", "notes")
    assert find_repository_folder(deep) == repository / ".perdure" / "jobs"


def test_outside_a_repository_only_the_folder_itself_counts(tmp_path: Path) -> None:
    """A file that somebody left in a parent folder is never found."""
    put(tmp_path / ".perdure" / "jobs", "planted")
    (tmp_path / "work").mkdir()
    assert find_repository_folder(tmp_path / "work") is None
    assert find_repository_folder(tmp_path) is not None


@pytest.mark.parametrize("part", ["file", "folder"])
def test_a_link_in_a_repository_is_not_followed(catalog: Catalog, repository: Path, tmp_path: Path, part: str) -> None:
    """A repository cannot show a file of the owner's by calling it a template."""
    outside = put(tmp_path / "outside", "secret")
    jobs = repository / ".perdure" / "jobs"
    if part == "file":
        jobs.mkdir(parents=True)
        (jobs / "secret.yaml").symlink_to(outside)
    else:
        jobs.parent.mkdir()
        jobs.symlink_to(outside.parent)
    [entry] = [entry for entry in catalog.list(repository) if entry.source == "repository"]
    assert entry.text == ""
    with pytest.raises(UserError, match="is a link"):
        catalog.find("secret", repository)


@pytest.mark.parametrize("data", [b"\xff\xfe", b"#" * 200_000])
def test_what_is_no_text_is_listed_with_its_problem(catalog: Catalog, repository: Path, data: bytes) -> None:
    """A binary or huge file spoils neither the list nor the other templates."""
    put(repository / ".perdure" / "jobs", "odd").write_bytes(data)
    view = describe_entry(catalog.list(repository)[-1], trusted=False, check=accept)
    assert view.name == "odd"
    assert "odd.yaml" in view.problem


@pytest.mark.timeout(20)
def test_what_is_no_file_is_listed_with_its_problem(catalog: Catalog, repository: Path) -> None:
    """A folder or a named pipe with a template's name is told, and nobody waits for the pipe's other end."""
    jobs = put(repository / ".perdure" / "jobs", "notes").parent
    (jobs / "folder.yaml").mkdir()
    os.mkfifo(jobs / "pipe.yaml")
    found = {entry.name: entry.problem for entry in catalog.list(repository) if entry.source == "repository"}
    assert found["notes"] == ""
    assert "no regular file" in found["folder"]
    assert "no regular file" in found["pipe"]


def test_a_template_is_called_as_its_file_is(catalog: Catalog, repository: Path) -> None:
    """`perdure run x` runs the template that calls itself x."""
    path = put(repository / ".perdure" / "jobs", "notes")
    path.rename(path.with_name("other.yaml"))
    with pytest.raises(UserError, match="calls itself 'notes'; expected 'other'"):
        load_entry(catalog.find("other", repository), check=accept)


def test_a_listed_template_says_its_inputs_or_its_problem(catalog: Catalog, repository: Path) -> None:
    """The view holds inputs for a form; a broken template is listed with what is wrong."""
    put(repository / ".perdure" / "jobs", "good")
    put(repository / ".perdure" / "jobs", "spoilt", SMALL.replace("finish_when", "finish_wen"))
    good, spoilt = (describe_entry(entry, trusted=False, check=accept) for entry in catalog.list(repository)[-2:])
    assert good.inputs == [
        {"name": "where", "type": "path", "default": "notes.txt", "optional": False, "help": ""},
    ]
    assert not good.trusted
    assert not good.problem
    assert "Did you mean 'finish_when'?" in spoilt.problem
