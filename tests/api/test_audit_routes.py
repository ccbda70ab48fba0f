"""The evidence can be checked through the door, and handed out to be checked elsewhere."""

from pathlib import Path

import httpx

from perdure.contracts.http import AuditReport, Problem
from perdure.store.audit import verify_bundle
from tests.api.installed import Installed
from tests.api.working import decide, new_id


def report_of(owner: httpx.Client, ref: str = "") -> AuditReport:
    return AuditReport.model_validate_json(owner.get("/v1/audit", params={"ref": ref} if ref else {}).content)


def severities(report: AuditReport, about: str) -> set[str]:
    return {finding.severity for finding in report.findings if finding.about.startswith(about)}


def test_an_audit_says_what_could_not_be_compared(world: Installed, owner: httpx.Client) -> None:
    """With Temporal away the chain, signatures and blobs are checked all the same, and the gap is named."""
    job_id = world.admit(new_id("r"))
    digest = world.freeze(job_id)
    decide(owner, digest, "approve")
    report = report_of(owner, job_id)
    assert severities(report, "chain") == severities(report, "signatures") == severities(report, "blobs") == {"ok"}
    assert severities(report, "history") == {"gap"}
    assert not report.ok
    assert report.head == world.ledger.head()


def test_an_audit_of_one_job_is_about_that_job(world: Installed, owner: httpx.Client) -> None:
    """Its records are counted; another job's damage is in the whole audit and not in this one."""
    mine, other = world.admit(new_id("r")), world.admit(new_id("r"))
    world.freeze(mine)
    ref = world.ledger.plan(world.freeze(other, title=new_id("title"))).ref
    place = next(path for path in world.settings.blobs.rglob("*") if path.name == ref.sha256)
    data = place.read_bytes()
    place.chmod(0o600)
    place.write_bytes(b"x")
    try:
        assert "tampered" not in {finding.severity for finding in report_of(owner, mine).findings}
        assert "tampered" in {finding.severity for finding in report_of(owner, other).findings}
        assert "tampered" in {finding.severity for finding in report_of(owner).findings}
    finally:
        place.write_bytes(data)
    assert report_of(owner, mine).records == len(world.ledger.events(job_id=mine))


def test_a_bundle_is_verified_with_head_and_key_from_outside(
    world: Installed, owner: httpx.Client, tmp_path: Path
) -> None:
    """The answer gives path, head and public key; with them the file verifies offline, with another head not."""
    decide(owner, world.freeze(world.admit(new_id("r"))), "approve")
    path = tmp_path / "evidence.zip"
    answer = owner.post("/v1/audit/export", json={"path": str(path)}).json()
    [key] = answer["public_keys"].values()
    assert answer["path"] == str(path)
    assert verify_bundle(path, public_key=bytes.fromhex(key), expected_head=answer["head"]).ok
    assert not verify_bundle(path, public_key=bytes.fromhex(key), expected_head="0" * 64).ok


def test_an_export_overwrites_nothing(owner: httpx.Client, tmp_path: Path) -> None:
    """An existing file is left alone, a relative path is not guessed."""
    path = tmp_path / "mine.txt"
    path.write_text("mine")
    answer = owner.post("/v1/audit/export", json={"path": str(path)})
    assert (answer.status_code, Problem.model_validate_json(answer.content).kind) == (409, "Conflict")
    assert path.read_text() == "mine"
    assert owner.post("/v1/audit/export", json={"path": "evidence.zip"}).status_code == 422
