"""The only place that reads the environment. Settings are made once, by a process's entry, and handed on.

Plain dataclasses: the supervisor and ``perdure up`` import this, and every millisecond of theirs is waited for.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perdure.errors import SetupError


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All that a process of Perdure can be told from outside."""

    data: Path
    """Folder of one installation, 0700: ledger, blobs, keys, socket, logs, Temporal's file."""
    temporal_address: str = ""
    """host:port of a cluster; empty: the embedded server."""
    temporal_namespace: str = "default"
    temporal_profile: bool = False
    """Temporal's own environment configuration (TEMPORAL_*, TLS, API key, profile) is present and used."""
    temporal_port: int = 0
    """Loopback port of the embedded server; 0: any free one."""
    ledger_url: str = ""
    """SQLAlchemy URL; empty: SQLite beneath ``data``."""
    listen: str = ""
    """host:port for the TCP door; empty: Unix socket only."""
    allowed_hosts: tuple[str, ...] = ()
    """Exact Host values that the TCP door answers to; its own host:port when empty."""
    token: str = ""
    """Bearer token of a client."""
    api_url: str = ""
    """Where a client finds the API, "http://build.internal:8077"; empty: the Unix socket beneath ``data``."""
    templates_folder: Path | None = None
    """One more folder with job templates."""
    config_file: Path | None = None
    """Another file than ``config.toml`` in ``data``."""

    @property
    def is_embedded(self) -> bool:
        """Whether Perdure starts the Temporal server itself."""
        return not self.temporal_address and not self.temporal_profile

    @property
    def ledger(self) -> str:
        """SQLAlchemy URL of the ledger."""
        return self.ledger_url or f"sqlite:///{self.data / 'ledger.db'}"

    @property
    def blobs(self) -> Path:
        """Folder of the blob store."""
        return self.data / "blobs"

    @property
    def keys(self) -> Path:
        """Folder of the payload key and the decision key."""
        return self.data / "keys"

    @property
    def secrets(self) -> Path:
        """Folder of named secrets: one file each, mode 0600."""
        return self.data / "secrets"

    @property
    def config(self) -> Path:
        """What is too much for variables: models, tools, effects. :func:`read_config` reads it when first needed."""
        return self.config_file or self.data / "config.toml"

    @property
    def socket(self) -> Path:
        """The API's Unix socket, in a folder of its own with mode 0700."""
        return self.data / "run" / "api.sock"

    @property
    def logs(self) -> Path:
        """Folder of the processes' logs."""
        return self.data / "logs"

    @property
    def workspaces(self) -> Path:
        """Folder of private workspaces."""
        return self.data / "workspaces"

    @property
    def locks(self) -> Path:
        """Folder of target locks."""
        return self.data / "locks"

    @property
    def live(self) -> Path:
        """Folder with models' text while it comes, for whoever watches."""
        return self.data / "live"

    @property
    def journal(self) -> Path:
        """Folder that names the activities in flight, for the next worker."""
        return self.data / "journal"


def read_settings(environ: Mapping[str, str] | None = None, *, data: Path | None = None) -> Settings:
    """Read settings from the environment; ``data`` (from ``--data``) goes before ``PERDURE_DATA``.

    Raises:
        SetupError: a value cannot be used; the message names the variable.
    """
    env = os.environ if environ is None else environ
    folder = data or Path(env.get("PERDURE_DATA") or _user_folder())
    if not folder.is_absolute():
        folder = Path.cwd() / folder
    templates = env.get("PERDURE_TEMPLATES")
    config = env.get("PERDURE_CONFIG")
    listen = env.get("PERDURE_LISTEN", "")
    port = env.get("PERDURE_TEMPORAL_PORT") or "0"
    if not port.isdigit() or int(port) > 65535:
        raise SetupError(f"PERDURE_TEMPORAL_PORT is {port!r}; expected a port number, for example 7233.")
    if listen and not listen.rpartition(":")[2].isdigit():
        raise SetupError(f"PERDURE_LISTEN is {listen!r}; expected host:port, for example 127.0.0.1:8077.")
    return Settings(
        data=folder,
        temporal_address=env.get("TEMPORAL_ADDRESS", ""),
        temporal_namespace=env.get("TEMPORAL_NAMESPACE") or "default",
        temporal_profile=any(
            env.get(name) for name in ("TEMPORAL_PROFILE", "TEMPORAL_CONFIG_FILE", "TEMPORAL_API_KEY")
        ),
        temporal_port=int(port),
        ledger_url=_absolute_url(env.get("PERDURE_LEDGER_URL", "")),
        listen=listen,
        allowed_hosts=tuple(host for host in env.get("PERDURE_ALLOWED_HOSTS", "").split(",") if host),
        token=env.get("PERDURE_TOKEN", ""),
        api_url=env.get("PERDURE_API", "").rstrip("/"),
        templates_folder=Path.cwd() / templates if templates else None,
        config_file=Path.cwd() / config if config else None,
    )


def read_config(settings: Settings, table: str) -> dict[str, Any]:
    """Return one table of ``config.toml``, as it is now; empty when there is no such table or no file.

    Raises:
        SetupError: the file cannot be read, or is no TOML.
    """
    import tomllib

    try:
        found = tomllib.loads(settings.config.read_text(encoding="utf-8")).get(table, {})
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise SetupError(f"The settings file {settings.config} cannot be read: {error}. Mend it.") from error
    if not isinstance(found, dict):
        raise SetupError(f"{table!r} in {settings.config} is {found!r}; expected a table, [{table}].")
    return found


def read_named(settings: Settings, table: str) -> tuple[str, ...]:
    """Return users' ``tools`` or ``effects`` as ``name@version`` of an entry point each, in the file's order.

    ``table`` of the settings file holds name = version. Nothing that is not named there is ever imported.

    Raises:
        SetupError: the file cannot be read, or a version is no text.
    """
    found = read_config(settings, table)
    for name, version in found.items():
        if not isinstance(version, str) or not version:
            raise SetupError(
                f"[{table}] in {settings.config}: {name} is {version!r}; expected the version to load, as text: "
                f'{name} = "1.4.0".'
            )
    return tuple(f"{name}@{version}" for name, version in found.items())


def read_secret(settings: Settings, name: str) -> str | None:
    """Return the value of a named secret, from its file; ``None`` when there is none of that name."""
    path = settings.secrets / name
    return path.read_text(encoding="utf-8").rstrip("\n") if path.is_file() else None


def _user_folder() -> Path:
    import platformdirs

    return platformdirs.user_data_path("perdure")


def connection_environment(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return what git, ssh and gpg need from the user's session: the agent's socket, the key ring's folder, proxies."""
    env = os.environ if environ is None else environ
    names = (
        "SSH_AUTH_SOCK",
        "GNUPGHOME",
        "http_proxy",
        "https_proxy",
        "HTTPS_PROXY",
        "all_proxy",
        "ALL_PROXY",
        "no_proxy",
        "NO_PROXY",
    )
    return {name: env[name] for name in names if env.get(name)}


def proxy_for(url: str, environ: Mapping[str, str] | None = None) -> str | None:
    """Return the proxy that the user's session names for an ``http`` or ``https`` URL; ``None``: go there directly."""
    from urllib.parse import urlsplit
    from urllib.request import proxy_bypass_environment  # type: ignore[attr-defined]  # typeshed lacks it

    named = {name.lower().removesuffix("_proxy"): value for name, value in connection_environment(environ).items()}
    parts = urlsplit(url)
    if proxy_bypass_environment(parts.netloc.rpartition("@")[2], named):
        return None
    return named.get(parts.scheme) or named.get("all")


def _absolute_url(url: str) -> str:
    """A SQLite file named relative to here: background processes run elsewhere."""
    kind, marks, path = url.partition(":///")
    return f"{kind}{marks}{Path.cwd() / path}" if kind.startswith("sqlite") and path else url


def forget_environment() -> None:
    """Take every setting of Perdure and Temporal out of this process's environment, and so out of its children's."""
    for name in list(os.environ):
        if name.startswith(("PERDURE_", "TEMPORAL_")):
            del os.environ[name]


def host_environment(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return what a command that a template runs on the worker itself (``runs_on: worker``) gets of our environment."""
    env = os.environ if environ is None else environ
    names = ("PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ")
    return {**{name: env[name] for name in names if env.get(name)}, **connection_environment(env)}
