"""Connect's REST API through the gateway's proxy, and the proxy's own answers."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from collections.abc import AsyncIterator

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from keelman.api.connect.v1 import connector_service_pb2 as connectors
from keelman.api.connect.v1 import worker_cluster_service_pb2 as clusters
from keelman.api.connect.v1.connector_service_pb2_grpc import ConnectorServiceStub
from keelman.api.connect.v1.worker_cluster_pb2 import WorkerClusterSpec
from keelman.api.connect.v1.worker_cluster_service_pb2_grpc import WorkerClusterServiceStub
from keelman.model.errors import Unavailable
from keelman.rpc.channels import Channel
from support.gateway.rest_workers import OLD
from support.gateway.system import System
from support.gateway.worker_clusters import FILE_SOURCE, deleted_cluster, started_cluster

pytestmark = pytest.mark.component


async def test_the_proxy_changes_nothing(http: httpx.AsyncClient, demo: str) -> None:
    body = os.urandom(3_000_000)

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(body), 100_000):
            yield body[start : start + 100_000]

    for content in (body, pieces()):
        answer = await http.request(
            "PATCH",
            f"/clusters/{demo}/echo/a%2Fb%20c/%C3%BC;v=1?x=%2F&x=2&flag",
            content=content,
            headers=[
                ("X-Two", "1"),
                ("X-Two", "2"),
                ("Authorization", "Basic eA=="),
                ("Connection", "X-Hop"),
                ("X-Hop", "1"),
            ],
        )
        assert answer.status_code == 299
        document = answer.json()
        assert document["method"] == "PATCH"
        assert document["target"] == "/echo/a%2Fb%20c/%C3%BC;v=1?x=%2F&x=2&flag"
        assert (document["size"], document["sha256"]) == (len(body), hashlib.sha256(body).hexdigest())
        headers = [(k, v) for k, v in document["headers"] if k not in ("host", "content-length", "transfer-encoding")]
        assert headers == [
            (k.lower(), v)
            for k, v in answer.request.headers.multi_items()
            if k.lower() not in ("host", "content-length", "transfer-encoding", "connection", "x-hop")
        ]
        assert answer.headers.get_list("x-answer") == ["1", "2"]
        assert "x-hop" not in answer.headers
        assert sorted(answer.headers) == ["age", "content-length", "content-type", "warning", "x-answer"]
        assert {key.encode(): answer.headers[key].encode() for key in ("age", "warning")} == dict(OLD)


async def test_the_proxy_sends_dots_and_no_body_as_they_are(system: System, demo: str) -> None:
    answer = await raw_http(
        system, b"DELETE /clusters/demo/echo/../x//%2e%2e/ HTTP/1.1\r\nHost: g\r\nConnection: close\r\n\r\n"
    )
    document = json.loads(answer.partition(b"\r\n\r\n")[2])
    assert document["target"] == "/echo/../x//%2e%2e/?"
    assert {k for k, _ in document["headers"]} == {"host"}


async def raw_http(system: System, request: bytes) -> bytes:
    host, _, port = system.http.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(request)
    answer = await asyncio.wait_for(reader.read(), 60)
    writer.close()
    return answer


async def test_answers_stream_as_they_come(system: System, http: httpx.AsyncClient, demo: str) -> None:
    worker = system.worker("worker/demo/0")
    async with http.stream("GET", f"/clusters/{demo}/stream") as answer:
        pieces = answer.aiter_raw()
        assert await anext(pieces) == b"first\n"
        worker.go_on.set()
        assert b"".join([p async for p in pieces]) == b"last\n"
    worker.go_on.clear()


async def test_connects_own_life_goes_through_the_proxy(http: httpx.AsyncClient, demo: str) -> None:
    base = f"/clusters/{demo}"
    assert (await http.get(base)).json()["version"] == "4.3.0"
    created = await http.post(f"{base}/connectors", json={"name": "p1", "config": FILE_SOURCE})
    assert created.status_code == 201
    assert created.headers["location"] == f"/clusters/{demo}/connectors/p1"
    assert (await http.get(created.headers["location"])).json()["name"] == "p1"
    again = await http.post(f"{base}/connectors", json={"name": "p1", "config": FILE_SOURCE})
    assert (again.status_code, again.json()) == (409, {"error_code": 409, "message": "Connector p1 already exists"})
    assert (await http.put(f"{base}/connectors/p1/pause")).status_code == 202
    gone = await http.delete(f"{base}/connectors/p1")
    assert (gone.status_code, gone.content) == (204, b"")
    head = await http.head(base)
    assert head.status_code == 404  # the worker's own answer: it got the request


async def test_the_proxys_own_errors_have_connects_form(gateway: Channel, http: httpx.AsyncClient, demo: str) -> None:
    stub = WorkerClusterServiceStub(gateway)
    spec = WorkerClusterSpec(broker_cluster="outside", count=1)
    await stub.CreateWorkerCluster(clusters.CreateWorkerClusterRequest(name="idle", spec=spec))
    for path, status, words in (
        ("/clusters/nobody/connectors", 404, "nobody"),
        ("/clusters/No%20Name/", 404, "'No Name'"),
        ("/clusters/", 404, "''"),
        ("/clusters/idle/connectors", 503, "worker cluster 'idle' has no running worker"),
        ("/elsewhere", 404, "/clusters/{name}/"),
    ):
        answer = await http.get(path)
        assert (answer.status_code, answer.headers["content-type"]) == (status, "application/json")
        assert answer.json()["error_code"] == status
        assert words in answer.json()["message"]
    await deleted_cluster(gateway, "idle")


async def test_a_body_that_is_too_large_is_refused(system: System, http: httpx.AsyncClient, demo: str) -> None:
    head = b"PUT /clusters/demo/echo HTTP/1.1\r\nHost: g\r\nContent-Length: 99999999\r\nConnection: close\r\n\r\n"
    assert b"HTTP/1.1 413 " in await raw_http(system, head)

    async def endless() -> AsyncIterator[bytes]:
        for _ in range(9):
            yield bytes(1024 * 1024)

    answer = await http.put(f"/clusters/{demo}/echo", content=endless())
    assert answer.status_code == 413
    assert answer.json()["error_code"] == 413
    assert "8388608 bytes" in answer.json()["message"]


async def test_the_next_worker_is_asked_when_one_is_gone(
    system: System, gateway: Channel, http: httpx.AsyncClient
) -> None:
    await started_cluster(gateway, "pair", count=2)
    await system.node_of("worker/pair/0").close("worker/pair/0")
    answer = await http.post("/clusters/pair/echo", content=b"x" * 100_000)
    assert (answer.status_code, answer.json()["size"]) == (299, 100_000)
    stub = ConnectorServiceStub(gateway)
    await stub.CreateConnector(connectors.CreateConnectorRequest(worker_cluster="pair", name="c", config=FILE_SOURCE))
    await system.node_of("worker/pair/1").close("worker/pair/1")
    answer = await http.get("/clusters/pair/connectors")
    assert answer.status_code == 503
    for number in (0, 1):
        assert system.worker(f"worker/pair/{number}").url in answer.json()["message"]
    with pytest.raises(Unavailable, match="no worker of worker cluster 'pair' can be reached"):
        await stub.GetConnector(connectors.GetConnectorRequest(worker_cluster="pair", name="c"))
    await deleted_cluster(gateway, "pair")


async def test_index_and_health(http: httpx.AsyncClient, demo: str) -> None:
    index = (await http.get("/")).json()
    assert index["name"] == "keelman"
    assert index["version"]
    assert {"name": demo, "state": "RUNNING", "path": f"/clusters/{demo}/"} in index["clusters"]
    assert (await http.get("/healthz")).json() == {"status": "healthy"}
    text = (await http.get("/metrics")).text
    samples = {(s.name, *s.labels.values()): s.value for f in text_string_to_metric_families(text) for s in f.samples}
    assert samples["keelman_gateway_state_up",] == 1
    assert samples["keelman_worker_cluster_state", demo, "RUNNING"] == 1
    assert samples["keelman_worker_cluster_ready_workers", demo] == 1
