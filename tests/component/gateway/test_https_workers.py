"""A worker cluster with https, passwords, an admin listener and one for metrics, through the whole system.

The state service generates its properties, an agent starts it, the gateway reaches it as a user of its own and forwards
the passwords of others.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
import pytest_asyncio

from keelman.runtime.processes.ports import free_ports
from recorded.rest.record_access import jaas_file
from support.certificates import PASSWORD, Authority
from support.cli.system import FILE, Keelman
from support.worker.refused_properties import EXTENSION

pytestmark = pytest.mark.component
USER, SECRET = "alice", "wonder"


@dataclass(frozen=True, slots=True)
class System:
    """A home with one such cluster, and the means to reach it."""

    keelman: Keelman
    ca: Path
    port: int
    admin: int
    metrics: int

    @property
    def cluster(self) -> str:
        """Its REST API below the gateway."""
        return f"{self.keelman.system['http']}/clusters/guarded"

    async def status(self, url: str, user: str = "", password: str = "") -> int:
        """The status of a GET that trusts the worker's authority."""
        tls = ssl.create_default_context(cafile=str(self.ca))
        login = (user, password) if user else None
        async with httpx.AsyncClient(verify=tls, trust_env=False, timeout=300) as client:
            return (await client.get(url, auth=login)).status_code


@pytest_asyncio.fixture(scope="module")
async def system(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[System]:
    folder = tmp_path_factory.mktemp("https")
    keelman, authority = Keelman(folder / "home"), Authority()
    ca, password = folder / "ca.pem", folder / "password"
    ca.write_text(authority.pem)
    password.write_text(SECRET + "\n")
    store = authority.issue("worker", "127.0.0.1").write_pkcs12(folder / "worker.p12")
    settings = {"worker_ca": ca, "worker_user": USER, "worker_password_file": password}
    port, admin, metrics = free_ports(3)
    properties = {
        "ssl.keystore.location": store,
        "ssl.keystore.password": PASSWORD,
        "rest.extension.classes": EXTENSION,
        "keelman.jaas.file": jaas_file(folder),
    }
    try:
        up = [word for k, v in settings.items() for word in ("--set", f"gateway.{k}={v}")]
        await keelman.ok("up", "--detach", "--free-ports", *up)
        words = [word for k, v in properties.items() for word in ("--set", f"{k}={v}")]
        ports = ("--port", str(port), "--admin-port", str(admin), "--metrics-port", str(metrics))
        await keelman.ok("create", "wc", "guarded", "--count", "1", "--https", *ports, *words, "--start", "--wait")
        yield System(keelman, ca, port, admin, metrics)
    finally:
        await keelman.cleaned()


async def test_each_listener_serves_what_it_is_for(system: System) -> None:
    status = (await system.keelman.item("wc", "guarded"))["status"]
    assert status["rest_urls"] == [f"https://127.0.0.1:{system.port}"]
    main, admin, metrics = (f"https://127.0.0.1:{port}" for port in (system.port, system.admin, system.metrics))
    assert await system.status(f"{main}/connectors") == 401
    assert await system.status(f"{main}/connectors", USER, SECRET) == 200
    assert await system.status(f"{main}/admin/loggers", USER, SECRET) == 404
    assert await system.status(f"{admin}/admin/loggers") == 200
    assert await system.status(f"{admin}/connectors") == 404
    assert await system.status(f"{metrics}/metrics") == 200
    assert await system.status(f"{metrics}/connectors") == 404


async def test_commands_that_ask_workers_name_their_user(system: System, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("validate", "guarded/new", "--set", f"connector.class={FILE}SourceConnector")
    refused = await system.keelman.run(*words)
    assert "KEELMAN_REST_USER" in refused.err
    monkeypatch.setenv("KEELMAN_REST_USER", USER)
    monkeypatch.setenv("KEELMAN_REST_PASSWORD_FILE", str(system.ca.with_name("password")))
    assert "topic" in (await system.keelman.run(*words)).out


async def test_the_gateway_asks_as_its_own_user_and_passes_on_those_of_others(system: System, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("line\n")
    config = {"connector.class": f"{FILE}SourceConnector", "file": str(tmp_path / "in"), "topic": "lines"}
    words = [word for k, v in config.items() for word in ("--set", f"{k}={v}")]
    await system.keelman.ok("create", "connector", "guarded/in", *words, "--wait")
    assert [entry["name"] for entry in await system.keelman.items("connectors")] == ["in"]
    assert await system.status(f"{system.cluster}/connectors/in") == 401
    assert await system.status(f"{system.cluster}/connectors/in", USER, "guess") == 401
    assert await system.status(f"{system.cluster}/connectors/in", USER, SECRET) == 200


async def test_the_state_service_applies_definitions_as_the_same_user(system: System, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("line\n")
    config = {"connector.class": f"{FILE}SourceConnector", "file": str(tmp_path / "in"), "topic": "lines"}
    words = [word for k, v in config.items() for word in ("--set", f"{k}={v}")]
    await system.keelman.ok("create", "definition", "defined", "--cluster", "guarded", *words)
    await system.keelman.ok("apply", "definition", "defined", "--running", "--wait")
    assert await system.status(f"{system.cluster}/connectors/defined", USER, SECRET) == 200
    await system.keelman.ok("apply", "definition", "defined", "--absent", "--wait")
    assert await system.status(f"{system.cluster}/connectors/defined", USER, SECRET) == 404
