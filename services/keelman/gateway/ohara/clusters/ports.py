"""Checks a cluster's ports against a table of the ports of all running clusters: a new one may not use a port in it.
Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from keelman.gateway.ohara.wire.errors import illegal_argument
from keelman.gateway.ohara.wire.keys import ObjectKey


@dataclass(frozen=True, slots=True)
class Holder:
    """A running cluster and its ports. `kind` is one of worker, broker, zookeeper, stream, shabondi."""

    kind: str
    key: ObjectKey
    ports: frozenset[int]

    @property
    def words(self) -> str:
        """The name of the cluster in messages."""
        return f"{self.kind} cluster:{self.key}"


def check_ports(mine: Holder, running: Iterable[Holder]) -> None:
    """Raises Ohara's IllegalArgumentException with the ports that other clusters use, and the name of each cluster."""
    held = [
        (sorted(mine.ports & other.ports), other)
        for other in sorted(running, key=lambda cluster: (cluster.kind, cluster.key.group, cluster.key.name))
        if (other.kind, other.key) != (mine.kind, mine.key) and mine.ports & other.ports
    ]
    if held:
        raise illegal_argument(";".join(in_use(ports, other.words) for ports, other in held))


def in_use(ports: Iterable[int], words: str) -> str:
    """Returns the message that these ports are in use."""
    numbers = ",".join(map(str, ports))
    return f"ports:{numbers} are used by {words} (the port is generated randomly if it is ignored from request)"
