"""Finds how many workers of a cluster can have something to do: more workers would be of no use."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

from keelman.api.connect.v1.connector_pb2 import CONNECTOR_TYPE_SINK, Connector
from keelman.kafka.topic_brokers import TopicBrokers
from keelman.model.cluster import WorkerCluster
from keelman.model.errors import KeelmanError, Unavailable
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.supervise import deadline
from keelman.state.resources.store import ResourceStore
from keelman.state.topics.reaching import asked_properties

log = get_logger()
ANSWER_SECONDS = 5.0
KEPT_SECONDS = 15.0
"""How long the brokers' answer on partitions is used."""
TOPICS = "topics"


def topics_of(connectors: Iterable[Connector]) -> set[str]:
    """Returns the topics whose partitions limit the number of tasks of a sink with something to read."""
    return {topic for connector in connectors for topic in _read(connector)}


def room(connectors: Collection[Connector], partitions: Mapping[str, int], *, tasks_follow: bool) -> int | None:
    """Returns the number of workers that these connectors can keep busy; None if it is unlimited. `tasks_follow`: one
    more worker brings more tasks. A topic that is not among the `partitions` may have any number of them."""
    total = 0
    for connector in connectors:
        bound = _bound(connector, partitions, tasks_follow=tasks_follow)
        if bound is None:
            return None
        total += bound
    return total if connectors else None


def _bound(connector: Connector, partitions: Mapping[str, int], *, tasks_follow: bool) -> int | None:
    topics = _read(connector)
    is_known = bool(topics) and all(topic in partitions for topic in topics)
    partition_count = sum(partitions[topic] for topic in topics) if is_known else None
    if tasks_follow:
        return partition_count
    return len(connector.tasks) if partition_count is None else min(partition_count, len(connector.tasks))


def _read(connector: Connector) -> set[str]:
    """Returns the topics that a sink names; those that it finds by a pattern limit nothing."""
    if connector.type != CONNECTOR_TYPE_SINK:
        return set()
    return {topic.strip() for topic in connector.config.get(TOPICS, "").split(",") if topic.strip()}


@dataclass(slots=True)
class Room:
    """Queries the brokers about partitions. `connectors`: those of a worker cluster as its workers reported them, None
    while that is unknown."""

    store: ResourceStore
    connectors: Callable[[str], Collection[Connector] | None]
    clock: Callable[[], float] = time.monotonic
    _known: dict[str, tuple[float, int | None]] = field(default_factory=dict)
    """The time and result of the last computation for a worker cluster, by uid."""
    _asked: dict[tuple[str, frozenset[str]], tuple[float, Mapping[str, int] | None]] = field(default_factory=dict)
    """The time of the last query about the topics of a worker cluster, and their partitions; None: no answer."""

    async def of(self, cluster: WorkerCluster, *, tasks_follow: bool) -> int | None:
        """Returns how many workers of the cluster can have something to do; None if that is unknown or unlimited."""
        self._known = {uid: entry for uid, entry in self._known.items() if self.clock() - entry[0] < KEPT_SECONDS}
        if cluster.uid in self._known:
            return self._known[cluster.uid][1]
        connectors = self.connectors(cluster.name)
        if connectors is None:
            return None
        partitions = await self._partitions(cluster, topics_of(connectors))
        bound = room(connectors, partitions or {}, tasks_follow=tasks_follow)
        self._known[cluster.uid] = self.clock(), bound
        if bound is not None and bound <= cluster.wanted_workers:
            log.info("scaling_for_nothing", worker_cluster=cluster.name, workers=cluster.wanted_workers, busy=bound)
        return bound

    async def partitions(self, cluster: WorkerCluster) -> int:
        """Returns the number of partitions that the sinks of a cluster read; 0 if that does not limit their tasks.
        Raises Unavailable while workers or brokers do not report."""
        connectors = self.connectors(cluster.name)
        if not connectors:
            raise Unavailable(f"the workers of {cluster.name!r} have not reported yet")
        partitions = await self._partitions(cluster, topics_of(connectors))
        if partitions is None:
            raise Unavailable(f"the brokers of {cluster.name!r} do not answer about topics")
        return room(connectors, partitions, tasks_follow=True) or 0

    async def _partitions(self, cluster: WorkerCluster, topics: set[str]) -> Mapping[str, int] | None:
        """Returns the brokers' recent or present answer; None: no answer."""
        if not topics:
            return {}
        self._asked = {key: entry for key, entry in self._asked.items() if self.clock() - entry[0] < KEPT_SECONDS}
        key = cluster.uid, frozenset(topics)
        if key not in self._asked:
            self._asked[key] = self.clock(), await self._ask(cluster, topics)
        return self._asked[key][1]

    async def _ask(self, cluster: WorkerCluster, topics: set[str]) -> Mapping[str, int] | None:
        brokers = self.store.snapshot.broker_clusters[cluster.spec.broker_cluster]
        late = Unavailable(f"no answer about topics in {ANSWER_SECONDS:g} s")
        try:
            async with deadline(ANSWER_SECONDS, late), TopicBrokers.open(asked_properties(brokers)) as brokers_client:
                description = await brokers_client.describe(topics)
        except KeelmanError as error:
            log.warning("partitions_unknown", worker_cluster=cluster.name, error=error.message)
            return None
        return {name: len(topic.partitions) for name, topic in description.topics.items()}
