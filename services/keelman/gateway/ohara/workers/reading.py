"""Reads one worker cluster with its nodes and broker cluster, without all the others."""

from __future__ import annotations

import asyncio
from typing import Any

from keelman.api.connect.v1 import broker_cluster_service_pb2, connector_definition_service_pb2
from keelman.api.connect.v1.broker_cluster_pb2 import BrokerCluster
from keelman.api.connect.v1.connector_definition_pb2 import DEFINITION_GOAL_RUNNING, ConnectorDefinition
from keelman.api.connect.v1.connector_pb2 import CONNECTOR_STATE_RUNNING
from keelman.api.connect.v1.worker_cluster_pb2 import WorkerCluster
from keelman.api.node.v1 import node_service_pb2, workload_service_pb2
from keelman.gateway.ohara.clusters.known_clusters import OharaCluster, worker_of
from keelman.gateway.ohara.connectors.life import answers
from keelman.gateway.ohara.state import lookups
from keelman.gateway.ohara.state.control import OharaControl
from keelman.gateway.ohara.state.hosts import Hosts
from keelman.gateway.ohara.state.stored import Stored
from keelman.gateway.ohara.wire.keys import ObjectKey, shown_key, unshown_key


async def read_hosts(control: OharaControl) -> Hosts:
    """Returns the nodes."""
    nodes, stored = await asyncio.gather(control.all(node_service_pb2.ListNodesRequest), Stored(control, "node").list())
    return Hosts(nodes, stored)


async def read_worker(control: OharaControl, key: ObjectKey) -> tuple[Hosts, OharaCluster | None]:
    """Returns the nodes, and the worker cluster of a key; None if it does not exist."""
    hosts, message = await asyncio.gather(read_hosts(control), lookups.worker_cluster(control, key))
    if message is None:
        return hosts, None
    workloads, brokers = await asyncio.gather(
        control.all(workload_service_pb2.ListWorkloadsRequest, worker_cluster=message.name),
        _brokers_of(control, message),
    )
    return hosts, worker_of(message, hosts, workloads, {brokers.name: key_of_brokers(brokers)})


async def users_of(control: OharaControl, cluster: OharaCluster, *, running: bool) -> list[ObjectKey]:
    """Returns the keys of a worker cluster's connectors, with `running` only of running ones. No connector counts as
    running if no worker can be reached, as each connector's own answer then shows too."""
    if running and not answers(cluster.made):
        return []
    request_type = connector_definition_service_pb2.ListConnectorDefinitionsRequest
    resources = await control.all(request_type, worker_cluster=cluster.made.name)
    used = [resource for resource in resources if not running or _runs(resource)]
    return sorted(shown_key(resource.name, resource.spec.origin) or unshown_key(resource.name) for resource in used)


def key_of_brokers(brokers: BrokerCluster) -> ObjectKey:
    """Returns the key of a broker cluster, whether it is shown or not."""
    return shown_key(brokers.name, brokers.spec.origin) or unshown_key(brokers.name)


def _runs(definition: ConnectorDefinition) -> bool:
    """Tells whether a connector runs, or is about to."""
    status = definition.status
    is_up = status.applying or status.connector.state == CONNECTOR_STATE_RUNNING
    return definition.goal == DEFINITION_GOAL_RUNNING and is_up


async def _brokers_of(control: OharaControl, worker_cluster: WorkerCluster) -> Any:
    request = broker_cluster_service_pb2.GetBrokerClusterRequest(name=worker_cluster.spec.broker_cluster)
    return (await control.ask(request)).broker_cluster
