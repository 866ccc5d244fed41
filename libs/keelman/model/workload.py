"""A workload: anything an agent runs on its node, complete to the last port."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import ClassVar, NamedTuple, TypeAlias

from keelman.model.log_delivery import NO_TARGETS, LogTargets


class WorkloadKind(StrEnum):
    """The kind of a workload's process; the first word of its name."""

    BROKER = "broker"
    SPARK = "spark"
    WORKER = "worker"


class Goal(StrEnum):
    """The state that an agent brings a workload to."""

    RUNNING = "RUNNING"
    STOPPED = "STOPPED"
    REMOVED = "REMOVED"


class ProcessState(StrEnum):
    """The state of a workload's process, as its agent observed it."""

    PENDING = "PENDING"
    PREPARING = "PREPARING"
    STARTING = "STARTING"
    RUNNING = "RUNNING"
    STOPPING = "STOPPING"
    STOPPED = "STOPPED"
    FAILED = "FAILED"
    REMOVED = "REMOVED"


START_QUEUED = "START_QUEUED"
"""Reason of a worker that starts once others of its node have started."""
PLUGIN_FETCHING = "PLUGIN_FETCHING"
"""Reason of a worker that waits for files of its plugins."""
PLUGIN_UNAVAILABLE = "PLUGIN_UNAVAILABLE"
"""Reason of a worker that cannot get its plugins' files: they cannot be fetched completely, or there is no room for
them."""
PLUGIN_BROKEN = "PLUGIN_BROKEN"
"""Reason of a worker whose plugins cannot be unpacked or loaded."""
PLUGIN_PROBLEMS = frozenset({PLUGIN_UNAVAILABLE, PLUGIN_BROKEN})
ROUTES_NOT_POSSIBLE = "ROUTES_NOT_POSSIBLE"
"""Reason of a worker, or of one of its slots, that cannot have host names of its own on its node."""
BROKERS_UNREACHABLE, BROKERS_REFUSE = "BROKERS_UNREACHABLE", "BROKERS_REFUSE"
CONSUMER_GROUP_UNREACHABLE = "CONSUMER_GROUP_UNREACHABLE"
BROKER_PROBLEMS = frozenset({BROKERS_UNREACHABLE, BROKERS_REFUSE, CONSUMER_GROUP_UNREACHABLE})
"""Reasons of a running worker without contact to its brokers for long: none answers, or they refuse it."""
UNHEALTHY = "UNHEALTHY"
"""Reason of a process that was ready, runs, and no longer passes its health check."""
SPARK_UNREACHABLE = "SPARK_UNREACHABLE"
"""Reason of a running worker whose Spark service does not answer it: it copies nothing."""
NO_EXECUTORS, WAITING_FOR_CORES, SPARK_LOST = "NO_EXECUTORS", "WAITING_FOR_CORES", "SPARK_LOST"
SPARK_PROBLEMS = frozenset({NO_EXECUTORS, WAITING_FOR_CORES, SPARK_LOST})
"""Reasons of a Spark service whose slots wait: its cluster gives it no executor, or too few cores; or Spark is lost."""
SPARK_STARTING = "SPARK_STARTING"
"""Reason of slots that wait while a standby, which had no Spark application, starts one: a matter of seconds."""
REACH_PROBLEMS = BROKER_PROBLEMS | SPARK_PROBLEMS | {SPARK_UNREACHABLE}
REFUSED = "REFUSED"
"""Reason of a process that ended by itself because it refused its settings."""
LASTING = frozenset(
    {REFUSED, "ADDRESS_REFUSED", "BROKER_REFUSED", "DATA_WITHOUT_OWNER", "FOREIGN_CLUSTER", "FOREIGN_NODE",
     "JAVA_MISSING", "JAVA_WORKERS", "KEPT_OUT", "NOT_SECURED", "NO_AUTHORITY", "PERMISSION_DENIED", PLUGIN_BROKEN,
     ROUTES_NOT_POSSIBLE, "UNAUTHENTICATED", "UNKNOWN_KIND", "WRONG_TOPIC"}
)  # fmt: skip
"""Reasons of failures that last until someone changes something: no further start of the process helps."""


@dataclass(frozen=True, slots=True)
class ResourceLimits:
    """Limits of processors and bytes of memory; 0 means no limit."""

    cpus: float = 0.0
    memory_bytes: int = 0


NO_LIMITS = ResourceLimits()


@dataclass(frozen=True, slots=True)
class BrokerSpec:
    """A managed Kafka broker in KRaft mode: a controller too, or a broker only."""

    broker_cluster: str
    kafka_cluster_id: str
    broker_id: int
    host: str
    port: int
    controller_port: int
    properties: Mapping[str, str] = field(default_factory=dict)
    controller: bool = True
    voters: str = ""
    """Kafka's controller.quorum.voters; empty if it is the only controller."""
    replicas: int = 1
    """The replicas of topics that are created without a number."""
    heap_mb: int = 0
    """0: the value of its settings."""
    routes: Mapping[str, str] = field(default_factory=dict)
    metrics_port: int = 0
    data_folders: tuple[str, ...] = ()
    """Folders for its partitions only, below the agent's data root; none: in its own folder."""
    tls: bool = False
    client_certificates: bool = False
    """With TLS: its clients must present a certificate."""


@dataclass(frozen=True, slots=True)
class SparkSpec:
    """The Spark service of a node, or of one tenant of a node; or a driver of a Spark cluster. `port` 0: it listens on
    its Unix socket only."""

    host: str
    port: int
    master: str
    reports_bootstrap_servers: str = ""
    reports_client_properties: Mapping[str, str] = field(default_factory=dict)
    tenant: str = ""
    """The tenant whose user it runs as; empty: the node's user for all workloads."""
    cluster: str = ""
    """The Spark cluster whose driver it is; empty: it is the service of a node."""
    properties: Mapping[str, str] = field(default_factory=dict)
    """Properties for Spark, as in spark-defaults.conf."""
    slot_port: int = 0
    """Port at which slots of other hosts call it; 0: none."""
    executor_cores: int = 0
    """0, as for the memory and an empty Python: the value of its settings."""
    executor_memory_mb: int = 0
    executor_python: str = ""
    tls: bool = False
    """Links of workers, which then present certificates, and calls of slots use TLS."""


@dataclass(frozen=True, slots=True)
class PluginFile:
    """A plugin as an agent fetches it. The ending of `file_name` determines how it is unpacked."""

    name: str
    version: str
    sha256: str
    size_bytes: int = 0
    file_name: str = ""

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


@dataclass(frozen=True, slots=True)
class WorkerSpec:
    """One worker of a worker cluster; `properties` are Connect's worker properties, complete."""

    worker_cluster: str
    host: str
    port: int
    properties: Mapping[str, str]
    spark_address: str
    reports_bootstrap_servers: str = ""
    reports_client_properties: Mapping[str, str] = field(default_factory=dict)
    metrics_port: int = 0
    """Where it serves /metrics alone; 0 for none."""
    reserved_ports: tuple[int, ...] = ()
    admin_port: int = 0
    https: bool = False
    restart: int = 0
    """Generation of its cluster at the last request to restart all of its workers; 0: never."""
    plugins: tuple[PluginFile, ...] = ()
    libraries: tuple[PluginFile, ...] = ()
    kafka_connect: bool = False
    """It is a worker of Apache Kafka Connect."""
    routes: Mapping[str, str] = field(default_factory=dict)
    """Addresses of host names, for this worker only."""
    log_targets: LogTargets = NO_TARGETS
    """The targets to which its agent delivers its log; the process is not affected."""
    tenant: str = ""
    """The tenant whose user it runs as, and whose Spark service copies for it; empty: the node's user for all
    workloads, and the node's Spark service."""
    spark_cluster: str = ""
    """The Spark cluster that copies for it: `spark_address` has the addresses of its drivers, separated by commas.
    Empty: a Spark service of its node."""
    spark_client_properties: Mapping[str, str] = field(default_factory=dict)
    """Client properties, named as in Java, of its link to a Spark cluster; empty: the link is not encrypted."""


WorkloadSpec: TypeAlias = BrokerSpec | SparkSpec | WorkerSpec


@dataclass(frozen=True, slots=True)
class LogProblem:
    """Why a stream of a worker's logs is not delivered to one of its targets: file, s3 or kafka."""

    stream: str
    target: str
    message: str
    since: datetime


@dataclass(frozen=True, slots=True)
class WorkloadStatus:
    """A workload's status as its agent observed it. `exit_code` is negative for a signal; times are aware UTC."""

    state: ProcessState
    generation: int
    pid: int = 0
    start_time: datetime | None = None
    restarts: int = 0
    exit_code: int | None = None
    message: str = ""
    reason: str = ""
    observe_time: datetime | None = None
    memory_bytes: int = 0
    limited_by: str = ""
    """The means that limits it: cgroup, systemd or watchdog; empty while nothing does."""
    log_problems: tuple[LogProblem, ...] = ()


@dataclass(frozen=True, slots=True)
class Trial:
    """The planner's notes on a worker: the change that led to its spec. No agent gets them."""

    cluster_generation: int = 0
    """The generation of its cluster that determined the settings of the worker's process."""
    restarts: int = 0
    """How often its process had been restarted when it got this spec."""
    is_open: bool = False
    """True from a change of its spec while it runs until it runs with the change."""


NO_TRIAL = Trial()


@dataclass(frozen=True, slots=True)
class Workload:
    """A workload with its placement. A higher generation fences an older plan."""

    NOUN: ClassVar[str] = "workload"

    name: str
    node: str
    generation: int
    goal: Goal
    spec: WorkloadSpec
    uid: str = ""
    status: WorkloadStatus | None = None
    has_run: bool = False
    """True once it was seen running: from then on a broker's data and port belong together."""
    tried_ports: tuple[int, ...] = ()
    """Ports that its agent found taken by other processes."""
    limits: ResourceLimits = NO_LIMITS
    force: bool = False
    """True: it is killed when its goal is to end."""
    trial: Trial = NO_TRIAL

    @property
    def kind(self) -> WorkloadKind:
        """The kind of process."""
        return WorkloadKind(self.name.partition("/")[0])

    @property
    def cluster(self) -> str:
        """Name of its broker cluster, worker cluster or Spark cluster; empty for the Spark service of a node."""
        match self.spec:
            case BrokerSpec(broker_cluster=name) | WorkerSpec(worker_cluster=name) | SparkSpec(cluster=name):
                return name

    @property
    def number(self) -> int:
        """The last word of the name of a worker, a broker or a driver."""
        return int(self.name.rpartition("/")[2])

    @property
    def ports(self) -> frozenset[int]:
        """The ports that it listens on or that are kept free for it."""
        match self.spec:
            case BrokerSpec(port=port, controller_port=controller, metrics_port=metrics):
                numbers: tuple[int, ...] = (port, controller, metrics)
            case WorkerSpec(port=port, metrics_port=metrics, admin_port=admin, reserved_ports=reserved):
                numbers = (port, metrics, admin, *reserved)
            case SparkSpec(port=port, slot_port=slots):
                numbers = (port, slots)
        return frozenset(numbers) - {0}

    @property
    def address(self) -> str:
        """The host:port for its clients."""
        return joined_address(self.spec.host, self.spec.port)

    @property
    def current(self) -> WorkloadStatus | None:
        """The agent's report if it is about this generation, else None."""
        return self.status if self.status is not None and self.status.generation >= self.generation else None

    def is_in(self, state: ProcessState) -> bool:
        """Returns True if the agent reported this state for this generation."""
        return self.current is not None and self.current.state is state

    @property
    def is_broken(self) -> bool:
        """True if its process has failed, or still runs but no longer answers."""
        silent = self.is_in(ProcessState.STARTING) and self.current is not None and self.current.reason == UNHEALTHY
        return silent or self.is_in(ProcessState.FAILED)

    @property
    def has_ended(self) -> bool:
        """True if its process has ended as its goal requires. The goal REMOVED follows STOPPED with a
        generation of its own, for the workload's files."""
        status, last = self.status, self.generation - (self.goal is Goal.REMOVED)
        ends = self.goal is not Goal.RUNNING and status is not None and status.generation >= last
        return ends and status is not None and status.state in (ProcessState.STOPPED, ProcessState.REMOVED)


def joined_address(host: str, port: int) -> str:
    """Returns host:port, with brackets around an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def broker_name(cluster: str, number: int) -> str:
    """Returns the name of a broker's workload."""
    return f"{WorkloadKind.BROKER}/{cluster}/{number}"


def spark_name(node: str, tenant: str = "") -> str:
    """Returns the name of the workload of a node's Spark service, or of a tenant's own Spark service there."""
    return f"{WorkloadKind.SPARK}/{node}/{tenant}" if tenant else f"{WorkloadKind.SPARK}/{node}"


def driver_name(spark_cluster: str, number: int) -> str:
    """Returns the name of the workload of a Spark cluster's driver. No node's name begins with "@"."""
    return f"{WorkloadKind.SPARK}/@{spark_cluster}/{number}"


def spark_of(worker: Workload) -> str:
    """Returns the name of the workload of its node's Spark service that copies for a worker; empty if a Spark cluster
    does."""
    return "" if spark_cluster_of(worker) else spark_name(worker.node, tenant_of(worker))


def spark_cluster_of(worker: Workload) -> str:
    """Returns the Spark cluster that copies for a worker; empty if a Spark service of its node does."""
    return worker.spec.spark_cluster if isinstance(worker.spec, WorkerSpec) else ""


def tenant_of(workload: Workload) -> str:
    """Returns the tenant whose user a workload runs as; empty for the node's user for all workloads."""
    return "" if isinstance(workload.spec, BrokerSpec) else workload.spec.tenant


def worker_name(cluster: str, number: int) -> str:
    """Returns the name of a worker's workload."""
    return f"{WorkloadKind.WORKER}/{cluster}/{number}"


class Load(NamedTuple):
    """The load of a node: workers that should run, and the resource limits of all its workloads that should run."""

    workers: int = 0
    cpus: float = 0.0
    memory_bytes: int = 0
    with_cpus: int = 0
    """How many of the workers have a bound of processors."""
    with_memory: int = 0

    @staticmethod
    def of(workloads: Sequence[Workload]) -> Load:
        """Returns the load of a node with these workloads."""
        running = [w for w in workloads if w.goal is Goal.RUNNING]
        workers = [w for w in running if w.kind is WorkloadKind.WORKER]
        return Load(
            len(workers),
            sum(w.limits.cpus for w in running),
            sum(w.limits.memory_bytes for w in running),
            sum(w.limits.cpus > 0 for w in workers),
            sum(w.limits.memory_bytes > 0 for w in workers),
        )
