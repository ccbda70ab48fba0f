"""Each format finds its version by structure: decoys in comments, dependencies and other tables stay as they are."""

from __future__ import annotations

import codecs
import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.errors import StageFailed, UserError
from perdure.rules.release.files.base import VersionFormat, find_places, replace_version
from perdure.rules.release.files.registry import FORMATS, format_named
from perdure.rules.release.files.tree import compile_patterns
from tests.rules.version_samples import SAMPLES

MARK = re.compile("‹([^›]*)›")
NEW = "10.20.30"


def format_of(path: str) -> VersionFormat:
    """The one format that reads this path in a package's folder."""
    by_name = [form for form in FORMATS if path in form.file_names]
    by_pattern = [form for form in FORMATS if form.patterns and compile_patterns(form.patterns).fullmatch(path)]
    (form,) = by_name or by_pattern
    return form


def before_and_after(marked: str) -> tuple[str, str]:
    """A sample without its marks, and with the new version in their place."""
    return MARK.sub(r"\1", marked), MARK.sub(NEW, marked)


def write(path: str, text: str | bytes, version: str, old: str = "1.2.0") -> bytes:
    """Write ``version`` where the file says ``old``, as a release does."""
    form, data = format_of(path), text if isinstance(text, bytes) else text.encode()
    wheres = {place.where for place in find_places(form, data, path).places if place.version == old}
    return replace_version(form, data, version, path, wheres=wheres)


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["plain", "bom"])
def test_the_version_changes_and_no_other_byte(name: str, newline: str, mark: str) -> None:
    """Whatever the format, only the marked characters change; line ends and a byte-order mark stay."""
    path, marked = SAMPLES[name]
    before, after = before_and_after(mark + marked.replace("\n", newline))
    assert write(path, before, NEW) == after.encode()


@pytest.mark.parametrize("name", SAMPLES)
def test_a_missing_last_line_end_stays_missing(name: str) -> None:
    """A file that does not end its last line does not end it afterwards."""
    path, marked = SAMPLES[name]
    before, after = before_and_after(marked.rstrip("\n"))
    assert write(path, before, NEW) == after.encode()


@settings(deadline=None)  # a busy machine is no failure
@given(
    st.sampled_from(sorted(SAMPLES)),
    st.from_regex(r"[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}(-(rc|beta)\.[0-9]{1,2})?", fullmatch=True),
)
def test_writing_then_reading_gives_the_new_version(name: str, version: str) -> None:
    """Any version comes back from every place, and writing the old one again gives the first bytes."""
    path, marked = SAMPLES[name]
    before, _ = before_and_after(marked)
    written = write(path, before, version)
    said = [place.version for place in find_places(format_of(path), before.encode(), path).places]
    again = [place.version for place in find_places(format_of(path), written, path).places]
    assert again == [version if old == "1.2.0" else old for old in said]
    assert version == "1.2.0" or write(path, written, "1.2.0", old=version) == before.encode()


@pytest.mark.parametrize(
    ("path", "text", "name"),
    [
        ("setup.py", "setup(name='a-b', version='1')", "a-b"),
        ("setup.cfg", "[metadata]\nname = a\nversion = 1\n", "a"),
        ("pom.xml", "<project><artifactId>a</artifactId><version>1</version></project>", "a"),
        ("composer.json", '{"name": "v/a"}', "v/a"),
        ("mix.exs", 'def project do [app: :a, version: "1"] end', "a"),
        ("x.gemspec", "Gem::Specification.new do |s|\n s.name = 'a'\nend", "a"),
        ("Chart.yaml", "name: a\nversion: 1.0.0\n", "a"),
        ("x.csproj", "<Project><PropertyGroup><PackageId>a</PackageId></PropertyGroup></Project>", "a"),
    ],
)
def test_the_package_is_named(path: str, text: str, name: str) -> None:
    """Where a manifest names its package, the release knows the name."""
    assert find_places(format_of(path), text.encode(), path).package == name


@pytest.mark.parametrize(
    ("path", "text", "said"),
    [
        ("setup.py", "setup(version=get())", "computed"),
        ("setup.py", "V = '1.0'\nV = '2.0'\nsetup(version=V)", "computed"),
        ("setup.py", "setup(version='1'); setup(version='2')", "more than once"),
        ("setup.py", "print 'python 2'", "cannot be read as Python"),
        ("setup.cfg", "[metadata]\nversion = 1.0 and more\n", "no plain version"),
        ("pyproject.toml", "[project]\ndynamic = ['version']\n[tool.setuptools_scm]\n", "from the tag"),
        ("pyproject.toml", "[project]\ndynamic = ['version']\n[tool.hatch.version]\nsource = 'vcs'\n", "from the tag"),
        ("pom.xml", "<project><parent><version>1.0</version></parent></project>", "its parent's"),
        ("pom.xml", "<project><version>${x}</version></project>", "not set here"),
        ("x.csproj", "<Project><PropertyGroup><FileVersion>1.2.0.0</FileVersion></PropertyGroup></Project>", "1.2.0.0"),
        ("pubspec.yaml", "version: 1.2.0+7\n", "+7 is left"),
        ("Chart.yaml", "version: 1.2.0\nappVersion: 3.0.0\n", "appVersion 3.0.0 is another"),
        ("mix.exs", "def project do [version: read()] end", "computed"),
        ("mix.exs", 'def project do [version: "1.0', "cannot be read as Elixir"),
        ("x.gemspec", "puts 1", "no Gem::Specification.new block"),
        ("x.gemspec", "s = <<~A\n", "cannot be read as Ruby"),
        ("lib/a/version.rb", 'VERSION = [1, 2].join(".")', "no VERSION as one string"),
        ("orders/__init__.py", "__version__ = '1.0'\n__version_info__ = (1, 0)\n", "as a tuple"),
        ("CITATION.cff", "version: 1.2.0\ndate-released: 2026-01-01\n", "date-released 2026-01-01"),
    ],
)
def test_what_is_not_written_is_said(path: str, text: str, said: str) -> None:
    """A version that is computed, inherited or left on purpose gives a note instead of a guess."""
    found = find_places(format_of(path), text.encode(), path)
    assert any(said in note for note in found.notes), found


@pytest.mark.parametrize(
    ("path", "text", "said"),
    [
        ("pom.xml", '<!DOCTYPE p [<!ENTITY a "1.0">]><project><version>&a;</version></project>', "declares the entity"),
        ("pom.xml", "<project>", "no element found"),
        ("Chart.yaml", "version: 1.0.0\nversion: 2.0.0\n", "stands twice"),
        ("Chart.yaml", "- a\n", "no mapping"),
        ("Chart.yaml", "a: [\n", "line 2"),
        ("setup.cfg", "[metadata]\nversion = 1.0\nversion = 2.0\n", "stands twice"),
        ("composer.json", "[]", "no object"),
    ],
)
def test_a_manifest_that_cannot_be_read_stops_the_release(path: str, text: str, said: str) -> None:
    """A broken manifest is an error with its name and place, before anything is written."""
    with pytest.raises(UserError, match=said) as raised:
        find_places(format_of(path), text.encode(), f"pkg/{path}")
    assert f"pkg/{path}" in raised.value.message


@pytest.mark.parametrize(
    ("path", "text", "encoding"),
    [
        ("setup.py", "# -*- coding: latin-1 -*-\nsetup(author='Zoë', version='1.2.0')\n", "latin-1"),
        ("orders/__init__.py", "# coding: cp1252\nA = '€'; __version__ = '1.2.0'\n", "cp1252"),
        ("setup.py", "# coding: shift_jis\nA = '表'; setup(version='1.2.0')\n", "shift_jis"),
        (
            "pom.xml",
            '<?xml version="1.0" encoding="ISO-8859-1"?><project><a>é</a><version>1.2.0</version></project>',
            "latin-1",
        ),
        ("x.csproj", "\ufeff<Project><PropertyGroup><Version>1.2.0</Version></PropertyGroup></Project>", "utf-16-le"),
        ("VERSION", "\ufeff1.2.0\r\n", "utf-16-be"),
    ],
)
def test_the_encoding_stays(path: str, text: str, encoding: str) -> None:
    """A file in an encoding that it declares is written in the same one."""
    written = replace_version(format_of(path), text.encode(encoding), NEW, path)
    assert written == text.replace("1.2.0", NEW, 1).encode(encoding)


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("setup.py", b"# coding: utf-8\nsetup(author='\xff', version='1.2.0')\n"),
        ("setup.py", b"# coding: no-such\n\xff"),
        ("pom.xml", b'<?xml version="1.0" encoding="rot13"?><project/>'),
        ("VERSION", codecs.BOM_UTF16_LE + b"\x00\xd8"),
        ("Chart.yaml", b"version: 1.2.0 # \xe9\n"),
    ],
)
def test_bytes_that_are_not_what_the_file_says_are_an_error(path: str, data: bytes) -> None:
    """What would not come back byte for byte is never written."""
    with pytest.raises(UserError, match="Convert it"):
        find_places(format_of(path), data, path)


def test_a_version_that_would_break_the_file_is_refused() -> None:
    """Only what a version may hold is written: no quote, no markup, no line end."""
    with pytest.raises(StageFailed, match="holds more than"):
        replace_version(format_named("setup-py"), b"setup(version='1.2.0')", "1'", "setup.py")
    with pytest.raises(StageFailed, match="would not say"):
        replace_version(format_named("pubspec"), b"version: 1.2.0+7\n", "1.3.0+8", "pubspec.yaml")


def test_lock_files_name_their_own_packages() -> None:
    """In a lock file only the repository's own packages have a place, each under its key."""
    cargo = (
        '[[package]]\nname = "a"\nversion = "1.2.0"\ndependencies = ["b 1.2.0"]\n'
        '[[package]]\nname = "b"\nversion = "1.2.0"\nsource = "registry+x"\n'
        '[[package]]\nname = "c"\nversion = "0.1.0"\n'
    )
    uv = (
        'version = 1\n[[package]]\nname = "x"\nversion = "1.2.0"\nsource = { registry = "r" }\n'
        '[[package]]\nname = "a"\nversion = "1.2.0"\nsource = { editable = "." }\n'
        '[package.metadata]\nversion = "1.2.0"\n'
        '[[package]]\nname = "m"\nversion = "1.2.0"\nsource = { virtual = "packages/m" }\n'
    )
    npm = json.dumps(
        {
            "version": "1.2.0",
            "packages": {
                "": {"version": "1.2.0"},
                "packages/m": {"version": "0.3.0"},
                "node_modules/m": {"link": True, "version": "9.0.0"},
                "packages/m/node_modules/z": {"version": "1.2.0"},
            },
        }
    )
    gem = "PATH\n  remote: .\n  specs:\n    a (1.2.0)\n      b (= 1.2.0)\n\nGEM\n  remote: .\n  specs:\n    b (1.2.0)\n"
    keys = {
        name: [place.key for place in find_places(format_named(name), text.encode(), name).places]
        for name, text in [("cargo-lock", cargo), ("uv-lock", uv), ("package-lock", npm), ("gemfile-lock", gem)]
    }
    assert keys == {
        "cargo-lock": ["a", "c"],
        "uv-lock": [".", "packages/m"],
        "package-lock": ["", "", "packages/m"],
        "gemfile-lock": ["a"],
    }
    written = replace_version(format_named("uv-lock"), uv.encode(), NEW, "uv.lock", wheres={"package a"}).decode()
    assert written == uv.replace('"a"\nversion = "1.2.0"', f'"a"\nversion = "{NEW}"')


def test_every_format_reads_files_of_its_own() -> None:
    """No path in a package's folder is read by two formats, so that nothing is written twice."""
    for path, _ in SAMPLES.values():
        format_of(path)
    names = [name for form in FORMATS for name in form.file_names]
    patterned = [
        name for name in names for form in FORMATS if form.patterns and compile_patterns(form.patterns).fullmatch(name)
    ]
    assert len(names) == len(set(names)) and patterned == []


_CODE = st.lists(
    st.sampled_from(
        [
            '"',
            "'",
            "#",
            "\n",
            "#{",
            "}",
            "{",
            "a",
            " ",
            "\\",
            "/",
            "%w[",
            "]",
            "<<~T\n",
            "T\n",
            "s.version = ",
            "1.2.0",
            '"""',
        ]
    ),
    max_size=25,
).map("".join)


@settings(deadline=None)  # a busy machine is no failure
@given(_CODE, _CODE, st.sampled_from(["x.gemspec", "mix.exs"]))
def test_whatever_code_stands_around_only_the_version_changes(before: str, after: str, path: str) -> None:
    """Around any soup of literals the version is found where it is, or nothing is written; never something else."""
    core = {
        "x.gemspec": '\nGem::Specification.new do |zz|\nzz.version = "7.7.7"\nend\n',
        "mix.exs": '\ndef project do [version: "7.7.7"] end\n',
    }[path]
    text = before + core + after
    places = find_places(format_of(path), text.encode(), path).places
    assert all(text[place.start : place.end] == "7.7.7" for place in places)


_LONG = 200_000


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("python-module", f"__version__ = '{'1' * _LONG}#'\n"),
        ("version-file", "1" * _LONG + "#"),
        ("pattern:x{version}y", "x" + "1a" * _LONG + "!"),
        ("pattern:{version}!", "1" * _LONG),
        ("gemspec", "a/" * _LONG),
        ("gemspec", '"#{' * 5000),
        ("mix", '"#{a}" ' * (_LONG // 7)),
        ("pyproject", "a = " + "[" * 5000 + "]" * 5000),
        ("chart", "a: " + "[" * 5000),
        ("chart", "# " + "x" * _LONG * 2),
        ("cargo-requirements", f'[dependencies.a]\npath = "x"\nversion = "1.1.{"1" * _LONG}#"\n'),
    ],
)
def test_files_made_to_be_slow_are_read_at_once(name: str, text: str) -> None:
    """A repository is anybody's: no file takes more than a moment, whatever is in it; the test's limit would tell."""
    try:
        assert find_places(format_named(name), text.encode(), "x").places == ()
    except UserError as error:
        assert "cannot be read" in error.message
