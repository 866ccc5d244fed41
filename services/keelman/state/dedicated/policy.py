"""Judges the brokers that dedicated connectors name by the installation's policy: at create, and before each query of
them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from keelman.connect.policy.judging import PolicyJudge, PolicyRefused
from keelman.model.cluster import BrokerCluster, ExternalBrokers
from keelman.model.connectors.dedicated_connector import DedicatedConnectorSpec
from keelman.model.errors import InvalidArgument
from keelman.model.workload import WorkloadKind
from keelman.state.dedicated.composition import is_made
from keelman.state.resources.snapshot import Snapshot

SERVERS = "bootstrap.servers"
_DETAIL = re.compile(r"(no broker answers at .+?): .*", re.DOTALL)
FIELD = "spec.external.bootstrap_servers"


@dataclass(frozen=True, slots=True)
class NamedBrokers:
    """The policy for brokers that users of dedicated connectors name: `rules` are the installation's, as worker
    properties. Brokers of the installation's own broker clusters are always legal."""

    rules: Mapping[str, str]

    def check(self, spec: DedicatedConnectorSpec, snapshot: Snapshot) -> None:
        """Raises InvalidArgument for addresses that connectors may not name."""
        if problem := self._problem(spec.bootstrap_servers, snapshot):
            raise InvalidArgument.of(FIELD, spec.bootstrap_servers, problem)

    def refusal(self, cluster: BrokerCluster, snapshot: Snapshot) -> str:
        """Returns why the brokers of a cluster may not be queried; empty where they may."""
        if not self.hides(cluster) or not isinstance(cluster.spec, ExternalBrokers):
            return ""
        return self._problem(cluster.spec.bootstrap_servers, snapshot)

    def hides(self, cluster: BrokerCluster) -> bool:
        """Returns whether the users of a cluster must not learn which ports of its addresses are open."""
        return is_made(cluster)

    def _problem(self, servers: str, snapshot: Snapshot) -> str:
        own = {address.lower() for address in _own_brokers(snapshot)}
        others = [part for part in map(str.strip, servers.split(",")) if part and part.lower() not in own]
        try:
            PolicyJudge(self.rules, lambda _: None).require_reachable({SERVERS: ",".join(others)})
        except PolicyRefused as error:
            return str(error)
        return ""


NO_POLICY = NamedBrokers({})


def _own_brokers(snapshot: Snapshot) -> Iterator[str]:
    for workload in snapshot.workloads.values():
        if workload.kind is WorkloadKind.BROKER:
            yield workload.address
    for cluster in snapshot.broker_clusters.values():
        if isinstance(cluster.spec, ExternalBrokers) and not is_made(cluster):
            yield from (part.strip() for part in cluster.spec.bootstrap_servers.split(","))


def without_detail(message: str) -> str:
    """Returns a text about brokers that do not answer, without what there was at their ports: users of dedicated
    connectors choose the addresses, and must not learn which ports of other hosts are open."""
    return _DETAIL.sub(r"\1", message)
