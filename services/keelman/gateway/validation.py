"""Checks a request as far as it can be checked without asking anybody."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from google.protobuf.message import Message

from keelman.model.errors import InvalidArgument
from keelman.model.names import checked_name
from keelman.rpc.pages import page_limit

# Services whose `name` is a name that users choose; workers and workloads have composed ones.
NAMED = frozenset(
    {
        "keelman.api.node.v1.NodeService",
        "keelman.api.connect.v1.BrokerClusterService",
        "keelman.api.connect.v1.WorkerClusterService",
    }
)
FILTERS = ("node", "worker_cluster")


def check(service: str, method: str, request: Message) -> None:
    """Raises InvalidArgument for a name or a page size that cannot be; called for every forwarded request."""
    fields = request.DESCRIPTOR.fields_by_name
    given: Callable[[str], Any] = lambda field: getattr(request, field)  # noqa: E731
    if "page_size" in fields:
        page_limit(given("page_size"))
    if "name" in fields:
        if service in NAMED:
            checked_name("name", given("name"))
        elif not given("name"):
            raise InvalidArgument.of("name", "", "not empty")
    for field in FILTERS:
        if field in fields and given(field):
            checked_name(field, given(field))
    if method == "CreateWorkerCluster":
        spec = given("spec")
        checked_name("spec.broker_cluster", spec.broker_cluster)
        for number, node in enumerate(spec.nodes.names):
            checked_name(f"spec.nodes.names[{number}]", node)
    if method == "CreateBrokerCluster":
        for number, node in enumerate(given("spec").managed.nodes):
            checked_name(f"spec.managed.nodes[{number}]", node)
