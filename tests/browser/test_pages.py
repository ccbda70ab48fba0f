"""The pages in a real Chromium without scripts: signing in, reading, deciding; phone and desk, light and dark."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from perdure.contracts.plan import FileChange
from tests.api.installed import Installed, installed

pytestmark = pytest.mark.browser

PHONE, DESK = (390, 844), (1280, 900)
SHOTS = "PERDURE_TEST_SCREENSHOTS"
"""Names a folder that keeps what was seen."""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    with installed(tmp_path_factory.mktemp("browser"), passphrase="open sesame") as world:
        yield world


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    found = shutil.which(os.environ.get("CHROMIUM", "chromium"))
    assert found, "Chromium was not found: `make browser` says how to install it."
    with sync_playwright() as playwright:
        # Root, as in containers, gets no sandbox from Chromium; it opens our own pages only.
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=found, args=arguments)
        yield browser
        browser.close()


@pytest.fixture(params=[(DESK, "light"), (PHONE, "light"), (PHONE, "dark")], ids=["desk", "phone", "dark"])
def page(request: pytest.FixtureRequest, chromium: Any) -> Iterator[Any]:
    """A page without scripts, of a browser that has kept nothing."""
    (width, height), scheme = request.param
    context = chromium.new_context(
        viewport={"width": width, "height": height}, color_scheme=scheme, java_script_enabled=False
    )
    page = context.new_page()
    yield page
    if folder := os.environ.get(SHOTS):
        page.screenshot(path=Path(folder) / f"{request.node.name}.png", full_page=True)
    context.close()


def fresh(world: Installed, request: pytest.FixtureRequest, name: str) -> str:
    """A plan with a long line and a hidden character."""
    data = ("on: push \u202e\n" + "a long line " * 40 + "\n").encode()
    change = FileChange(path="ci.yml", new=world.blobs.put(data), new_mode="100644")
    return world.freeze(world.admit(f"{name}-{request.node.callspec.id}"), changes=[change])


def open_signed_in(world: Installed, page: Any, path: str) -> None:
    """Follow a link, sign in, and arrive where it leads."""
    page.goto(f"http://{world.http.address}{path}")
    page.get_by_label("Your token").fill(world.token("anna", "read", "decide", groups=("maintainers",)))
    page.get_by_role("button", name="Sign in").click()
    assert page.url == f"http://{world.http.address}{path}"


def test_link_leads_through_signing_in_to_a_legible_plan(
    world: Installed, page: Any, request: pytest.FixtureRequest
) -> None:
    """The stylesheet is loaded, only code scrolls sideways, and the cookie is strict and out of scripts' reach."""
    digest = fresh(world, request, "legible")
    open_signed_in(world, page, f"/plans/{digest[:8]}")
    page.get_by_text("⟨U+202E⟩").first.wait_for()
    body, size = page.locator("html").bounding_box(), page.viewport_size
    assert body["width"] <= size["width"]
    assert page.locator("main").bounding_box()["width"] <= 960
    button = page.get_by_role("button", name="Sign this decision").bounding_box()
    assert button["height"] >= 44 and button["x"] + button["width"] <= size["width"]
    [cookie] = page.context.cookies()
    assert (cookie["sameSite"], cookie["httpOnly"], cookie["path"]) == ("Strict", True, "/")


def test_decision_is_made_by_a_person_with_the_passphrase(
    world: Installed, page: Any, request: pytest.FixtureRequest
) -> None:
    """Nothing is chosen beforehand: Enter decides nothing. A wrong passphrase comes back, the right one signs."""
    digest = fresh(world, request, "decided")
    open_signed_in(world, page, f"/plans/{digest}")
    page.get_by_label("Passphrase").fill("wrong")
    page.get_by_label("Passphrase").press("Enter")
    assert world.ledger.decisions(digest=digest) == []
    page.get_by_label("Approve").check()
    page.locator("#comment").fill("as <agreed>")
    page.get_by_role("button", name="Sign this decision").click()
    assert "does not open the decision key" in page.get_by_role("alert").inner_text()
    page.get_by_label("Approve").check()
    page.get_by_label("Passphrase").fill("open sesame")
    page.get_by_role("button", name="Sign this decision").click()
    page.get_by_text("Your last word").wait_for()
    [signed] = world.ledger.decisions(digest=digest)
    assert (signed.decision.kind, signed.decision.by, signed.decision.comment) == ("approve", "anna", "as <agreed>")


def test_link_of_another_site_finds_the_session(world: Installed, page: Any, request: pytest.FixtureRequest) -> None:
    """The strict cookie does not come with a link from a web mail; the page asks again itself and is there."""
    digest = fresh(world, request, "linked")
    open_signed_in(world, page, "/")
    target = f"http://{world.http.address}/plans/{digest}"
    mail = f'<a href="{target}">a plan waits</a>'
    page.context.route("http://mail.test/", lambda route: route.fulfill(body=mail, content_type="text/html"))
    page.goto("http://mail.test/")
    page.get_by_text("a plan waits").click()
    page.get_by_role("heading", name="Decision").wait_for()


def test_another_sites_form_decides_nothing(world: Installed, page: Any, request: pytest.FixtureRequest) -> None:
    """A form of another site, sent by a person who is signed in, is turned away; and no site can frame the page."""
    digest = fresh(world, request, "forged")
    open_signed_in(world, page, f"/plans/{digest}")
    form = page.locator("input[name=form]").get_attribute("value")
    there = f"http://{world.http.address}/plans/{digest}"
    evil = (
        f'<iframe src="{there}"></iframe><form method="post" action="{there}/decisions">'
        f'<input name="form" value="{form}"><input name="kind" value="approve">'
        '<input name="passphrase" value="open sesame"><button>Win</button></form>'
    )
    page.context.route("http://evil.test/", lambda route: route.fulfill(body=evil, content_type="text/html"))
    page.goto("http://evil.test/")
    assert "Decision" not in page.frames[-1].content()
    page.get_by_role("button", name="Win").click()
    page.get_by_text("another origin").wait_for()
    assert world.ledger.decisions(digest=digest) == []
