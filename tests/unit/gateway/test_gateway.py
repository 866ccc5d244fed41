"""The gateway's pure parts: its own refusals, the mapping of errors, and the headers that it does not forward."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest
from google.protobuf.field_mask_pb2 import FieldMask

from keelman.api.connect.v1 import broker_cluster_pb2, broker_cluster_service_pb2, topic_pb2, worker_cluster_pb2
from keelman.api.connect.v1 import document_service_pb2 as documents
from keelman.api.connect.v1 import topic_service_pb2 as topics
from keelman.api.connect.v1 import worker_cluster_service_pb2 as clusters
from keelman.api.connect.v1 import worker_service_pb2 as workers
from keelman.api.copy.v1 import copy_run_service_pb2 as runs
from keelman.api.node.v1 import node_pb2, workload_pb2
from keelman.api.node.v1 import node_service_pb2 as nodes
from keelman.gateway.proxy import not_forwarded
from keelman.gateway.service import FORWARDED, run
from keelman.gateway.settings import Settings
from keelman.gateway.validation import UNNAMED, check
from keelman.model import errors
from keelman.model.errors import InvalidArgument, KeelmanError
from keelman.rpc.generated import service_of
from keelman.rpc.server import Tls
from keelman.runtime.settings import load
from keelman.workers.rest.client import status_of
from keelman.workers.rest.connectors import refusal

NODE, WORKER = "keelman.api.node.v1.NodeService", "keelman.api.connect.v1.WorkerService"
CLUSTER, BROKERS = "keelman.api.connect.v1.WorkerClusterService", "keelman.api.connect.v1.BrokerClusterService"
TOPIC = "keelman.api.connect.v1.TopicService"
DOCUMENTS = "keelman.api.connect.v1.DocumentService"
RUN = "keelman.api.copy.v1.CopyRunService"


def worker_cluster(**spec: Any) -> Any:
    return clusters.CreateWorkerClusterRequest(name="w", spec=worker_cluster_pb2.WorkerClusterSpec(**spec))


def new_topic(**spec: Any) -> Any:
    return topics.CreateTopicRequest(name="t", spec=topic_pb2.TopicSpec(**spec))


def changed(*mask: str, **spec: Any) -> Any:
    expected_spec = worker_cluster_pb2.WorkerClusterSpec(**spec)
    return clusters.UpdateWorkerClusterRequest(name="w", spec=expected_spec, update_mask=FieldMask(paths=mask))


@pytest.mark.parametrize(
    ("service", "method", "request_", "field"),
    [
        (NODE, "GetNode", nodes.GetNodeRequest(name="No"), "name"),
        (NODE, "GetNode", nodes.GetNodeRequest(), "name"),
        (NODE, "ListNodes", nodes.ListNodesRequest(page_size=1001), "page_size"),
        (WORKER, "GetWorker", workers.GetWorkerRequest(), "name"),
        (WORKER, "ListWorkers", workers.ListWorkersRequest(worker_cluster="a/b"), "worker_cluster"),
        (RUN, "ListCopyRuns", runs.ListCopyRunsRequest(page_size=-1), "page_size"),
        (DOCUMENTS, "GetDocument", documents.GetDocumentRequest(kind="k"), "key"),
        (DOCUMENTS, "ListDocuments", documents.ListDocumentsRequest(kind="K"), "kind"),
        (DOCUMENTS, "ListDocuments", documents.ListDocumentsRequest(scope="\n"), "scope"),
        (DOCUMENTS, "PutDocument", documents.PutDocumentRequest(), "document.kind"),
        (TOPIC, "GetTopic", topics.GetTopicRequest(name="T"), "name"),
        (TOPIC, "ListTopics", topics.ListTopicsRequest(broker_cluster="B"), "broker_cluster"),
        (TOPIC, "CreateTopic", new_topic(), "spec.broker_cluster"),
        (TOPIC, "CreateTopic", new_topic(broker_cluster="b", topic="a b"), "spec.topic"),
        (TOPIC, "CreateTopic", new_topic(broker_cluster="b", partitions=-1), "spec.partitions"),
        (TOPIC, "CreateTopic", new_topic(broker_cluster="b", replication_factor=1 << 20), "spec.replication_factor"),
        (TOPIC, "CreateTopic", new_topic(broker_cluster="b", labels={"a b": ""}), "spec.labels"),
        (CLUSTER, "CreateWorkerCluster", worker_cluster(), "spec.broker_cluster"),
        (CLUSTER, "CreateWorkerCluster", worker_cluster(broker_cluster="b", routes={"db": "x"}), "spec.routes.db"),
        (
            CLUSTER,
            "CreateWorkerCluster",
            worker_cluster(broker_cluster="b", nodes=worker_cluster_pb2.WorkerNodes(names=["ok", ""])),
            "spec.nodes.names[1]",
        ),
        (
            BROKERS,
            "CreateBrokerCluster",
            broker_cluster_service_pb2.CreateBrokerClusterRequest(
                name="b",
                spec=broker_cluster_pb2.BrokerClusterSpec(managed=broker_cluster_pb2.ManagedBrokers(nodes=["N"])),
            ),
            "spec.managed.nodes[0]",
        ),
        (NODE, "ListNodes", nodes.ListNodesRequest(labels={"disk": "s s d"}), "labels.disk"),
        (CLUSTER, "CreateWorkerCluster", worker_cluster(broker_cluster="b", count=1001), "spec.count"),
        (CLUSTER, "CreateWorkerCluster", worker_cluster(broker_cluster="b", labels={"a b": ""}), "spec.labels"),
        (CLUSTER, "CreateWorkerCluster", worker_cluster(broker_cluster="b", port=70000), "spec.port"),
        (CLUSTER, "UpdateWorkerCluster", changed(reserved_ports=[1, 0]), "spec.reserved_ports[1]"),
        (CLUSTER, "UpdateWorkerCluster", changed("admin_port", admin_port=-1), "spec.admin_port"),
        (CLUSTER, "UpdateWorkerCluster", changed("node_selector", node_selector={"a": "ü"}), "spec.node_selector.a"),
        (CLUSTER, "UpdateWorkerCluster", changed("cuont"), "update_mask"),
        (CLUSTER, "StopWorkerCluster", clusters.StopWorkerClusterRequest(name="w", request_id="ü"), "request_id"),
        (NODE, "CreateNode", nodes.CreateNodeRequest(name="N"), "name"),
        (NODE, "DrainNode", nodes.DrainNodeRequest(name="n", request_id="x" * 129), "request_id"),
        (
            NODE,
            "UpdateNode",
            nodes.UpdateNodeRequest(
                name="n", spec=node_pb2.NodeSpec(capacity=workload_pb2.ResourceLimits(memory_bytes=-1))
            ),
            "spec.capacity.memory_bytes",
        ),
    ],
)
def test_what_needs_no_state_is_refused_here(service: str, method: str, request_: Any, field: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        check(service, method, request_)
    assert caught.value.violations[0].field == field


@pytest.mark.parametrize(
    ("service", "method", "request_"),
    [
        (NODE, "ListNodes", nodes.ListNodesRequest()),
        (WORKER, "GetWorker", workers.GetWorkerRequest(name="demo/0")),
        (WORKER, "ListWorkers", workers.ListWorkersRequest(page_size=1000)),
        (RUN, "GetCopyRun", runs.GetCopyRunRequest(uid="x")),
        (CLUSTER, "CreateWorkerCluster", worker_cluster(broker_cluster="b", count=1)),
        (CLUSTER, "UpdateWorkerCluster", changed("count", count=2, port=70000)),
        (NODE, "CordonNode", nodes.CordonNodeRequest(name="n", request_id="r-1", etag="7")),
    ],
)
def test_what_is_legal_passes(service: str, method: str, request_: Any) -> None:
    check(service, method, request_)


def test_every_forwarded_method_can_be_checked() -> None:
    from google.protobuf.message_factory import GetMessageClass  # noqa: PLC0415

    for service in (service_of(area, noun) for area, nouns in FORWARDED.items() for noun in nouns):
        for method in service.methods:
            request = GetMessageClass(method.input_type)()
            if method.name.startswith(("List", "Watch")):
                check(service.full_name, method.name, request)
            elif method.name != UNNAMED[0] and "name" in request.DESCRIPTOR.fields_by_name:
                with pytest.raises(InvalidArgument):
                    check(service.full_name, method.name, request)


@pytest.mark.parametrize(
    ("status", "cls"),
    [
        (400, errors.InvalidArgument),
        (401, errors.Unauthenticated),
        (403, errors.PermissionDenied),
        (404, errors.NotFound),
        (409, errors.Conflict),
        (413, errors.Exhausted),
        (422, errors.InvalidArgument),
        (429, errors.Exhausted),
        (500, errors.Internal),
        (502, errors.Unavailable),
        (503, errors.Unavailable),
        (504, errors.DeadlineExceeded),
        (405, errors.Internal),
    ],
)
def test_connects_errors_become_ours(status: int, cls: type[KeelmanError]) -> None:
    error = refusal(status, b'{"error_code":%d,"message":"as Connect said"}' % status)
    assert type(error) is cls
    assert error.message == "as Connect said"
    assert error.metadata == {"http_status": str(status)}


def test_a_refusal_names_the_keys_that_connects_text_does_not() -> None:
    null = "Null value can not be supplied as the configuration value."
    text = f"2 error(s):\n{null}\nInvalid tasks.max\n{null}\nInvalid regex"
    body = orjson.dumps({"error_code": 400, "message": text})
    error = refusal(400, body, [["file", null], ["topic", null], ["transforms.mask.regex", "Invalid regex"]])
    assert error.message == (
        f"2 error(s):\nfile: {null}\nInvalid tasks.max\ntopic: {null}\ntransforms.mask.regex: Invalid regex"
    )
    assert [violation.field for violation in error.violations] == ["file", "topic", "transforms.mask.regex"]


@pytest.mark.parametrize("body", [b"", b"<html>bad gateway</html>", b"[]", b'{"error_code":500}', b'{"message":null}'])
def test_an_error_that_connect_did_not_write_names_its_status(body: bytes) -> None:
    assert refusal(500, body).message.startswith("HTTP 500")


def test_every_error_of_ours_has_a_status() -> None:
    statuses = {cls.__name__: status_of(cls("x")) for cls in KeelmanError.__subclasses__()}
    assert statuses["NotFound"] == 404
    assert statuses["Unavailable"] == 503
    assert statuses["Internal"] == 500
    assert [name for name, status in statuses.items() if status == 500] == ["Internal"]


def test_headers_for_one_connection_end_here() -> None:
    ended = not_forwarded([(b"Connection", b"close, X-One"), (b"connection", b"x-two"), (b"accept", b"*/*")])
    assert {b"connection", b"close", b"x-one", b"x-two", b"transfer-encoding", b"host"} <= ended
    assert b"accept" not in ended
    assert b"authorization" not in ended


def test_a_certificate_needs_its_key() -> None:
    def settings(**flags: str) -> Settings:
        return load(Settings, "gateway", flags=flags).settings

    def tls(settings: Settings) -> Tls | None:
        return Tls.of("gateway", settings.tls_certificate, settings.tls_key)

    assert tls(settings()) is None
    with pytest.raises(InvalidArgument, match=r"gateway\.tls_key"):
        tls(settings(tls_certificate="/c.pem"))
    with pytest.raises(InvalidArgument, match=r"gateway\.tls_certificate"):
        tls(settings(tls_key="/k.pem"))


@pytest.mark.parametrize(("drain", "grace"), [(30.0, 30.0), (5.0, 1.5), (float("inf"), 30.0)])
async def test_a_process_that_drains_until_it_is_cut_is_refused(drain: float, grace: float) -> None:
    (stop := asyncio.Event()).set()
    with pytest.raises(InvalidArgument, match=r"gateway\.drain_seconds: .* less than grace_seconds"):
        await run(Settings(drain_seconds=drain, grace_seconds=grace), stop)
