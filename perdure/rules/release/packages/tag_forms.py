"""How a workspace's tags name packages: read from the tags that there are, never guessed where they say nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from perdure.errors import UserError
from perdure.rules.release.packages.model import Package
from perdure.rules.release.tags import TagForm, find_release_tags, guess_forms, parse_tag_form
from perdure.rules.release.versions import VersionScheme

KNOWN = (
    "{name}@{version}",
    "{name}@v{version}",
    "{name}-v{version}",
    "{name}/v{version}",
    "{name}-{version}",
    "{name}/{version}",
    "{name}_v{version}",
    "{name}=={version}",
    "{path}/v{version}",
    "{path}@{version}",
)
"""Forms that are looked for. ``{name}`` is also met without its scope, and as the folder's name."""

SHARED = ("v{version}", "{version}")
_USUAL = {
    "npm": "{name}@{version}",
    "cargo": "{name}-v{version}",
    "python": "{name}-v{version}",
    "go": "{path}/v{version}",
}


@dataclass(frozen=True)
class PackageTags:
    """A package's tag form."""

    form: TagForm
    pattern: str
    """As it was found: ``{name}@{version}``."""
    names_package: bool = True
    """False for a tag that all packages share."""


def find_tag_forms(
    packages: Sequence[Package], names: Sequence[str], schemes: Mapping[str, VersionScheme], given: str
) -> tuple[dict[str, PackageTags], list[str]]:
    """Return (tag form by package name, findings). ``given``: the form that was asked for.

    Raises:
        UserError: tags look like versions, but they name no package and no shared version.
    """
    if given:
        return {package.name: _given(package, given) for package in packages}, []
    counted = {package.name: _count(package, names, schemes[package.name]) for package in packages}
    usual = _commonest(counted.values())
    found = {package.name: _own(package, counted[package.name], usual) for package in packages}
    missing = [package for package in packages if found[package.name] is None]
    shared, findings = _share(missing, names, schemes)
    chosen = {name: tags for name, tags in found.items() if tags is not None} | shared
    rest = [package for package in missing if package.name not in shared]
    if rest and not chosen and not usual:
        _refuse_unmatched(names, rest)
    chosen |= {package.name: _expand(package, usual or _begin_with(package, packages)) for package in rest}
    return chosen, findings


def _begin_with(package: Package, packages: Sequence[Package]) -> str:
    """The form before the first tag: one for all where all have one version, else what the ecosystem's tools write."""
    is_one = bool(package.group) and all(one.group == package.group or one.private for one in packages)
    return SHARED[0] if is_one else _USUAL[package.kind]


def _given(package: Package, pattern: str) -> PackageTags:
    is_shared = "{name}" not in pattern and "{path}" not in pattern
    return PackageTags(parse_tag_form(pattern), pattern, False) if is_shared else _expand(package, pattern)


def _expand(package: Package, pattern: str, called: str = "") -> PackageTags:
    """The form for one package. Go's root module has plain ``v1.2.3``."""
    if "{path}" in pattern and not package.path:
        pattern = "v{version}"
    text = pattern.replace("{name}", called or package.name).replace("{path}", package.path)
    return PackageTags(parse_tag_form(text), pattern, "{" in pattern.replace("{version}", ""))


def _count(package: Package, names: Sequence[str], scheme: VersionScheme) -> dict[str, tuple[PackageTags, int]]:
    """(form, how many tags) by pattern, of those that have any."""
    found: dict[str, tuple[PackageTags, int]] = {}
    called = dict.fromkeys([package.name, package.name.rpartition("/")[2], package.path.rpartition("/")[2]])
    for pattern in KNOWN:
        for name in called if "{name}" in pattern else [""]:
            if ("{path}" in pattern and not package.path) or ("{name}" in pattern and not name):
                continue
            tags = _expand(package, pattern, name)
            count = len(
                find_release_tags([one for one in names if one.startswith(tags.form.prefix)], tags.form, scheme)
            )
            if count > found.get(pattern, (tags, 0))[1]:
                found[pattern] = (tags, count)
    return found


def _commonest(counted: Iterable[Mapping[str, tuple[PackageTags, int]]]) -> str:
    """The pattern that names most packages; empty when none names any."""
    packages: Counter[str] = Counter()
    tags: Counter[str] = Counter()
    for one in counted:
        packages.update(one.keys())
        tags.update({pattern: count for pattern, (_, count) in one.items()})
    return max(packages, key=lambda pattern: (packages[pattern], tags[pattern]), default="")


def _own(package: Package, counted: Mapping[str, tuple[PackageTags, int]], usual: str) -> PackageTags | None:
    """The workspace's usual form where the package has such tags, else its own commonest; ``None``: it has no tag."""
    if not counted:
        return None
    best = usual if usual in counted else max(counted, key=lambda pattern: counted[pattern][1])
    return counted[best][0]


def _share(
    missing: Sequence[Package], names: Sequence[str], schemes: Mapping[str, VersionScheme]
) -> tuple[dict[str, PackageTags], list[str]]:
    """Plain version tags (``v1.2.0``) belong to the packages of one version: to all that have it, or to the one."""
    for pattern in SHARED:
        form = parse_tag_form(pattern)
        owners = [package for package in missing if _says(package, form, names, schemes[package.name])]
        groups = {package.group for package in owners}
        if len(owners) == 1 or (len(groups) == 1 and "" not in groups):
            group = next(iter(groups))
            alike = [package for package in missing if package in owners or (group and package.group == group)]
            told = ", ".join(package.name for package in alike[:5]) + (" …" if len(alike) > 5 else "")
            tags = PackageTags(form, pattern, False)
            return {package.name: tags for package in alike}, [
                f"Tags of the form '{form}' name the versions of {told}."
            ]
    return {}, []


def _says(package: Package, form: TagForm, names: Sequence[str], scheme: VersionScheme) -> bool:
    """Whether the highest final of those tags is what the package's manifest says."""
    tags = find_release_tags([name for name in names if name.startswith(form.prefix)], form, scheme)
    finals = [tag.version for tag in tags if scheme.is_final(tag.version)] or [tag.version for tag in tags]
    return bool(finals) and (finals[0] == package.version or (package.kind == "go" and not package.path))


def _refuse_unmatched(names: Sequence[str], packages: Sequence[Package]) -> None:
    guesses = guess_forms(names)
    if not guesses:
        return
    told = "; ".join(f"'{guess}' ({count} such as {example})" for guess, example, count in guesses[:3])
    raise UserError(
        f"Tags look like versions, but none names a package such as {packages[0].name}: {told}. "
        "Give tag='v{version}' when all packages share one version, "
        "or tag='{name}@{version}' to begin with tags of their own."
    )


def is_released_by_tag(package: Package, names: Sequence[str], scheme: VersionScheme) -> bool:
    """Whether tags name what the manifest says: so a private package is released; one that was public once is not."""
    for tags, _ in _count(package, names, scheme).values():
        versions = [tag.version for tag in find_release_tags(names, tags.form, scheme)]
        if package.version in versions[:1]:
            return True
    return False
