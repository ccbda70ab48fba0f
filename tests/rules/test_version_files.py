"""In a version file only the version changes, found by the file's structure."""

import json
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.errors import UserError
from perdure.rules.release.files.base import find_places, replace_version
from perdure.rules.release.files.registry import FORMATS, format_named, formats_by_file
from perdure.rules.release.files.toml_text import find_strings

DECOY_TOML = '''\
# version = "1.2.0"
[build-system]
requires = ["x==1.2.0", 'version = "1.2.0"', """
[project]
version = "1.2.0"
"""]
[tool.other]
version = "1.2.0"
[tool.other.project]
version = "1.2.0"
[[tool.list]]
project.version = "1.2.0"
[project]   # here
name = 'orders'
description = """
version = "1.2.0" \\""" still inside
"""
motto = \'\'\'
version = "1.2.0"\'\'\'
dependencies = [ # version = "1.2.0"
  "a==1.2.0",
]
inline = { version = "1.2.0", deep = { version = '1.2.0' } }
"version"   =\t'1.2.0'   # 1.2.0, kept
when = 2026-11-30T12:00:00Z
[project.urls]
version = "1.2.0"
'''

DECOY_JSON = """{
  "scripts": {"version": "1.2.0", "build": "x \\"version\\": \\"1.2.0\\""},
  "name":"orders" ,
  "version"\t:  "1.2.0" ,
  "dependencies": {"a": "1.2.0", "version": "^1.2.0"},
  "list": [{"version": "1.2.0"}]
}"""

DECOY_CARGO = """\
[package]
name = "orders"
version = "1.2.0" # 1.2.0
[dependencies]
version = "1.2.0"
serde = { version = "1.2.0" }
[workspace.package]
version = "1.2.0"
[workspace.dependencies]
orders = { version = "1.2.0", path = "." }
"""

LOCK = """{
  "name": "orders", "version": "1.2.0", "lockfileVersion": 3,
  "packages": {
    "": {"name": "orders", "version": "1.2.0"},
    "node_modules/a": {"version": "1.2.0"}
  }
}"""

FILES = {
    "pyproject.toml": (DECOY_TOML, [("\"version\"   =\t'1.2.0'", "\"version\"   =\t'1.3.0'")]),
    "package.json": (DECOY_JSON, [('"version"\t:  "1.2.0"', '"version"\t:  "1.3.0"')]),
    "package-lock.json": (LOCK, [('"orders", "version": "1.2.0"', '"orders", "version": "1.3.0"')]),
    "Cargo.toml": (
        DECOY_CARGO,
        [
            ('[package]\nname = "orders"\nversion = "1.2.0"', '[package]\nname = "orders"\nversion = "1.3.0"'),
            ('[workspace.package]\nversion = "1.2.0"', '[workspace.package]\nversion = "1.3.0"'),
        ],
    ),
    "VERSION": ("\n  v1.2.0 \n\n", [("v1.2.0", "v1.3.0")]),
}


def expected(name: str) -> tuple[str, str]:
    """A file before and after its version went from 1.2.0 to 1.3.0, made by replacing the marked lines."""
    text, pairs = FILES[name]
    after = text
    for old, new in pairs:
        assert old in after
        after = after.replace(old, new)
    return text, after


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["plain", "bom"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["lf", "crlf"])
def test_only_the_version_changes_byte_for_byte(name: str, mark: str, newline: str) -> None:
    """Decoys in comments, strings, arrays and other tables stay, and so do line ends, blanks, quotes and the mark."""
    before, after = expected(name)
    form = formats_by_file()[name]
    written = replace_version(form, (mark + before.replace("\n", newline)).encode(), "1.3.0", name)
    assert written == (mark + after.replace("\n", newline)).encode()


@pytest.mark.parametrize("name", FILES)
def test_a_missing_last_line_end_stays_missing(name: str) -> None:
    """A file that does not end its last line does not end it afterwards."""
    before, after = (text.rstrip() for text in expected(name))
    assert replace_version(formats_by_file()[name], before.encode(), "1.3.0", name) == after.encode()


def test_poetry_and_project_tables_both_say_the_version() -> None:
    """Where both tables say a version, both are written."""
    text = '[tool.poetry]\nversion = "1.2.0"\n[project]\nname = "a"\nversion = "1.2.0"\n'
    written = replace_version(format_named("pyproject"), text.encode(), "2.0.0", "pyproject.toml")
    assert written.decode() == text.replace("1.2.0", "2.0.0")


@pytest.mark.parametrize(
    "text",
    ['project = {name = "a", version = "1.2.0"}\n', 'project.version = "1.2.0"\n', '["project"]\nversion = "1.2.0"\n'],
)
def test_every_way_to_write_a_table_is_found(text: str) -> None:
    """Inline tables, dotted keys and quoted keys name the same place."""
    assert (
        replace_version(format_named("pyproject"), text.encode(), "2.0.0", "x")
        == text.replace("1.2.0", "2.0.0").encode()
    )


def test_a_dynamic_version_is_not_written_and_said() -> None:
    """A version that the build computes has no place; the note says so."""
    found = find_places(format_named("pyproject"), b'[project]\nname = "a"\ndynamic = ["version"]\n', "pyproject.toml")
    assert found.places == () and "dynamic" in found.notes[0]


def test_an_inherited_version_is_not_written_and_said() -> None:
    """A Cargo package that takes its workspace's version has no place of its own."""
    found = find_places(format_named("cargo"), b'[package]\nname = "a"\nversion.workspace = true\n', "Cargo.toml")
    assert found.places == () and "workspace" in found.notes[0]


def test_a_version_file_with_more_in_it_is_not_written() -> None:
    """A VERSION file that holds more than a version is left alone."""
    assert find_places(format_named("version-file"), b"1.2.0\nof orders\n", "VERSION").places == ()


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("pyproject.toml", b"[project\n", "cannot be read as pyproject"),
        ("pyproject.toml", b'[project]\nversion = "1.2\\u002e0"\n', "written with escapes"),
        ("pyproject.toml", b'[project]\nversion = """1.2.0"""\n', "written with escapes or over several lines"),
        ("package.json", b'{"version": ', "cannot be read as package-json"),
        ("package.json", b"[]", "it is no object but list"),
        ("package.json", b'{"version": "1.2\\u002e0"}', "written with escapes"),
        ("package.json", b"[" * 200_000, "cannot be read as package-json"),
        ("VERSION", b"1.2.0\xff", "is not UTF-8"),
    ],
)
def test_what_cannot_be_read_is_an_error_that_names_the_file(name: str, data: bytes, said: str) -> None:
    """A broken or strangely written file stops the release with its name, and nothing is guessed."""
    with pytest.raises(UserError, match=said) as raised:
        find_places(formats_by_file()[name], data, f"pkg/{name}")
    assert f"pkg/{name}" in raised.value.message


def test_the_last_of_two_equal_json_keys_counts() -> None:
    """As in every JSON reader here, of a key given twice the last one counts."""
    written = replace_version(
        format_named("package-json"), b'{"version":"0.1.0","version":"1.2.0"}', "2.0.0", "package.json"
    )
    assert written == b'{"version":"0.1.0","version":"2.0.0"}'


def test_every_format_has_a_name_and_files_of_its_own() -> None:
    """The registry holds each format once, and no file belongs to two."""
    names = [form.name for form in FORMATS]
    files = [file for form in FORMATS for file in form.file_names]
    assert len(set(names)) == len(names) and len(set(files)) == len(files)


_KEY = st.from_regex(r"[a-z]{1,5}", fullmatch=True)
_TEXT = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), max_size=12)
_LEAF = st.booleans() | st.integers(-9, 9) | _TEXT
_VALUE = st.recursive(
    _LEAF, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEY, inner, max_size=3), max_leaves=8
)


def write_toml(value: object) -> str:
    """Write a value as inline TOML; strings by JSON's escapes, which TOML knows too."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {write_toml(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(write_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


@given(st.dictionaries(_KEY, st.dictionaries(_KEY, _VALUE, max_size=4), max_size=4))
def test_every_string_of_a_toml_document_is_found_where_it_is(tables: dict[str, dict[str, object]]) -> None:
    """Whatever document is written, a found span holds the text that the parser reads at that path."""
    text = "".join(
        f"[{name}] # x\n" + "".join(f"{key} = {write_toml(value)}\n" for key, value in table.items())
        for name, table in tables.items()
    )
    document = tomllib.loads(text)
    spans = {span.path: text[span.start : span.end] for span in find_strings(text)}
    for name, table in document.items():
        for key, value in table.items():
            if isinstance(value, str):
                assert json.loads(f'"{spans[(name, key)]}"') == value


@given(st.dictionaries(_KEY, _VALUE, max_size=5), _TEXT, st.sampled_from([None, 1, 4]))
def test_replacing_a_version_in_any_json_changes_nothing_else(
    rest: dict[str, object], name: str, indent: int | None
) -> None:
    """Whatever else a package.json holds, it reads the same afterwards but for the version."""
    document = {**rest, "name": name, "version": "1.2.0", "end": rest}
    data = json.dumps(document, indent=indent, ensure_ascii=False).encode()
    written = replace_version(format_named("package-json"), data, "10.20.30-rc.1", "package.json")
    assert json.loads(written) == {**document, "version": "10.20.30-rc.1"}
    assert len(written) == len(data) + len("10.20.30-rc.1") - len("1.2.0")
