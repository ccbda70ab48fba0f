"""Signing commits and tags as the user has configured git to, when their bytes are fixed: what is approved is signed.

Whether to sign, the kind of signature and the key may be the repository's settings; the program that signs is only the
user's own choice, since whatever a repository names there would run outside the sandbox.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from perdure.errors import UserError
from perdure.scratch import scratch_folder
from perdure.settings import connection_environment
from perdure.workspace.config import Config, pick, user_config
from perdure.workspace.git import Repository, identity
from perdure.workspace.git_process import git_environment, run_plain

_LIMIT = timedelta(seconds=30)
"""Wall limit of one signature: an agent that asks a person who is not there must not hold a job."""

_PROGRAMS = {"openpgp": "gpg", "x509": "gpgsm", "ssh": "ssh-keygen"}
_TRUE = ("true", "yes", "on", "1")
_HEADERS = {"sha1": "gpgsig", "sha256": "gpgsig-sha256"}
_LITERAL_KEYS = ("key::", "ssh-", "ecdsa-", "sk-")


@dataclass(frozen=True)
class Signer:
    """How this user signs in this repository."""

    format: str
    """``openpgp``, ``x509`` or ``ssh``."""
    key: str
    program: str

    def sign(self, data: bytes) -> bytes:
        """Return the armored signature over ``data``.

        Raises:
            UserError: the program is not there, has no such key, or asks for a passphrase that nobody gives.
        """
        with scratch_folder("signing") as folder:
            code, signature, said = self._run(data, folder)
        if code or b"-----BEGIN" not in signature:
            words = " ".join(said.decode("utf-8", "replace").split())[:500] or "it said nothing"
            raise UserError(
                f"{self.program} did not sign with {self.key} (exit {code}): {words}. Git is configured "
                "to sign: unlock the key in its agent, or set commit.gpgSign and tag.gpgSign to false, then run again."
            )
        return signature

    def _run(self, data: bytes, folder: Path) -> tuple[int, bytes, bytes]:
        try:
            argv = self._ssh(folder) if self.format == "ssh" else self._gpg()
            env = {**connection_environment(), "PATH": git_environment()["PATH"], "HOME": str(Path.home())}
            return run_plain(argv, stdin=data, env=env, cwd=folder, limit=_LIMIT)
        except FileNotFoundError:
            return 127, b"", b"it is not installed"

    def _gpg(self) -> list[str]:
        return [self.program, "--batch", "--no-tty", "--status-fd=2", "-bsau", self.key]

    def _ssh(self, folder: Path) -> list[str]:
        argv = [self.program, "-Y", "sign", "-n", "git"]
        if not self.key.startswith(_LITERAL_KEYS):
            return [*argv, "-f", str(Path(self.key).expanduser())]
        public = folder / "key.pub"
        public.write_text(self.key.removeprefix("key::") + "\n", encoding="utf-8")
        return [*argv, "-f", str(public), "-U"]  # its private half is the agent's


def find_signer(repository: Repository, setting: str) -> Signer | None:
    """How to sign, when git is configured to: ``setting`` is ``commit.gpgsign`` or ``tag.gpgsign``.

    Raises:
        UserError: it shall sign, and no key is named.
    """
    user, own = user_config(), repository.configs
    settings = [setting, "tag.forcesignannotated"] if setting.startswith("tag.") else [setting]
    if not any(value.lower() in _TRUE for value in pick(settings, user, own).values()):
        return None
    chosen = pick(("gpg.format", "user.signingkey"), user, own)
    form = chosen.get("gpg.format", "openpgp").lower()
    if form not in _PROGRAMS:
        raise UserError(f"gpg.format is {form!r}; git knows {', '.join(_PROGRAMS)}.")
    key = chosen.get("user.signingkey", "") or _default_key(repository, form)
    if not key:
        raise UserError(f"{setting} is set and no key is named. Run `git config --global user.signingKey KEY`.")
    return Signer(form, key, _program(user, form))


def signed_commit(data: bytes, object_format: str, signer: Signer) -> bytes:
    """Return a commit's bytes with the signature over them as its last header."""
    head, _, body = data.partition(b"\n\n")
    lines = signer.sign(data).strip(b"\n").split(b"\n")
    header = _HEADERS[object_format].encode() + b" " + b"\n ".join(lines)
    return head + b"\n" + header + b"\n\n" + body


def signed_tag(data: bytes, signer: Signer) -> bytes:
    """Return a tag's bytes with the signature over them at their end."""
    return data + signer.sign(data).strip(b"\n") + b"\n"


def _program(user: Config, form: str) -> str:
    keys = (f"gpg.{form}.program", *(("gpg.program",) if form == "openpgp" else ()))
    chosen = pick(keys, user)
    return next((str(Path(chosen[key]).expanduser()) for key in keys if key in chosen), _PROGRAMS[form])


def _default_key(repository: Repository, form: str) -> str:
    """OpenPGP finds a key by the committer, as git does; an ssh key must be named."""
    who = identity(repository)
    return f"{who[0]} <{who[1]}>" if who and form != "ssh" else ""
