"""The pages: whoever signs in with a token sees what waits and decides on exactly one plan, once a form."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from perdure.api.pages.sessions import IDLE, LASTS, Form, Sessions
from perdure.contracts.plan import ApprovalRule, FileChange, ReviewRule
from tests.api.installed import Installed, installed, now
from tests.api.pages import Visitor, form_of, kinds_in, said_in, visiting

NAMES = iter(range(10_000))


def fresh(world: Installed, **more: object) -> str:
    """The digest of a new plan that waits."""
    return world.freeze(world.admit(f"page-{next(NAMES)}", thread="pages"), **more)


@pytest.fixture(scope="module")
def token(world: Installed) -> str:
    return world.token("anna", "read", "decide", groups=("maintainers",))


@pytest.fixture(scope="module")
def anna(world: Installed, token: str) -> Iterator[Visitor]:
    with visiting(world, token) as visitor:
        yield visitor


def decisions(world: Installed, digest: str) -> list[tuple[str, str]]:
    return [(one.decision.kind, one.decision.by) for one in world.ledger.decisions(digest=digest)]


# Signing in


def test_link_leads_through_signing_in_to_its_plan(world: Installed, token: str) -> None:
    """A message's link shows the sign-in page and nothing of the plan; signing in leads to what it named."""
    digest = fresh(world, title="a secret title")
    with visiting(world) as visitor:
        asked = visitor.get(f"/plans/{digest[:8]}")
        assert (asked.status_code, "secret title" in asked.text) == (401, False)
        assert f'name="next" value="/plans/{digest[:8]}"' in asked.text
        led = visitor.sign_in(token, f"/plans/{digest[:8]}")
        assert (led.status_code, led.headers["location"]) == (303, f"/plans/{digest[:8]}")
        assert "a secret title" in visitor.get(led.headers["location"]).text


@pytest.mark.parametrize("place", ["//evil.example", "https://evil.example/", "/plans/../v1", "/sign-out", "x"])
def test_signing_in_leads_nowhere_else(world: Installed, token: str, place: str) -> None:
    """What a form names as the next page is a plan, a job or the list; anything else becomes the list."""
    with visiting(world) as visitor:
        assert visitor.sign_in(token, place).headers["location"] == "/"


def test_session_cookie_is_for_this_site_and_no_script(world: Installed, token: str) -> None:
    """HttpOnly, SameSite=Strict, for all paths; over TLS Secure too, under a name that browsers take over TLS only."""
    with visiting(world) as visitor:
        plain = visitor.sign_in(token).headers["set-cookie"]
        secure = visitor.post("/sign-in", {"token": token}, Origin=visitor.origin.replace("http:", "https:"))
    for cookie in (plain, secure.headers["set-cookie"]):
        assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(cookie.split("; "))
    assert "Secure" not in plain and "Domain" not in plain
    assert (
        secure.headers["set-cookie"].startswith("__Host-perdure_session=")
        and "; Secure" in secure.headers["set-cookie"]
    )


def test_session_of_tls_counts_only_as_that(world: Installed, token: str) -> None:
    """A cookie that could have come over plain HTTP does not open a session that was begun over TLS."""
    with visiting(world) as visitor:
        answer = visitor.post("/sign-in", {"token": token}, Origin=visitor.origin.replace("http:", "https:"))
        key = answer.headers["set-cookie"].partition("=")[2].partition(";")[0]
        assert visitor.get("/", Cookie=f"perdure_session={key}").status_code == 401
        assert visitor.get("/", Cookie=f"__Host-perdure_session={key}").status_code == 200


def test_unknown_token_opens_nothing(world: Installed) -> None:
    """A wrong token is refused with words, and no cookie is set."""
    with visiting(world) as visitor:
        answer = visitor.sign_in("perdure_wrong")
        assert (answer.status_code, "set-cookie" in answer.headers) == (401, False)
        assert "not known, or was revoked" in said_in(answer)


def test_revoked_token_ends_its_sessions_at_once(world: Installed) -> None:
    """A session is worth what its token is worth now."""
    made = world.ledger.add_token("gone", ["maintainers"], ["decide"], at=now())
    with visiting(world, made.text) as visitor:
        assert visitor.get("/").status_code == 200
        world.ledger.revoke_token(made.id, at=now())
        assert visitor.get("/").status_code == 401


def test_signing_out_ends_the_session(world: Installed, token: str) -> None:
    """The cookie is worth nothing afterwards, also for somebody who kept a copy."""
    with visiting(world, token) as visitor:
        key = visitor.client.cookies["perdure_session"]
        assert visitor.post("/sign-out", {}).status_code == 303
        assert visitor.get("/", Cookie=f"perdure_session={key}").status_code == 401


def test_sessions_end_by_themselves() -> None:
    """Unused for a while, or half a day old, a session is over."""
    clock = [datetime(2026, 12, 1, tzinfo=UTC)]
    sessions = Sessions(lambda: clock[0])
    idle, busy = (sessions.begin("t", is_secure=False) for _ in range(2))
    while clock[0] - datetime(2026, 12, 1, tzinfo=UTC) < LASTS - IDLE / 2:
        assert sessions.find(busy, is_secure=False) is not None
        clock[0] += IDLE / 2
    assert sessions.find(idle, is_secure=False) is None
    clock[0] += IDLE / 2 + timedelta(seconds=1)
    assert sessions.find(busy, is_secure=False) is None


def test_page_that_another_site_led_to_asks_again_itself(world: Installed) -> None:
    """A browser keeps the strict cookie back on another site's link: the sign-in page looks once more by itself."""
    with visiting(world) as visitor:
        assert 'http-equiv="refresh"' in visitor.get("/plans/0123abcd", **{"Sec-Fetch-Site": "cross-site"}).text
        assert 'http-equiv="refresh"' not in visitor.get("/plans/0123abcd", **{"Sec-Fetch-Site": "same-origin"}).text


# The doors around it


def test_every_page_forbids_scripts_frames_and_keeping(anna: Visitor, world: Installed) -> None:
    """One strict policy on whatever is answered: nothing from elsewhere, no script, no frame, no cache."""
    answers = [anna.get(path) for path in ("/", "/sign-in", "/page.css", f"/plans/{fresh(world)}", "/none", "/plans/x")]
    answers += [anna.sign_in("x"), anna.client.post("/sign-out"), anna.client.put("/")]
    for answer in answers:
        policy = answer.headers["content-security-policy"].split("; ")
        assert {"default-src 'none'", "style-src 'self'", "frame-ancestors 'none'", "form-action 'self'"} <= set(policy)
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "<script" not in answer.text and "style=" not in answer.text


def test_session_opens_no_route_of_the_api(anna: Visitor) -> None:
    """Under /v1 only a token in the header counts, so that no form of any site reaches it."""
    assert anna.get("/v1/jobs").status_code == 401
    assert anna.post("/v1/jobs", {}).status_code == 401


def test_token_in_a_header_opens_no_page(world: Installed, token: str) -> None:
    """Pages know sessions alone."""
    with world.http.tcp(token) as client:
        assert client.get("/").status_code == 401


def test_pages_answer_to_their_host_and_origin_alone(anna: Visitor, world: Installed) -> None:
    """Another Host, another Origin, and a form without an Origin are turned away, signed in or not."""
    digest = fresh(world)
    form = form_of(anna.get(f"/plans/{digest}"))
    fields, path = {"form": form, "kind": "approve"}, f"/plans/{digest}/decisions"
    assert anna.get("/", Host="evil.example").status_code == 421
    assert anna.post(path, fields, Origin="https://evil.example").status_code == 403
    assert anna.post(path, fields, Origin="null").status_code == 403
    assert anna.client.post(path, data=fields).status_code == 403
    assert anna.client.post("/sign-in", data={"token": "x"}).status_code == 403
    assert decisions(world, digest) == []


@pytest.mark.parametrize(
    ("body", "kind"),
    [(b"{}", "application/json"), (b"form=1", "text/plain"), (b"a=%FF", "application/x-www-form-urlencoded")],
)
def test_what_is_no_form_is_refused(anna: Visitor, world: Installed, body: bytes, kind: str) -> None:
    """A body of another type, or one that cannot be read, decides nothing."""
    headers = {"Origin": anna.origin, "Content-Type": kind}
    answer = anna.client.post(f"/plans/{fresh(world)}/decisions", content=body, headers=headers)
    assert answer.status_code in (409, 422)


def test_unix_socket_has_no_pages(world: Installed, owner: httpx.Client) -> None:
    """There everybody is the owner already: a page there could be asked by nobody but him."""
    assert owner.get("/").status_code == 404


# What waits


def test_list_shows_what_waits_for_this_person(world: Installed) -> None:
    """Plans that this person's approval is missing for; with `show=all` the others too, with the reason."""
    mine = fresh(world, title="for ops", rule=ReviewRule(approvals=[ApprovalRule(group="ops")]))
    other = fresh(world, title="for security", rule=ReviewRule(approvals=[ApprovalRule(group="security")]))
    with visiting(world, world.token("olga", "decide", groups=("ops",))) as visitor:
        shown, everything = visitor.get("/"), visitor.get("/?show=all")
        assert (f"/plans/{mine}" in shown.text, f"/plans/{other}" in shown.text) == (True, False)
        assert f"/plans/{other}" in everything.text
        assert "Not for you: olga is in none of the groups that decide: security" in said_in(everything)
        assert "still missing 1 from security" in said_in(everything)
        assert "for ops" not in visitor.get("/?thread=another").text


def test_long_list_goes_on(world: Installed) -> None:
    """Twenty-five at a time, each of them once, with a link to the older ones."""
    wanted = {fresh(world, rule=ReviewRule(approvals=[ApprovalRule(group="many")])) for _ in range(28)}
    with visiting(world, world.token("mia", "decide", groups=("many",))) as visitor:
        first = visitor.get("/")
        older = first.text.partition("Older ones")[0].rpartition('href="')[2].partition('"')[0].replace("&amp;", "&")
        second = visitor.get(older)
    counts = [sum(f"/plans/{digest}" in answer.text for digest in wanted) for answer in (first, second)]
    assert counts == [25, 3]


# One plan


def test_plan_is_shown_whole(anna: Visitor, world: Installed) -> None:
    """Effects with their bodies and ways back, checks, hazards, remarks, the diff, who is missing, until when."""
    change = FileChange(
        path=".github/workflows/ci.yml",
        old=world.blobs.put(b"on: push\n"),
        new=world.blobs.put("on: push # \u202e<b>&\n".encode()),
        old_mode="100644",
        new_mode="100755",
    )
    digest = fresh(world, changes=[change], findings=["mind the \x1b[31mgap"], reasons=["because <i>"])
    answer = anna.get(f"/plans/{digest[:8]}")
    text = said_in(answer)
    for part in (
        digest,
        "git.tag commit",
        "git.tag tag",
        "undo: delete while ours",
        "ci.yml",
        "^[[31mgap",
        "because <i>",
    ):
        assert part in text
    assert "+on: push # ⟨U+202E⟩<b>&" in text and "⟨U+202E⟩&lt;b&gt;&amp;" in answer.text
    assert "\u202e" not in answer.text and "\x1b" not in answer.text
    assert "Still missing: 1 from maintainers" in text and "Needs 1 from maintainers" in text


def test_diff_of_any_size_is_on_the_page(anna: Visitor, world: Installed) -> None:
    """Above 1 MB it flows: every line is there, and the form comes behind the last one."""
    data = b"".join(b"line %06d <of> a long file\n" % number for number in range(60_000))
    change = FileChange(path="big.txt", new=world.blobs.put(data), new_mode="100644")
    digest = fresh(world, changes=[change])
    text = anna.get(f"/plans/{digest}").text
    assert text.count("\n+line ") == 60_000 and "line 059999 &lt;of&gt; a long" in text
    assert text.index('name="form"') > text.index("line 059999")


def test_difference_is_from_the_plan_that_this_person_decided(anna: Visitor, world: Installed) -> None:
    """Whoever decided an earlier round sees what differs from it; whoever did not sees all of it as new."""
    job = world.admit("rounds", thread="pages")
    first = world.freeze(job)
    anna.decide(first, "request_changes", comment="say more")
    second = world.freeze(job, round_number=2, title="1.2.0 → 2.0.0")
    assert f"Since the last plan that you decided, {first[:8]}" in said_in(anna.get(f"/plans/{second}"))
    with visiting(world, world.token("bea", "read")) as other:
        assert "Since the last plan" not in said_in(other.get(f"/plans/{second}"))
    anna.decide(second, "approve")
    assert world.ledger.decisions(digest=second)[0].decision.since == first


def test_plan_that_is_not_there_is_a_page_too(anna: Visitor) -> None:
    """An unknown digest and a short one are told in words."""
    assert anna.get("/plans/" + "0" * 64).status_code == 404
    assert (anna.get("/plans/abc").status_code, anna.get("/plans/..%2fetc").status_code) == (422, 404)


# Deciding


@pytest.mark.parametrize("kind", ["approve", "reject", "request_changes"])
def test_form_decides_by_this_person_through_the_page(anna: Visitor, world: Installed, kind: str) -> None:
    """A form sent is one signed decision on the whole digest; it names the person and the page."""
    digest = fresh(world)
    answer = anna.decide(digest, kind, comment="as agreed")
    assert answer.status_code in (303, 503)  # nobody is behind Temporal's address here: recorded, and passed on later
    [signed] = world.ledger.decisions(digest=digest)
    word = signed.decision
    assert (word.kind, word.by, word.comment, word.digest) == (kind, "anna", "as agreed", digest)
    assert word.door.startswith("page, token ")


def test_no_get_decides(anna: Visitor, world: Installed) -> None:
    """Links and their scanners decide nothing, whatever they carry."""
    digest = fresh(world)
    form = form_of(anna.get(f"/plans/{digest}"))
    for path in (f"/plans/{digest}/decisions", f"/plans/{digest}"):
        for method in ("GET", "HEAD"):
            anna.client.request(method, path, params={"form": form, "kind": "approve"}, headers={"Origin": anna.origin})
    assert decisions(world, digest) == []


def test_form_is_good_for_one_answer(anna: Visitor, world: Installed) -> None:
    """Sent again it decides nothing and says so; an invented one neither."""
    digest = fresh(world)
    form = form_of(anna.get(f"/plans/{digest}"))
    path = f"/plans/{digest}/decisions"
    anna.post(path, {"form": form, "kind": "approve"})
    for used in (form, "invented", ""):
        again = anna.post(path, {"form": used, "kind": "reject"})
        assert (again.status_code, "answered already" in said_in(again)) == (409, True)
    assert decisions(world, digest) == [("approve", "anna")]


def test_form_is_good_for_its_plan_and_its_session(anna: Visitor, world: Installed, token: str) -> None:
    """The nonce of one plan decides on no other, and that of one session in no other, even of the same person."""
    shown, other = fresh(world), fresh(world)
    form = form_of(anna.get(f"/plans/{shown}"))
    assert anna.post(f"/plans/{other}/decisions", {"form": form, "kind": "approve"}).status_code == 409
    with visiting(world, token) as second:
        assert second.post(f"/plans/{shown}/decisions", {"form": form, "kind": "approve"}).status_code == 409
    assert decisions(world, shown) == decisions(world, other) == []


def test_forms_of_a_session_are_bounded() -> None:
    """Whoever opens plans all day keeps the newest forms."""
    sessions = Sessions()
    session = sessions.find(sessions.begin("t", is_secure=False), is_secure=False)
    assert session is not None
    nonces = [session.offer(Form("d")) for _ in range(500)]
    assert session.take(nonces[0], "d") is None and session.take(nonces[-1], "d") is not None
    assert len(session.forms) < 500


def test_page_says_why_a_decision_would_not_count(world: Installed) -> None:
    """No right, no group, one's own job: said before anything is sent, and what would not count is not offered."""
    own = ReviewRule(approvals=[ApprovalRule(group="maintainers")], requester_may_approve=False)
    digest = fresh(world, rule=own)
    for name, may, groups, kinds, why in (
        ("reader", ("read",), ("maintainers",), [], "reader may not decide (rights: read)"),
        ("zoe", ("decide",), ("sales",), [], "zoe is in none of the groups that decide: maintainers"),
        ("ada", ("decide",), ("maintainers",), ["request_changes", "reject"], "ada asked for this job"),
        ("anna", ("decide",), ("maintainers",), ["approve", "request_changes", "reject"], "Still missing"),
    ):
        with visiting(world, world.token(name, *may, groups=groups)) as visitor:
            answer = visitor.get(f"/plans/{digest}")
            assert (kinds_in(answer), why in said_in(answer)) == (kinds, True), name


def test_form_without_the_right_decides_nothing(world: Installed) -> None:
    """The right is asked for with the form, whatever a page had shown: an agent's and a reader's are refused."""
    digest = fresh(world)
    bot = world.ledger.add_token("bot", [], ["read", "submit"], at=now(), acts_for="anna").text
    for token in (bot, world.token("reader2", "read")):
        with visiting(world, token) as visitor:
            form = visitor.get(f"/plans/{digest}")
            assert kinds_in(form) == []
            answer = visitor.post(f"/plans/{digest}/decisions", {"form": "x", "kind": "approve"})
            assert answer.status_code in (403, 409)
    assert decisions(world, digest) == []


def test_decision_that_does_not_count_is_named(world: Installed) -> None:
    """What was said in vain stands on the page with its reason, beside who is still missing."""
    digest = fresh(world)
    with visiting(world, world.token("zed", "decide", groups=("sales",))) as visitor:
        world_word = visitor.get(f"/plans/{digest}")
        assert kinds_in(world_word) == []
    with world.http.tcp(world.token("zed", "decide", groups=("sales",))) as client:
        client.post(f"/v1/plans/{digest}/decisions", json={"kind": "approve", "decision_id": "zed-1"}, timeout=60)
    with visiting(world, world.token("anna", "read")) as reader:
        text = said_in(reader.get(f"/plans/{digest}"))
    assert "Does not count: zed: zed is in none of the groups that decide: maintainers" in text
    assert "Still missing: 1 from maintainers" in text


@pytest.mark.parametrize("fields", [{"kind": "break_glass"}, {"kind": ""}, {"kind": "approve", "comment": "x" * 4001}])
def test_form_that_says_too_little_or_too_much_is_shown_again(
    anna: Visitor, world: Installed, fields: dict[str, str]
) -> None:
    """Nothing is recorded; the page comes back with the reason and a new form."""
    digest = fresh(world)
    answer = anna.decide(digest, **fields)
    assert answer.status_code == 422
    assert form_of(answer)
    assert decisions(world, digest) == []


def test_request_for_changes_needs_words(anna: Visitor, world: Installed) -> None:
    """What should be different has to be said; the form comes back."""
    digest = fresh(world)
    answer = anna.decide(digest, "request_changes")
    assert (answer.status_code, "What should be different?" in said_in(answer)) == (422, True)
    assert decisions(world, digest) == []


def test_key_with_a_passphrase_is_asked_for_it(tmp_path: Path) -> None:
    """The form has a field for it; a wrong one decides nothing, keeps the comment, and may be tried again."""
    with installed(tmp_path, passphrase="open sesame") as world:
        digest = fresh(world)
        with visiting(world, world.token("anna", "decide", groups=("maintainers",))) as visitor:
            assert 'name="passphrase" type="password"' in visitor.get(f"/plans/{digest}").text
            wrong = visitor.decide(digest, "approve", passphrase="no", comment="why <not>")
            assert (wrong.status_code, decisions(world, digest)) == (403, [])
            assert "does not open the decision key" in said_in(wrong) and "why &lt;not&gt;</textarea>" in wrong.text
            right = {"form": form_of(wrong), "kind": "approve", "passphrase": "open sesame"}
            visitor.post(f"/plans/{digest}/decisions", right)
            assert decisions(world, digest) == [("approve", "anna")]


def test_own_approval_can_be_taken_back(anna: Visitor, world: Installed) -> None:
    """Whoever approved sees that, and may withdraw it before anything began."""
    digest = fresh(world, rule=ReviewRule(approvals=[ApprovalRule(group="maintainers", count=2)]))
    anna.decide(digest, "approve")
    again = anna.get(f"/plans/{digest}")
    assert kinds_in(again) == ["request_changes", "reject", "withdraw"]
    assert "Your last word" in said_in(again)
    anna.decide(digest, "withdraw")
    assert decisions(world, digest) == [("approve", "anna"), ("withdraw", "anna")]
