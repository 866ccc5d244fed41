"""Chooses the node of a movable worker: by the most room, apart from the others of its cluster. Pure.

Overcommitting is allowed: a worker that fits nowhere goes to the least loaded node.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Container, Mapping
from typing import TypeAlias

from keelman.model.cluster import WorkerCluster, WorkerClusterSpec
from keelman.model.node import Node, NodeFigures
from keelman.model.workload import ResourceLimits
from keelman.state.resources.snapshot import Snapshot

WORKER_CPUS, WORKER_MEMORY = 0.25, 256 << 20
"""The load counted for a worker without a limit."""
UNKNOWN_CPUS, UNKNOWN_MEMORY = 1.0, 1 << 30
Figures: TypeAlias = Callable[[Node], NodeFigures | None]
"""Returns the figures of a node's host, if known; the same each time while a plan is made."""
_Key: TypeAlias = tuple[float, float, str]


def own_figures(node: Node) -> NodeFigures | None:
    """Returns the node's own figures."""
    return node.figures


class Places:
    """The nodes that take new workloads, the least loaded first; kept in order as workloads come and go."""

    def __init__(self, snapshot: Snapshot, figures: Figures = own_figures) -> None:
        self._made = snapshot
        self._figures = figures
        self._keys: dict[str, _Key] = {}
        self._order: list[_Key] | None = None

    def changed(self, node: str) -> None:
        """Updates a node's position after a change of its workloads."""
        if self._order is None or node not in self._keys:
            return
        del self._order[bisect.bisect_left(self._order, self._keys[node])]
        self._keys[node] = self._key(self._made.nodes[node])
        bisect.insort(self._order, self._keys[node])

    def choose(self, cluster: WorkerCluster, own: Mapping[str, int], *, apart_from: Container[str] = ()) -> str | None:
        """Returns the best node for one more worker of the cluster; None when there is none. `own`: the number of its
        workers on each node."""
        best, best_name = (True, 1 << 30), None
        for *_, name in self._ordered():
            rank = (not self._fits(name, cluster.spec.limits), own.get(name, 0))
            if rank >= best or name in apart_from or not self._suits(name, cluster.spec):
                continue
            best, best_name = rank, name
            if best == (False, 0):
                break
        return best_name

    def none_has(self, selector: Mapping[str, str]) -> bool:
        """Returns True when no node that takes new workloads has these labels."""
        return not any(has_labels(self._made.nodes[name], selector) for *_, name in self._ordered())

    def share(self, node: str) -> float:
        """Returns the part of a node that is given away: of its processors or of its memory, the larger."""
        return self._share(self._made.nodes[node])

    def _ordered(self) -> list[_Key]:
        if self._order is None:
            self._keys = {n.name: self._key(n) for n in self._made.nodes.values() if n.takes_new}
            self._order = sorted(self._keys.values())
        return self._order

    def _key(self, node: Node) -> _Key:
        used = 0.0
        if (seen := self._figures(node)) is not None:
            free = seen.memory_available_bytes / (node.memory_bytes or UNKNOWN_MEMORY)
            used = round(max(seen.cpus_used / (node.cpus or UNKNOWN_CPUS), 1 - free), 1)
        return self._share(node), used, node.name

    def _share(self, node: Node) -> float:
        load, (cpus, memory) = self._made.load(node.name), _capacity(node)
        without_cpus, without_memory = load.workers - load.with_cpus, load.workers - load.with_memory
        return max(
            (load.cpus + without_cpus * WORKER_CPUS) / (cpus or UNKNOWN_CPUS),
            (load.memory_bytes + without_memory * WORKER_MEMORY) / (memory or UNKNOWN_MEMORY),
        )

    def _fits(self, name: str, limits: ResourceLimits) -> bool:
        load, (cpus, memory) = self._made.load(name), _capacity(self._made.nodes[name])
        return not (
            (limits.cpus and cpus and load.cpus + limits.cpus > cpus)
            or (limits.memory_bytes and memory and load.memory_bytes + limits.memory_bytes > memory)
        )

    def _suits(self, name: str, spec: WorkerClusterSpec) -> bool:
        return has_labels(self._made.nodes[name], spec.node_selector) and not any(
            port_owners(self._made, name, port) for port in spec.ports
        )


def _capacity(node: Node) -> tuple[float, int]:
    """Returns the processors and bytes of memory to give away; 0 if unknown."""
    return node.spec.capacity.cpus or float(node.cpus), node.spec.capacity.memory_bytes or node.memory_bytes


def has_labels(node: Node, selector: Mapping[str, str]) -> bool:
    """Returns True when the node has all of these labels."""
    return all(node.spec.labels.get(key) == value for key, value in selector.items())


def port_owners(snapshot: Snapshot, node: str, port: int) -> list[str]:
    """Returns the workloads that have or reserve a port on the node's host, by name."""
    return sorted(name for name in snapshot.port_holders(node, port) if port in snapshot.workloads[name].ports)
