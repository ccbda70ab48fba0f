"""A thread is deleted through the door: not while a job of it is open, and the rest of the evidence still verifies."""

import httpx

from perdure.contracts.job import JobPhase
from perdure.contracts.threads import ThreadErased, ThreadView
from tests.api.installed import Installed
from tests.api.test_audit_routes import report_of, severities
from tests.api.working import new_id


def test_a_thread_is_deleted_when_its_jobs_have_ended(world: Installed, owner: httpx.Client) -> None:
    """409 with words while one goes on; then contents go, it shows as archived, and chain and signatures are well."""
    thread = new_id("thread")
    job_id = world.admit(new_id("r"), thread=thread)
    refused = owner.delete(f"/v1/threads/{thread}")
    assert refused.status_code == 409
    assert "not finished" in refused.json()["message"]
    world.note(job_id, 1, JobPhase.failed, "a word to forget")
    gone = ThreadErased.model_validate_json(owner.delete(f"/v1/threads/{thread}").content)
    assert gone.contents == len(world.ledger.events(job_id=job_id))
    view = ThreadView.model_validate_json(owner.get(f"/v1/threads/{thread}").content)
    assert (view.about.state, view.about.jobs) == ("archived", 1)
    assert "a word to forget" not in view.model_dump_json()
    report = report_of(owner)
    assert severities(report, "chain") == severities(report, "signatures") == {"ok"}
    assert "expired" in severities(report, f"thread {thread}")
    assert owner.delete("/v1/threads/@installation").status_code == 409
