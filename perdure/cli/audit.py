"""``perdure audit``: is the evidence whole, and is it true."""

from __future__ import annotations

from pathlib import Path

import click

from perdure.cli import codes
from perdure.cli.catalog import AUDIT
from perdure.cli.lazy import CONTEXT, LazyGroup, load
from perdure.cli.paper import Paper, Row, Span
from perdure.cli.plans import read_job
from perdure.cli.session import Session, command
from perdure.cli.words import counted
from perdure.contracts.base import JsonDict
from perdure.contracts.http import AuditFinding, AuditReport
from perdure.errors import UserError

MARKS: dict[str, Span] = {
    "ok": ("✓", "good"),
    "notice": ("!", "warn"),
    "gap": ("✗", "bad"),
    "tampered": ("✗", "bad"),
    "expired": ("–", "dim"),
}


@click.group(
    "audit",
    cls=LazyGroup,
    sections=AUDIT,
    default="check",
    context_settings=CONTEXT,
    examples=[
        ("perdure audit", "everything"),
        ("perdure audit 3", "job 3 alone (the same as `audit check 3`)"),
        ("perdure audit export evidence.zip", "one file, for somebody else to verify"),
    ],
)
def audit() -> None:
    """Check that the evidence is whole and untouched, or hand it to somebody.

    The ledger's chain, every signature, every stored plan and receipt, and Temporal's history are compared with each
    other and with the world. Exit code 1 when something is missing or was changed.
    """


@command("check", examples=[("perdure audit 3", "one job"), ("perdure audit check --all", "say also what is well")])
@click.argument("job", required=False)
@click.option("--all", "everything", is_flag=True, help="Say also what is well.")
def check(session: Session, job: str | None, everything: bool) -> int:
    """Compare ledger, signatures, Temporal's history and the world with each other."""
    with session.door() as door:
        ref = read_job(door, job).job_id if job else None
        report = door.get("/v1/audit", AuditReport, ref=ref)
    if session.as_json:
        session.answer(report)
    else:
        write_report(session.paper, report, everything=everything)
    return codes.OK if report.ok else codes.FAILED


@command(
    "export",
    examples=[
        ("perdure audit export evidence.zip", "everything"),
        ("perdure audit export evidence.zip --job 3", "one job's part"),
    ],
)
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--job", default=None, help="Only this job.")
def export(session: Session, file: Path, job: str | None) -> None:
    """Write the evidence into FILE. Give the printed head and the public key to the verifier by another way."""
    with session.door() as door:
        ref = read_job(door, job).job_id if job else None
        answer: JsonDict = door.post("/v1/audit/export", {"path": str(file.absolute())}, dict, ref=ref)
    if session.as_json:
        session.answer(answer)
        return
    session.paper.line(("✓ ", "good"), f"Wrote {answer.get('path', file)}.")
    head, keys = str(answer.get("head", "")), dict(answer.get("public_keys") or {})
    rows: list[Row] = [[("head", "dim"), head], *([(f"key {name}", "dim"), key] for name, key in keys.items())]
    session.paper.table(rows)
    session.paper.line("  Give head and key to the verifier by another way than the file:")
    key = next(iter(keys.values()), "KEY")
    session.paper.line("  ", (f"perdure audit verify {file.name} --key {key} --head {head}", "hint"))


@command(
    "verify",
    examples=[("perdure audit verify evidence.zip --key public.pem --head 9c41…", "needs no server and no network")],
)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--key", required=True, metavar="HEX|FILE", help="Public key, from elsewhere than FILE.")
@click.option("--head", required=True, metavar="HASH", help="The ledger's head you expect, from elsewhere than FILE.")
def verify(session: Session, file: Path, key: str, head: str) -> int:
    """Verify an exported FILE offline. Key and head must come from elsewhere: a file cannot vouch for itself."""
    # Loaded by name: verifying is the store's, and needs neither server nor door.
    verify_bundle = load("perdure.store.bundle:verify_bundle")
    report: AuditReport = verify_bundle(file, public_key=read_key(key), expected_head=head.strip().lower())
    if session.as_json:
        session.answer(report)
    else:
        write_report(session.paper, report, everything=False)
    return codes.OK if report.ok else codes.FAILED


def read_key(text: str) -> bytes:
    """Return the bytes of a public key given as 64 hex digits, or as a file with them or with PEM.

    Raises:
        UserError: it is neither.
    """
    path = Path(text)
    data = path.read_bytes().strip() if path.is_file() else text.encode()
    if data.startswith(b"-----BEGIN"):
        return _from_pem(data, text)
    try:
        found = bytes.fromhex(data.decode("ascii"))
    except (UnicodeDecodeError, ValueError):
        found = b""
    if len(found) != 32:
        raise UserError(f"{text!r} is no public key; expected 64 hex digits, or a file with them or with PEM.")
    return found


def write_report(paper: Paper, report: AuditReport, *, everything: bool) -> None:
    """Write what an audit found: what is wrong first, what is well only when asked."""
    shown = [finding for finding in report.findings if everything or finding.severity != "ok"]
    shown.sort(key=lambda finding: list(MARKS).index(finding.severity) % len(MARKS), reverse=False)
    for finding in shown:
        paper.line("  ", MARKS[finding.severity], f" {_label(finding)}{finding.about}: {finding.detail}")
    bad = sum(finding.severity in {"gap", "tampered"} for finding in report.findings)
    verdict: Span = ("✓ no gaps", "good") if report.ok else (f"✗ {counted(bad, 'finding')}", "bad")
    paper.line(verdict, f"   {counted(report.records, 'record')}   head ", (report.head, "dim"))


def _label(finding: AuditFinding) -> str:
    return "" if finding.severity == "ok" else f"{finding.severity}: "


def _from_pem(data: bytes, name: str) -> bytes:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        key = load_pem_public_key(data)
    except ValueError as error:
        raise UserError(f"{name} is no PEM public key: {error}") from error
    if not isinstance(key, Ed25519PublicKey):
        raise UserError(f"{name} is no Ed25519 key; expected the public key of the decision key.")
    return key.public_bytes_raw()
