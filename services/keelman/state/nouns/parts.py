"""The parts that the nouns' services use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from keelman.model.node import Node
from keelman.model.workload import Workload
from keelman.state.dedicated.policy import NO_POLICY, NamedBrokers
from keelman.state.planning.planned import Planned
from keelman.state.plugins.files import PluginFiles
from keelman.state.reports.memberships import Memberships
from keelman.state.resources.hub import Hub
from keelman.state.resources.store import ResourceStore
from keelman.state.topics.broker_views import TopicsSeen
from keelman.state.trust.authorities import PresentAuthorities


class Liveness(Protocol):
    """Knows facts of nodes and processes that no table holds."""

    def alive(self, node: Node) -> Node:
        """Returns the node with the content of its last heartbeat."""

    def vital(self, workload: Workload) -> Workload:
        """Returns the workload with its last reported memory and time."""


@dataclass(frozen=True, slots=True)
class NounParts:
    """The parts that the nouns' services use."""

    store: ResourceStore
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
    authorities: PresentAuthorities | None = None
    """The installation's CA; None if there is none."""
    named_brokers: NamedBrokers = NO_POLICY
    """The policy for brokers that dedicated connectors name."""
