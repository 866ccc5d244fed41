"""Every cell of docs/authorization.md, called on a real gateway before a real state service.

Also the lists that callers of single worker clusters see.
"""

from __future__ import annotations

import asyncio
import contextlib
import runpy
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest
import pytest_asyncio
from google.protobuf import descriptor_pool
from google.protobuf.message_factory import GetMessageClass

from keelman.api.connect.v1 import broker_cluster_service_pb2 as brokers
from keelman.api.connect.v1 import connector_definition_service_pb2 as definitions
from keelman.api.connect.v1 import worker_cluster_service_pb2 as clusters
from keelman.api.connect.v1.broker_cluster_pb2 import BrokerClusterSpec, ExternalBrokers
from keelman.api.connect.v1.connector_definition_pb2 import DEFINITION_GOAL_RUNNING, ConnectorDefinitionSpec
from keelman.api.connect.v1.worker_cluster_pb2 import WorkerClusterSpec
from keelman.api.event.v1.watch_service_pb2 import WatchRequest
from keelman.api.node.v1.node_service_pb2 import ListNodesRequest
from keelman.gateway.access.matrix import BAD, CALLERS, NOBODY
from keelman.gateway.service import FORWARDED
from keelman.model.access.roles import token_digest
from keelman.model.errors import FailedPrecondition, PermissionDenied, Unauthenticated
from keelman.rpc.channels import Channel, channel
from keelman.rpc.errors import from_rpc_error
from keelman.rpc.generated import service_of, stub_of
from keelman.rpc.health import is_serving
from support.eventually import eventually
from support.gateway.system import System, running_system
from support.places import ROOT

pytestmark = pytest.mark.component
TOKENS = {name: f"token-of-{name.replace(' ', '-')}" for name in CALLERS}
AUTHORIZATION = {NOBODY: "", BAD: "Bearer nonsense"} | {name: f"Bearer {token}" for name, token in TOKENS.items()}
OWN = {"grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection", "keelman.api.node.v1.AgentService"}
"""Services that the gateway answers itself, beside connectors."""
STREAM_SECONDS = 0.3
"""A silent stream counts as admitted after this time."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A call, a column, and the content of the cell."""

    call: str
    column: str
    expected: str


def cells(heading: str) -> Iterator[Cell]:
    """The cells of a table of the page."""
    page = runpy.run_path(str(ROOT / "tools" / "document_authorization.py"))["tables"]()
    section = page.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in section.splitlines() if line.startswith("|")]
    for row in rows[2:]:
        for column, expected in zip(rows[0][3:], row[3:], strict=True):
            yield Cell(row[0].strip("`"), column, expected)


@pytest_asyncio.fixture(scope="module")
async def system(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[System]:
    folder = tmp_path_factory.mktemp("access")
    file = folder / "access.toml"
    file.write_text("".join(token_lines(name) for name in CALLERS))
    async with running_system(folder, {"node-1": "127.0.0.1"}, {"access-file": str(file)}) as system:
        async with as_caller(system, "admin") as admin:
            spec = BrokerClusterSpec(external=ExternalBrokers(bootstrap_servers="127.0.0.1:1"))
            request = brokers.CreateBrokerClusterRequest(name="outside", spec=spec)
            await admin.connect("broker_cluster").CreateBrokerCluster(request)
            for name in ("mine", "other"):
                of_workers = clusters.CreateWorkerClusterRequest(
                    name=name, spec=WorkerClusterSpec(broker_cluster="outside", count=1)
                )
                await admin.connect("worker_cluster").CreateWorkerCluster(of_workers)
                defined = ConnectorDefinitionSpec(
                    worker_cluster=name, connector=name, config={"connector.class": "FileStreamSource"}
                )
                await admin.connect("connector_definition").CreateConnectorDefinition(
                    definitions.CreateConnectorDefinitionRequest(name=f"of-{name}", spec=defined)
                )
        yield system


def token_lines(name: str) -> str:
    caller = CALLERS[name]
    clusters_of = f"clusters = {sorted(caller.clusters)}\n" if caller.clusters else ""
    digest, plain = token_digest(TOKENS[name]), name.replace(" ", "-")
    return f"[[token]]\nsha256 = '{digest}'\nname = '{plain}'\nrole = '{caller.role}'\n{clusters_of}"


class Client:
    """A caller's channel to the gateway."""

    def __init__(self, link: Channel) -> None:
        self.link = link

    def connect(self, noun: str) -> Any:
        return stub_of(self.link, "connect", noun)


@contextlib.asynccontextmanager
async def as_caller(system: System, column: str) -> AsyncIterator[Client]:
    """Calls with a caller's token, on a channel of its own."""
    async with channel(system.gateway.address, token=TOKENS[column]) as link:
        yield Client(link)


async def begun_operation(system: System) -> str:
    """The name of an operation on a resource of worker cluster "mine", which is started for it."""
    async with as_caller(system, "admin") as admin:
        await admin.connect("worker_cluster").StartWorkerCluster(clusters.StartWorkerClusterRequest(name="mine"))
        apply = definitions.ApplyConnectorDefinitionRequest(name="of-mine", goal=DEFINITION_GOAL_RUNNING)

        async def begun() -> str:
            try:
                definition = await admin.connect("connector_definition").ApplyConnectorDefinition(apply)
            except FailedPrecondition:  # it does not run yet
                return ""
            return str(definition.operation.name)

        return await eventually(begun)


def about_mine(kind: Any, method: str, operation: str) -> Any:
    """A request about worker cluster "mine" or its resources.

    Fields that name no cluster are empty, and the etag is of another generation, so that nothing is done.
    """
    request, fields = kind(), kind.DESCRIPTOR.fields_by_name
    for field, value in (
        ("worker_cluster", "mine"), ("workload", "worker/mine/0"), ("name", "mine"), ("etag", "none"),
    ):  # fmt: skip
        if field in fields:
            setattr(request, field, value)
    if method.endswith("Worker"):
        request.name = "mine/0"
    if method.endswith("ConnectorDefinition"):
        request.name = "of-mine"
    if method.endswith("Operation"):
        request.name = operation
    if method == "CreateConnectorDefinition":
        request.spec.worker_cluster = "mine"
    if method == "ListOperations":
        request.target.noun, request.target.name = "connector_definition", "of-mine"
    return request


async def outcome(link: Channel, path: str, authorization: str, operation: str, expected: str) -> str:
    """The outcome of an RPC: admitted, 401 or 403.

    The request names no worker cluster if the answer is expected to have the caller's own; the end of a stream that is
    expected to be admitted is not waited for.
    """
    method = descriptor_pool.Default().FindMethodByName(path.removeprefix("/").replace("/", "."))
    kind, answer = GetMessageClass(method.input_type), GetMessageClass(method.output_type)
    request_type = kind() if expected == "own" else about_mine(kind, method.name, operation)
    streams = ("stream" if method.client_streaming else "unary", "stream" if method.server_streaming else "unary")
    make: Any = getattr(link, "_".join(streams))
    call = make(path, request_serializer=kind.SerializeToString, response_deserializer=answer.FromString)
    metadata = (("authorization", authorization),) if authorization else ()
    sent: Any = request_type
    if method.client_streaming:  # a client that is refused while it writes may not get the reason
        sent = iter([] if method.server_streaming else [request_type])
    seconds = STREAM_SECONDS if method.server_streaming and not expected.isdigit() else 30
    try:
        outcome = call(sent, metadata=metadata, timeout=seconds)
        if method.server_streaming:
            async for _ in outcome:
                break
            outcome.cancel()
        else:
            await outcome
    except grpc.aio.AioRpcError as error:
        if error.code() is grpc.StatusCode.UNAUTHENTICATED:
            return "401"
        denied = from_rpc_error(error)
        return "403" if denied.reason in ("ROLE", "OTHER_CLUSTER", "CLOSED") else "yes"
    return "yes"


async def test_every_route_lets_in_whom_the_page_says(system: System) -> None:
    wrong: list[str] = []
    async with httpx.AsyncClient(base_url=system.http, trust_env=False, timeout=300) as http:
        for cell in cells("HTTP"):
            method, path = cell.call.split(" ")
            path = path.replace("{name}", "mine").replace("{connector}", "c") + (
                "/nothing" if path.count("/") > 1 else ""
            )
            header = {"Authorization": AUTHORIZATION[cell.column]} if AUTHORIZATION[cell.column] else {}
            for http_method in ("GET", "POST", "PUT", "DELETE") if method == "any" else (method,):
                answer = await http.request(http_method, path, headers=header)
                verdict = {401: "401", 403: "403"}.get(answer.status_code, "yes")
                if path.startswith(("/v1", "/_private")):  # these have proofs of their own
                    verdict = "yes" if "keelman" not in answer.headers.get("www-authenticate", "") else verdict
                if verdict != {"own": "yes"}.get(cell.expected, cell.expected):
                    wrong.append(f"{http_method} {path} as {cell.column}: {answer.status_code}, not {cell.expected}")
    assert wrong == []


async def test_lists_show_a_caller_its_own_clusters(system: System) -> None:
    async with as_caller(system, "operator of it") as client:
        actual_clusters = await client.connect("worker_cluster").ListWorkerClusters(
            clusters.ListWorkerClustersRequest()
        )
        assert [worker_cluster.name for worker_cluster in actual_clusters.worker_clusters] == ["mine"]
        defined = await client.connect("connector_definition").ListConnectorDefinitions(
            definitions.ListConnectorDefinitionsRequest()
        )
        assert [connector_definition.name for connector_definition in defined.connector_definitions] == ["of-mine"]
        got = await client.connect("connector_definition").GetConnectorDefinition(
            definitions.GetConnectorDefinitionRequest(name="of-mine")
        )
        assert got.connector_definition.spec.worker_cluster == "mine"
        for name in ("of-other", "of-none"):  # it does not learn which of them exists
            with pytest.raises(PermissionDenied, match="operator of mine alone"):
                await client.connect("connector_definition").GetConnectorDefinition(
                    definitions.GetConnectorDefinitionRequest(name=name)
                )
        events = await watched(client)
        assert {event.name for event in events} == {"mine", "of-mine"}
    async with httpx.AsyncClient(base_url=system.http, trust_env=False, timeout=300) as http:
        answer = await http.get("/", auth=("any", TOKENS["operator of it"]))
        assert [cluster["name"] for cluster in answer.json()["clusters"]] == ["mine"]


async def watched(client: Client) -> list[Any]:
    """The events of a watch's snapshot."""
    results: list[Any] = []
    async for answer in stub_of(client.link, "event", "watch").Watch(WatchRequest()):
        results += answer.events
        if answer.snapshot_end:
            return results
    return results


async def test_refusals_have_the_form_of_the_api_and_say_how_to_be_let_in(system: System) -> None:
    async with httpx.AsyncClient(base_url=system.http, trust_env=False, timeout=300) as http:
        connect = await http.get("/clusters/mine/connectors")
        assert connect.status_code == 401
        assert connect.json()["error_code"] == 401
        assert connect.headers.get_list("www-authenticate") == ['Bearer realm="keelman"', 'Basic realm="keelman"']
        ohara = await http.get("/v0/nodes", headers={"Authorization": AUTHORIZATION["operator of it"]})
        assert (ohara.status_code, ohara.json()["code"]) == (403, "java.lang.SecurityException")
    async with channel(system.gateway.address) as link:
        with pytest.raises(Unauthenticated, match="Authorization: Bearer") as refused:
            await stub_of(link, "node", "node").ListNodes(ListNodesRequest())
        assert refused.value.reason == "NO_CREDENTIALS"
        assert await is_serving(system.gateway.address)


async def test_a_token_that_leaves_the_file_is_refused_and_a_new_one_is_known(system: System) -> None:
    """A gateway looks at its file every few milliseconds."""
    file = Path(system.gateway.flags["access-file"])
    before = file.read_text()
    async with channel(system.gateway.address, token="new") as link:
        nodes = stub_of(link, "node", "node")

        async def is_known() -> bool:
            try:
                await nodes.ListNodes(ListNodesRequest())
            except Unauthenticated:
                return False
            return True

        async def is_unknown() -> bool:
            return not await is_known()

        assert await is_unknown()
        try:
            file.write_text(f"[[token]]\nsha256 = '{token_digest('new')}'\nname = 'new'\nrole = 'viewer'\n")
            await eventually(is_known, seconds=10, what="the new token is known")
        finally:
            file.write_text(before)
        await eventually(is_unknown, seconds=10, what="the token that left is refused")


async def test_every_rpc_lets_in_whom_the_page_says(system: System) -> None:
    wrong: list[str] = []
    walked = [*cells("gRPC")]
    assert len(walked) > 90 * len(AUTHORIZATION)
    nouns = [(area, noun) for area, several in FORWARDED.items() for noun in several]
    served = {service_of(*noun).full_name for noun in (*nouns, ("connect", "connector"))} | OWN
    operation = await begun_operation(system)
    async with httpx.AsyncClient(base_url=system.http, trust_env=False, timeout=300) as http:

        async def headers_at_worker() -> dict[str, str] | None:
            answer = await http.get("/clusters/mine/echo", headers={"Authorization": AUTHORIZATION["viewer"]})
            return dict(answer.json().get("headers", ())) or None  # none while the worker is about to start

        headers = await eventually(headers_at_worker, what="the worker of mine answers")
    assert "authorization" not in headers  # a token ends at the gateway
    async with grpc.aio.insecure_channel(system.gateway.address) as link:

        async def walk(cell: Cell) -> None:
            if cell.call.split("/")[1] not in served or (cell.call.endswith("/GetCopyRun") and cell.expected == "403"):
                return  # a copy run that does not exist is reported in no other way
            value = AUTHORIZATION[cell.column]
            actual_outcome = await outcome(link, cell.call, value, operation, cell.expected)
            if actual_outcome != {"own": "yes"}.get(cell.expected, cell.expected):
                wrong.append(f"{cell.call} as {cell.column}: {actual_outcome}, not {cell.expected}")

        for begin in range(0, len(walked), 16):
            await asyncio.gather(*(walk(cell) for cell in walked[begin : begin + 16]))
    assert wrong == []
