"""Users' kinds of effect: only what settings name, in exactly that version, is imported."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

import pytest

from perdure.effect_listing import find_kinds
from perdure.effects.describe import list_all
from perdure.effects.registry import default_effects
from perdure.errors import SetupError, UserError
from perdure.settings import Settings

PACKAGE = {
    "acme_effects.py": '''
        import pathlib
        from datetime import timedelta
        pathlib.Path(__file__).with_name("imported").touch()

        class Ticket:
            """Undone by reopening it."""

            kind = "acme.ticket"
            version = 3
            always_reversible = True
            settle = timedelta(seconds=5)

            def plan(self, request, context):
                """``with``: number."""

            check = probe = do = verify = plan

        class Taken(Ticket):
            kind = "files.write"

        class Unnamed(Ticket):
            kind = "Ticket"

        class Nothing:
            kind, version, always_reversible, settle = "acme.x", 1, True, timedelta(0)

        several = [Ticket()]
        none = []
        broken = 5
    ''',
    "acme-1.4.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: acme\nVersion: 1.4.0\n",
    "acme-1.4.0.dist-info/entry_points.txt": """\
        [perdure.effects]
        acme = acme_effects:Ticket
        acme-list = acme_effects:several
        acme-taken = acme_effects:Taken
        acme-unnamed = acme_effects:Unnamed
        acme-nothing = acme_effects:Nothing
        acme-none = acme_effects:none
        acme-broken = acme_effects:broken
        acme-gone = acme_effects:gone
    """,
}


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on the path with a package that brings effects."""
    for name, text in PACKAGE.items():
        file = tmp_path / "site" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(text))
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.delitem(sys.modules, "acme_effects", raising=False)
    return tmp_path / "site"


def test_package_that_is_not_named_is_not_even_imported(installed: Path) -> None:
    """Being installed gives no effect anything to say."""
    assert "acme.ticket" not in default_effects()
    assert not (installed / "imported").exists()


def test_named_package_in_its_version_brings_its_effects(installed: Path) -> None:
    """A class, an object or a list of them; the listing says who ships it."""
    for named in ("acme@1.4.0", "acme-list@1.4.0"):
        assert default_effects([named])["acme.ticket"].version == 3
        view = list_all([named])[-1]
        assert (view.kind, view.origin) == ("acme.ticket", f"{named.partition('@')[0]} 1.4.0")
        assert (view.about, view.takes, view.settle_seconds) == ("Undone by reopening it.", "`with`: number.", 5)


@pytest.mark.parametrize(
    ("named", "told"),
    [
        ("acme@1.3.0", r"installed in version 1\.4\.0\. Look at what changed"),
        ("acme", "expected a name and its version"),
        ("acne@1.4.0", "Did you mean 'acme'"),
        ("acme-gone@1.4.0", "cannot be imported"),
        ("acme-none@1.4.0", "gives no effects"),
        ("acme-broken@1.4.0", "its `kind` is None"),
        ("acme-nothing@1.4.0", "no method `plan`"),
        ("acme-unnamed@1.4.0", "expected one like acme.ticket"),
        ("acme-taken@1.4.0", "there is an effect of that name"),
    ],
)
def test_package_in_another_version_or_without_effects_is_refused(installed: Path, named: str, told: str) -> None:
    """The worker does not start on effects that nobody looked at; the message says what to do."""
    with pytest.raises(SetupError, match=told):
        default_effects([named])


def test_templates_are_checked_against_users_kinds(tmp_path: Path) -> None:
    """Users' kinds are only looked for when a template names one; what cannot be loaded is said to its writer."""
    settings = Settings(data=tmp_path)
    shipped = default_effects()
    assert find_kinds(settings, shipped, ["acme.ticket"]) == {k: one.always_reversible for k, one in shipped.items()}
    (tmp_path / "config.toml").write_text('[effects]\nacme = "1.4.0"\n')
    assert "acme.ticket" not in find_kinds(settings, shipped, ["files.write"])
    with pytest.raises(UserError, match="no installed package brings effects"):
        find_kinds(settings, shipped, ["acme.ticket"])
