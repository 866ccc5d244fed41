"""Dedicated connectors: connectors with a worker cluster of their own, and why one does not run."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar

from keelman.model.annotations import NO_ANNOTATIONS, Annotations
from keelman.model.autoscale import Autoscale
from keelman.model.cluster import WorkerEngine
from keelman.model.log_delivery import LogDelivery
from keelman.model.plugins.plugin_set import PluginRef
from keelman.model.resource import Resource
from keelman.model.workload import NO_LIMITS, ResourceLimits

FORMER_SPEC, WANTED_SPEC = "former_spec", "wanted_spec"
"""Facts of an operation that updates: the specs, as they are stored."""
UNKNOWN_CODE = "UnknownError.Unknown"
SCALING_SECONDS = 20.0
"""The longest that a request waits for a step of autoscaling, which no user requested."""
CODES: Mapping[str, str] = {
    "BROKERS_UNREACHABLE": "ClusterError.BrokerUnreachable",
    "CONSUMER_GROUP_UNREACHABLE": "ClusterError.BrokerUnreachable",
    "BROKERS_REFUSE": "ClusterError.AuthenticationFailed",
    "TOPIC_NOT_ALLOWED": "ClusterError.TopicNotAllowed",
    "TOPIC_NOT_COMPACTED": "ClusterError.TopicNotCompacted",
    "CLASS_NOT_FOUND": "ConnectorError.ClassNotFound",
    "CONFIG_REFUSED": "ConnectorError.InvalidConfiguration",
    "START_FAILED": "ConnectorError.StartFailed",
    "TASK_FAILED": "ConnectorError.TaskFailed",
    "NO_NODE": "CapacityError.NoNodeAvailable",
    "WORKER_FAILED": "CapacityError.WorkerStartFailed",
    "SPARK_UNREACHABLE": "CapacityError.SparkUnreachable",
}
"""By the reason of an operation's error: why a dedicated connector has failed, as <area>.<cause>."""


def code_of(reason: str) -> str:
    """Returns the code of an operation's error of this reason."""
    return CODES.get(reason, UNKNOWN_CODE)


class DedicatedGoal(StrEnum):
    """The state that a dedicated connector is brought to."""

    ABSENT = "ABSENT"
    PAUSED = "PAUSED"
    RUNNING = "RUNNING"


class DedicatedState(StrEnum):
    """The state of a dedicated connector."""

    CREATING = "CREATING"
    RUNNING = "RUNNING"
    UPDATING = "UPDATING"
    DELETING = "DELETING"
    FAILED = "FAILED"
    PAUSED = "PAUSED"
    PAUSING = "PAUSING"
    RESUMING = "RESUMING"
    RESTARTING = "RESTARTING"


@dataclass(frozen=True, slots=True)
class WorkerConfigurationRef:
    """Names a revision of a worker configuration; 0 in a request: the newest."""

    name: str
    revision: int = 0


@dataclass(frozen=True, slots=True)
class Capacity:
    """The number of workers, fixed or as many as `autoscale` decides; and the limits of each with all of its
    processes."""

    count: int = 0
    worker_limits: ResourceLimits = NO_LIMITS
    autoscale: Autoscale | None = None

    @property
    def most_workers(self) -> int:
        """The highest number of workers."""
        return self.count if self.autoscale is None else self.autoscale.max_workers


@dataclass(frozen=True, slots=True)
class DedicatedConnectorSpec:
    """A dedicated connector as the user wants it; `config` is as sent. Its Kafka is `broker_cluster`, or else the
    cluster behind `bootstrap_servers` and `client_properties`."""

    connector: str
    config: Mapping[str, str] = field(default_factory=dict)
    broker_cluster: str = ""
    bootstrap_servers: str = ""
    client_properties: Mapping[str, str] = field(default_factory=dict)
    capacity: Capacity = Capacity()
    plugins: tuple[PluginRef, ...] = ()
    libraries: tuple[PluginRef, ...] = ()
    worker_configuration: WorkerConfigurationRef | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    """Worker properties that override the worker configuration's."""
    node_selector: Mapping[str, str] = field(default_factory=dict)
    topic_prefix: str = ""
    topic_suffix: str = ""
    engine: WorkerEngine = WorkerEngine.KEELMAN
    log_delivery: LogDelivery | None = None
    """The delivery of its logs."""
    annotations: Annotations = NO_ANNOTATIONS


@dataclass(frozen=True, slots=True)
class DedicatedFailure:
    """Why it does not run: <area>.<cause>, and a text for people."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class DedicatedConnector(Resource):
    """One dedicated connector. `operation` is the last one's name; `broker_cluster` that of its workers."""

    NOUN: ClassVar[str] = "dedicated_connector"

    generation: int
    spec: DedicatedConnectorSpec
    goal: DedicatedGoal = DedicatedGoal.RUNNING
    broker_cluster: str = ""
    operation: str = ""
    failure: DedicatedFailure | None = None
    """The failure of the last operation that left it failed; a later success removes it."""
    updates: int = 0
    """How many updates were applied."""
    connector_uid: str = ""
    """The connector's uid on its workers; empty before they have it."""
    tasks_max: int = 0
    """The `tasks.max` that its workers got; 0: that of the configuration."""
    etag: str = ""

    @property
    def version(self) -> str:
        """An opaque text that changes with each applied update."""
        digest = hashlib.sha256(f"{self.uid}/{self.updates}".encode()).digest()
        return "K" + base64.b32encode(digest).decode()[:13]
