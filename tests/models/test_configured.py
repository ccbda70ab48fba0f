"""Models are named in the settings file; what is missing or wrong is said with its place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from perdure.errors import SetupError
from perdure.models.client import Models
from perdure.models.configured import read_models
from perdure.models.prices import facts_of
from perdure.settings import read_settings

FAST = {"provider": "ollama", "model": "qwen3"}


def test_no_model_names_the_setting(tmp_path: Path) -> None:
    """Without any model the error names the file and shows what to write."""
    models = Models.of(read_settings({}, data=tmp_path))
    with pytest.raises(SetupError, match=r"(?s)config\.toml.*\[models\.fast\]"):
        models.facts("")


def test_settings_file_is_read_as_it_is_now(tmp_path: Path) -> None:
    """A model that is written into config.toml counts from the next question, and so does a fault in the file."""
    models = Models.of(read_settings({}, data=tmp_path))
    (tmp_path / "config.toml").write_text('[models.fast]\nprovider = "ollama"\nmodel = "qwen3"\nwindow = 4096\n')
    assert models.facts("").window_tokens == 4096
    (tmp_path / "config.toml").write_text("[models.fast\n")
    with pytest.raises(SetupError, match=r"config\.toml cannot be read"):
        models.facts("fast")


def test_other_file_can_be_named(tmp_path: Path) -> None:
    """PERDURE_CONFIG names another file."""
    (tmp_path / "mine.toml").write_text('[models.fast]\nprovider = "ollama"\nmodel = "qwen3"\n')
    models = Models.of(read_settings({"PERDURE_CONFIG": str(tmp_path / "mine.toml")}, data=tmp_path))
    assert models.facts("fast").name == "fast"


def test_single_model_is_the_default_one() -> None:
    """One model needs no default; of several one is named."""
    assert read_models({"fast": FAST}).find("").name == "fast"
    two = {"fast": FAST, "good": FAST}
    with pytest.raises(SetupError, match="No default model"):
        read_models(two).find("")
    assert read_models({**two, "default": "good"}).find("").name == "good"


def test_unknown_name_shows_the_nearest() -> None:
    """A name with a slip is answered with the one that was meant."""
    with pytest.raises(SetupError, match="Did you mean 'fast'"):
        read_models({"fast": FAST}).find("fsat")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"base_url": "https://me:hunter2@host/v1"}, "user info"),
        ({"base_url": "https://host/v1?key=hunter2"}, "query"),
        ({"base_url": "ftp://host"}, "no address"),
        ({"provider": "compatible"}, "needs `base_url`"),
        ({"provider": "opnai"}, "provider"),
        ({"price": {"input": 3, "output": "1.00 USD"}}, "price"),
        ({"kye": "name"}, "kye"),
        ({"fallbacks": ["gone"]}, "gone"),
        ({"window": 4}, "window"),
    ],
)
def test_wrong_model_is_refused_without_its_values(more: dict[str, Any], said: str) -> None:
    """A model that cannot be used is refused with the place; a password in an address is not repeated."""
    with pytest.raises(SetupError, match=said) as caught:
        read_models({"fast": {**FAST, **more}})
    assert "hunter2" not in caught.value.message
    assert caught.value.__cause__ is None


def test_price_comes_from_settings_then_from_the_public_list() -> None:
    """A price in the settings goes first; else the public list; a server of one's own is free; else unknown."""
    table = {
        "listed": {"provider": "anthropic", "model": "claude-sonnet-4-5"},
        "own": {"provider": "openai", "model": "gpt-5-mini", "price": {"input": "2.50 USD", "output": "9.00 USD"}},
        "local": FAST,
        "gateway": {"provider": "openai", "model": "gpt-5-mini", "base_url": "https://gateway.internal/v1"},
        "unheard": {"provider": "openai", "model": "no-such-model"},
        "free": {"provider": "compatible", "model": "m", "base_url": "http://gpu.internal/v1", "price": "free"},
    }
    facts = {name: facts_of(model) for name, model in read_models(table).models.items()}
    prices = {name: (each.input_price, each.output_price) for name, each in facts.items()}
    assert prices["own"] == (2_500_000, 9_000_000)
    assert prices["local"] == prices["free"] == (0, 0)
    assert prices["gateway"] == prices["unheard"] == (None, None)
    assert prices["listed"][0] is not None and prices["listed"][0] >= 3_000_000
    assert facts["listed"].window_tokens >= 200_000
    assert facts["local"].window_tokens == 32_000
    assert facts["own"].cost(1000, 100) == 3400
