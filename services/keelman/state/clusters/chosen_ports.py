"""Chooses ports at a create, which are kept in the spec: the same on each node, and used by nothing else."""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import Callable, Collection, Sequence

from keelman.model.cluster import BrokerClusterSpec, ManagedBrokers, WorkerClusterSpec
from keelman.model.errors import Exhausted
from keelman.state.resources.snapshot import Snapshot

Chance = Callable[[int], int]
"""Returns a random number from 0 to below the given one."""


def with_worker_ports(spec: WorkerClusterSpec, snapshot: Snapshot, allowed: range) -> WorkerClusterSpec:
    """Returns the spec with chosen ports of REST and metrics for those that it does not name. Raises Exhausted."""
    missing = [spec.port, spec.metrics_port].count(0)
    ports = iter(chosen(missing, spec.nodes, snapshot, allowed, apart_from=spec.ports))
    port = spec.port or next(ports)
    return dataclasses.replace(spec, port=port, metrics_port=spec.metrics_port or next(ports))


def with_broker_ports(spec: BrokerClusterSpec, snapshot: Snapshot, allowed: range) -> BrokerClusterSpec:
    """Returns the spec of managed brokers with chosen ports of clients and metrics for those that it does not name.
    Raises Exhausted."""
    if not isinstance(spec, ManagedBrokers):
        return spec
    missing = [spec.port, spec.metrics_port].count(0)
    ports = iter(chosen(missing, spec.nodes, snapshot, allowed, apart_from=spec.ports))
    port = spec.port or next(ports)
    return dataclasses.replace(spec, port=port, metrics_port=spec.metrics_port or next(ports))


def chosen(
    count: int, nodes: Sequence[str], snapshot: Snapshot, allowed: range, *, apart_from: Collection[int] = (),
    chance: Chance = secrets.randbelow,
) -> list[int]:  # fmt: skip
    """Returns `count` ports of the range that no spec names and that are free on these nodes; on all nodes if none is
    named. They begin at a random one: a port that is free here may be taken on a host by a process unknown to keelman.

    Raises Exhausted (NO_FREE_PORTS).
    """
    places = [node for node in nodes or snapshot.nodes if node in snapshot.nodes]
    begin, ports = chance(len(allowed)), list[int]()
    for number in range(len(allowed)):
        if len(ports) == count:
            break
        port = allowed[(begin + number) % len(allowed)]
        is_named = port in apart_from or snapshot.naming(port)
        if not is_named and not any(snapshot.port_holders(node, port) for node in places):
            ports.append(port)
    if len(ports) < count:
        raise Exhausted(
            f"no {count} ports are free in {allowed[0]}-{allowed[-1]}: name ports, or have more in state.chosen_ports",
            reason="NO_FREE_PORTS",
            metadata={"ports": f"{allowed[0]}-{allowed[-1]}"},
        )
    return ports
