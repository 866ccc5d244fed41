"""Where the events' broker cluster is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from keelman.state.hub import Hub
from keelman.state.snapshot import BROKER_CLUSTER

if TYPE_CHECKING:
    from keelman.state.store import Store


def events_bootstrap(store: Store, cluster: str) -> str:
    """Bootstrap servers of the events' broker cluster; empty while it has none."""
    found = store.snapshot.broker_clusters.get(cluster)
    return "" if found is None else found.status.bootstrap_servers


async def events_moved(store: Store, hub: Hub, cluster: str, bootstrap: str) -> None:
    """Returns when the events' broker cluster has another address than `bootstrap`; to have none is not another."""
    with hub.subscribe((BROKER_CLUSTER, cluster)) as changed:
        while True:
            changed.clear()
            found = events_bootstrap(store, cluster)
            if found and found != bootstrap:
                return
            await changed.wait()
