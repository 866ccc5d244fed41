"""Reads all clusters that this API shows, of every kind, in one pass, with their nodes, ports and dependencies."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import Any

from keelman.api.connect.v1 import broker_cluster_service_pb2 as broker_pb
from keelman.api.connect.v1 import worker_cluster_service_pb2 as worker_pb
from keelman.api.connect.v1.broker_cluster_pb2 import CLUSTER_STATE_DELETING, BrokerCluster
from keelman.api.connect.v1.worker_cluster_pb2 import WorkerCluster
from keelman.api.node.v1 import node_service_pb2, workload_service_pb2
from keelman.api.node.v1.workload_pb2 import Workload
from keelman.gateway.ohara.clusters import broker_specs, worker_specs
from keelman.gateway.ohara.clusters.ports import Holder
from keelman.gateway.ohara.clusters.processes import GONE, RUNNING, Life, life_of
from keelman.gateway.ohara.definitions.zookeeper import ZOOKEEPER as ZOOKEEPER_SETTINGS
from keelman.gateway.ohara.files.keys import VERSION
from keelman.gateway.ohara.state.control import OharaControl
from keelman.gateway.ohara.state.hosts import Hosts
from keelman.gateway.ohara.state.stored import Stored, StoredDocument
from keelman.gateway.ohara.wire.keys import API, OWN_PREFIX, ObjectKey, key_of, own_name, shown_key, unshown_key
from keelman.gateway.ohara.wire.values import Settings, default_of
from keelman.gateway.ohara.wire.wording import not_found
from keelman.model.errors import NotFound

WORKER, BROKER, ZOOKEEPER, STREAM, SHABONDI = KINDS = "worker", "broker", "zookeeper", "stream", "shabondi"
PLACED = "placed worker"
"""In place of a kind: the worker clusters with processes."""
FEW = 20
"""Up to this number, worker clusters are read one by one, which is faster than a list of all."""
STATE = "state"
"""The field in the document of a cluster without processes that tells whether it is started."""
NODE_NAMES = "nodeNames"
USUAL_PORTS = {"clientPort": 2181, "peerPort": 2888, "electionPort": 3888, "jmxPort": 9999}
"""The ports of a stand-in zookeeper, which no user has created."""


@dataclass(frozen=True)
class OharaCluster:
    """A cluster of any kind. `uses`: the broker cluster of a worker cluster, stream or shabondi, the zookeeper of a
    broker cluster. `made`: the cluster's message or document; None for a stand-in zookeeper. `modified` is in
    milliseconds since 1970. `read_settings` takes a while, and the settings of few clusters are read."""

    kind: str
    key: ObjectKey
    made: Any
    read_settings: Callable[[], Settings]
    node_names: tuple[str, ...] = ()
    ports: frozenset[int] = frozenset()
    uses: ObjectKey | None = None
    modified: int = 0
    life: Life = GONE
    processes: tuple[Workload, ...] = ()

    @cached_property
    def settings(self) -> Settings:
        """The complete settings."""
        return self.read_settings()

    @property
    def holder(self) -> Holder:
        """The cluster's row in the table of ports."""
        return Holder(self.kind, self.key, self.ports)


class KnownClusters:
    """All clusters, the nodes, and the dependencies between the clusters."""

    def __init__(self, hosts: Hosts, clusters: Iterable[OharaCluster]) -> None:
        self.hosts = hosts
        self.clusters = {(cluster.kind, cluster.key): cluster for cluster in clusters}

    def get(self, kind: str, key: ObjectKey) -> OharaCluster | None:
        """Returns one cluster; None if it does not exist."""
        return self.clusters.get((kind, key))

    def found(self, kind: str, key: ObjectKey) -> OharaCluster:
        """Returns one cluster. Raises OharaError if it does not exist."""
        if (cluster := self.get(kind, key)) is None:
            raise not_found(kind, key)
        return cluster

    def of(self, kind: str) -> list[OharaCluster]:
        """Returns all clusters of a kind, sorted by key."""
        return sorted(
            (cluster for cluster in self.clusters.values() if cluster.kind == kind), key=lambda cluster: cluster.key
        )

    def users(self, kind: str, key: ObjectKey, *, running: bool) -> list[OharaCluster]:
        """Returns the clusters of a kind that use this cluster; with `running` only clusters with processes."""
        return [cluster for cluster in self.of(kind) if cluster.uses == key and (cluster.life.state or not running)]

    def holders(self) -> list[Holder]:
        """Returns the ports of all clusters with processes."""
        return [cluster.holder for cluster in self.clusters.values() if cluster.life.state]


async def read_known(control: OharaControl, *kinds: str) -> KnownClusters:
    """Returns all clusters, or the clusters of these kinds, read after the call. With PLACED only worker clusters that
    have processes, or are about to. Concurrent callers share the result and must not change it."""
    return await control.shared(_reading(frozenset(kinds or KINDS)))


@cache
def _reading(kinds: frozenset[str]) -> Callable[[OharaControl], Awaitable[KnownClusters]]:
    return partial(_read, kinds=kinds)


async def _read(control: OharaControl, kinds: frozenset[str]) -> KnownClusters:
    nodes, stored, workloads, brokers, workers, zookeepers, streams, shabondis = await asyncio.gather(
        control.all(node_service_pb2.ListNodesRequest),
        Stored(control, "node").list(),
        control.all(workload_service_pb2.ListWorkloadsRequest),
        control.all(broker_pb.ListBrokerClustersRequest),
        control.all(worker_pb.ListWorkerClustersRequest) if WORKER in kinds else _none(),
        *(Stored(control, kind).list() if kind in kinds else _none() for kind in (ZOOKEEPER, STREAM, SHABONDI)),
    )
    hosts = Hosts(nodes, stored)
    processes: dict[tuple[str, str], list[Workload]] = defaultdict(list)
    for workload in workloads:
        processes[owner_of(workload)].append(workload)
    if PLACED in kinds:
        workers = await _placed(control, [name for kind, name in processes if kind == WORKER])
    # Of two clusters with one key, the one created through this API comes last, and wins.
    brokers.sort(key=lambda cluster: cluster.spec.origin.api)
    workers.sort(key=lambda cluster: cluster.spec.origin.api)
    clusters = [broker for cluster in brokers if (broker := broker_of(cluster, hosts, processes[BROKER, cluster.name]))]
    names = {cluster.made.name: cluster.key for cluster in clusters}
    clusters = [*stand_ins(clusters), *clusters, *(zookeeper_of(zookeeper) for zookeeper in zookeepers)]
    clusters += [w for cluster in workers if (w := worker_of(cluster, hosts, processes[WORKER, cluster.name], names))]
    clusters += [_dormant(STREAM, document) for document in streams] + [
        _dormant(SHABONDI, document) for document in shabondis
    ]
    return KnownClusters(hosts, clusters)


async def _placed(control: OharaControl, names: Sequence[str]) -> list[WorkerCluster]:
    """Returns the worker clusters with these names. Reads few of them one by one, since a list takes time for each
    cluster in it."""
    if len(names) > FEW:
        return [cluster for cluster in await control.all(worker_pb.ListWorkerClustersRequest) if cluster.name in names]
    requests = (control.ask(worker_pb.GetWorkerClusterRequest(name=name)) for name in names)
    answers = await asyncio.gather(*requests, return_exceptions=True)
    for answer in answers:
        if isinstance(answer, BaseException) and not isinstance(answer, NotFound):
            raise answer
    return [answer.worker_cluster for answer in answers if not isinstance(answer, BaseException)]


async def _none() -> list[Any]:
    return []


def owner_of(workload: Workload) -> tuple[str, str]:
    """Returns kind and own name of the cluster of a process; empty texts for a process without a cluster."""
    match workload.spec.WhichOneof("kind"):
        case "broker":
            return BROKER, workload.spec.broker.broker_cluster
        case "worker":
            return WORKER, workload.spec.worker.worker_cluster
    return "", ""


def broker_of(cluster: BrokerCluster, hosts: Hosts, brokers: Sequence[Workload]) -> OharaCluster | None:
    """Returns a broker cluster; None for a cluster that this API does not show."""
    key = shown_key(cluster.name, cluster.spec.origin)
    if key is None or cluster.status.state == CLUSTER_STATE_DELETING:
        return None
    settings = broker_specs.settings_of(cluster, key, hosts, brokers)
    ports = {*broker_specs.ports_of(cluster.spec)}
    for broker in brokers:
        broker_spec = broker.spec.broker
        ports |= {broker_spec.port, broker_spec.controller_port, broker_spec.metrics_port}
    return OharaCluster(
        BROKER,
        key,
        cluster,
        lambda: settings,
        node_names=tuple(settings[NODE_NAMES]),
        ports=frozenset(ports - {0}),
        uses=key_of(settings["zookeeperClusterKey"]),
        modified=cluster.update_time.ToMilliseconds(),
        life=_in_words_of(broker_specs.life(cluster, hosts, brokers), {cluster.name: key}),
        processes=tuple(brokers),
    )


def worker_of(
    cluster: WorkerCluster, hosts: Hosts, workers: Sequence[Workload], brokers: Mapping[str, ObjectKey]
) -> OharaCluster | None:
    """Returns a worker cluster; None for a cluster that this API does not show. `brokers`: broker clusters' keys
    by own name."""
    key = shown_key(cluster.name, cluster.spec.origin)
    if key is None or cluster.status.state == CLUSTER_STATE_DELETING:
        return None
    spec = cluster.spec
    uses = brokers.get(spec.broker_cluster)
    shown_brokers = uses or unshown_key(spec.broker_cluster)
    ports = {*worker_specs.ports_of(spec)}
    for worker in workers:
        worker_spec = worker.spec.worker
        ports |= {worker_spec.port, worker_spec.metrics_port, worker_spec.admin_port, *worker_spec.reserved_ports}
    return OharaCluster(
        WORKER,
        key,
        cluster,
        partial(worker_specs.settings_of, cluster, key, shown_brokers, hosts, workers),
        node_names=tuple(worker_specs.nodes_of(cluster, hosts, workers)),
        ports=frozenset(ports - {0}),
        uses=uses,
        modified=cluster.update_time.ToMilliseconds(),
        life=_in_words_of(
            life_of(workers, cluster.status.state, cluster.status.message, hosts=hosts),
            {**brokers, cluster.name: key},
            lambda: worker_specs.files_of(spec),
        ),
        processes=tuple(workers),
    )


def _in_words_of(life: Life, keys: Mapping[str, ObjectKey], files: Callable[[], Iterable[ObjectKey]] = tuple) -> Life:
    """Returns a life whose error names clusters and files by this API's keys, in place of their generated own names."""
    error = life.error
    if OWN_PREFIX not in error:
        return life
    for name, key in sorted(keys.items(), reverse=True):  # oh-1-2 before oh-1
        error = error.replace(name, f"{key.group}-{key.name}")
    for file in files():
        for version in (f" {VERSION}", f":{VERSION}", f"/{VERSION}", ""):
            error = error.replace(f"{own_name(file)}{version}", f"{file.group}/{file.name}")
    return replace(life, error=error)


def zookeeper_of(document: StoredDocument) -> OharaCluster:
    """Returns a zookeeper: while it is started, all of its nodes are alive."""
    settings = {name: value for name, value in document.content.items() if name != STATE}
    nodes = tuple(settings[NODE_NAMES])
    return OharaCluster(
        ZOOKEEPER,
        document.key,
        document,
        lambda: settings,
        node_names=nodes,
        ports=frozenset(settings[name] for name in USUAL_PORTS),
        modified=document.modified,
        life=Life(RUNNING, nodes) if document.content.get(STATE) == RUNNING else GONE,
    )


def stand_ins(brokers: Iterable[OharaCluster]) -> list[OharaCluster]:
    """Returns stand-in zookeepers for broker clusters created outside this API, with the same keys and live nodes."""
    return [
        OharaCluster(
            ZOOKEEPER,
            broker.key,
            None,
            partial(stand_in_settings, broker),
            node_names=broker.node_names,
            modified=broker.modified,
            life=Life(RUNNING, broker.life.alive_nodes) if broker.life.state == RUNNING else GONE,
        )
        for broker in brokers
        if broker.made.spec.origin.api != API
    ]


def stand_in_settings(broker: OharaCluster) -> Settings:
    """Returns the settings of a stand-in zookeeper."""
    defaults = {setting.key: default for setting in ZOOKEEPER_SETTINGS if (default := default_of(setting)) is not None}
    return defaults | USUAL_PORTS | {NODE_NAMES: list(broker.node_names)} | broker.key.json


def _dormant(kind: str, document: StoredDocument) -> OharaCluster:
    """Returns a cluster that is stored and does not run."""
    settings = dict(document.content)
    uses = settings.get("brokerClusterKey")
    return OharaCluster(
        kind,
        document.key,
        document,
        lambda: settings,
        node_names=tuple(settings.get(NODE_NAMES, ())),
        uses=None if uses is None else key_of(uses),
        modified=document.modified,
    )
