"""The grown-up form: docker-compose.yml against its specification, and its commands as plain processes.

No Docker engine is needed and none is used: PostgreSQL and Temporal are the real servers that the packages carry.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import pytest
import sqlalchemy

from perdure.testing.postgres import binary, postgres_server
from perdure.testing.server import temporal_server
from tests.house.compose_kit import (
    Service,
    compose_schema,
    fill_in,
    plain_environment,
    read_compose,
    script_of,
    service_of,
)
from tests.house.kit import text_of

SECRETS = {"POSTGRES_PASSWORD": "a1", "TEMPORAL_DB_PASSWORD": "b2", "PERDURE_DB_PASSWORD": "c3"}
PUBLIC_HOST = "127.0.0.1:8077"


def test_file_follows_the_compose_specification() -> None:
    """docker-compose.yml is valid under the compose specification's JSON schema, and a misspelt key is not."""
    schema, compose = compose_schema(), read_compose()
    validator = jsonschema.validators.validator_for(schema)(schema)
    assert [f"{error.json_path}: {error.message}" for error in validator.iter_errors(compose)] == []
    compose["services"]["api"]["comand"] = []
    assert not validator.is_valid(compose)


def test_every_reference_inside_the_file_exists() -> None:
    """Services, volumes and configs that are named are defined; whatever is defined is used."""
    compose = read_compose()
    services = compose["services"].values()
    waits = {name for service in services for name in service.get("depends_on", {})}
    volumes = {v.split(":")[0] for s in services for v in s.get("volumes", []) if v[0] not in "./$"}
    configs = {config["source"] for service in services for config in service.get("configs", [])}
    assert waits <= set(compose["services"])
    assert volumes == set(compose["volumes"])
    assert configs == set(compose["configs"])


def test_every_published_port_is_on_the_loopback_address() -> None:
    """Nothing is reachable from another machine."""
    ports = [port for service in read_compose()["services"].values() for port in service.get("ports", [])]
    assert ports
    assert [port for port in ports if not str(port).startswith("127.0.0.1:")] == []


def test_secrets_come_from_the_env_file_and_only_where_needed() -> None:
    """Without a password compose refuses and says which; each service gets its own and no other."""
    compose = read_compose()
    for name in SECRETS:
        with pytest.raises(KeyError, match=name):
            fill_in(compose, {key: value for key, value in SECRETS.items() if key != name})
    environments = {name: json.dumps(service.get("environment", {})) for name, service in compose["services"].items()}
    got = {name: set(re.findall(r"\$\{([A-Z_]*PASSWORD)", text)) for name, text in environments.items()}
    assert got["worker"] == got["api"] == {"PERDURE_DB_PASSWORD"}
    assert got["temporal"] == got["schema"] == {"TEMPORAL_DB_PASSWORD"}
    assert got["namespace"] == set()
    assert all("env_file" not in service for service in compose["services"].values())


def test_env_example_names_every_variable_and_no_secret() -> None:
    """.env.example has each variable of the file; passwords are left empty; git ignores .env."""
    used = set(re.findall(r"\$\{([A-Z_]+)", text_of(Path("docker-compose.yml"))))
    example = dict(re.findall(r"^([A-Z_]+)=(.*)$", text_of(Path(".env.example")), re.MULTILINE))
    assert used == set(example)
    assert {name: example[name] for name in SECRETS} == dict.fromkeys(SECRETS, "")
    assert ".env" in text_of(Path(".gitignore")).splitlines()


def test_header_says_what_was_not_run() -> None:
    """Both files say in their header that no Docker engine was at hand."""
    for name in ("docker-compose.yml", "Dockerfile"):
        header = text_of(Path(name)).split("\n\n", 3)
        assert "no Docker engine was at hand" in " ".join(header[:2]).replace("\n# ", " ")


def test_image_starts_what_compose_starts() -> None:
    """The Dockerfile installs from the hashed lock, names no registry and does not run as root."""
    lines = text_of(Path("Dockerfile")).splitlines()
    assert any("--require-hashes -r requirements.lock" in line for line in lines)
    assert [line for line in lines if line.startswith("FROM")] == [
        "FROM python:3.11-slim AS build",
        "FROM python:3.11-slim",
    ]
    assert "USER perdure" in lines


@dataclass(frozen=True)
class Grown:
    """What `docker compose up` would have started: two services as processes on a real PostgreSQL and Temporal."""

    folder: Path
    database: str
    """SQLAlchemy URL as the server's superuser."""
    temporal: str
    places: dict[str, str]

    def service(self, name: str) -> Service:
        """A service of the file, in our places."""
        return service_of(fill_in(read_compose(), SECRETS), name, self.places)


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grown]:
    """PostgreSQL with the roles of `roles`, Temporal with the namespace of `namespace`, the data folder prepared."""
    folder = tmp_path_factory.mktemp("grown")
    with ExitStack() as stack:
        url = stack.enter_context(postgres_server(folder))
        temporal = stack.enter_context(temporal_server(folder / "temporal"))
        socket = str(sqlalchemy.make_url(url).query["host"])
        compose = fill_in(read_compose(), SECRETS)
        environ = plain_environment(PGHOST=socket, **SECRETS)
        environ["PATH"] = f"{Path(binary('psql')).parent}:{environ['PATH']}"
        subprocess.run(["sh", script_of(compose, "roles", folder)], env=environ, check=True, capture_output=True)
        data = folder / "data"
        places = {
            "temporal:7233": temporal.address,
            "@postgres:5432/perdure": f"@/perdure?host={socket}",
            "0.0.0.0:8077": "127.0.0.1:0",
            "/data": str(data),
        }
        made = Grown(folder, url, temporal.address, places)
        for _ in range(2):
            subprocess.run(made.service("prepare").argv, env=made.service("prepare").environ, check=True)
            _run_namespace(compose, made)
        yield made


def _run_namespace(compose: dict[str, Any], made: Grown) -> None:
    given = compose["services"]["namespace"]["environment"]
    environ = plain_environment(**{**given, "TEMPORAL_ADDRESS": made.temporal})
    subprocess.run(["sh", script_of(compose, "namespace", made.folder)], env=environ, check=True, capture_output=True)


def test_roles_cannot_enter_each_others_databases(grown: Grown) -> None:
    """The script `roles` makes two roles: neither can connect to the other's database."""
    server = sqlalchemy.make_url(grown.database)
    for user, database, may in [
        ("perdure", "perdure", True),
        ("temporal", "perdure", False),
        ("perdure", "temporal", False),
    ]:
        engine = sqlalchemy.create_engine(server.set(username=user, database=database))
        if may:
            with engine.begin() as connection:
                connection.execute(sqlalchemy.text("create table own (id int)"))
                connection.execute(sqlalchemy.text("drop table own"))
        else:
            with pytest.raises(sqlalchemy.exc.OperationalError, match="permission denied"):
                engine.connect()
        engine.dispose()


def test_namespace_keeps_histories_for_30_days(grown: Grown) -> None:
    """The script `namespace`, run twice, leaves 30 days of retention and the two search attributes."""
    argv = ["temporal", "operator", "namespace", "describe", "-n", "default", "-o", "json"]
    environ = plain_environment(TEMPORAL_ADDRESS=grown.temporal)
    told = subprocess.run(argv, env=environ, capture_output=True, text=True, check=True).stdout
    assert json.loads(told)["config"]["workflowExecutionRetentionTtl"] == "2592000s"
    argv = ["temporal", "operator", "search-attribute", "list", "-n", "default", "-o", "json"]
    listed = subprocess.run(argv, env=environ, capture_output=True, text=True, check=True).stdout
    assert {"PerdureCode", "JobKind"} <= set(json.loads(listed)["customAttributes"])


def test_worker_and_api_run_on_postgres_and_a_temporal_cluster(grown: Grown) -> None:
    """The commands of `worker` and `api`, with their environment, come up, are healthy, and plan a real release."""
    worker, api = grown.service("worker"), grown.service("api")
    api.environ["PERDURE_ALLOWED_HOSTS"] = PUBLIC_HOST
    with worker.running(grown.folder / "worker.log") as first, api.running(grown.folder / "api.log") as second:
        wait_healthy(worker, first, grown.folder / "worker.log")
        wait_healthy(api, second, grown.folder / "api.log")
        address = _address_in(grown.folder / "api.log")
        token = _perdure(api, "tokens", "add", "ci", "--may", "submit", "--may", "read").strip()
        with httpx.Client(base_url=f"http://{address}", trust_env=False) as stranger:
            assert stranger.get("/v1/health", headers={"Host": PUBLIC_HOST}).status_code == 401
            sent = {"Host": PUBLIC_HOST, "Authorization": f"Bearer {token}"}
            health = stranger.get("/v1/health", headers=sent).json()
            assert (health["ok"], health["worker"]) == (True, True)
            assert stranger.get("/v1/health", headers={**sent, "Host": "other.example"}).status_code == 421
        job = _plan_release(api, grown.folder)
        assert job["phase"] == "done"
        assert len(job["digest"]) == 64
    engine = sqlalchemy.create_engine(sqlalchemy.make_url(grown.database).set(username="perdure", database="perdure"))
    with engine.connect() as connection:
        assert connection.execute(sqlalchemy.text("select count(*) from events")).scalar_one() > 5
    engine.dispose()


def wait_healthy(service: Service, process: subprocess.Popen[bytes], log: Path) -> None:
    """Ask its health check until it is well, as compose does; fail with its log when it ends or takes a minute."""
    deadline = time.monotonic() + 60
    while not service.is_healthy():
        assert process.poll() is None, log.read_text()[-3000:]
        assert time.monotonic() < deadline, log.read_text()[-3000:]


def _address_in(log: Path) -> str:
    found = re.search(r"listening on \('([\d.]+)', (\d+)\)", log.read_text())
    assert found, log.read_text()
    return f"{found[1]}:{found[2]}"


def _perdure(api: Service, *words: str, cwd: Path | None = None, code: int = 0) -> str:
    argv = [sys.executable, "-m", "perdure", *words]
    ended = subprocess.run(argv, env=api.environ, capture_output=True, text=True, cwd=cwd)
    assert ended.returncode == code, ended.stdout + ended.stderr
    return ended.stdout


def _plan_release(api: Service, folder: Path) -> dict[str, Any]:
    repository = folder / "orders"
    repository.mkdir()
    git = ["git", "-c", "user.name=Ann", "-c", "user.email=ann@example.org"]
    environ = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    (repository / "VERSION").write_text("1.2.0\n")
    for argv in (
        ["git", "init", "-q", "-b", "main"],
        ["git", "config", "user.name", "Ann"],
        ["git", "config", "user.email", "ann@example.org"],
        ["git", "add", "VERSION"],
        [*git, "commit", "-q", "-m", "feat: take orders"],
        ["git", "tag", "v1.2.0"],
        [*git, "commit", "-q", "--allow-empty", "-m", "feat: bulk import"],
    ):
        subprocess.run(argv, cwd=repository, env=environ, check=True)
    job: dict[str, Any] = json.loads(
        _perdure(api, "run", "release", "remote=", "--plan", "--no-start", "--json", cwd=repository, code=2)
    )
    return job
