"""Connectors by gRPC: their life, refusals, repeated requests and lists, with workers that answer over HTTP."""

from __future__ import annotations

import pytest

from keelman.api.connect.v1 import connector_definition_service_pb2 as definitions
from keelman.api.connect.v1 import connector_service_pb2 as connectors
from keelman.api.connect.v1.connector_definition_pb2 import DEFINITION_GOAL_RUNNING, ConnectorDefinitionSpec
from keelman.api.connect.v1.connector_definition_service_pb2_grpc import ConnectorDefinitionServiceStub
from keelman.api.connect.v1.connector_pb2 import (
    CONNECTOR_STATE_FAILED,
    CONNECTOR_STATE_PAUSED,
    CONNECTOR_STATE_RUNNING,
    CONNECTOR_STATE_UNASSIGNED,
    CONNECTOR_TYPE_SOURCE,
    Connector,
)
from keelman.api.connect.v1.connector_service_pb2_grpc import ConnectorServiceStub
from keelman.api.connect.v1.operation_service_pb2 import (
    DeleteOperationRequest,
    GetOperationRequest,
    ListOperationsRequest,
)
from keelman.api.connect.v1.operation_service_pb2_grpc import OperationServiceStub
from keelman.model.errors import AlreadyExists, Conflict, Internal, InvalidArgument, NotFound
from keelman.rpc.channels import Channel
from keelman.rpc.errors import translated
from support.eventually import eventually
from support.gateway.system import LIST_SECONDS, System
from support.gateway.worker_clusters import FILE_SOURCE, deleted_cluster, started_cluster

pytestmark = pytest.mark.component


async def test_a_definition_is_applied(system: System, gateway: Channel, demo: str) -> None:
    stub, operations = ConnectorDefinitionServiceStub(gateway), OperationServiceStub(gateway)
    spec = ConnectorDefinitionSpec(worker_cluster=demo, connector="defined here", config=FILE_SOURCE)
    no_cluster = ConnectorDefinitionSpec(config=FILE_SOURCE)
    for name, value, field in (("Not Legal", spec, "name"), ("defined", no_cluster, "spec.worker_cluster")):
        request = definitions.CreateConnectorDefinitionRequest(name=name, spec=value)
        with translated(), pytest.raises(InvalidArgument, match=f"^{field}: "):
            await stub.CreateConnectorDefinition(request)
    await stub.CreateConnectorDefinition(definitions.CreateConnectorDefinitionRequest(name="defined", spec=spec))
    request = definitions.ApplyConnectorDefinitionRequest(name="defined", goal=DEFINITION_GOAL_RUNNING)
    begun = (await stub.ApplyConnectorDefinition(request)).operation

    async def failed() -> bool:
        operation = (await operations.GetOperation(GetOperationRequest(name=begun.name))).operation
        return operation.error.message == "task 0 failed: java.lang.Oops"

    await eventually(failed, what="the workers' answers are reported")
    assert system.connectors[demo]["defined here"] == FILE_SOURCE | {"name": "defined here"}
    listed = (await operations.ListOperations(ListOperationsRequest(target=begun.target))).operations
    assert [connector.name for connector in listed] == [begun.name]
    await operations.DeleteOperation(DeleteOperationRequest(name=begun.name))
    request = definitions.DeleteConnectorDefinitionRequest(name="defined", keep_connector=True)
    await stub.DeleteConnectorDefinition(request)
    with translated(), pytest.raises(NotFound, match="no connector definition is named 'defined'"):
        await stub.GetConnectorDefinition(definitions.GetConnectorDefinitionRequest(name="defined"))
    del system.connectors[demo]["defined here"]


async def test_a_connectors_life(system: System, gateway: Channel, demo: str) -> None:
    stub = ConnectorServiceStub(gateway)
    named = {"worker_cluster": demo, "name": "a/b c%"}
    create_connector = await stub.CreateConnector(connectors.CreateConnectorRequest(**named, config=FILE_SOURCE))
    connector = (await stub.GetConnector(connectors.GetConnectorRequest(**named))).connector
    worker = system.worker("worker/demo/0")
    assert create_connector.connector == connector
    assert connector.config == FILE_SOURCE | {"name": "a/b c%"}
    assert (connector.type, connector.state, connector.worker_id) == (
        CONNECTOR_TYPE_SOURCE,
        CONNECTOR_STATE_RUNNING,
        worker.url.removeprefix("http://"),
    )
    [task] = connector.tasks
    assert (task.task, task.state, task.trace) == (0, CONNECTOR_STATE_FAILED, "java.lang.Oops")
    changed = await stub.UpdateConnector(
        connectors.UpdateConnectorRequest(**named, config=FILE_SOURCE | {"topic": "u"})
    )
    assert changed.connector.config["topic"] == "u"
    before = len(worker.asked)
    await stub.PauseConnector(connectors.PauseConnectorRequest(**named))
    await stub.ResumeConnector(connectors.ResumeConnectorRequest(**named))
    await stub.StopConnector(connectors.StopConnectorRequest(**named))
    await stub.RestartConnector(connectors.RestartConnectorRequest(**named))
    await stub.RestartConnector(connectors.RestartConnectorRequest(**named, include_tasks=True, only_failed=True))
    path = b"/connectors/a%2Fb%20c%25"
    assert worker.asked[before:] == [
        ("PUT", path + b"/pause"),
        ("PUT", path + b"/resume"),
        ("PUT", path + b"/stop"),
        ("POST", path + b"/restart"),
        ("POST", path + b"/restart?includeTasks=true&onlyFailed=true"),
    ]
    await stub.DeleteConnector(connectors.DeleteConnectorRequest(**named))
    with pytest.raises(NotFound, match="Connector a/b c% not found"):
        await stub.GetConnector(connectors.GetConnectorRequest(**named))


async def test_a_connector_without_a_status_yet_is_unassigned(system: System, gateway: Channel, demo: str) -> None:
    system.connectors[demo]["young"] = FILE_SOURCE | {"young": "1"}
    get_connector = await ConnectorServiceStub(gateway).GetConnector(
        connectors.GetConnectorRequest(worker_cluster=demo, name="young")
    )
    assert (get_connector.connector.state, get_connector.connector.tasks[0].state) == (CONNECTOR_STATE_UNASSIGNED,) * 2
    del system.connectors[demo]["young"]


async def test_a_repeated_create_gets_what_the_first_one_made(gateway: Channel, demo: str) -> None:
    stub = ConnectorServiceStub(gateway)
    named = {"worker_cluster": demo, "name": "repeated"}
    create = connectors.CreateConnectorRequest(**named, config=FILE_SOURCE, request_id="r-1")
    first = (await stub.CreateConnector(create)).connector
    changed = await stub.UpdateConnector(connectors.UpdateConnectorRequest(**named, config=FILE_SOURCE | {"a": "b"}))
    again = (await stub.CreateConnector(create)).connector
    assert first.uid
    assert again == changed.connector, "as it is now"
    assert again.uid == first.uid
    create.request_id = "r-2"
    with pytest.raises(AlreadyExists, match="Connector repeated already exists"):
        await stub.CreateConnector(create)
    await stub.DeleteConnector(connectors.DeleteConnectorRequest(**named))
    assert (await stub.CreateConnector(create)).connector.uid not in ("", first.uid), "another one of its name"
    await stub.DeleteConnector(connectors.DeleteConnectorRequest(**named))
    for wrong in ("r\n", "ü", "r" * 129):
        create.request_id = wrong
        with pytest.raises(InvalidArgument, match=r"request_id: .* at most 128 printable characters of ASCII"):
            await stub.CreateConnector(create)


async def test_connects_refusals_come_as_statuses(system: System, gateway: Channel, demo: str) -> None:
    stub = ConnectorServiceStub(gateway)
    worker = system.worker("worker/demo/0")
    create = connectors.CreateConnectorRequest(worker_cluster=demo, name="twice", config=FILE_SOURCE)
    await stub.CreateConnector(create)
    with pytest.raises(AlreadyExists, match="Connector twice already exists"):
        await stub.CreateConnector(create)
    with pytest.raises(InvalidArgument, match="contains no connector type"):
        await stub.CreateConnector(connectors.CreateConnectorRequest(worker_cluster=demo, name="new"))
    with pytest.raises(NotFound, match="Connector none not found"):
        await stub.UpdateConnector(connectors.UpdateConnectorRequest(worker_cluster=demo, name="none"))
    for refusal, cls in (((409, "because a rebalance was underway."), Conflict), ((500, "Oops"), Internal)):
        worker.refusal = refusal
        with pytest.raises(cls, match=refusal[1]):
            await stub.CreateConnector(create)
    worker.refusal = (412, "not the one that If-Match names")
    with pytest.raises(Conflict, match=r"etag: .*old.* is not the present one"):
        await stub.DeleteConnector(connectors.DeleteConnectorRequest(worker_cluster=demo, name="twice", etag='"old"'))
    worker.refusal = None
    with pytest.raises(NotFound, match="nobody"):
        await stub.GetConnector(connectors.GetConnectorRequest(worker_cluster="nobody", name="x"))
    with pytest.raises(InvalidArgument, match="name"):
        await stub.GetConnector(connectors.GetConnectorRequest(worker_cluster=demo))
    await stub.DeleteConnector(connectors.DeleteConnectorRequest(worker_cluster=demo, name="twice"))


async def test_lists_cover_all_clusters_and_name_the_unreachable(system: System, gateway: Channel, demo: str) -> None:
    for name in ("dead", "frozen"):
        await started_cluster(gateway, name)
    system.connectors[demo] |= {f"c{i}": FILE_SOURCE for i in range(3)}
    await system.node_of("worker/dead/0").close("worker/dead/0")
    system.worker("worker/frozen/0").frozen = True
    stub = ConnectorServiceStub(gateway)
    seen: list[Connector] = []
    unreachable: dict[str, str] = {}
    token = ""
    while True:
        answer = await stub.ListConnectors(connectors.ListConnectorsRequest(page_size=2, page_token=token))
        unreachable |= answer.unreachable
        seen += answer.connectors
        token = answer.next_page_token
        if not token:
            break
    assert [(c.worker_cluster, c.name) for c in seen] == [(demo, "c0"), (demo, "c1"), (demo, "c2")]
    assert {c.state for c in seen} == {CONNECTOR_STATE_RUNNING}
    assert set(unreachable) == {"dead", "frozen"}
    assert "dead" not in answer.unreachable, "its connectors would have been on the first page"
    assert "worker/dead/0" not in unreachable["dead"]
    assert system.worker("worker/dead/0").url in unreachable["dead"]
    assert unreachable["frozen"] == f"no answer within {LIST_SECONDS} s"
    list_connectors = await stub.ListConnectors(connectors.ListConnectorsRequest(worker_cluster=demo))
    assert (len(list_connectors.connectors), dict(list_connectors.unreachable)) == (3, {})
    for state, count in (
        (CONNECTOR_STATE_RUNNING, 3),
        (CONNECTOR_STATE_FAILED, 3),
        (CONNECTOR_STATE_PAUSED, 0),
    ):  # a task of each has failed
        some = await stub.ListConnectors(connectors.ListConnectorsRequest(worker_cluster=demo, state=state))
        assert len(some.connectors) == count
    with pytest.raises(NotFound):
        await stub.ListConnectors(connectors.ListConnectorsRequest(worker_cluster="nobody"))
    system.connectors[demo].clear()
    for name in ("dead", "frozen"):
        await deleted_cluster(gateway, name)
