"""Sets fields of a broker cluster's spec by the options of `create` and `update`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from keelman.api.connect.v1.broker_cluster_pb2 import BrokerClusterSpec, BrokerTls
from keelman.cli.sizes import size_of
from keelman.cli.specs.edits import edit_map, edit_nodes, edit_routes
from keelman.model.errors import InvalidArgument

if TYPE_CHECKING:
    from keelman.cli.specs.options import Given, GivenChange

MIB, MIN_HEAP_MIB = 1 << 20, 128
TLS = {
    "none": BrokerTls.BROKER_TLS_NONE,
    "server": BrokerTls.BROKER_TLS_SERVER,
    "mutual": BrokerTls.BROKER_TLS_MUTUAL,
}


def edit_brokers(given: Given, change: GivenChange | None, spec: BrokerClusterSpec) -> Iterable[str]:
    """Sets the fields of the given options; yields the paths of the changed fields. Raises InvalidArgument."""
    if given.bootstrap_servers:
        if spec.WhichOneof("kind") == "managed":
            raise InvalidArgument("--bootstrap-servers: not together with nodes: keelman runs the brokers there")
        spec.external.bootstrap_servers = given.bootstrap_servers
        yield "external.bootstrap_servers"
    external = spec.WhichOneof("kind") == "external"
    if external and (given.nodes or given.port is not None or (change and (change.add_nodes or change.remove_nodes))):
        raise InvalidArgument("--bootstrap-servers: not together with nodes or a port: the brokers run elsewhere")
    if external and (given.metrics_port is not None or given.routes or given.heap):
        option = "--heap" if given.heap else "--route" if given.routes else "--metrics-port"
        raise InvalidArgument(f"{option}: not for external brokers: whoever runs them decides")
    if given.credential_profile is not None:
        if not external:
            raise InvalidArgument("--credential-profile: only for external brokers (--bootstrap-servers)")
        spec.external.credential_profile = given.credential_profile
        yield "external.credential_profile"
    if given.nodes or (change and (change.add_nodes or change.remove_nodes)):
        spec.managed.nodes[:] = edit_nodes(given.nodes, change, spec.managed.nodes)
        yield "managed.nodes"
    if given.port is not None:
        spec.managed.port = given.port
        yield "managed.port"
    if given.metrics_port is not None:
        spec.managed.metrics_port = given.metrics_port
        yield "managed.metrics_port"
    if given.heap:
        spec.managed.heap_mb = _heap_mb(given.heap)
        yield "managed.heap_mb"
    if given.routes:
        edit_routes(given.routes, spec.managed.routes)
        yield "managed.routes"
    if given.values or (change and change.unset):
        where = spec.external.client_properties if external else spec.managed.properties
        edit_map("set", where, given.values, change.unset if change else None)
        yield "external.client_properties" if external else "managed.properties"


def tls_of(text: str) -> BrokerTls.ValueType:
    """Parses the value of --tls. Raises InvalidArgument."""
    if text not in TLS:
        raise InvalidArgument.of("--tls", text, ", ".join(TLS))
    return TLS[text]


def _heap_mb(text: str) -> int:
    """Returns a heap in MiB. Raises InvalidArgument unless it is a legal whole number of them."""
    size = size_of("--heap", text)
    if size % MIB or 0 < size < MIN_HEAP_MIB * MIB:
        raise InvalidArgument.of("--heap", text, f"whole MiB, at least {MIN_HEAP_MIB}MiB; 0 for 512MiB")
    return size // MIB
