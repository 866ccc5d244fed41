"""The states of resources of each kind, as the tables show them."""

from __future__ import annotations

from typing import Any

from keelman.api.connect.v1.broker_cluster_pb2 import ClusterState
from keelman.api.connect.v1.connector_pb2 import ConnectorState
from keelman.api.connect.v1.dedicated_connector_pb2 import DedicatedConnectorState
from keelman.api.connect.v1.operation_pb2 import OperationState
from keelman.api.connect.v1.plugin_import_pb2 import PluginImportState
from keelman.api.connect.v1.topic_pb2 import TopicState
from keelman.api.copy.v1.copy_run_pb2 import CopyRunState
from keelman.api.node.v1.node_pb2 import NodeState
from keelman.api.node.v1.workload_pb2 import WorkloadState
from keelman.cli.kinds import DEFINITIONS, Kind
from keelman.cli.output import operations as words
from keelman.cli.output.columns import COLUMNS
from keelman.rpc.enums import word

OVER_STATES = ("ENDED", "FAILED")
"""States of copy runs that are listed only on request."""
_ENUMS: dict[str, Any] = {
    "connectors": ConnectorState,
    "broker-clusters": ClusterState,
    "worker-clusters": ClusterState,
    "spark-clusters": ClusterState,
    "workers": WorkloadState,
    "nodes": NodeState,
    "copy-runs": CopyRunState,
    "workloads": WorkloadState,
    "topics": TopicState,
    "dedicated-connectors": DedicatedConnectorState,
    "operations": OperationState,
    "plugin-imports": PluginImportState,
}


def states(kind: Kind) -> tuple[str, ...]:
    """Returns the possible states of a kind; none for a kind without states."""
    if kind is DEFINITIONS:
        return words.definition_states()
    if kind.plural not in _ENUMS:
        return ()
    enum = _ENUMS[kind.plural]
    return tuple(word(enum, value) for value in enum.values() if value)


def state_of(kind: Kind, resource: Any) -> str:
    """Returns the state of a resource, as the table shows it."""
    return next(c.cell(resource) for c in COLUMNS[kind.plural] if c.title == "STATE")
