"""Sets fields of a broker cluster's spec by the options of `create` and `update`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from keelman.api.connect.v1.broker_cluster_pb2 import BrokerAccess, BrokerClusterSpec, BrokerTls
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
ACCESS = {"open": BrokerAccess.BROKER_ACCESS_OPEN, "rules": BrokerAccess.BROKER_ACCESS_RULES}


def edit_brokers(options: Given, change: GivenChange | None, spec: BrokerClusterSpec) -> Iterable[str]:
    """Sets the fields of the given options; yields the paths of the changed fields. Raises InvalidArgument."""
    if options.bootstrap_servers:
        if spec.WhichOneof("kind") == "managed":
            raise InvalidArgument("--bootstrap-servers: not together with nodes: keelman runs the brokers there")
        spec.external.bootstrap_servers = options.bootstrap_servers
        yield "external.bootstrap_servers"
    external = spec.WhichOneof("kind") == "external"
    if external and (
        options.nodes or options.port is not None or (change and (change.add_nodes or change.remove_nodes))
    ):
        raise InvalidArgument("--bootstrap-servers: not together with nodes or a port: the brokers run elsewhere")
    if external and (options.metrics_port is not None or options.routes or options.heap):
        option = "--heap" if options.heap else "--route" if options.routes else "--metrics-port"
        raise InvalidArgument(f"{option}: not for external brokers: their operator decides")
    if options.credential_profile is not None:
        if not external:
            raise InvalidArgument("--credential-profile: only for external brokers (--bootstrap-servers)")
        spec.external.credential_profile = options.credential_profile
        yield "external.credential_profile"
    if options.nodes or (change and (change.add_nodes or change.remove_nodes)):
        spec.managed.nodes[:] = edit_nodes(options.nodes, change, spec.managed.nodes)
        yield "managed.nodes"
    if options.port is not None:
        spec.managed.port = options.port
        yield "managed.port"
    if options.metrics_port is not None:
        spec.managed.metrics_port = options.metrics_port
        yield "managed.metrics_port"
    if options.heap:
        spec.managed.heap_mb = _heap_mb(options.heap)
        yield "managed.heap_mb"
    if options.routes:
        edit_routes(options.routes, spec.managed.routes)
        yield "managed.routes"
    if options.values or (change and change.unset):
        where = spec.external.client_properties if external else spec.managed.properties
        edit_map("set", where, options.values, change.unset if change else None)
        yield "external.client_properties" if external else "managed.properties"


def tls_of(text: str) -> BrokerTls.ValueType:
    """Parses the value of --tls. Raises InvalidArgument."""
    if text not in TLS:
        raise InvalidArgument.of("--tls", text, ", ".join(TLS))
    return TLS[text]


def access_of(text: str) -> BrokerAccess.ValueType:
    """Parses the value of --access. Raises InvalidArgument."""
    if text not in ACCESS:
        raise InvalidArgument.of("--access", text, ", ".join(ACCESS))
    return ACCESS[text]


def _heap_mb(text: str) -> int:
    """Returns a heap in MiB. Raises InvalidArgument unless it is a legal whole number of them."""
    size = size_of("--heap", text)
    if size % MIB or 0 < size < MIN_HEAP_MIB * MIB:
        raise InvalidArgument.of("--heap", text, f"whole MiB, at least {MIN_HEAP_MIB}MiB; 0 for 512MiB")
    return size // MIB
