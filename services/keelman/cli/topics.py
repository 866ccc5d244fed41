"""The topics of a broker cluster, asked of its brokers with the client properties that the gateway knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from keelman.cli import kinds
from keelman.cli.gateway import Gateway
from keelman.kafka import browsing
from keelman.kafka.browsing import Topic
from keelman.model.errors import FailedPrecondition, InvalidArgument, NotFound


@dataclass(frozen=True, slots=True)
class Brokers:
    """How to reach the brokers of a cluster: Java's client properties."""

    properties: Mapping[str, str]

    @staticmethod
    async def of(gateway: Gateway, name: str) -> Brokers:
        """Those of a broker cluster; without a name of the only one, or of `default`.

        Raises NotFound, InvalidArgument where there are several, FailedPrecondition for one that has no address yet.
        """
        if not name:
            names = [one.name for one in await gateway.list(kinds.BROKER_CLUSTERS)]
            if not names:
                raise NotFound("there is no broker cluster: see `keelman create broker-cluster --help`")
            if len(names) > 1 and "default" not in names:
                raise InvalidArgument(f"--broker-cluster: which one? One of {', '.join(names)}")
            name = names[0] if len(names) == 1 else "default"
        found = await gateway.get(kinds.BROKER_CLUSTERS, name)
        servers = found.status.bootstrap_servers or found.spec.external.bootstrap_servers
        if not servers:
            raise FailedPrecondition(f"broker cluster {name} has no address yet: see `keelman get bc {name}`")
        return Brokers({**found.spec.external.client_properties, "bootstrap.servers": servers})


async def topics_of(brokers: Brokers, only: str | None) -> Sequence[Topic]:
    """Its topics, or just one. Raises as `browsing.list_topics`."""
    return await browsing.list_topics(brokers.properties, only)
