"""Messages at the API: listed, sent again, and a channel that is tried for real."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.installed import Installed, installed
from tests.support.hearing import listening


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    with installed(tmp_path_factory.mktemp("messages")) as made:
        yield made


def give_address(world: Installed, name: str, url: str) -> None:
    path: Path = world.settings.secrets / name
    path.parent.mkdir(mode=0o700, exist_ok=True)
    path.write_text(url + "\n")
    path.chmod(0o600)


def test_channel_is_tried_and_says_what_it_lacks(world: Installed) -> None:
    """A name that is not there is told with the nearest one; an address that refuses with apprise's reason."""
    world.settings.config.write_text('[channels.team-chat]\nfor = ["maintainers"]\nabout = ["waits"]\n')
    with listening() as ear, world.http.unix() as owner:
        nearest = owner.post("/v1/channels/team-chap/test")
        assert nearest.status_code == 404 and "team-chat" in nearest.json()["message"]
        lacks = owner.post("/v1/channels/team-chat/test")
        assert lacks.status_code == 404 and "secrets/team-chat" in lacks.json()["message"]
        give_address(world, "team-chat", ear.url)
        assert owner.post("/v1/channels/team-chat/test").status_code == 200
        assert ear.titles == ["Perdure"]
        listed = owner.get("/v1/messages").json()
    [channel] = listed["channels"]
    assert (channel["name"], channel["to"], channel["has_address"]) == ("team-chat", ["maintainers"], True)
    assert listed["messages"] == []


def test_settings_that_cannot_be_read_are_named(world: Installed) -> None:
    """With the place, what is wrong and where it is explained."""
    world.settings.config.write_text('[channels.team]\nabout = ["everything"]\n')
    with world.http.unix() as owner:
        refused = owner.get("/v1/messages")
    assert refused.status_code >= 400
    assert "[channels.team]" in refused.json()["message"] and "about" in refused.json()["message"]


def test_unknown_message_is_not_sent_again(world: Installed) -> None:
    """And where messages are listed is said."""
    with world.http.unix() as owner:
        refused = owner.post("/v1/messages/again", json={"key": "1.waits.0/x"})
    assert refused.status_code == 404 and "perdure messages list" in refused.json()["message"]
