"""The interface of a noun to the rest of the state service, and the parts that nouns' services use."""

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
    from keelman.state.plugins.files import PluginFiles
    from keelman.state.reports.connector_reports import ConnectorReports
    from keelman.state.resources.hub import Hub
    from keelman.state.resources.store import Store
    from keelman.state.topics.seen import Seen
    from keelman.state.trust.authority import Authority

R = TypeVar("R")


class Liveness(Protocol):
    """Knows facts of nodes and processes that no table holds."""

    def alive(self, node: Node) -> Node:
        """Returns the node with the content of its last heartbeat."""

    def vital(self, workload: Workload) -> Workload:
        """Returns the workload with its last reported memory and time."""


class Memberships(Protocol):
    """Knows workers' reports of themselves."""

    def membership(self, worker: Workload) -> worker_pb2.WorkerMembership | None:
        """Returns the worker's place in its group; None while unknown."""

    def recent_membership(self, worker: Workload) -> worker_pb2.WorkerMembership | None:
        """Returns as `membership`; None also when the worker has been silent of late."""

    def usage(self, worker: Workload) -> worker_pb2.WorkerUsage | None:
        """Returns the worker's use of resources; None while unknown."""

    def recent_usage(self, worker: Workload) -> worker_pb2.WorkerUsage | None:
        """Returns as `usage`; None also when the worker has been silent of late."""

    def with_lag(self, connector: Connector, workers: Iterable[Workload]) -> Connector:
        """Returns a connector with the records that its cluster's workers have left to copy for it."""

    def plugins(self, worker: Workload) -> Sequence[plugin_pb2.WorkerPlugin]:
        """Returns the worker's report on its plugins, as far as it is known."""

    @property
    def connectors(self) -> ConnectorReports:
        """The connectors of workers' groups."""


class Planned(Protocol):
    """Knows the planner's progress."""

    def observed(self, cluster: BrokerCluster | WorkerCluster) -> int:
        """Returns the newest generation of a cluster that has been planned."""


class TopicsSeen(Protocol):
    """Knows the brokers' answers about topics."""

    def seen(self, topic: Topic) -> Seen:
        """Returns the brokers' last answer at once."""


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
    """The range for creates that leave the choice of ports to keelman."""
    commits: Hub
    """Woken by each commit."""
    buckets: str = ""
    """The server of the buckets that users name; empty if there is none."""
    authority: Authority | None = None
    """The installation's CA; None if there is none."""


@dataclass(frozen=True, slots=True)
class Noun(Generic[R]):
    """A kind of resource. Its name, in tables, topics and events, is its class's NOUN.

    `message` makes the message that users and events see. The row has the resource's fields by name, except those that
    are `packed`; `columns` gives the rest of a resource's row, and `fields` the fields that no column holds.
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
        """True when a resource has an etag, the mark of its last change."""
        return "etag" in self.kind.__dataclass_fields__  # type: ignore[attr-defined]

    def to_row(self, resource: R) -> dict[str, Any]:
        """Returns the values of the resource's row."""
        return row_of(self.table, resource, self.packed) | self.columns(resource)

    def from_row(self, row: Any) -> R:
        """Returns the resource of a row."""
        return resource_of(self.kind, row, self.packed, **self.fields(row))
