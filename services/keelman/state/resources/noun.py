"""The interface of a noun to the rest of the state service, and the parts that nouns' services are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from google.protobuf.message import Message
from sqlmodel import SQLModel

from keelman.api.connect.v1 import plugin_pb2, worker_pb2
from keelman.api.connect.v1.connector_pb2 import Connector
from keelman.model.cluster import BrokerCluster, WorkerCluster
from keelman.model.node import Node
from keelman.model.topic import Topic
from keelman.model.workload import Workload
from keelman.state.resources.rows import Packed, resource_of, row_of

if TYPE_CHECKING:
    from keelman.state.hub import Hub
    from keelman.state.plugins.files import PluginFiles
    from keelman.state.reports.connector_reports import ConnectorReports
    from keelman.state.store import Store
    from keelman.state.topics.seen import Seen
    from keelman.state.trust.authority import Authority

R = TypeVar("R")


class Liveness(Protocol):
    """Knows of nodes and processes what stands in no table."""

    def alive(self, node: Node) -> Node:
        """The node with what its last heartbeat said."""

    def vital(self, workload: Workload) -> Workload:
        """The workload with the memory and the time that were reported last."""


class Memberships(Protocol):
    """Knows what workers report of themselves."""

    def membership(self, worker: Workload) -> worker_pb2.WorkerMembership | None:
        """Its place in its group; None while it is not known."""

    def recent_membership(self, worker: Workload) -> worker_pb2.WorkerMembership | None:
        """The same; None also when it has been silent of late."""

    def usage(self, worker: Workload) -> worker_pb2.WorkerUsage | None:
        """What it uses; None while that is not known."""

    def recent_usage(self, worker: Workload) -> worker_pb2.WorkerUsage | None:
        """The same; None also when it has been silent of late."""

    def with_lag(self, connector: Connector, workers: Iterable[Workload]) -> Connector:
        """A connector with what its cluster's workers have left to copy for it."""

    def plugins(self, worker: Workload) -> Sequence[plugin_pb2.WorkerPlugin]:
        """What it found in plugins, as far as that is known."""

    @property
    def connectors(self) -> ConnectorReports:
        """The connectors of workers' groups."""


class Planned(Protocol):
    """Knows what the planner has looked at."""

    def observed(self, cluster: BrokerCluster | WorkerCluster) -> int:
        """The newest generation of a cluster that has been planned."""


class TopicsSeen(Protocol):
    """Knows what brokers answered about topics."""

    def seen(self, topic: Topic) -> Seen:
        """What its brokers said last; waits for nobody."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts that the nouns' services use."""

    store: Store
    sessions: Liveness
    reports: Memberships
    plugins: PluginFiles
    planned: Planned
    topics: TopicsSeen
    chosen_ports: range
    """Of creates that leave ports to be chosen."""
    commits: Hub
    """Is woken by each commit."""
    buckets: str = ""
    """Where the buckets are that users name; empty where there are none."""
    authority: Authority | None = None
    """The installation's CA; None where there is none."""


@dataclass(frozen=True, slots=True)
class Noun(Generic[R]):
    """A kind of resource. Its name, in tables, topics and events, is its class's NOUN.

    `message` makes what users and events see of it. Its row has its fields by name, but for what is `packed`; `columns`
    gives the rest of a resource's row, and `fields` what is in no column of a row.
    """

    kind: type[R]
    table: type[SQLModel]
    message: Callable[[R], Message]
    packed: Packed = field(default_factory=dict)
    columns: Callable[[R], dict[str, Any]] = lambda resource: {}
    fields: Callable[[Any], dict[str, Any]] = lambda row: {}

    @property
    def name(self) -> str:
        """As in "worker_cluster"."""
        found: str = self.kind.NOUN  # type: ignore[attr-defined]
        return found

    @property
    def has_etag(self) -> bool:
        """True when a resource says which change of it was the last."""
        return "etag" in self.kind.__dataclass_fields__  # type: ignore[attr-defined]

    def to_row(self, resource: R) -> dict[str, Any]:
        """The values of its row."""
        return row_of(self.table, resource, self.packed) | self.columns(resource)

    def from_row(self, row: Any) -> R:
        """The resource of a row."""
        return resource_of(self.kind, row, self.packed, **self.fields(row))
