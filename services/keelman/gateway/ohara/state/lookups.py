"""Looks up our resources by Ohara's keys: resources created through this API by their origin, others by own name."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from keelman.api.connect.v1 import broker_cluster_service_pb2 as brokers
from keelman.api.connect.v1 import connector_definition_service_pb2 as definitions
from keelman.api.connect.v1 import topic_service_pb2 as topics
from keelman.api.connect.v1 import worker_cluster_service_pb2 as workers
from keelman.api.connect.v1 import worker_service_pb2
from keelman.api.connect.v1.broker_cluster_pb2 import CLUSTER_STATE_DELETING, BrokerCluster
from keelman.api.connect.v1.connector_definition_pb2 import ConnectorDefinition
from keelman.api.connect.v1.topic_pb2 import Topic
from keelman.api.connect.v1.worker_cluster_pb2 import WorkerCluster
from keelman.api.node.v1 import node_service_pb2
from keelman.gateway.ohara.state.control import OharaControl
from keelman.gateway.ohara.state.hosts import Hosts
from keelman.gateway.ohara.state.stored import Stored
from keelman.gateway.ohara.wire.keys import DEFAULT_GROUP, MAX_NAMES, ObjectKey, own_name, shown_key
from keelman.model.errors import NotFound


async def worker_cluster(control: OharaControl, key: ObjectKey) -> WorkerCluster | None:
    """Returns the worker cluster of a key; None if it does not exist, or is being deleted."""
    request = partial(workers.GetWorkerClusterRequest, whole_extra=True)
    answer = await _find(control, request, key)
    return None if answer is None or _is_leaving(answer) else answer.worker_cluster


async def broker_cluster(control: OharaControl, key: ObjectKey) -> BrokerCluster | None:
    """Returns the broker cluster of a key; None if it does not exist, or is being deleted."""
    request = partial(brokers.GetBrokerClusterRequest, whole_extra=True)
    answer = await _find(control, request, key)
    return None if answer is None or _is_leaving(answer) else answer.broker_cluster


async def topic(control: OharaControl, key: ObjectKey) -> Topic | None:
    """Returns the topic of a key; None if it does not exist."""
    answer = await _find(control, partial(topics.GetTopicRequest, whole_extra=True), key)
    return None if answer is None else answer.topic


async def definition(control: OharaControl, key: ObjectKey) -> ConnectorDefinition | None:
    """Returns the connector definition of a key, with its secrets; None if it does not exist."""
    answer = await _find(control, definitions.GetConnectorDefinitionRequest, key)
    return None if answer is None else answer.connector_definition


async def worker_cluster_named(control: OharaControl, name: str) -> WorkerCluster | None:
    """Returns the worker cluster of an own name; None if it does not exist."""
    answer = await _get(control, workers.GetWorkerClusterRequest(name=name))
    return None if answer is None else answer.worker_cluster


async def broker_cluster_named(control: OharaControl, name: str) -> BrokerCluster | None:
    """Returns the broker cluster of an own name; None if it does not exist."""
    answer = await _get(control, brokers.GetBrokerClusterRequest(name=name))
    return None if answer is None else answer.broker_cluster


async def worker_clusters(control: OharaControl) -> dict[str, WorkerCluster]:
    """Returns all worker clusters by their own names."""
    return await control.shared(_read_worker_clusters)


async def broker_clusters(control: OharaControl) -> dict[str, BrokerCluster]:
    """Returns all broker clusters by their own names."""
    return await control.shared(_read_broker_clusters)


async def hostnames(control: OharaControl) -> dict[str, str]:
    """Returns the hostnames of all workers by worker id, which is host and port of its REST API."""
    return await control.shared(_read_hostnames)


def shown(resources: Iterable[Any]) -> dict[ObjectKey, Any]:
    """Returns resources with a spec by their shown keys; of two with one key, the one created through this API."""
    keyed = [(shown_key(resource.name, resource.spec.origin), resource) for resource in resources]
    ordered = sorted(
        ((key, resource) for key, resource in keyed if key is not None), key=lambda pair: pair[1].spec.origin.api
    )
    return dict(ordered)


async def missing(control: OharaControl, find: Any, keys: Iterable[ObjectKey]) -> list[ObjectKey]:
    """Returns the keys for which `find` finds no resource."""
    unique = list(dict.fromkeys(keys))
    resources = await asyncio.gather(*(find(control, key) for key in unique))
    return [key for key, resource in zip(unique, resources, strict=True) if resource is None]


async def _find(control: OharaControl, request_type: Any, key: ObjectKey) -> Any:
    """Returns the answer of a Get for the resource of a key; None if it does not exist."""
    answer = await _get(control, request_type(name=own_name(key)))
    if answer is not None and not _is_leaving(answer):
        return answer
    others = (request_type(name=own_name(key, number)) for number in range(2, MAX_NAMES + 1))
    for answer in await asyncio.gather(*(_get(control, other) for other in others)):
        if answer is not None and not _is_leaving(answer):
            return answer
    answer = await _get(control, request_type(name=key.name)) if key.group == DEFAULT_GROUP else None
    return None if answer is None or _shown_key(answer) != key else answer


async def _get(control: OharaControl, request: Any) -> Any:
    try:
        return await control.ask(request)
    except NotFound:
        return None


def _shown_key(answer: Any) -> ObjectKey | None:
    (resource,) = (value for _, value in answer.ListFields())
    return shown_key(resource.name, resource.spec.origin)


def _is_leaving(answer: Any) -> bool:
    (resource,) = (value for _, value in answer.ListFields())
    is_cluster = isinstance(resource, (WorkerCluster, BrokerCluster))
    return is_cluster and resource.status.state == CLUSTER_STATE_DELETING


async def _read_worker_clusters(control: OharaControl) -> dict[str, WorkerCluster]:
    return {cluster.name: cluster for cluster in await control.all(workers.ListWorkerClustersRequest)}


async def _read_broker_clusters(control: OharaControl) -> dict[str, BrokerCluster]:
    return {cluster.name: cluster for cluster in await control.all(brokers.ListBrokerClustersRequest)}


async def _read_hostnames(control: OharaControl) -> dict[str, str]:
    processes, nodes, stored = await asyncio.gather(
        control.all(worker_service_pb2.ListWorkersRequest),
        control.all(node_service_pb2.ListNodesRequest),
        Stored(control, "node").list(),
    )
    hosts = Hosts(nodes, stored)
    return {urlsplit(worker.rest_url).netloc: hosts.shown(worker.node) for worker in processes if worker.rest_url}
