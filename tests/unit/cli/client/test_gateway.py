"""The gateway methods that the command line calls, and the notes that it prints to standard error."""

from __future__ import annotations

from typing import Any

import pytest

from keelman.api.connect.v1.connector_pb2 import Connector
from keelman.api.connect.v1.connector_service_pb2 import CreateConnectorResponse
from keelman.api.connect.v1.worker_cluster_pb2 import WorkerCluster, WorkerClusterSpec
from keelman.api.connect.v1.worker_cluster_service_pb2 import (
    CreateWorkerClusterResponse,
    GetWorkerClusterResponse,
    StopWorkerClusterResponse,
    UpdateWorkerClusterResponse,
)
from keelman.cli import kinds
from keelman.cli.client.gateway import Gateway
from keelman.cli.kinds import KINDS
from keelman.model.errors import Conflict, Unavailable


class Link:
    """A channel that records the paths of its methods, and answers each call with one message."""

    def __init__(self, answer: Any = None) -> None:
        self.paths = set[str]()
        self._answer = answer

    def unary_unary(self, path: str, **_: Any) -> Any:
        self.paths.add(path.rpartition("/")[2])

        async def call(_request: Any, timeout: float) -> Any:
            return self._answer

        return call

    def unary_stream(self, path: str, **_: Any) -> Any:
        return None

    def stream_unary(self, path: str, **_: Any) -> Any:
        return None


async def test_notes_on_a_configuration_go_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    connector = Connector(name="c", notes=["fiel: unknown, did you mean file?", "x: unknown, nothing reads it"])
    gateway = Gateway(Link(CreateConnectorResponse(connector=connector)))
    assert await gateway.create_connector("demo", "c", {}) == connector
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.splitlines() == [
        "keelman: note: fiel: unknown, did you mean file?",
        "keelman: note: x: unknown, nothing reads it",
    ]


async def test_notes_on_worker_properties_go_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    warnings = ["keelman.cpu: unknown, did you mean keelman.cpus?", "zzz: unknown, nothing reads it"]
    worker_cluster = WorkerCluster(name="demo")
    gateway = Gateway(Link(CreateWorkerClusterResponse(worker_cluster=worker_cluster, notes=warnings)))
    assert await gateway.create(kinds.WORKER_CLUSTERS, "demo", WorkerClusterSpec()) == worker_cluster
    assert capsys.readouterr().err.splitlines() == [f"keelman: note: {note}" for note in warnings]


class Changing(Link):
    """A worker cluster that another user changes before each of the first updates; records the requests."""

    def __init__(self, conflicts: int) -> None:
        super().__init__()
        self.requests: list[Any] = []
        self._conflicts = conflicts

    def unary_unary(self, path: str, **_: Any) -> Any:
        async def get(_request: Any, timeout: float) -> Any:
            spec = WorkerClusterSpec(count=1, properties={"a": "1"}, labels={"n": str(self._conflicts)})
            return GetWorkerClusterResponse(worker_cluster=WorkerCluster(etag=str(self._conflicts), spec=spec))

        async def update(request: Any, timeout: float) -> Any:
            self.requests.append(request)
            if self._conflicts:
                self._conflicts -= 1
                raise Conflict("worker cluster 'w': etag '1' is not the present one")
            return UpdateWorkerClusterResponse(worker_cluster=WorkerCluster(spec=request.spec))

        return update if path.endswith("/UpdateWorkerCluster") else get


def with_b(spec: Any) -> list[str]:
    spec.properties["b"] = "2"
    return ["properties"]


async def test_an_update_is_edited_again_where_somebody_else_was_first() -> None:
    link = Changing(conflicts=1)
    updated, changed = await Gateway(link).update(kinds.WORKER_CLUSTERS, "w", with_b)
    assert (dict(updated.spec.properties), changed) == ({"a": "1", "b": "2"}, True)
    assert [(request.etag, dict(request.spec.labels)) for request in link.requests] == [
        ("1", {"n": "1"}),
        ("0", {"n": "0"}),
    ]
    assert {tuple(request.update_mask.paths) for request in link.requests} == {("properties",)}
    first, second = (request.request_id for request in link.requests)
    assert first
    assert first != second, "another edit is another request"


async def test_an_update_ends_when_that_happens_again_and_asks_nothing_where_nothing_changes() -> None:
    link = Changing(conflicts=2)
    with pytest.raises(Conflict):
        await Gateway(link).update(kinds.WORKER_CLUSTERS, "w", with_b)
    assert len(link.requests) == 2
    _, changed = await Gateway(link).update(kinds.WORKER_CLUSTERS, "w", lambda _: ["count"])
    assert (changed, len(link.requests)) == (False, 2)


class Away(Link):
    """Leaves the first requests without an answer; records all requests."""

    def __init__(self, error: Unavailable) -> None:
        super().__init__()
        self.requests: list[Any] = []
        self._error: Unavailable | None = error

    def unary_unary(self, path: str, **_: Any) -> Any:
        async def call(request: Any, timeout: float, *, wait_for_ready: bool = False) -> Any:
            self.requests.append(request)
            error, self._error = self._error, None
            if error is not None:
                raise error
            assert wait_for_ready
            return StopWorkerClusterResponse(worker_cluster=WorkerCluster(name="w"))

        return call


async def test_a_write_that_nobody_answered_is_repeated_under_its_id(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keelman.cli.client.gateway.REPEAT_SECONDS", 0.0)
    link = Away(Unavailable("gone", reason="UNREACHABLE"))
    assert (await Gateway(link).act("stop", kinds.WORKER_CLUSTERS, "w", force=True)).name == "w"
    first, second = link.requests
    assert first == second
    assert (first.force, len(first.request_id)) == (True, 32)


@pytest.mark.parametrize(
    ("verb", "kind", "reason"), [("get", kinds.NODES, "UNREACHABLE"), ("stop", kinds.WORKER_CLUSTERS, "NO_AGENT")]
)
async def test_what_was_answered_and_what_only_reads_is_not_repeated(verb: str, kind: kinds.Kind, reason: str) -> None:
    link = Away(Unavailable("gone", reason=reason))
    with pytest.raises(Unavailable, match="gone"):
        await Gateway(link).act(verb, kind, "x")
    assert len(link.requests) == 1


RPCS = {
    "get": "Get",
    "create": "Create",
    "delete": "Delete",
    "start": "Start",
    "stop": "Stop",
    "pause": "Pause",
    "resume": "Resume",
    "restart": "Restart",
    "configure": "Update",
    "update": "Update",
    "cordon": "Cordon",
    "uncordon": "Uncordon",
    "drain": "Drain",
}


@pytest.mark.parametrize("kind", KINDS[:7])
def test_each_verb_of_a_kind_is_a_method_of_the_gateway(kind: kinds.Kind) -> None:
    link = Link()
    Gateway(link)._service(kind)
    noun = "".join(word.capitalize() for word in kind.singular.split("-"))
    assert f"List{noun}s" in link.paths
    for verb in kind.verbs:
        elsewhere = {("get", "workload"), ("start", "connector")}
        if verb in RPCS and (verb, kind.singular) not in elsewhere:
            assert f"{RPCS[verb]}{noun}" in link.paths
