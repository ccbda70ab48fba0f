"""Commands that read: jobs, show, review, logs, artifacts, templates, tokens, audit."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from perdure.contracts.http import AuditFinding, AuditReport, TemplateView, TokenView
from perdure.contracts.job import JobPhase
from perdure.contracts.plan import ApprovalRule, Inverse, ReviewRule, Verdict
from tests.cli.conftest import Ended
from tests.cli.world import DIGEST, JOB_ID, World, effect

Call = Callable[..., Ended]


def test_jobs_are_listed_in_aligned_columns(call: Call, world: World) -> None:
    """Number, name, phase, the plan's digest, what, when: each under its title."""
    world.freeze()
    ended = call("jobs", "--open", "--thread", "release-orders", "--limit", "5")
    head, row = ended.out.splitlines()
    for title, value in [("JOB", "release-orders/1"), ("PHASE", "◆ waiting"), ("PLAN", "7f3a91c2"), ("WHAT", "1.2.0")]:
        assert head.index(title) == row.index(value)
    assert world.sent("GET /v1/jobs")[0] | {"path": ""} == {
        "path": "",
        "open": "true",
        "thread": "release-orders",
        "limit": "5",
    }


def test_no_jobs_say_how_to_start_one(call: Call, world: World) -> None:
    """An empty list teaches the next step; as JSON it is an empty list."""
    world.routes["GET /v1/jobs"] = lambda query, body: []
    assert "perdure run release" in call("jobs").out
    assert call("jobs", "--json").json == []


def test_show_tells_a_jobs_whole_story(call: Call, world: World) -> None:
    """In a pipe: what it is, its stages, its plan with each effect's fate, how it ended; and then it ends."""
    world.draft()
    world.apply()
    ended = call("show", "1")
    assert ended.code == 0
    assert "job 1   ✓ done" in ended.out
    assert "gather ✓ 14 commits since v1.2.0" in ended.out
    assert "undo: delete while ours  ✓ done" in ended.out
    assert "v1.3.0 released.  Take back: perdure undo 1" in ended.out


def test_show_of_a_job_that_is_not_there_names_the_nearest(call: Call, world: World) -> None:
    """66, in the server's words."""
    ended = call("show", "7")
    assert ended.code == 66
    assert "Nearest: release-orders/1" in ended.err


def test_a_review_leaves_nothing_out(call: Call, world: World) -> None:
    """Every effect with body, condition and way back; verdicts, hazards, findings, who must approve, the whole diff."""
    lasting = effect(
        "publish",
        "shell.run",
        "make publish",
        inverse=Inverse(irreversible="A published version can only be yanked."),
        requires=["v1.3.0 is pushed"],
        ways_out=["registry.example", "secret registry-token"],
        body={"run": ["make", "publish"], "message": "line one\n\tline two"},
    )
    world.freeze(
        effects=[effect("tag", "git.tag", "v1.3.0 → 5be1f07"), lasting],
        verdicts=[Verdict(check="tests", status="failed", detail="2 failed", baseline="failed")],
        findings=["An optional source failed: notes."],
        hazards=["run.sh becomes executable"],
        rule=ReviewRule(approvals=[ApprovalRule(group="maintainers", count=2)], requester_may_approve=False),
        since_previous="title: 1.2.1 → 1.3.0",
        authors=["bea"],
    )
    out = call("review", "1").out
    for text in [
        DIGEST,
        "undo: move back",
        "no undo: A published version can only be yanked.",
        "only if v1.3.0 is pushed",
        "may reach secret registry-token",
        "runs on the worker itself, not in the sandbox",
        'run: ["make", "publish"]',
        "message:\n      line one\n      \tline two",
        "✗ tests  2 failed   (before this plan: failed)",
        "! run.sh becomes executable",
        "– An optional source failed: notes.",
        "Since the last plan",
        "edited by bea",
        "+\tbulk import",
        "Needs 2 from maintainers, not whoever asked for it",
        "perdure approve 7f3a91c2",
    ]:
        assert text in out, text
    assert out.index("! run.sh") < out.index("--- a/CHANGELOG.md")


def test_a_diff_cannot_hide_or_steer(call: Call, world: World) -> None:
    """Whatever the server sends, no escape, no bidi control and no zero-width character reaches the terminal."""
    world.freeze(diff="--- a/x\n+++ b/x\n+if admin\u202e:\x1b[1A\x1b[2K\u200b\n")
    for args in (["review", "1"], ["review", "1", "--diff"]):
        out = call(*args).out
        assert "+if admin⟨U+202E⟩:^[[1A^[[2K⟨U+200B⟩" in out
    assert call("review", "1", "--json").out.isascii()


def test_review_by_digest_asks_for_that_plan(call: Call, world: World) -> None:
    """A digest names a plan, also one that is not the newest; a number names a job's newest."""
    world.freeze()
    call("review", "7f3a91c2")
    call("review", "1")
    first, second = world.sent("GET /v1/review")
    assert first["digest"] == "7f3a91c2" and "ref" not in first
    assert second["ref"] == "1" and "digest" not in second


def test_logs_are_one_record_a_line(call: Call, world: World) -> None:
    """Time, kind, content; as JSON one object a line, whole."""
    world.draft()
    ended = call("logs", "1")
    assert len(ended.out.splitlines()) == len(world.events)
    assert "stage               stage=gather name=history" in ended.out
    lines = [json.loads(line) for line in call("logs", "1", "--json").out.splitlines()]
    assert [line["position"] for line in lines] == [event.position for event in world.events]


def test_logs_follow_to_the_end_of_the_job(call: Call, world: World) -> None:
    """-f waits for more and ends with the job."""
    world.draft()
    events = world.routes["GET /v1/events"]

    def then_done(query: dict[str, str], body: object) -> object:
        if query.get("wait") not in {None, "0"} and not world.job.phase.is_final:
            world.apply()
        return events(query, body)

    world.routes["GET /v1/events"] = then_done
    ended = call("logs", "1", "-f")
    assert ended.code == 0
    assert ended.out.count("effect.receipt") == 3


def test_an_artifact_comes_byte_for_byte(call: Call, world: World, tmp_path: Path) -> None:
    """Into a file the bytes are the stored ones; a name that is not there says the nearest."""
    world.put("verify.tests.log", b"\xff\x00raw\n")
    world.put("analyze", b"{}")
    ended = call("artifacts", "1", "verify.tests.log", "-o", str(tmp_path / "log"))
    assert ended.code == 0, ended.err
    assert (tmp_path / "log").read_bytes() == b"\xff\x00raw\n"
    assert world.sent("GET /v1/blobs")[0]["ref"] == JOB_ID
    nowhere = call("artifacts", "1", "verify.tests.log", "-o", str(tmp_path / "none" / "log"))
    assert (nowhere.code, "cannot be written (No such file or directory)" in nowhere.err) == (64, True)
    wrong = call("artifacts", "1", "verify.test.log")
    assert wrong.code == 66 and "Did you mean verify.tests.log?" in wrong.err
    assert "verify.tests.log" in call("artifacts", "1").out


def template(**more: object) -> TemplateView:
    """A repository's template."""
    view = TemplateView(
        name="memo",
        summary="Writes a memo.",
        source="repository",
        path="/src/.perdure/jobs/memo.yaml",
        digest="d" * 64,
        trusted=False,
        inputs=[{"name": "to", "type": "string", "default": None, "optional": False, "help": "who reads it"}],
        text="perdure: 1\nname: memo\n",
    )
    return view.model_copy(update=more)


def test_templates_say_which_can_be_run(call: Call, world: World) -> None:
    """Trusted, not trusted, broken: each is told; show gives inputs and text."""
    world.routes["GET /v1/templates"] = lambda query, body: [
        template(trusted=True, name="release"),
        template(),
        template(problem="line 3: …", name="broken"),
    ]
    out = call("templates", "list").out
    assert "release  repository  ✓" in out and "◆ not trusted" in out
    assert "✗ broken" in out and "line 3: …" in out
    world.routes["GET /v1/template"] = lambda query, body: template()
    shown = call("templates", "show", "memo").out
    assert "to     string  needed   who reads it" in shown and "name: memo" in shown


def test_a_wrong_template_ends_with_64(call: Call, world: World, tmp_path: Path) -> None:
    """Every problem on a line of its own, with file and line as the server says; a right one says so."""
    file = tmp_path / "memo.yaml"
    file.write_text("perdure: 1\n")
    world.routes["POST /v1/templates/validate"] = lambda query, body: template(
        problem=f"{body['path']}:14: unknown 'aply'\n{body['path']}:20: no name"
    )
    ended = call("templates", "validate", str(file))
    assert ended.code == 64
    assert ended.err.splitlines() == [f"✗ {file}:14: unknown 'aply'", f"✗ {file}:20: no name"]
    world.routes["POST /v1/templates/validate"] = lambda query, body: template()
    assert call("templates", "validate", str(file)).code == 0
    assert call("templates", "validate", str(tmp_path / "none.yaml")).code == 64


def test_trust_needs_the_digest_of_exactly_this_text(call: Call, world: World) -> None:
    """Where nobody can be asked, the whole digest must be given, and must be the text's."""
    world.routes["GET /v1/template"] = lambda query, body: template()
    world.routes["POST /v1/templates/trust"] = lambda query, body: template(trusted=True)
    assert call("templates", "trust", "memo").code == 64
    assert call("templates", "trust", "memo", "--digest", "e" * 64).code == 64
    assert world.sent("POST /v1/templates/trust") == []
    assert call("templates", "trust", "memo", "--digest", "d" * 64).code == 0
    assert world.sent("POST /v1/templates/trust")[0]["digest"] == "d" * 64


def test_a_tokens_text_is_all_that_goes_to_stdout(call: Call, world: World) -> None:
    """`TOKEN=$(perdure tokens add …)` works; the remarks go to stderr."""
    token = TokenView(
        id="4", principal="ci", groups=[], may=["submit"], created_at=datetime(2026, 1, 2, tzinfo=UTC), text="perdure_x"
    )
    world.routes["POST /v1/tokens"] = lambda query, body: token
    world.routes["GET /v1/tokens"] = lambda query, body: [token.model_copy(update={"text": ""})]
    world.routes["DELETE /v1/tokens"] = lambda query, body: token
    ended = call("tokens", "add", "ci", "--may", "submit")
    assert ended.out == "perdure_x\n"
    assert "perdure tokens revoke 4" in ended.err
    assert world.sent("POST /v1/tokens")[0]["may"] == ["submit"]
    assert "2 Jan 2026" in call("tokens", "list").out or datetime.now(UTC).year == 2026
    assert "revoked" in call("tokens", "revoke", "4").out
    assert world.sent("DELETE /v1/tokens") == [None]


def test_an_audit_with_a_gap_ends_with_1(call: Call, world: World) -> None:
    """What is missing or was changed is told, what is well only with --all; one job's audit names the job."""
    findings = [
        AuditFinding(severity="ok", about="signatures", detail="12 hold"),
        AuditFinding(severity="gap", about="record 7", detail="is missing"),
        AuditFinding(severity="expired", about="history of job 1", detail="archived"),
    ]
    world.routes["GET /v1/audit"] = lambda query, body: AuditReport(
        records=27, head="a" * 64, findings=findings, ok=False
    )
    ended = call("audit", "1")
    assert ended.code == 1
    assert world.sent("GET /v1/audit")[0]["ref"] == JOB_ID
    assert "✗ gap: record 7: is missing" in ended.out and "12 hold" not in ended.out
    assert "12 hold" in call("audit", "check", "--all").out
    assert call("audit", "--json").json["ok"] is False
    assert call("audit").code == 1
    assert "Did you mean `perdure audit check`?" in call("audit", "chek").err


def test_states_of_a_job_without_a_plan(call: Call, world: World) -> None:
    """A job that has only begun can be shown, reviewed it cannot be."""
    world.move(JobPhase.gathering)
    assert call("show", "1").code == 0
    assert call("review", "1").code == 66
    assert call("resolve", "1", "1", "--done").code == 75


def test_show_tells_the_last_round_whole_and_the_earlier_ones_in_a_line_each(call: Call, world: World) -> None:
    """A job that was sent back twice is not told three times; --all tells every round."""
    for round_, digest in enumerate([DIGEST, "a" * 64, "b" * 64], 1):
        world.move(JobPhase.gathering)
        world.emit("stage", stage="gather", name="history", summary=f"look {round_}", status="ok", round=round_)
        world.emit("plan.frozen", plan={"digest": digest, "round": round_}, title=f"title {round_}")
        world.move(JobPhase.waiting)
        if round_ < 3:
            world.emit("gate.closed", outcome="changes_requested", detail=f"changes requested by anna: no {round_}")
    ended = call("show", "1")
    assert "round 1  PLAN 7f3a91c2  title 1   changes requested by anna: no 1\n" in ended.out
    assert "round 2  PLAN aaaaaaaa  title 2   changes requested by anna: no 2\n" in ended.out
    assert "look 3" in ended.out and "look 1" not in ended.out and "look 2" not in ended.out
    whole = call("show", "1", "--all").out
    assert all(f"look {round_}" in whole for round_ in (1, 2, 3))


def test_steps_are_told_in_the_same_order_whoever_was_first(call: Call, world: World) -> None:
    """Sources and checks run at once: their names are set in order, and a late one of a failed job is not told."""
    for name in ("zeta", "alpha"):
        world.stage("verify", name)
    world.stage("gather", "notes", "read")
    world.move(JobPhase.failed, "source history failed")
    world.stage("gather", "late", "read late")
    ended = call("show", "1")
    assert "verify ✓ alpha, zeta" in ended.out
    assert ended.out.count("gather ✓") == 1 and "late" not in ended.out


def test_show_and_review_name_the_repository_that_is_changed(call: Call, world: World) -> None:
    """Clones of one origin share a thread's name: which of them a plan is for is said."""
    view = effect("commit", "git.commit", "2 files", body={"repository": "/home/anna/src/orders-2"})
    world.freeze(effects=[view])
    world.move(JobPhase.waiting)
    assert "  in /home/anna/src/orders-2\n" in call("show", "1").out
    assert "  in /home/anna/src/orders-2\n" in call("review", "1").out


def test_a_diff_too_large_for_the_review_is_read_as_it_is_shown(call: Call, world: World) -> None:
    """Hazards come first, then every line from the stream, of exactly this digest; --json says how large it is."""
    world.freeze(diff="", diff_bytes=20_000_000, hazards=["ci.yml runs in CI"])
    world.routes["GET /v1/diff"] = lambda query, body: b"diff --git a/big b/big\n+the last line\n"
    whole = call("review", "1").out
    assert whole.index("ci.yml runs in CI") < whole.index("+the last line")
    assert call("review", "1", "--diff").out == "diff --git a/big b/big\n+the last line\n"
    assert {query["digest"] for query in world.sent("GET /v1/diff")} == {DIGEST}
    assert call("review", "1", "--json").json["diff_bytes"] == 20_000_000
