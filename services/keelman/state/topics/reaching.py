"""Decides the client properties for the brokers of a cluster. Pure."""

from __future__ import annotations

from keelman.model.cluster import BrokerCluster, ClusterGoal, ExternalBrokers
from keelman.model.errors import FailedPrecondition, Unavailable


def asked_properties(cluster: BrokerCluster) -> dict[str, str]:
    """Returns the client properties, as in Java, for queries of these brokers. Raises FailedPrecondition for a cluster
    that shall not run, Unavailable while it has no address."""
    if isinstance(cluster.spec, ExternalBrokers):
        return cluster.asked_at(cluster.spec.bootstrap_servers)
    if cluster.goal is not ClusterGoal.RUNNING:
        raise FailedPrecondition(
            f"broker cluster {cluster.name!r} does not run: start it first",
            reason="NOT_RUNNING",
            metadata={"broker_cluster": cluster.name},
        )
    if not cluster.status.bootstrap_servers:
        raise Unavailable(f"broker cluster {cluster.name!r} does not run yet", reason="NOT_RUNNING")
    return cluster.asked_at(cluster.status.bootstrap_servers)
