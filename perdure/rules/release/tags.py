"""Tag forms: ``v{version}`` and its kin. A tag's form and the version in it are kept apart."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from perdure.errors import UserError
from perdure.rules.release.versions import VersionScheme, find_scheme, pep440_to_semver
from perdure.workspace.refs import is_ref

_HOLE = "{version}"
_UNDERSCORED_HOLE = "{version:_}"
_BRACES = re.compile(r"\{[^{}]*\}|[{}]")
_LOOKS_LIKE_VERSION = re.compile(r"\d+(?:(?:\.\d+)+[0-9A-Za-z.+_-]*|(?:_\d+)+[0-9A-Za-z]*)")


@dataclass(frozen=True)
class TagForm:
    """What stands around the version in a tag's name."""

    prefix: str
    suffix: str
    dot: str = "."
    """What stands for the dots of a version: ``_`` in ``curl-8_20_0``."""

    def __str__(self) -> str:
        return f"{self.prefix}{_HOLE if self.dot == '.' else _UNDERSCORED_HOLE}{self.suffix}"

    def write(self, version: str) -> str:
        """Return the tag's name for ``version``."""
        return f"{self.prefix}{version.replace('.', self.dot)}{self.suffix}"

    def read(self, name: str) -> str:
        """Return the version in ``name`` when the form matches as a whole, else an empty text."""
        ends = len(name) - len(self.suffix)
        if not name.startswith(self.prefix) or not name.endswith(self.suffix) or ends <= len(self.prefix):
            return ""
        written = name[len(self.prefix) : ends]
        if self.dot == ".":
            return written
        return "" if "." in written else written.replace(self.dot, ".")


@dataclass(frozen=True)
class ReleaseTag:
    """A tag that names a version."""

    name: str
    version: str
    """As written in the tag."""


def parse_tag_form(text: str) -> TagForm:
    """Read a tag form: ``v{version}``, or ``curl-{version:_}`` where underscores stand for the version's dots.

    Raises:
        UserError: not exactly one ``{version}``, another placeholder, or no legal name of a tag.
    """
    holes = _BRACES.findall(text)
    if holes not in ([_HOLE], [_UNDERSCORED_HOLE]):
        raise UserError(
            f"tag={text!r} is no tag form: it holds {', '.join(holes) or 'no placeholder'}. "
            "Expected {version} exactly once, for example 'v{version}' or 'pkg-v{version}'."
        )
    prefix, _, suffix = text.partition(holes[0])
    form = TagForm(prefix, suffix, "." if holes == [_HOLE] else "_")
    if not is_ref(f"refs/tags/{form.write('1.0.0')}"):
        raise UserError(f"tag={text!r} gives names that git does not allow for a tag, such as {form.write('1.0.0')}.")
    return form


def find_release_tags(names: Iterable[str], form: TagForm, scheme: VersionScheme) -> list[ReleaseTag]:
    """Return the tags that match as a whole and name a legal version, highest version first.

    Moving tags (``v1``), other packages' tags and other schemes' tags do not match. Of several tags with versions that
    are ordered as equal (build metadata), the one first by name comes first.
    """
    found = [ReleaseTag(name, form.read(name)) for name in sorted(names)]
    legal = [tag for tag in found if tag.version and scheme.is_legal(tag.version)]
    return sorted(legal, key=lambda tag: scheme.key(tag.version), reverse=True)


def find_foreign_candidates(names: Iterable[str], form: TagForm, scheme: VersionScheme) -> list[ReleaseTag]:
    """Return pre-releases that are written in Python's way among semantic versions (``1.0.0b2``), as semantic ones.

    Empty for other schemes. A project's pre-releases do not stop to be some for that.
    """
    pep440 = find_scheme("pep440")
    return [
        ReleaseTag(name, translated)
        for name in sorted(names)
        if (version := form.read(name)) and not scheme.is_legal(version)
        if scheme.name == "semver" and pep440.is_legal(version) and pep440.is_candidate(version)
        if (translated := pep440_to_semver(version))
    ]


def guess_forms(names: Iterable[str]) -> list[tuple[TagForm, str, int]]:
    """Return (form, an example, how many) for tags that look like versions, most frequent form first."""
    counts: Counter[TagForm] = Counter()
    examples: dict[TagForm, str] = {}
    for name in names:
        match = _LOOKS_LIKE_VERSION.search(name)
        if match is not None and not set("{}") & set(name):
            dot = "." if "." in match[0] else "_"
            form = TagForm(name[: match.start()], name[match.end() :], dot)
            counts[form] += 1
            examples[form] = name
    return [(form, examples[form], count) for form, count in counts.most_common()]


def refuse_unmatched(
    names: Iterable[str], form: TagForm, scheme: VersionScheme, said: tuple[str, str] = ("", "")
) -> None:
    """Stop when tags look like versions although none matches: the last release would be guessed.

    ``said``: the form that the project's settings name, which is offered first, and their file.

    Raises:
        UserError: names up to three candidate forms with examples.
    """
    guesses = sorted(guess_forms(names), key=lambda one: str(one[0]) != said[0])
    if not guesses:
        return
    why = {said[0]: f", as {said[1]} sets it"}
    told = "; ".join(
        f"tag='{guess}' ({count} such as {example}{why.get(str(guess), '')})" for guess, example, count in guesses[:3]
    )
    same = [guess for guess, _, _ in guesses if guess == form]
    hint = (
        f" Tags of the form '{form}' hold no version that scheme='{scheme.name}' allows: try another scheme."
        if same
        else ""
    )
    raise UserError(
        f"No tag matches '{form}' as a whole, but some look like versions. Say which form names the releases: {told}."
        f"{hint} When none of them is a release, give version=… to begin there."
    )
