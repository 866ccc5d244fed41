"""Holds all resources of the state service at one moment, with indexes, so that a query costs no more than its result.
Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from typing import Any, Generic, TypeAlias, TypeVar

from keelman.model.access.secret import Secret
from keelman.model.annotations import Origin
from keelman.model.cluster import BrokerCluster, ClusterGoal, WorkerCluster
from keelman.model.connectors.connector_definition import ConnectorDefinition
from keelman.model.connectors.dedicated_connector import DedicatedConnector
from keelman.model.connectors.worker_configuration import WorkerConfiguration
from keelman.model.document import Document
from keelman.model.errors import NotFound
from keelman.model.node import Node, NodeState
from keelman.model.operation import Operation
from keelman.model.plugins.plugin import Plugin
from keelman.model.plugins.plugin_import import PluginImport
from keelman.model.rules.names import found_by_name
from keelman.model.spark_cluster import SparkCluster
from keelman.model.topic import Topic
from keelman.model.workload import Load, Workload, WorkloadKind
from keelman.state.kafka.kafkas import kafka_keys, same_kafka
from keelman.state.resources.index_keys import keys_of
from keelman.state.resources.layers import Layer

NODE, BROKER_CLUSTER, WORKER_CLUSTER, WORKLOAD = Node.NOUN, BrokerCluster.NOUN, WorkerCluster.NOUN, Workload.NOUN
PLUGIN, DOCUMENT, OPERATION, TOPIC = Plugin.NOUN, Document.NOUN, Operation.NOUN, Topic.NOUN
CONNECTOR_DEFINITION, DEDICATED_CONNECTOR = ConnectorDefinition.NOUN, DedicatedConnector.NOUN
WORKER_CONFIGURATION, PLUGIN_IMPORT, SECRET = WorkerConfiguration.NOUN, PluginImport.NOUN, Secret.NOUN
SPARK_CLUSTER = SparkCluster.NOUN
Resource: TypeAlias = (
    Node
    | BrokerCluster
    | WorkerCluster
    | Workload
    | Plugin
    | Document
    | Operation
    | Topic
    | ConnectorDefinition
    | DedicatedConnector
    | WorkerConfiguration
    | PluginImport
    | Secret
    | SparkCluster
)
Names: TypeAlias = frozenset[str]
NO_NAMES: Names = frozenset()
T = TypeVar("T")
C = TypeVar("C", BrokerCluster, WorkerCluster)


class _Named(Generic[T]):
    """Of a snapshot: the resources of a kind by name."""

    def __init__(self, kind: type[T]) -> None:
        self._noun: str = kind.NOUN  # type: ignore[attr-defined]

    def __get__(self, snapshot: Snapshot, owner: type) -> Mapping[str, T]:
        return snapshot.resources(self._noun)


def _one(kind: type[T]) -> Callable[[Snapshot, str], T]:
    """Makes the method of a snapshot that returns the resource of a kind by name, or raises NotFound."""

    def found(snapshot: Snapshot, name: str) -> T:
        resource: T = snapshot.named(kind.NOUN, name)  # type: ignore[attr-defined]
        return resource

    return found


class Snapshot:
    """Nodes, clusters, workloads, plugins and documents by name. Its users read it; only its maker writes to it."""

    __slots__ = ("_below", "_index", "_loads", "_names", "_tables")
    nodes, workloads, operations = _Named(Node), _Named(Workload), _Named(Operation)
    broker_clusters, worker_clusters, topics = _Named(BrokerCluster), _Named(WorkerCluster), _Named(Topic)
    connector_definitions, dedicated_connectors = _Named(ConnectorDefinition), _Named(DedicatedConnector)
    plugins, plugin_imports, documents = _Named(Plugin), _Named(PluginImport), _Named(Document)
    worker_configurations, spark_clusters = _Named(WorkerConfiguration), _Named(SparkCluster)
    node, topic, operation = _one(Node), _one(Topic), _one(Operation)
    broker_cluster, worker_cluster, spark_cluster = _one(BrokerCluster), _one(WorkerCluster), _one(SparkCluster)
    connector_definition, dedicated_connector = _one(ConnectorDefinition), _one(DedicatedConnector)

    def __init__(self) -> None:
        self._tables: dict[str, MutableMapping[str, Any]] = {}
        self._index: MutableMapping[tuple[Any, ...], Names] = {}
        self._loads: dict[str, Load | None] = {}
        self._names: dict[str, list[str]] = {}
        self._below: Snapshot | None = None

    def fill(self, resources: Sequence[Resource]) -> None:
        """Adds many resources at once, all of them new."""
        for resource in resources:
            self.resources(resource.NOUN)[resource.name] = resource
        index: dict[tuple[Any, ...], set[str]] = {}
        for resource in resources:
            for key in self._keys(resource):
                index.setdefault(key, set()).add(resource.name)
        for key, names in index.items():
            self._index[key] = self._index.get(key, NO_NAMES) | names

    def draft(self) -> Snapshot:
        """Returns a snapshot over this one: writes to it change this one only through `advance`."""
        snapshot = Snapshot()
        snapshot._tables = {noun: Layer(named) for noun, named in self._tables.items()}
        snapshot._index, snapshot._below = Layer(self._index), self
        return snapshot

    def advance(self, draft: Snapshot) -> None:
        """Applies the writes to a draft of this snapshot."""
        for noun in draft._tables:
            table = self.resources(noun)
            for name, new in draft.changes(noun).items():
                if (new is None) == (name in table):
                    self._names.pop(noun, None)
            draft._layer(noun).write_to(table)
        assert isinstance(draft._index, Layer)
        draft._index.write_to(self._index)
        self._loads |= draft._loads

    def changes(self, noun: str) -> Mapping[str, Any]:
        """Returns the writes to a draft, by name; None for a deleted resource."""
        return self._layer(noun).changes()

    def _layer(self, noun: str) -> Layer[str, Any]:
        table = self.resources(noun)
        assert isinstance(table, Layer), "only a draft knows what was put into it"
        return table

    def resources(self, noun: str) -> MutableMapping[str, Any]:
        """Returns all resources of a noun by name."""
        if noun not in self._tables:
            self._tables[noun] = {} if self._below is None else Layer({})
        return self._tables[noun]

    def put(self, resource: Resource) -> None:
        """Stores a resource that is new or has changed."""
        noun = resource.NOUN
        self._names.pop(noun, None)
        if isinstance(resource, Node):
            self._put_node(resource.name, resource)
            return
        self._reindex(self.resources(noun).get(resource.name), resource)
        self.resources(noun)[resource.name] = resource

    def drop(self, noun: str, name: str) -> None:
        """Forgets a resource that is gone."""
        self._names.pop(noun, None)
        if noun == NODE:
            self._put_node(name, None)
            return
        self._reindex(self.resources(noun)[name], None)
        del self.resources(noun)[name]

    def names(self, noun: str) -> Sequence[str]:
        """Returns the names of all resources of a noun, in order."""
        names = self._names.get(noun)
        if names is None:
            names = self._names[noun] = sorted(self.resources(noun))
        return names

    def _put_node(self, name: str, node: Node | None) -> None:
        """Stores a node; if its host changes, the ports of its workloads count for the new host."""
        moved = self._host_of(name) != (name if node is None else _host(node))
        carried = self.workloads_on(name) if moved else []
        for workload in carried:
            self._reindex(workload, None)
        if node is None:
            del self.resources(NODE)[name]
        else:
            self.resources(NODE)[name] = node
        for workload in carried:
            self._reindex(None, workload)

    def _reindex(self, old: Resource | None, new: Resource | None) -> None:
        before, after = ((set() if state is None else self._keys(state)) for state in (old, new))
        gone, come = ("" if state is None else state.name for state in (old, new))
        for key in before - after:
            if names := self._index[key] - {gone}:
                self._index[key] = names
            else:
                del self._index[key]
        for key in after - before:
            self._index[key] = self._index.get(key, NO_NAMES) | {come}
        for state in (old, new):
            if isinstance(state, Workload):
                self._loads[state.node] = None

    def _keys(self, resource: Resource) -> set[tuple[Any, ...]]:
        return keys_of(resource, self._host_of)

    def _host_of(self, node: str) -> str:
        present = self.nodes.get(node)
        return node if present is None else _host(present)

    def documents_of(self, kind: str, scope: str) -> list[Document]:
        """Returns the documents of a kind and a scope, in no order; empty ones mean all."""
        if not kind:
            return [document for document in self.documents.values() if scope in ("", document.scope)]
        key = ("document", kind, scope) if scope else ("document", kind)
        return [self.documents[name] for name in self._index.get(key, NO_NAMES)]

    def users_of_configuration(self, name: str) -> list[str]:
        """Returns the dedicated connectors that name a worker configuration or may go back to it, by name."""
        updates = self._index.get(("former worker configuration", name), NO_NAMES)
        may_go_back = {self.operations[update].target.name for update in updates}
        return sorted(self._index.get(("worker configuration", name), NO_NAMES) | may_go_back)

    def definitions_on(self, worker_cluster: str) -> Names:
        """Returns the connector definitions of a worker cluster, which may be gone."""
        return self._index.get(("definitions", worker_cluster), NO_NAMES)

    def definitions_of_connector(self, worker_cluster: str, connector: str) -> Names:
        """Returns the connector definitions of a connector of a worker cluster: one at most."""
        return self._index.get(("connector", worker_cluster, connector), NO_NAMES)

    def workloads_in(self, kind: WorkloadKind, cluster: str) -> list[Workload]:
        """Returns the brokers, workers or drivers of a cluster, in the order of their numbers."""
        workloads = [self.workloads[name] for name in self._index.get(("in", kind, cluster), NO_NAMES)]
        return sorted(workloads, key=lambda w: int(w.name.rpartition("/")[2]))

    def users_of_spark(self, spark_cluster: str) -> list[WorkerCluster]:
        """Returns the worker clusters that name a Spark cluster, by name."""
        return [self.worker_clusters[n] for n in sorted(self._index.get(("spark users", spark_cluster), NO_NAMES))]

    def linked_to(self, spark_cluster: str) -> list[Workload]:
        """Returns the workers whose specs have a Spark cluster, which may be gone, by name."""
        return [self.workloads[n] for n in sorted(self._index.get(("linked", spark_cluster), NO_NAMES))]

    def needs_drivers(self, spark_cluster: str) -> bool:
        """Returns whether a Spark cluster needs drivers: a worker cluster that names it shall run, or a worker that is
        linked to it shall run or has not ended."""
        if spark_cluster not in self.spark_clusters:
            return False
        wanted = any(user.goal is ClusterGoal.RUNNING for user in self.users_of_spark(spark_cluster))
        return wanted or any(not w.has_ended for w in self.linked_to(spark_cluster))

    def workloads_on(self, node: str) -> list[Workload]:
        """Returns all workloads placed on a node, by name."""
        return [self.workloads[name] for name in sorted(self._index.get(("on", node), NO_NAMES))]

    def load(self, node: str) -> Load:
        """Returns the load planned for a node. If no draft has changed the node, it is computed once, for all
        drafts."""
        if self._below is not None and node not in self._loads:
            return self._below.load(node)
        load = self._loads.get(node)
        if load is None:
            load = self._loads[node] = Load.of(self.workloads_on(node))
        return load

    def port_holders(self, node: str, port: int) -> Names:
        """Workloads that have, reserve or could not get a port on the node's host, which other nodes may share."""
        return self._index.get(("port", self._host_of(node), port), NO_NAMES)

    def naming(self, port: int) -> list[tuple[str, str]]:
        """Returns noun and name of the clusters whose specs name a port."""
        nouns = (BROKER_CLUSTER, WORKER_CLUSTER)
        return [(noun, name) for noun in nouns for name in self._index.get(("naming", noun, port), NO_NAMES)]

    def of_origin(self, noun: str, origin: Origin) -> Names:
        """Resources of this noun that are kept under an origin."""
        return self._index.get(("origin", noun, origin), NO_NAMES)

    def named_in_kafka(self, broker_cluster: str, group: str, topics: Iterable[str]) -> Names:
        """Returns the worker clusters on a broker cluster that have this group, or any of these topics."""
        keys = [("group", broker_cluster, group), *(("topic", broker_cluster, topic) for topic in topics)]
        return NO_NAMES.union(*(self._index.get(key, NO_NAMES) for key in keys))

    def users_of_plugin(self, key: str) -> list[str]:
        """Returns the worker clusters that name a plugin (name/version), may go back to it or have a worker with it, by
        name."""
        workers = self._index.get(("loads", key), NO_NAMES)
        return sorted({*self._index.get(("plugin", key), NO_NAMES), *(self.workloads[w].cluster for w in workers)})

    @property
    def unfinished_operations(self) -> Names:
        """Operations that have not ended."""
        return self._index.get(("unfinished",), NO_NAMES)

    def unfinished_operation(self, noun: str, name: str) -> Operation | None:
        """Returns the operation on a resource that has not ended, if there is one."""
        names = self._index.get(("unfinished", noun, name), NO_NAMES)
        return next((self.operations[operation] for operation in sorted(names)), None)

    def waiting(self, noun: str) -> Names:
        """Returns the clusters whose plan is obstructed."""
        return self._index.get(("waits", noun), NO_NAMES)

    def pinned_to(self, noun: str, node: str) -> Names:
        """Clusters whose spec names a node."""
        return self._index.get(("pinned", noun, node), NO_NAMES)

    def is_offline(self, node: str) -> bool:
        """Returns True when the node is known to be offline or not known at all."""
        return node not in self.nodes or self.nodes[node].state is NodeState.OFFLINE

    def users_of(self, broker_cluster: str) -> list[WorkerCluster]:
        """Returns the worker clusters on a broker cluster, by name."""
        return [self.worker_clusters[n] for n in sorted(self._index.get(("users", broker_cluster), NO_NAMES))]

    def names_of_kafka(self, broker_cluster: str) -> list[str]:
        """Returns the broker clusters that are the same Kafka, itself included, by name; none if it is unknown."""
        mine = self.broker_clusters.get(broker_cluster)
        if mine is None:
            return []
        alike = NO_NAMES.union(*(self._index.get(key, NO_NAMES) for key in kafka_keys(mine)), {broker_cluster})
        return [name for name in sorted(alike) if same_kafka(mine, self.broker_clusters[name])]

    def is_past(self, cluster: BrokerCluster | WorkerCluster) -> bool:
        """Returns True for a cluster that is being deleted and of which nothing runs: its unique names and ports are
        free."""
        kind = WorkloadKind.BROKER if isinstance(cluster, BrokerCluster) else WorkloadKind.WORKER
        return cluster.goal is ClusterGoal.DELETED and all(
            workload.has_ended for workload in self.workloads_in(kind, cluster.name)
        )

    def topics_of(self, broker_cluster: str) -> list[Topic]:
        """Topics on a broker cluster, by name."""
        return [self.topics[name] for name in sorted(self._index.get(("topics", broker_cluster), NO_NAMES))]

    def clusters_with_topics(self) -> Names:
        """Returns the broker clusters that topics name."""
        return frozenset(name for name in self.broker_clusters if ("topics", name) in self._index)

    def topics_named(self, broker_cluster: str, topic: str) -> Names:
        """Returns the topic resources of a topic of a broker cluster."""
        return self._index.get(("topic resource", broker_cluster, topic), NO_NAMES)

    def named(self, noun: str, name: str) -> Any:
        """Returns the resource of a noun and a name; raises NotFound."""
        return found_by_name(noun.replace("_", " "), self.resources(noun), name)

    def worker(self, name: str) -> Workload:
        """Returns the workload of a worker's name, e.g. "demo/0"; raises NotFound."""
        workload = self.workloads.get(f"{WorkloadKind.WORKER}/{name}")
        if workload is None:
            if cluster := name.rpartition("/")[0]:
                self.worker_cluster(cluster)
            raise NotFound(
                f"no worker is named {name!r} (a name is <worker cluster>/<number>)", metadata={"worker": name}
            )
        return workload


def _host(node: Node) -> str:
    return node.host or node.name
