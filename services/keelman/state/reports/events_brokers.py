"""Finds the addresses and client properties of the events' broker cluster, and waits for a change of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from keelman.state.resources.hub import Hub
from keelman.state.resources.snapshot import BROKER_CLUSTER
from keelman.state.resources.store import ResourceStore


@dataclass(frozen=True, slots=True)
class EventsBrokers:
    """Bootstrap servers and client properties, named as in Java, for clients of the events' brokers."""

    bootstrap_servers: str
    client_properties: Mapping[str, str] = field(default_factory=dict, repr=False)


def events_brokers(store: ResourceStore, cluster: str) -> EventsBrokers | None:
    """Returns the brokers of the events' broker cluster; None while it has no address."""
    resource = store.snapshot.broker_clusters.get(cluster)
    if resource is None or not resource.status.bootstrap_servers:
        return None
    return EventsBrokers(resource.status.bootstrap_servers, resource.spec.connection)


async def events_brokers_known(store: ResourceStore, hub: Hub, cluster: str) -> EventsBrokers:
    """Waits until the events' broker cluster has an address, and returns its brokers."""
    with hub.subscribe((BROKER_CLUSTER, cluster)) as changed:
        while True:
            changed.clear()
            if brokers := events_brokers(store, cluster):
                return brokers
            await changed.wait()


async def events_moved(store: ResourceStore, hub: Hub, cluster: str, brokers: EventsBrokers) -> None:
    """Returns when the events' broker cluster has another address or other client properties; a missing address is no
    change."""
    with hub.subscribe((BROKER_CLUSTER, cluster)) as changed:
        while True:
            changed.clear()
            present = events_brokers(store, cluster)
            if present is not None and present != brokers:
                return
            await changed.wait()
