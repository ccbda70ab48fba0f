"""Users' tools: made by a decorator, loaded only when named with their version, told apart by their definition."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from perdure.contracts.agent_ports import ToolContext
from perdure.errors import SetupError, ToolFault
from perdure.settings import read_named, read_settings
from perdure.testing.tools import ToolBench
from perdure.tool_listing import describe_tools
from perdure.tools.decorator import tool
from perdure.tools.registry import default_tools, open_tools, shipped_tools


def test_function_becomes_a_tool(bench: ToolBench) -> None:
    """Parameters are the schema, the docstring is what the model reads, the context is given and no argument."""

    @tool("weather.today", effect="read", touches=lambda city, **_: f"city:{city}")
    def today(city: Annotated[str, Field(description="Its name.")], context: ToolContext, days: int = 1) -> str:
        """Tell the weather."""
        return f"{city} {days} {context.agent}"

    assert today.spec.description == "Tell the weather."
    assert today.spec.parameters == {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "city": {"type": "string", "description": "Its name."},
            "days": {"type": "integer", "default": 1},
        },
        "required": ["city"],
    }
    outcome = bench.call(today, city="Ghent", days=2)
    assert (outcome.text, outcome.changed, today.spec.may_repeat) == ("Ghent 2 bench", False, True)
    assert today.target({"city": "Ghent"}) == "city:Ghent"
    assert "`city` is missing" in bench.call(today).text


def test_what_says_nothing_about_its_effect_is_external(bench: ToolBench) -> None:
    """Deny by default: such a tool asks on every position of the dial but delegate, and touches its own name."""

    @tool("mystery")
    def mystery() -> str:
        """Do something."""
        return "done"

    assert (mystery.spec.effect_class, mystery.spec.may_repeat) == ("external", False)
    assert mystery.target({}) == "tool:mystery"
    assert bench.call(mystery).changed
    assert mystery.probe({}, bench.context()) is None


def test_results_become_text(bench: ToolBench) -> None:
    """Text, bytes, plain JSON and models are shown; what is none of it is told."""

    class Answer(BaseModel):
        number: int

    values: list[Any] = ["ä", b"\xff", {"a": [1, None]}, Answer(number=4), object()]

    @tool("value", effect="read")
    def value(number: int) -> Any:
        """Give a value."""
        return values[number]

    texts = [bench.call(value, number=number).text for number in range(len(values))]
    assert texts[:4] == ["ä", "�", '{\n "a": [\n  1,\n  null\n ]\n}', '{\n "number": 4\n}']
    assert "no plain JSON" in texts[4]


def test_function_that_cannot_be_a_tool_is_refused() -> None:
    """No docstring, a parameter without a type, or one with a star: said when the tool is made."""

    def silent(word: str) -> str:
        return word

    def untyped(word) -> str:  # type: ignore[no-untyped-def]
        """Say it."""
        return str(word)

    def starred(*words: str) -> str:
        """Say them."""
        return str(words)

    for function, told in ((silent, "has no docstring"), (untyped, "'word'"), (starred, "'words'")):
        with pytest.raises(SetupError, match=told):
            tool("t")(function)


def test_a_changed_function_is_a_new_tool() -> None:
    """The hash of the definition changes with the function's text, its version, schema, effect or description."""

    def one(word: str) -> str:
        """Say it."""
        return word

    def same_name(word: str) -> str:
        """Say it."""
        return word + "!"

    def choice(word: Literal["a", "b"]) -> str:
        """Say it."""
        return word

    tools = [
        tool("t")(one),
        tool("t")(same_name),
        tool("t")(choice),
        tool("t", version="2")(one),
        tool("t", effect="read")(one),
    ]
    assert len({made.spec.digest() for made in tools}) == len(tools)
    assert tool("t")(one).spec.digest() == tools[0].spec.digest()


def test_a_target_cannot_pose_as_two() -> None:
    """A line end in what a call touches does not make another target of its rest."""

    @tool("t", touches=lambda word: [f"word:{word}", "always"])
    def say(word: str) -> str:
        """Say it."""
        return word

    assert say.target({"word": "a\nfile:x"}) == "word:a\\nfile:x\nalways"


def test_shipped_tools_are_whole() -> None:
    """Each has a description, a closed schema and a name of its own; nothing shipped is external."""
    tools = shipped_tools()
    assert len({made.spec.name for made in tools}) == len(tools) == len(default_tools())
    for made in tools:
        assert made.spec.description and made.spec.parameters["additionalProperties"] is False
        assert made.spec.effect_class in ("read", "workspace")
        assert "title" not in str(made.spec.parameters)


PACKAGE = {
    "acme_tools.py": '''
        import pathlib
        pathlib.Path(__file__).with_name("imported").touch()
        from perdure.tools.base import Traffic
        from perdure.tools.decorator import tool

        @tool("acme.say", effect="read")
        def say(word: str) -> str:
            """Say a word."""
            return word

        taken = tool("files.read", effect="read")(say.do.__self__._function)
        broken = 5
        several = [say]
        beyond = tool("acme.ask", effect="read", traffic=Traffic(fallback="shell.run"))(say.do.__self__._function)
        nobody = tool("acme.ask", effect="read", traffic=Traffic(fallback="acme.sai"))(say.do.__self__._function)
    ''',
    "acme-1.4.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: acme\nVersion: 1.4.0\n",
    "acme-1.4.0.dist-info/entry_points.txt": """\
        [perdure.tools]
        acme = acme_tools:say
        acme-list = acme_tools:several
        acme-taken = acme_tools:taken
        acme-broken = acme_tools:broken
        acme-gone = acme_tools:nothing
        acme-beyond = acme_tools:beyond
        acme-nobody = acme_tools:nobody
    """,
}


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on the path with a package that brings tools."""
    for name, text in PACKAGE.items():
        file = tmp_path / "site" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(text))
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.delitem(sys.modules, "acme_tools", raising=False)
    return tmp_path / "site"


def test_package_that_is_not_named_is_not_even_imported(installed: Path) -> None:
    """Being installed gives no tool anything to say."""
    assert "acme.say" not in default_tools()
    assert not (installed / "imported").exists()


def test_named_package_in_its_version_brings_its_tools(installed: Path, bench: ToolBench) -> None:
    """`name@version` loads one tool or a list of them; the listing says who ships it."""
    for named in ("acme@1.4.0", "acme-list@1.4.0"):
        say = default_tools([named])["acme.say"]
        assert bench.call(say, word="hello").text == "hello"
        assert getattr(say, "origin", "") == f"{named.partition('@')[0]} 1.4.0"


@pytest.mark.parametrize(
    ("named", "told"),
    [
        ("acme@1.3.0", r"installed in version 1\.4\.0\. Look at what changed"),
        ("acme", "expected a name and its version"),
        ("acne@1.4.0", "Did you mean 'acme'"),
        ("acme-broken@1.4.0", "gives no tools"),
        ("acme-gone@1.4.0", "cannot be imported"),
        ("acme-taken@1.4.0", "there is a tool of that name"),
        ("acme-beyond@1.4.0", r"falls back on 'shell.run', which may change more \(workspace\) than it \(read\)"),
        ("acme-nobody@1.4.0", "falls back on 'acme.sai', and there is no such tool"),
    ],
)
def test_package_in_another_version_or_without_tools_is_refused(installed: Path, named: str, told: str) -> None:
    """The worker does not start on tools that nobody looked at; the message says what to do."""
    with pytest.raises(SetupError, match=told):
        default_tools([named])


def test_registry_is_light_to_import() -> None:
    """The worker is ready before anything that HTTP or a search needs is loaded."""
    heavy = "{'httpcore', 'ssl', 'httpx', 'asyncio'}"
    code = f"import sys; import perdure.tools.registry as r; r.default_tools(); print({heavy} & set(sys.modules))"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "set()"


def test_faults_of_a_users_tool_reach_the_model(bench: ToolBench) -> None:
    """ToolFault is told as it is."""

    @tool("t", effect="read")
    def fail() -> str:
        """Fail."""
        raise ToolFault("The ticket 42 is closed; reopen it first.")

    assert bench.call(fail).text == "The ticket 42 is closed; reopen it first."


def describe(*named: str, path: Path | None = None) -> tuple[int, Any]:
    """Run the listing's process."""
    env = {"PYTHONPATH": str(path)} if path else {}
    argv = [sys.executable, "-P", "-m", "perdure.tools.describe", *named]
    ended = subprocess.run(argv, env=env, capture_output=True, check=False)
    return ended.returncode, json.loads(ended.stdout)


def test_listing_describes_named_packages_in_a_process_of_its_own(installed: Path) -> None:
    """Shipped tools first, then the named ones with who ships them; what a package prints is no part of the listing."""
    (installed / "acme_tools.py").write_text("print('hello')\n" + (installed / "acme_tools.py").read_text())
    code, listed = describe("acme@1.4.0", path=installed)
    assert code == 0
    assert [view["name"] for view in listed] == [*default_tools(), "acme.say"]
    assert (listed[-1]["origin"], listed[-1]["effect_class"]) == ("acme 1.4.0", "read")


def test_listing_says_what_is_wrong_with_a_setting() -> None:
    """The same message as at the worker's start."""
    with pytest.raises(SetupError, match="no installed package brings tools called 'acme'"):
        describe_tools(["acme@1.4.0"])
    assert [view.name for view in describe_tools()] == list(default_tools())


def test_settings_name_tools_with_their_version(tmp_path: Path) -> None:
    """`[tools]` in the settings file, read when it is needed; a version that is no text is told."""
    settings = read_settings({}, data=tmp_path)
    assert read_named(settings, "tools") == ()
    settings.config.write_text('[tools]\nacme = "1.4.0"\nother-tools = "2"\n')
    assert read_named(settings, "tools") == ("acme@1.4.0", "other-tools@2")
    settings.config.write_text("[tools]\nacme = 1.4\n")
    with pytest.raises(SetupError, match=r'acme is 1\.4; expected the version to load, as text: acme = "1\.4\.0"'):
        open_tools(settings)
