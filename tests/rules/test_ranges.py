"""Ranges between packages: what meets them, and how each form follows a new version."""

from __future__ import annotations

import pytest

from perdure.rules.release.packages.globs import choose_folders
from perdure.rules.release.packages.ranges import follow, is_met, is_readable, raise_to

MET = [
    ("npm", "^1.2.0", "1.3.0", True),
    ("npm", "^1.2.0", "2.0.0", False),
    ("npm", "^0.2.0", "0.3.0", False),
    ("npm", "^0.0.3", "0.0.4", False),
    ("npm", "^0", "0.9.0", True),
    ("npm", "~1.2.0", "1.3.0", False),
    ("npm", "1.2.0", "1.2.1", False),
    ("npm", "v1.2.0", "1.2.0", True),
    ("npm", "1.x", "1.9.0", True),
    ("npm", "1.2", "1.3.0", False),
    ("npm", "*", "3.0.0", True),
    ("npm", ">= 1.2.0 < 2", "2.0.0", False),
    ("npm", "<=1.2", "1.2.9", True),
    ("npm", ">1.2", "1.2.9", False),
    ("npm", "1.0.0 - 2.0.0", "2.0.0", True),
    ("npm", "^1 || ^2", "2.1.0", True),
    ("npm", "^1.2.0", "1.3.0-rc.1", False),
    ("npm", "^2.0.0-rc.1", "2.0.0-rc.2", True),
    ("npm", "^2.0.0-rc.1", "2.1.0-rc.2", False),
    ("npm", "workspace:^", "1.9.0", True),
    ("npm", "workspace:~", "1.3.0", False),
    ("npm", "workspace:*", "1.2.1", False),
    ("npm", "workspace:^1.2.0", "2.0.0", False),
    ("cargo", "1.2", "1.9.0", True),
    ("cargo", "0.2", "0.3.0", False),
    ("cargo", "1.*", "1.9.0", True),
    ("cargo", "=1.2.0", "1.2.1", False),
    ("cargo", ">=0.2, <0.3", "0.3.0", False),
    ("pep440", ">=1.2,<2", "1.9", True),
    ("pep440", ">=1.2,<2", "2.0.0", False),
    ("pep440", "~=1.2", "1.9", True),
    ("poetry", "^1.2", "2.0.0", False),
    ("npm", "^1.2.0", "1!2.0", False),
]


@pytest.mark.parametrize(("style", "text", "version", "expected"), MET)
def test_a_range_is_met_as_its_ecosystem_reads_it(style: str, text: str, version: str, expected: bool) -> None:
    """Carets stop at the first number that is not zero; Cargo's bare versions are carets; pre-releases stand apart."""
    assert is_met(style, text, version, "1.2.0") is expected


@pytest.mark.parametrize(
    ("style", "text", "version", "expected"),
    [
        ("npm", "^1.2.0", "2.0.0", "^2.0.0"),
        ("npm", "^1.2", "2.0.0", "^2.0"),
        ("npm", "1.x", "2.3.4", "2.x"),
        ("npm", "1.2.0", "2.0.0", "2.0.0"),
        ("npm", "^1", "2.0.0-rc.1", "^2.0.0-rc.1"),
        ("npm", "workspace:*", "2.0.0", "workspace:*"),
        ("npm", "workspace:^1.2.0", "2.0.0", "workspace:^2.0.0"),
        ("npm", "^1 || ^2", "3.0.0", ""),
        ("npm", "<2", "2.0.0", ""),
        ("cargo", "0.2", "0.3.0", "0.3"),
        ("cargo", "=0.2.0", "0.3.0", "=0.3.0"),
        ("cargo", ">=0.2, <0.3", "0.3.1", ">=0.3, <0.4"),
        ("pep440", ">=1.2,<2", "2.1.0", ">=2.1,<3"),
        ("pep440", ">= 1.2.3, < 2.0.0", "2.1.0", ">= 2.1.0, < 3.0.0"),
        ("pep440", "==1.2.*", "2.0.0", "==2.0.*"),
        ("pep440", "==1.2", "2.0.1", "==2.0.1"),
        ("pep440", "~=1.2", "2.0.0", "~=2.0"),
        ("pep440", ">=1.2,!=1.3,<2", "2.0.0", ""),
        ("pep440", ">=1.2,<1.9", "2.0.0", ""),
    ],
)
def test_a_range_follows_in_its_own_form(style: str, text: str, version: str, expected: str) -> None:
    """Operators, blanks, wildcards and the count of numbers stay; where no rule says how, nothing is guessed."""
    assert follow(style, text, version) == expected


def test_only_a_whole_version_is_raised() -> None:
    """A met range with all three numbers moves with its package's release; a wider one says enough."""
    assert raise_to("npm", "^1.2.0", "1.3.0") == "^1.3.0"
    assert [raise_to("npm", text, "1.3.0") for text in ("^1", ">=1.2.0", "*")] == ["^1", ">=1.2.0", "*"]


@pytest.mark.parametrize("text", ["file:../core", "link:../core", "npm:other@^1", "git+ssh://x", "catalog:"])
def test_what_is_no_range_binds_nobody(text: str) -> None:
    """Paths, addresses, aliases and catalogs are none."""
    assert not is_readable("npm", text)


def test_globs_choose_folders() -> None:
    """A star stays inside a name, two span folders, braces choose, a `!` takes away, node_modules is never meant."""
    folders = ["", "a", "packages/a", "packages/b/c", "packages/node_modules/x", "libs/x", "libs/y"]
    assert choose_folders(folders, ["packages/*"]) == ["packages/a"]
    assert choose_folders(folders, ["packages/**", "!packages/b/**"]) == ["packages/a"]
    assert choose_folders(folders, ["./libs/{x,z}/", "."]) == ["", "libs/x"]
    assert choose_folders(folders, ["{a,{libs,packages/{b,c}}/{c,x*}}"]) == ["a", "libs/x", "packages/b/c"]
    assert choose_folders(folders, ["{" + "{a,b}" * 40 + ",libs/x}"]) == []  # more choices than any workspace has
