"""The source ``release.version_files``: which files of the base commit say the package's version."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence
from dataclasses import replace

from perdure.contracts.base import JsonDict
from perdure.errors import UserError
from perdure.rules.base import Rule, RuleContext, RuleResult
from perdure.rules.git_tree import join
from perdure.rules.release.files.base import Found, VersionFormat, find_places
from perdure.rules.release.files.deciding import decide_version
from perdure.rules.release.files.explain import explain_others, say_left
from perdure.rules.release.files.pattern import Declared, pattern_format, read_declarations
from perdure.rules.release.files.python_module import PYTHON_MODULE
from perdure.rules.release.files.registry import MANIFESTS
from perdure.rules.release.files.tree import CommitFiles
from perdure.rules.release.files.version_file import VERSION_FILE
from perdure.rules.release.files.workspaces import (
    FoundFile,
    find_cargo_members,
    find_cargo_requirements,
    find_locks,
    find_maven_modules,
    names_in_workspace,
)

FILES = "release.version_files"


def gather_version_files(arguments: JsonDict, context: RuleContext) -> RuleResult:
    """Find the files that say the package's version, in the objects of the branch's newest commit.

    ``with``: ``repo``; optional ``path``, ``branch`` and ``also`` (places in other files, see ``pattern``). The value's
    ``version`` and ``package`` are those of the first file that says one, in the order of the formats; both may be
    empty. Files that repeat the version are listed with the places that say the same.

    Raises:
        UserError: such a file is a symbolic link, cannot be read as what its name says, or a declared place is none.
    """
    return describe_files(CommitFiles.open(arguments), arguments.get("also"))


def describe_files(files: CommitFiles, also: object = None, *, alone: bool = False) -> RuleResult:
    """Find them in the folder of ``files``. ``alone``: members of a workspace are packages of their own."""
    found = _find_files(files)
    members = [] if alone else _find_members(files, found)
    current = decide_version(found, members)
    chosen = [_choose(file, current) for file in found]
    chosen += _find_repetitions(files, found, members, current, alone=alone)
    chosen += [_find_declared(files, declared, current) for declared in read_declarations(also)]
    findings = [f"{file.path}: {note}." for file in chosen for note in file.found.notes]
    findings += [*say_left(found, current), *explain_others(files, chosen)]
    return _write_result(files, chosen, current, findings)


def _find_files(files: CommitFiles) -> list[FoundFile]:
    """The package's own files, in the order in which they count."""
    found: dict[str, FoundFile] = {}
    for form in MANIFESTS:
        for path, data in _read_form(files, form):
            found.setdefault(path, FoundFile(path, form, _find_own(form, data, path, files.folder)))
    for file in list(found.values()):
        _follow_pointers(files, file, found)
    return [*found.values()]


def _read_form(files: CommitFiles, form: VersionFormat) -> Iterator[tuple[str, bytes]]:
    for name in form.file_names:
        data = files.read_own(name)
        if data is not None:
            yield join(files.folder, name), data
    paths = files.match(form.patterns)
    files.load(paths)
    for path in paths:
        yield path, files.read(path)


def _find_own(form: VersionFormat, data: bytes, path: str, folder: str) -> Found:
    """Find places; what lies deeper than the package's folder repeats its version."""
    found = find_places(form, data, path)
    if posixpath.dirname(path) == folder:
        return found
    # In `__init__.py` a plain `version` may be anything.
    is_init = posixpath.basename(path) == "__init__.py"
    places = tuple(replace(place, follows=True) for place in found.places if not is_init or place.where[:2] == "__")
    return Found(places, "", found.notes if places else ())


def _follow_pointers(files: CommitFiles, file: FoundFile, found: dict[str, FoundFile]) -> None:
    """Put the file that a build reads the version from in front: what it says is the package's version."""
    paths = [join(files.folder, pointer.removeprefix("./")) for pointer in file.found.pointers]
    path = next((path for path in paths if files.has(path)), "")
    if not path:
        return
    form = PYTHON_MODULE if path.endswith(".py") else VERSION_FILE
    places = find_places(form, files.read(path), path).places
    source = FoundFile(path, form, Found(tuple(replace(place, follows=False) for place in places[:1])))
    rest = {name: known for name, known in found.items() if name != path}
    found.clear()
    found.update({path: source, **rest} if places else rest)


def _choose(file: FoundFile, current: str) -> FoundFile:
    """Keep the places to write: the file's own version, and repetitions that say the same."""
    kept = tuple(place for place in file.found.places if not place.follows or place.version == current)
    kept = tuple(place for place in kept if place.key != "parent")
    return replace(file, found=replace(file.found, places=kept))


def _find_members(files: CommitFiles, found: Sequence[FoundFile]) -> list[FoundFile]:
    """Manifests of the crates in a Cargo workspace, without the root's own."""
    roots = [file for file in found if file.path == join(files.folder, "Cargo.toml")]
    return [member for root in roots for member in find_cargo_members(files, root) if member.path != root.path]


def _find_repetitions(
    files: CommitFiles, found: Sequence[FoundFile], members: Sequence[FoundFile], current: str, *, alone: bool
) -> list[FoundFile]:
    """Members of a Cargo workspace, Maven modules and lock files, with the places that say the same version."""
    crates = {file.found.package for file in found if file.form.name == "cargo" and file.found.places}
    gems = {file.found.package for file in found if file.form.name == "gemspec"}
    more = [_repeat(member, current) for member in members]
    crates |= {member.found.package for member in more if member.found.places}
    crates |= names_in_workspace(files, members)
    for file in [] if alone else found:
        if file.path == join(files.folder, "Cargo.toml"):
            more += find_cargo_requirements(files, [file, *members], crates, current)
        elif file.path == join(files.folder, "pom.xml"):
            more += [_repeat(module, current) for module in find_maven_modules(files, file)]
    locks = find_locks(files, {"cargo-lock": crates, "gemfile-lock": gems})
    more += [replace(lock, only_last=not current and lock.form.name == "cargo-lock") for lock in locks]
    return [file for file in more if file.found.places]


def _repeat(file: FoundFile, current: str) -> FoundFile:
    """Keep what says the version; where none is known (members of several versions) the last release will tell."""
    places = tuple(place for place in file.found.places if not current or place.version == current)
    return replace(file, found=Found(places, file.found.package), only_last=not current)


def _find_declared(files: CommitFiles, declared: Declared, current: str) -> FoundFile:
    """Find a declared place. Raises ``UserError`` when it is not there: a typing error must not go unnoticed."""
    path, form = join(files.folder, declared.path), pattern_format(declared.search)
    found = find_places(form, files.read(path), path).places if files.has(path) else ()
    agreed = {place.version for place in found}
    # Without any version file the declared places say the version, when they all say the same.
    wanted = current or (agreed.pop() if len(agreed) == 1 else "")
    places = tuple(place for place in found if place.version == wanted)
    if not places:
        told = "that text is not there" if files.has(path) else "there is no such file"
        said = f"it says {found[0].version} there" if found else told
        raise UserError(
            f"also={declared.path}: {declared.search} finds no version {current or '(none is known)'} ({said}). "
            "Give the text as it stands in the file, with {version} in place of the version."
        )
    return FoundFile(path, form, Found(places))


def _write_result(files: CommitFiles, chosen: Sequence[FoundFile], current: str, findings: list[str]) -> RuleResult:
    listed = [_describe(file) for file in _merge(chosen)]
    said = ", ".join(dict.fromkeys(file["path"] for file in listed if file["places"]))
    value: JsonDict = {
        "rule": FILES,
        "commit": files.commit,
        "path": files.folder,
        "files": sorted(listed, key=lambda file: not file["places"]),
        "version": current,
        "package": next((file["package"] for file in listed if file["package"]), ""),
    }
    return RuleResult(
        value, f"{current or 'several versions'} in {said}" if said else "no version file", findings=findings
    )


def _merge(chosen: Sequence[FoundFile]) -> list[FoundFile]:
    """Leave out files without a place unless they are a manifest in the package's folder, and what is there twice."""
    seen: set[tuple[str, str]] = set()
    kept = []
    for file in chosen:
        key = (file.path, file.form.name)
        if key not in seen and (file.found.places or file.form.file_names):
            seen.add(key)
            kept.append(file)
    return kept


def _describe(file: FoundFile) -> JsonDict:
    places = [{"where": place.where, "version": place.version} for place in file.found.places]
    described: JsonDict = {
        "path": file.path,
        "format": file.form.name,
        "package": file.found.package,
        "places": places,
    }
    return {**described, "only_last": True} if file.only_last else described


FILES_RULE = Rule(
    name=FILES,
    rule_class="source",
    run=gather_version_files,
    needs=frozenset({"repo"}),
    takes=frozenset({"path", "branch", "follow", "also"}),
    about="Files that say the package's version: manifests of fifteen kinds, their lock files, `__version__`, VERSION.",
)
