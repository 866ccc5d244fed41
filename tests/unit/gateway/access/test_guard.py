"""The calls that the guard admits, above all from callers of single worker clusters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from keelman.api.connect.v1 import connector_definition_service_pb2 as definitions
from keelman.api.connect.v1 import connector_service_pb2 as connectors
from keelman.api.connect.v1 import operation_service_pb2 as operations
from keelman.api.connect.v1 import worker_service_pb2 as workers
from keelman.api.connect.v1.batch_service_pb2 import WriteBatchRequest
from keelman.api.connect.v1.connector_definition_pb2 import ConnectorDefinitionSpec
from keelman.api.connect.v1.connector_pb2 import Connector
from keelman.api.connect.v1.worker_cluster_service_pb2 import CreateWorkerClusterRequest
from keelman.api.copy.v1 import copy_run_service_pb2 as runs
from keelman.api.copy.v1.copy_run_pb2 import CopyRun
from keelman.api.event.v1.event_pb2 import Event
from keelman.api.event.v1.watch_service_pb2 import WatchRequest, WatchResponse
from keelman.api.node.v1 import agent_service_pb2 as agent
from keelman.api.node.v1 import workload_pb2
from keelman.gateway.access.callers import Admission, Callers
from keelman.gateway.access.guard import RpcGuard
from keelman.gateway.settings import Settings
from keelman.model.access.roles import token_digest
from keelman.model.errors import Internal, InvalidArgument, PermissionDenied, Unauthenticated
from keelman.rpc.batches import packed
from keelman.rpc.guarded import Change, Incoming
from keelman.rpc.identity import Identity, IdentityKind

CONNECT, COPY, NODE = "/keelman.api.connect.v1", "/keelman.api.copy.v1", "/keelman.api.node.v1"


class Known:
    """A lookup with definitions and operations of the test, each with its worker cluster."""

    def __init__(self, **clusters: str) -> None:
        self._clusters = clusters

    async def cluster_of_definition(self, name: str) -> str:
        return self._clusters.get(name, "")

    async def cluster_of_operation(self, name: str) -> str:
        return self._clusters.get(name, "")


@pytest.fixture
def guard(tmp_path: Path) -> RpcGuard:
    file = tmp_path / "access.toml"
    file.write_text(
        f"[[token]]\nname='eye'\nrole='viewer'\nsha256='{token_digest('eye')}'\n"
        f"[[token]]\nname='op'\nrole='operator'\nsha256='{token_digest('op')}'\nclusters=['a']\n"
        "[[user]]\nname='alice'\nrole='admin'\n"
    )
    return RpcGuard(Callers(Settings(access_file=file)), Admission.CHECKED, Known(of_a="a", of_b="b", done="a"))


async def admitted(guard: RpcGuard, method: str, request: Any, token: str = "op") -> Change | None:
    return await guard.admit(Incoming(method, {"authorization": f"Bearer {token}"}, None, request))


@pytest.mark.parametrize(
    ("method", "request_", "is_let_in"),
    [
        (f"{CONNECT}.ConnectorService/PauseConnector", connectors.PauseConnectorRequest(worker_cluster="a"), True),
        (f"{CONNECT}.ConnectorService/PauseConnector", connectors.PauseConnectorRequest(worker_cluster="b"), False),
        (f"{CONNECT}.ConnectorService/PauseConnector", connectors.PauseConnectorRequest(), False),
        (f"{CONNECT}.ConnectorService/ListConnectors", connectors.ListConnectorsRequest(), True),
        (f"{CONNECT}.ConnectorService/ListConnectors", connectors.ListConnectorsRequest(worker_cluster="b"), False),
        (f"{CONNECT}.WorkerService/RestartWorker", workers.RestartWorkerRequest(name="a/0"), True),
        (f"{CONNECT}.WorkerService/RestartWorker", workers.RestartWorkerRequest(name="b/0"), False),
        (f"{CONNECT}.WorkerService/RestartWorker", workers.RestartWorkerRequest(name="a"), False),
        (f"{NODE}.AgentService/StreamLogs", agent.StreamLogsRequest(workload="worker/a/0"), True),
        (f"{NODE}.AgentService/StreamLogs", agent.StreamLogsRequest(workload="broker/a/0"), False),
        (f"{NODE}.AgentService/StreamLogs", agent.StreamLogsRequest(workload="spark/a"), False),
        (
            f"{CONNECT}.ConnectorDefinitionService/UpdateConnectorDefinition",
            definitions.UpdateConnectorDefinitionRequest(name="of_a"), True,
        ),
        (
            f"{CONNECT}.ConnectorDefinitionService/UpdateConnectorDefinition",  # it would move there
            definitions.UpdateConnectorDefinitionRequest(name="of_a", spec=ConnectorDefinitionSpec(worker_cluster="b")),
            False,
        ),
        (f"{CONNECT}.OperationService/GetOperation", operations.GetOperationRequest(name="done"), True),
        (f"{CONNECT}.OperationService/GetOperation", operations.GetOperationRequest(name="other"), False),
        (f"{CONNECT}.OperationService/ListOperations", operations.ListOperationsRequest(), False),
    ],
)  # fmt: skip
async def test_an_operator_of_one_cluster(guard: RpcGuard, method: str, request_: Any, *, is_let_in: bool) -> None:
    if is_let_in:
        await admitted(guard, method, request_)
        return
    with pytest.raises(PermissionDenied, match="operator of a alone") as refused:
        await admitted(guard, method, request_)
    assert refused.value.reason == "OTHER_CLUSTER"


async def test_answers_have_what_a_caller_sees(guard: RpcGuard) -> None:
    change = await admitted(guard, f"{CONNECT}.ConnectorService/ListConnectors", connectors.ListConnectorsRequest())
    assert change is not None
    both = [Connector(worker_cluster=cluster, name="c") for cluster in "abab"]
    page = connectors.ListConnectorsResponse(connectors=both, next_page_token="t", unreachable={"a": "x", "b": "y"})
    change(page)
    assert [connector.worker_cluster for connector in page.connectors] == ["a", "a"]
    assert (page.next_page_token, dict(page.unreachable)) == ("t", {"a": "x"})
    change = await admitted(guard, "/keelman.api.event.v1.WatchService/Watch", WatchRequest())
    assert change is not None
    events = [Event(name=f"worker/{cluster}/0", workload=workload_pb2.Workload()) for cluster in "ab"] + [
        Event(name="a")
    ]
    seen = WatchResponse(events=events, revision=7)
    change(seen)
    assert ([event.name for event in seen.events], seen.revision) == (["worker/a/0"], 7)


async def test_a_batch_is_let_in_where_each_of_its_writes_is(guard: RpcGuard) -> None:
    def batch(*writes: Any) -> WriteBatchRequest:
        return WriteBatchRequest(writes=[packed(write) for write in writes])

    mine = definitions.DeleteConnectorDefinitionRequest(name="of_a")
    method = f"{CONNECT}.BatchService/WriteBatch"
    await admitted(guard, method, batch(mine))
    with pytest.raises(PermissionDenied, match="operator of a alone"):
        await admitted(guard, method, batch(mine, definitions.DeleteConnectorDefinitionRequest(name="of_b")))
    with pytest.raises(PermissionDenied, match=r"op is operator and may not manage-clusters: .*CreateWorkerCluster"):
        await admitted(guard, method, batch(mine, CreateWorkerClusterRequest(name="a")))
    with pytest.raises(PermissionDenied, match="eye is viewer and may not configure"):
        await admitted(guard, method, batch(mine), "eye")


async def test_a_copy_run_of_another_cluster_is_not_shown(guard: RpcGuard) -> None:
    change = await admitted(guard, f"{COPY}.CopyRunService/GetCopyRun", runs.GetCopyRunRequest(uid="u"))
    assert change is not None
    change(runs.GetCopyRunResponse(copy_run=CopyRun(worker_cluster="a")))
    with pytest.raises(PermissionDenied):
        change(runs.GetCopyRunResponse(copy_run=CopyRun(worker_cluster="b")))


async def test_a_role_without_the_right_is_told_so(guard: RpcGuard) -> None:
    pause = connectors.PauseConnectorRequest(worker_cluster="a")
    with pytest.raises(PermissionDenied, match="eye is viewer and may not restart") as refused:
        await admitted(guard, f"{CONNECT}.ConnectorService/PauseConnector", pause, "eye")
    assert (refused.value.reason, refused.value.metadata["needs"]) == ("ROLE", "restart")


async def test_what_nobody_has_given_a_right_is_refused(guard: RpcGuard) -> None:
    with pytest.raises(Internal, match="no rule admits callers to"):
        await admitted(guard, "/keelman.api.connect.v1.New/Call", None)


async def test_certificates_name_users_and_no_others(guard: RpcGuard) -> None:
    async def by(kind: IdentityKind, name: str) -> None:
        await guard.admit(Incoming(f"{NODE}.NodeService/ListNodes", {}, Identity(kind, name), None))

    await by(IdentityKind.USER, "alice")
    for kind, name in ((IdentityKind.NODE, "alice"), (IdentityKind.USER, "bob")):
        with pytest.raises(Unauthenticated) as refused:
            await by(kind, name)
        assert refused.value.reason == "UNKNOWN_USER"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"open_access": True}, "gateway.open_access: True is not legal: false, as gateway.access_file is set"),
        ({"http_host": "10.0.0.1"}, "gateway.http_host: '10.0.0.1' is not legal: a loopback address"),
    ],
)
def test_settings_that_contradict_the_file_are_refused(tmp_path: Path, settings: Any, message: str) -> None:
    (tmp_path / "a").write_text("")
    with pytest.raises(InvalidArgument, match=message):
        Callers(Settings(access_file=tmp_path / "a", **settings))


def test_doors() -> None:
    assert [Callers(Settings()).admission(host) for host in ("localhost", "::1", "10.0.0.1")] == [
        Admission.OPEN, Admission.OPEN, Admission.CLOSED,
    ]  # fmt: skip
    assert Callers(Settings(open_access=True)).admission("10.0.0.1") is Admission.OPEN
