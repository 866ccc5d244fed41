"""Twenty secrets in configurations and nodes; a viewer finds none of them, in any API."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import orjson
import pytest
import pytest_asyncio

from keelman.api.connect.v1.broker_cluster_pb2 import BrokerClusterSpec, ExternalBrokers
from keelman.api.connect.v1.broker_cluster_service_pb2 import CreateBrokerClusterRequest
from keelman.api.connect.v1.connector_service_pb2 import (
    CreateConnectorRequest,
    GetConnectorRequest,
    ListConnectorsRequest,
    WatchConnectorsRequest,
)
from keelman.gateway.access.redacted import RedactedAnswer
from keelman.model.access.roles import token_digest
from keelman.rpc.channels import channel
from keelman.rpc.generated import stub_of
from support.gateway.system import System, running_system
from support.gateway.worker_clusters import started_cluster

pytestmark = pytest.mark.component
KEYS = (
    "password", "db.pass", "user.pass", "sas.key", "jwt", "authorization", "connection.string", "api.key", "apiToken",
    "client.secret", "aws.secret.access.key", "private_key", "passphrase", "license.key", "session.key",
    "value.converter.schema.registry.basic.auth.user.info", "credentials", "cookie", "hmac.key",
)  # fmt: skip
CONFIG = {key: f"planted-{number:02}" for number, key in enumerate(KEYS)} | {"url": "jdbc:x://me:planted-99@h/db"}
ROLES = ("viewer", "operator", "admin")


@pytest_asyncio.fixture(scope="module")
async def system(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[System]:
    folder = tmp_path_factory.mktemp("viewers")
    file = folder / "access.toml"
    file.write_text(
        "".join(f"[[token]]\nsha256 = '{token_digest(role)}'\nname = '{role}'\nrole = '{role}'\n" for role in ROLES)
    )
    async with running_system(folder, {"node-1": "127.0.0.1"}, {"access-file": str(file)}) as running:
        async with channel(running.gateway.address, token="admin") as link:
            spec = BrokerClusterSpec(external=ExternalBrokers(bootstrap_servers="127.0.0.1:1"))
            brokers: Any = stub_of(link, "connect", "broker_cluster")
            await brokers.CreateBrokerCluster(CreateBrokerClusterRequest(name="outside", spec=spec))
            await started_cluster(link, "demo")
            create = CreateConnectorRequest(
                worker_cluster="demo", name="c", config={"connector.class": "FileStreamSource", **CONFIG}
            )
            connectors: Any = stub_of(link, "connect", "connector")
            await connectors.CreateConnector(create)
        node = {"hostname": "far", "port": 22, "user": "u", "password": "planted-98"}
        async with httpx.AsyncClient(base_url=running.http, trust_env=False, auth=("any", "admin")) as http:
            assert (await http.post("/v0/nodes", json=node)).status_code == 200
        yield running


async def answers(system: System, role: str) -> dict[str, str]:
    """The answers to a role, by the call."""
    actual_answers: dict[str, str] = {}
    async with httpx.AsyncClient(base_url=system.http, trust_env=False, auth=("any", role), timeout=300) as http:
        for path in (
            "/clusters/demo/connectors/c", "/clusters/demo/connectors?expand=info&expand=status", "/v0/nodes",
            "/v0/nodes/far", "/v0/connectors",
        ):  # fmt: skip
            answer = await http.get(path)
            assert answer.status_code == 200, (path, answer.text)
            actual_answers[path] = answer.text
    async with channel(system.gateway.address, token=role) as link:
        connectors: Any = stub_of(link, "connect", "connector")
        actual_answers["GetConnector"] = str(
            await connectors.GetConnector(GetConnectorRequest(worker_cluster="demo", name="c"))
        )
        actual_answers["ListConnectors"] = str(await connectors.ListConnectors(ListConnectorsRequest()))
        async for changes in connectors.WatchConnectors(WatchConnectorsRequest()):
            actual_answers["WatchConnectors"] = str(changes)
            break
    return actual_answers


async def test_a_viewer_sees_no_secret(system: System) -> None:
    actual_answers = await answers(system, "viewer")
    assert {call: text for call, text in actual_answers.items() if "planted" in text} == {}
    config = json.loads(actual_answers["/clusters/demo/connectors/c"])["config"]
    assert config["connector.class"] == "FileStreamSource"
    assert config["url"] == "jdbc:x://[hidden]@h/db"
    assert {config[key] for key in KEYS} == {"[hidden]"}


@pytest.mark.parametrize("role", ["operator", "admin"])
async def test_others_see_what_they_could_read_otherwise(system: System, role: str) -> None:
    actual_answers = await answers(system, role)
    assert json.loads(actual_answers["/clusters/demo/connectors/c"])["config"].items() >= CONFIG.items()
    assert "planted-98" in actual_answers["/v0/nodes/far"]


@pytest.mark.parametrize("encoding", [b"", b"gzip"])
async def test_an_answer_in_pieces_is_hidden_as_a_whole(encoding: bytes) -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)
        await asyncio.sleep(0)

    body = orjson.dumps({"password": "planted", "n": 1})
    body = gzip.compress(body) if encoding else body
    headers = [(b"Content-Type", b"application/json"), (b"content-length", b"%d" % len(body)), (b"etag", b"x")]
    headers += [(b"content-encoding", encoding)] if encoding else []
    answer = RedactedAnswer(send)
    await answer({"type": "http.response.start", "status": 200, "headers": headers})
    for number in range(len(body)):
        await answer({"type": "http.response.body", "body": body[number : number + 1], "more_body": True})
    assert sent == []
    await answer({"type": "http.response.body", "body": b""})
    hidden = b'{"password":"[hidden]","n":1}'
    length = (b"content-length", b"%d" % len(hidden))
    assert sent[0] == {
        "type": "http.response.start", "status": 200, "headers": [(b"Content-Type", b"application/json"), length]
    }  # fmt: skip
    assert sent[1]["body"] == hidden
