"""Where job templates come from: the shipped ones, a configured folder, and a repository's ``.perdure/jobs``."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from perdure.contracts.base import JsonDict
from perdure.contracts.http import TemplateView
from perdure.contracts.template import Template
from perdure.errors import NotFound, UserError
from perdure.policy.names import suggest
from perdure.policy.templates import parse_template
from perdure.policy.yaml_text import SIZE_LIMIT_BYTES

SourceName = Literal["shipped", "configured", "repository"]
REPOSITORY_FOLDER = Path(".perdure") / "jobs"


@dataclass(frozen=True)
class CatalogEntry:
    """One template file as it lies there."""

    name: str
    """The file's name without its ending."""
    source: SourceName
    path: Path
    text: str
    digest: str
    """SHA-256 of the file's bytes."""
    problem: str = ""
    """Why it cannot be run as it is, whatever it says: its name is taken, it is a link out of the repository, …"""

    @property
    def needs_trust(self) -> bool:
        """Whether somebody has to trust its digest before it may run."""
        return self.source == "repository"


class Catalog:
    """Finds templates. Reads files on each call: an edited template is a new digest at once."""

    def __init__(self, shipped: Path, configured: Path | None = None) -> None:
        self._shipped = shipped
        self._configured = configured

    def find(self, name: str, folder: Path) -> CatalogEntry:
        """Return the template called ``name`` as seen from ``folder`` (absolute).

        Raises:
            NotFound: there is none; the message has the nearest name.
            UserError: two files have that name, or the file cannot be used.
        """
        entries = self.list(folder)
        found = [entry for entry in entries if entry.name == name]
        if not found:
            known = suggest(name, {entry.name for entry in entries}, "templates")
            raise NotFound(f"There is no template {name!r}.{known}")
        for entry in found:
            if entry.problem:
                raise UserError(entry.problem)
        return found[0]

    def list(self, folder: Path) -> list[CatalogEntry]:
        """Return all templates seen from ``folder``: shipped, configured, the repository's; by name within each.

        One whose name is taken by an earlier one is listed with its ``problem``: nothing is ever shadowed.
        """
        entries: list[CatalogEntry] = []
        for source, place in self._places(folder):
            taken = {entry.name: entry for entry in entries}
            files = sorted([*place.glob("*.yaml"), *place.glob("*.yml")]) if place.is_dir() else []
            for path in files:
                entry = _read_entry(source, path, taken)
                entries.append(entry)
                taken.setdefault(entry.name, entry)
        return entries

    def _places(self, folder: Path) -> Iterator[tuple[SourceName, Path]]:
        yield "shipped", self._shipped
        if self._configured is not None:
            yield "configured", self._configured
        own = find_repository_folder(folder)
        if own is not None:
            yield "repository", own


def find_repository_folder(folder: Path) -> Path | None:
    """Return the nearest ``.perdure/jobs`` from ``folder`` up to the root of its repository; ``None`` without one.

    Outside a repository only ``folder`` itself is looked at: a file that somebody left in ``/tmp`` is not ours.
    """
    chain = [folder, *folder.parents]
    root = next((position for position, place in enumerate(chain) if (place / ".git").exists()), 0)
    for place in chain[: root + 1]:
        if (place / REPOSITORY_FOLDER).is_dir():
            return place / REPOSITORY_FOLDER
    return None


def describe_entry(entry: CatalogEntry, *, trusted: bool, check: Callable[[Template], None]) -> TemplateView:
    """Return how a template is listed, its problems included. ``check`` raises as ``check_template`` does."""
    problem, summary, inputs = entry.problem, "", list[JsonDict]()
    try:
        template = load_entry(entry, check=check)
        summary, inputs = template.summary, describe_inputs(template)
    except UserError as error:
        problem = problem or error.message
    return TemplateView(
        name=entry.name,
        summary=summary,
        source=entry.source,
        path=str(entry.path),
        digest=entry.digest,
        trusted=trusted or not entry.needs_trust,
        inputs=inputs,
        problem=problem,
        text=entry.text,
    )


def load_entry(entry: CatalogEntry, *, check: Callable[[Template], None]) -> Template:
    """Parse and check an entry. Raises ``UserError`` with every problem; a name that is not the file's is one."""
    template = parse_template(entry.text, path=str(entry.path))
    if template.name != entry.name:
        where = template.locate(("name",))
        raise UserError(
            f"{where}: The template calls itself {template.name!r}; expected {entry.name!r} as its file is called."
        )
    check(template)
    return template


def describe_inputs(template: Template) -> list[JsonDict]:
    """Return {name, type, default, optional, help} of each input, in the template's order."""
    return [
        {"name": name, "type": spec.type, "default": spec.default, "optional": spec.optional, "help": spec.help}
        for name, spec in template.inputs.items()
    ]


def _read_entry(source: SourceName, path: Path, taken: dict[str, CatalogEntry]) -> CatalogEntry:
    text, problem = _read_text(source, path)
    other = taken.get(path.stem)
    if other is not None:
        problem = (
            f"{path} has the name of a {other.source} template ({other.path}) and would hide it. "
            f"Rename the file and its `name`, for example to my-{path.stem}."
        )
    digest = hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
    return CatalogEntry(path.stem, source, path, text, digest, problem)


def _read_text(source: SourceName, path: Path) -> tuple[str, str]:
    """Return (text, problem). A repository's link could show any file of the owner's: it is not followed."""
    if source == "repository" and path.resolve() != path.parent.parent.parent.resolve() / REPOSITORY_FOLDER / path.name:
        return "", f"{path} is a link or lies behind one; expected a regular file in {REPOSITORY_FOLDER}."
    if path.exists() and not path.is_file():  # opening a named pipe would wait for somebody to write
        return "", f"{path} is no regular file; expected a UTF-8 text file."
    try:
        with path.open("rb") as file:
            data = file.read(SIZE_LIMIT_BYTES + 1)
        if len(data) > SIZE_LIMIT_BYTES:
            return "", f"{path} is larger than {SIZE_LIMIT_BYTES} bytes; a template is a page of text."
        return data.decode("utf-8"), ""
    except (OSError, UnicodeDecodeError) as error:
        return "", f"{path} cannot be read ({error}); expected a UTF-8 text file."
