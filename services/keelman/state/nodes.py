"""What users ask of nodes."""

from __future__ import annotations

from keelman.model.cluster import ManagedBrokers
from keelman.model.errors import FailedPrecondition
from keelman.model.node import NodeState
from keelman.state import store
from keelman.state.database import Transaction


async def delete(tx: Transaction, name: str) -> None:
    """Forgets an offline node that carries nothing and that no cluster names."""
    snapshot = await store.load(tx.session)
    node = store.found_node(snapshot, name)
    if node.state is not NodeState.OFFLINE:
        raise FailedPrecondition(f"node {name!r} is {node.state}: stop its agent first", reason="NOT_OFFLINE")
    carried = sorted(w.name for w in snapshot.workloads.values() if w.node == name)
    if carried:
        raise FailedPrecondition(
            f"node {name!r} carries {', '.join(carried)}: delete their clusters first",
            reason="CARRIES_WORKLOADS",
            metadata={"workloads": ", ".join(carried)},
        )
    managed = {n: c.spec.nodes for n, c in snapshot.broker_clusters.items() if isinstance(c.spec, ManagedBrokers)}
    pinned = {n: c.spec.nodes for n, c in snapshot.worker_clusters.items()}
    named = [cluster for nodes in (managed, pinned) for cluster in nodes if name in nodes[cluster]]
    if named:
        raise FailedPrecondition(
            f"node {name!r} is named by clusters {', '.join(sorted(named))}: delete these first",
            reason="IN_USE",
            metadata={"clusters": ", ".join(sorted(named))},
        )
    await store.forget_node(tx, name)
