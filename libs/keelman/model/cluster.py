"""Broker clusters and worker clusters: the users' specifications and their states."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar, TypeAlias

from keelman.model.annotations import NO_ANNOTATIONS, Annotations
from keelman.model.autoscale import NOT_SCALED, Autoscale, Scaling
from keelman.model.log_delivery import LogDelivery
from keelman.model.plugins.plugin_set import NO_HISTORY, PluginHistory, PluginRef, PluginSet, WentBack
from keelman.model.resource import Resource
from keelman.model.workload import NO_LIMITS, ResourceLimits


class ClusterGoal(StrEnum):
    """The state that the verbs request for a cluster."""

    RUNNING = "RUNNING"
    STOPPED = "STOPPED"
    DELETED = "DELETED"


class ClusterState(StrEnum):
    """The state of a cluster of processes."""

    STARTING = "STARTING"
    RUNNING = "RUNNING"
    DEGRADED = "DEGRADED"
    STOPPING = "STOPPING"
    STOPPED = "STOPPED"
    DELETING = "DELETING"


class WorkerEngine(StrEnum):
    """The software that a cluster's workers run: keelman's, or Apache Kafka Connect's own."""

    KEELMAN = "KEELMAN"
    KAFKA_CONNECT = "KAFKA_CONNECT"
    """Workers of Apache Kafka Connect."""


class RolloutState(StrEnum):
    """The state of a change that reaches the workers of a cluster one by one."""

    ROLLING = "ROLLING"
    HALTED = "HALTED"
    """A worker did not come up with the change; the others keep the former state."""


class BrokerTls(StrEnum):
    """The sides that present certificates on connections to managed brokers."""

    UNSPECIFIED = "UNSPECIFIED"
    """In a request: the state service decides."""
    NONE = "NONE"
    SERVER = "SERVER"
    """Brokers present certificates, to clients and to each other."""
    MUTUAL = "MUTUAL"
    """Clients present certificates too."""


class BrokerAccess(StrEnum):
    """What clients of managed brokers may do."""

    UNSPECIFIED = "UNSPECIFIED"
    """In a request: the state service decides."""
    OPEN = "OPEN"
    """All that connect may do all, unless properties of the brokers say otherwise."""
    RULES = "RULES"
    """Each worker cluster is a principal of its own, and keelman keeps the access rules."""


@dataclass(frozen=True, slots=True)
class ManagedBrokers:
    """One broker on each of these nodes, in this order; never moved. `controllers`: how many of the first nodes are
    controllers too, 0 for 3 if there are three nodes or more, else 1; a controller stays one. `port` 0: a free one on
    each. `heap_mb`: the most of each broker's Java, in MiB; 0 for the brokers' default."""

    nodes: tuple[str, ...]
    properties: Mapping[str, str] = field(default_factory=dict)
    controllers: int = 0
    port: int = 0
    heap_mb: int = 0
    routes: Mapping[str, str] = field(default_factory=dict)
    metrics_port: int = 0
    """The port on which each broker serves only /metrics; 0: none."""
    data_folders: tuple[str, ...] = ()
    """Absolute paths, below the data root of each agent, in which each broker has a folder of its own for its
    partitions; none: the partitions are in its agent's."""
    annotations: Annotations = NO_ANNOTATIONS
    tls: BrokerTls = BrokerTls.NONE
    client_properties: Mapping[str, str] = field(default_factory=dict)
    """Client properties for access by TLS, as for external brokers; set by keelman, not by the user. With access rules
    those of the state service, which may do all."""
    access: BrokerAccess = BrokerAccess.OPEN
    reports_client_properties: Mapping[str, str] = field(default_factory=dict)
    """With access rules, client properties of those that write reports; set by keelman, not by the user."""

    @property
    def has_rules(self) -> bool:
        """True if the brokers allow what access rules say, and nothing else."""
        return self.access is BrokerAccess.RULES

    @property
    def connection(self) -> Mapping[str, str]:
        """Client properties, named as in Java, for clients of these brokers."""
        return self.client_properties

    @property
    def reports_connection(self) -> Mapping[str, str]:
        """The same for those that write reports."""
        return self.reports_client_properties if self.has_rules else self.connection

    @property
    def ports(self) -> tuple[int, ...]:
        """The ports in its spec."""
        return tuple(port for port in (self.port, self.metrics_port) if port)


@dataclass(frozen=True, slots=True)
class ExternalBrokers:
    """Brokers outside keelman: host:port,host:port and Kafka client properties named as in Java."""

    bootstrap_servers: str
    client_properties: Mapping[str, str] = field(default_factory=dict)
    annotations: Annotations = NO_ANNOTATIONS
    credential_profile: str = ""
    """Name of a secret with client properties that override these."""
    credentials: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The values of that secret; set by keelman, not by the user."""

    @property
    def has_rules(self) -> bool:
        """False: access rules of external brokers are their operator's."""
        return False

    @property
    def connection(self) -> Mapping[str, str]:
        """Client properties, named as in Java, for clients of these brokers."""
        return {**self.client_properties, **self.credentials}

    @property
    def reports_connection(self) -> Mapping[str, str]:
        """The same for those that write reports."""
        return self.connection


BrokerClusterSpec: TypeAlias = ManagedBrokers | ExternalBrokers


@dataclass(frozen=True, slots=True)
class BrokerClusterStatus:
    """The observed status of a broker cluster."""

    state: ClusterState = ClusterState.STARTING
    message: str = ""
    bootstrap_servers: str = ""
    stuck: bool = False
    """True if it does not come up until someone changes something."""
    down_since: datetime | None = None
    """Since when none of its brokers can be reached; None while one can."""


@dataclass(frozen=True, slots=True)
class BrokersSeen:
    """The state service's findings at its last request to a cluster's brokers."""

    in_sync: str = ""
    """Managed brokers: the processes, with their generation, that had all partitions in sync; empty if not all were."""
    problem: str = ""
    """External brokers: why none of them answers, or accepts keelman; for people."""
    refused: bool = False
    """External brokers: they answer, but do not accept keelman or are not trusted."""


NOT_SEEN = BrokersSeen()


@dataclass(frozen=True, slots=True)
class BrokerCluster(Resource):
    """A Kafka cluster that worker clusters use. Times are aware UTC; `etag` changes with every change."""

    NOUN: ClassVar[str] = "broker_cluster"

    generation: int
    etag: str
    goal: ClusterGoal
    spec: BrokerClusterSpec
    kafka_cluster_id: str = ""
    note: str = ""
    """What keeps the planner from placing it, for people; empty when nothing does."""
    reachable: bool | None = None
    """Whether an external cluster answered the last request; None before the first answer."""
    seen: BrokersSeen = NOT_SEEN
    force: bool = False
    """Its brokers are killed when they have to end."""
    status: BrokerClusterStatus = field(default_factory=BrokerClusterStatus)

    def asked_at(self, bootstrap_servers: str) -> dict[str, str]:
        """Returns client properties, named as in Java, for clients of its brokers at these addresses."""
        return {**self.spec.connection, "bootstrap.servers": bootstrap_servers}


@dataclass(frozen=True, slots=True)
class WorkerClusterSpec:
    """A worker cluster as the user wants it: `nodes` (one worker on each, never moved), or else `count` workers, or
    else as many as `autoscale` decides."""

    broker_cluster: str
    nodes: tuple[str, ...] = ()
    count: int = 0
    properties: Mapping[str, str] = field(default_factory=dict)
    node_selector: Mapping[str, str] = field(default_factory=dict)
    """Labels that a node must have for a worker of a `count` to be placed on it."""
    port: int = 0
    """The port of the REST API, the same on each node; 0: a free one on each."""
    metrics_port: int = 0
    """The port on which each worker serves only /metrics; 0: none."""
    admin_port: int = 0
    """The port of the admin listener; 0: none."""
    reserved_ports: tuple[int, ...] = ()
    """Ports kept free for connectors on each of its nodes."""
    https: bool = False
    shared_offset_topic: bool = False
    """Other clusters may have the same offset topic."""
    limits: ResourceLimits = NO_LIMITS
    """The limits of each worker with all of its processes."""
    annotations: Annotations = NO_ANNOTATIONS
    plugins: tuple[PluginRef, ...] = ()
    """The plugins that its workers load."""
    libraries: tuple[PluginRef, ...] = ()
    """The libraries that all of its Java plugins find beside their own jars."""
    engine: WorkerEngine = WorkerEngine.KEELMAN
    routes: Mapping[str, str] = field(default_factory=dict)
    """Addresses of host names, for its workers only."""
    log_delivery: LogDelivery | None = None
    """The delivery of its logs; it reaches no process."""
    autoscale: Autoscale | None = None
    tenant: str = ""
    """Worker clusters of the same tenant share a user and a Spark service on each node; empty: it is a tenant of its
    own."""
    allowed_topics: tuple[str, ...] = ()
    """On brokers with access rules: the topics that it may use, `*` at the end for any rest; empty: all but internal
    ones."""
    allowed_groups: tuple[str, ...] = ()
    """On brokers with access rules: the consumer groups that it may use, in the same form; empty: those of sinks."""
    credentials: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Client properties for brokers with access rules, by which they know it; empty until the rules are in effect. Set
    by keelman, not by the user."""
    spark_cluster: str = ""
    """The Spark cluster that runs its tasks; empty: a Spark service of each worker's node."""
    spark_client_properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Client properties of its workers' links to the drivers of a Spark cluster, with a certificate by which these know
    it; set by keelman, not by the user."""

    @property
    def plugin_set(self) -> PluginSet:
        """Its plugins and libraries."""
        return PluginSet(self.plugins, self.libraries)

    @property
    def ports(self) -> tuple[int, ...]:
        """The given ports that it has or keeps free on each of its workers' nodes."""
        return tuple(p for p in (self.port, self.metrics_port, self.admin_port, *self.reserved_ports) if p)

    def runs_as(self, other: WorkerClusterSpec) -> bool:
        """Returns True if a worker's process runs with the same settings, wherever it runs."""
        return _of_process(self) == _of_process(other)


def _of_process(spec: WorkerClusterSpec) -> tuple[Any, ...]:
    ports = (spec.port, spec.metrics_port, spec.admin_port)
    of_spark = (spec.engine, spec.spark_cluster)
    return dict(spec.properties), ports, spec.https, spec.limits, spec.plugin_set, dict(spec.routes), of_spark


@dataclass(frozen=True, slots=True)
class Rollout:
    """The progress of a change that reaches the workers one by one. `worker`: the worker that is being changed, or did
    not come up."""

    state: RolloutState
    updated_workers: int
    workers: int
    worker: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class WorkerClusterStatus:
    """The observed status of a worker cluster."""

    state: ClusterState = ClusterState.STOPPED
    message: str = ""
    ready_workers: int = 0
    rest_urls: tuple[str, ...] = ()
    rollout: Rollout | None = None
    stuck: bool = False
    """True if it does not come up until someone changes something."""
    leaving_workers: int = 0
    """Workers that are ending, since the cluster gets fewer or other ones."""
    down_since: datetime | None = None
    """Since when none of its workers is ready though it should run; None otherwise."""


@dataclass(frozen=True, slots=True)
class WorkerCluster(Resource):
    """Workers that share a group. Times are aware UTC; `etag` changes with every change."""

    NOUN: ClassVar[str] = "worker_cluster"

    generation: int
    etag: str
    goal: ClusterGoal
    spec: WorkerClusterSpec
    note: str = ""
    """What keeps the planner from placing all of it, for people; empty when nothing does."""
    status: WorkerClusterStatus = field(default_factory=WorkerClusterStatus)
    force: bool = False
    """Its workers are killed when they have to end, and offline nodes are not waited for."""
    process_generation: int = 1
    """Generation of the last change to the settings of its workers' processes."""
    restart: int = 0
    """Generation of the last request to restart all of its workers; 0: never."""
    plugin_history: PluginHistory = NO_HISTORY
    scaling: Scaling = NOT_SCALED
    """The last step of autoscaling."""

    @property
    def wanted_workers(self) -> int:
        """The number of workers that it should have now."""
        if self.spec.autoscale is not None and not self.spec.nodes:
            return self.spec.autoscale.bounded(self.scaling.workers)
        return len(self.spec.nodes) or self.spec.count

    @property
    def tenant(self) -> str:
        """The tenant that its workers belong to: its name, or "+" and the name that it has for several clusters. So no
        cluster joins others by its own name."""
        return f"+{self.spec.tenant}" if self.spec.tenant else self.name

    @property
    def went_back(self) -> WentBack | None:
        """Why its workers load the former set of plugins and not that of its spec; None if they load that of the
        spec."""
        went_back = self.plugin_history.went_back
        return went_back if went_back is not None and went_back.process_generation == self.process_generation else None

    @property
    def plugin_set(self) -> PluginSet:
        """The plugins and libraries that its workers should load now."""
        former = self.plugin_history.former
        return self.spec.plugin_set if self.went_back is None or former is None else former


def new_cluster_id() -> str:
    """Returns a random id in Kafka's form, never one that a command line would take for an option."""
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not text.startswith("-"):
            return text
