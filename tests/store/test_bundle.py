"""Audit bundles: checked offline, with a key and a head that come from elsewhere."""

from __future__ import annotations

import json
import zipfile

import pytest

from perdure.errors import Conflict, NotFound, Refused, UserError
from perdure.store import bundle
from perdure.store.audit import export_bundle, verify_bundle
from perdure.store.signing import DecisionKey, public_keys
from tests.store.ledger_kit import AT
from tests.store.test_chain import _break_in


@pytest.fixture
def applied(sqlite_scene):
    """A finished job between two others, one of them in its thread: (scene, job id)."""
    scene = sqlite_scene
    scene.admit("other", "links")
    scene.admit("zero")
    job_id, plan, _ = scene.approved()
    scene.apply(job_id, plan)
    scene.note(job_id, 1, "done")
    scene.admit("two")
    return scene, job_id


def _export(scene, out, job_id=None):
    return export_bundle(scene.ledger, scene.blobs, public_keys(scene.key._folder), out, job_id)


def _key(scene):
    return next(iter(public_keys(scene.key._folder).values()))


def _wrong(report):
    return [f"{one.about}: {one.detail}" for one in report.findings if one.severity in ("gap", "tampered")]


def _rewrite(path, out, change):
    """Copy a bundle, changing its entries: ``change`` takes and gives {name: bytes}."""
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in change(entries).items():
            archive.writestr(name, data)
    return out


def _change_lines(entries, change):
    lines = [json.loads(line) for line in entries["records.jsonl"].splitlines()]
    return entries | {"records.jsonl": b"\n".join(json.dumps(line).encode() for line in change(lines))}


@pytest.mark.parametrize("whole", [True, False])
def test_a_bundle_verifies_offline(applied, tmp_path, whole):
    """With the key and head from outside, a bundle of the ledger and one of a job say that nothing is missing."""
    scene, job_id = applied
    out = tmp_path / "evidence.zip"
    head = _export(scene, out, None if whole else job_id)
    assert head == scene.ledger.head()
    report = verify_bundle(out, public_key=_key(scene), expected_head=head)
    assert report.ok, report.findings
    assert (report.records, report.head) == (len(scene.ledger.events()), head)
    assert out.stat().st_mode & 0o777 == 0o600


def test_a_bundle_of_one_job_says_nothing_of_others(applied, tmp_path):
    """Of other jobs there are headers, so that nothing can be hidden among them, and no contents."""
    scene, job_id = applied
    out = tmp_path / "evidence.zip"
    _export(scene, out, job_id)
    with zipfile.ZipFile(out) as archive:
        lines = [json.loads(line) for line in archive.read("records.jsonl").splitlines()]
    assert {line["header"]["job_id"] for line in lines if line["body"]} == {job_id}
    assert all(line["header"] for line in lines)


def test_the_same_evidence_gives_the_same_bytes(applied, tmp_path):
    """Two exports of one ledger do not differ."""
    scene, _ = applied
    _export(scene, tmp_path / "one.zip")
    _export(scene, tmp_path / "two.zip")
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()


def test_an_export_overwrites_nothing(applied, tmp_path):
    """A file that exists is left alone, and no half-written one is left behind."""
    scene, _ = applied
    out = tmp_path / "out" / "evidence.zip"
    out.parent.mkdir()
    out.write_text("mine")
    with pytest.raises(Conflict, match="exists already"):
        _export(scene, out)
    assert out.read_text() == "mine"
    assert [path.name for path in out.parent.iterdir()] == ["evidence.zip"]


def test_a_ledger_that_does_not_verify_is_not_exported(applied, tmp_path):
    """Evidence that is broken is audited, not handed on."""
    scene, _ = applied
    _break_in(scene, "UPDATE events SET actor = 'eve' WHERE position = 2")
    with pytest.raises(Refused, match="perdure audit"):
        _export(scene, tmp_path / "evidence.zip")


def test_an_unknown_job_is_not_exported(applied, tmp_path):
    """A job without records gives no bundle."""
    scene, _ = applied
    with pytest.raises(NotFound):
        _export(scene, tmp_path / "evidence.zip", "job/releases/nine")


def test_a_bundle_does_not_vouch_for_itself(applied, tmp_path):
    """Another head, or a key that did not sign the decisions, is named, whatever lies inside."""
    scene, _ = applied
    out = tmp_path / "evidence.zip"
    head = _export(scene, out)
    other = next(iter(public_keys(DecisionKey.create(tmp_path / "other")._folder).values()))
    assert any(
        "expected ffffffffffff" in one
        for one in _wrong(verify_bundle(out, public_key=_key(scene), expected_head="f" * 64))
    )
    by_other = _wrong(verify_bundle(out, public_key=other, expected_head=head))
    assert any("does not hold" in one for one in by_other)
    assert any("although its gate amounts to" in one for one in by_other)


def _drop_last(lines):
    return lines[:-1]


def _drop_one(lines):
    return lines[:3] + lines[4:]


def _swap(lines):
    return [*lines[:3], lines[4], lines[3], *lines[5:]]


def _edit_body(lines):
    lines[4]["body"] = lines[4]["body"].replace("releases", "releasez")
    return lines


def _edit_actor(lines):
    lines[5]["header"]["actor"] = "eve"
    return lines


def _hide_header(lines):
    lines[5] |= {"header": None, "salt": "", "body": None}
    return lines


def _hide_last_header(lines):
    last = max(line["position"] for line in lines if line["body"]) - 1
    lines[last] |= {"header": None, "salt": "", "body": None}
    return lines


def _hide_body(lines):
    lines[5] |= {"salt": "", "body": None}
    return lines


@pytest.mark.parametrize(
    "change", [_drop_last, _drop_one, _swap, _edit_body, _edit_actor, _hide_header, _hide_last_header, _hide_body]
)
@pytest.mark.parametrize("whole", [True, False])
def test_every_change_to_a_record_is_found(applied, tmp_path, change, whole):
    """Cut, left out, reordered, edited, or hidden as if it were another job's: the bundle does not verify."""
    scene, job_id = applied
    head = _export(scene, tmp_path / "evidence.zip", None if whole else job_id)
    forged = _rewrite(
        tmp_path / "evidence.zip", tmp_path / "forged.zip", lambda entries: _change_lines(entries, change)
    )
    report = verify_bundle(forged, public_key=_key(scene), expected_head=head)
    assert not report.ok
    assert _wrong(report)


@pytest.mark.parametrize("folder", ["plans/", "blobs/"])
@pytest.mark.parametrize("change", [None, b"{}", b"[]", b"\xff"])
def test_a_plan_or_receipt_that_is_gone_or_changed_is_found(applied, tmp_path, folder, change):
    """What the records name must be in the bundle, with the bytes that they name."""
    scene, _ = applied

    def rewrite(entries):
        name = next(name for name in entries if name.startswith(folder))
        kept = {other: data for other, data in entries.items() if other != name}
        return kept if change is None else kept | {name: change}

    head = _export(scene, tmp_path / "evidence.zip")
    forged = _rewrite(tmp_path / "evidence.zip", tmp_path / "forged.zip", rewrite)
    assert not verify_bundle(forged, public_key=_key(scene), expected_head=head).ok


@pytest.mark.parametrize(
    "records",
    [
        b"not json",
        b"[]",
        b"{}",
        b'{"position": 1, "event": 2}',
        b'{"position": true, "event": "", "prev": "", "hash": "", "header": null, "salt": "", "body": null}',
        b'{"position": 9e99, "event": "", "prev": "", "hash": "", "header": null, "salt": "", "body": null}',
        b'{"position": %d, "event": "", "prev": "", "hash": "a", "header": null, "salt": "", "body": null}' % 2**70,
        b'{"position": 1, "event": "\\ud800", "prev": "", "hash": "a", "header": null, "salt": "", "body": null}',
        b"[" * 100_000,
        b"",
    ],
)
def test_hostile_records_are_findings_not_errors(applied, tmp_path, records):
    """Whatever a bundle holds, checking it ends with a report."""
    scene, _ = applied
    head = _export(scene, tmp_path / "evidence.zip")
    forged = _rewrite(
        tmp_path / "evidence.zip", tmp_path / "forged.zip", lambda entries: entries | {"records.jsonl": records}
    )
    assert not verify_bundle(forged, public_key=_key(scene), expected_head=head).ok


def test_a_manifest_cannot_excuse_missing_records(applied, tmp_path):
    """A bundle that names a job none of whose records it holds does not pass as that job's evidence."""
    scene, job_id = applied

    def rewrite(entries):
        manifest = json.loads(entries["manifest.json"]) | {"job_id": "job/releases/nine"}
        return entries | {"manifest.json": json.dumps(manifest).encode()}

    head = _export(scene, tmp_path / "evidence.zip", job_id)
    forged = _rewrite(tmp_path / "evidence.zip", tmp_path / "forged.zip", rewrite)
    assert any(
        "no record is that job's" in one
        for one in _wrong(verify_bundle(forged, public_key=_key(scene), expected_head=head))
    )


def test_what_is_no_bundle_is_refused(applied, tmp_path):
    """A file that is no zip, holds one name twice, or is not there is named; so is a malformed key."""
    scene, _ = applied
    plain = tmp_path / "plain"
    plain.write_text("text")
    for path in (plain, tmp_path / "absent"):
        with pytest.raises(UserError, match="cannot be read"):
            verify_bundle(path, public_key=_key(scene), expected_head="0" * 64)
    twice = tmp_path / "twice.zip"
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(twice, "w") as archive:
        archive.writestr("manifest.json", b"{}")
        archive.writestr("manifest.json", b"{}")
    with pytest.raises(UserError, match="two entries"):
        verify_bundle(twice, public_key=_key(scene), expected_head="0" * 64)
    with pytest.raises(UserError, match="32 bytes"):
        verify_bundle(twice, public_key=b"short", expected_head="0" * 64)


def test_a_bundle_that_would_fill_the_memory_is_not_opened(applied, tmp_path, monkeypatch):
    """A small file that unpacks to more than the limit is refused before it is unpacked."""
    scene, _ = applied
    head = _export(scene, tmp_path / "evidence.zip")
    monkeypatch.setattr(bundle, "LARGEST_BYTES", 1 << 10)
    with pytest.raises(UserError, match="unpacks to more"):
        verify_bundle(tmp_path / "evidence.zip", public_key=_key(scene), expected_head=head)


def test_an_erased_thread_is_exported_as_expired(applied, tmp_path):
    """A bundle of an erased job verifies, and says that its contents were erased on record."""
    scene, job_id = applied
    for other in ("zero", "two"):
        scene.note(f"job/releases/{other}", 1, "failed")
    scene.ledger.erase_thread("releases", by="ada", at=AT)
    head = _export(scene, tmp_path / "evidence.zip", job_id)
    report = verify_bundle(tmp_path / "evidence.zip", public_key=_key(scene), expected_head=head)
    assert report.ok, report.findings
    assert "expired" in {one.severity for one in report.findings}
