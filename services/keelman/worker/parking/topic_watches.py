"""Has brokers answer when partitions that parked tasks wait for have more: one request per broker, for all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from keelman.connect.records import TopicPartition
from keelman.connect.watches import TopicWatch
from keelman.kafka.fetching.end_offsets import REFRESH_SECONDS, Ends, EndWatch
from keelman.kafka.fetching.isolation import reads_committed
from keelman.kafka.leaders.metadata import Part
from keelman.model.errors import KeelmanError, Unavailable
from keelman.runtime.backoff import Backoff
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.supervise import Siblings

log = get_logger()
AGE = "metadata.max.age.ms"
LEAST_REFRESH_SECONDS = 0.5
CONNECTION = ("bootstrap.servers", "isolation.level", "security.", "sasl.", "ssl.")


@dataclass(slots=True, eq=False)
class WatchedTopics:
    """Partitions under watch; `wake` is called once, when there is more, and then the watch ends."""

    watch: TopicWatch
    wake: Callable[[], None]
    partitions: Mapping[str, int] | None = None  # the partitions of each topic at the first request


class TopicWatches:
    """Runs a loop for each cluster, while anything of it is watched."""

    def __init__(self, *, client_id: str) -> None:
        self._client_id = client_id
        self._clusters: dict[tuple[tuple[str, str], ...], _Cluster] = {}
        self._siblings: Siblings | None = None

    def begin(self, siblings: Siblings) -> None:
        """Sets the scope in which the loops run."""
        self._siblings = siblings

    def __len__(self) -> int:
        return sum(len(cluster.watched) for cluster in self._clusters.values())

    def add(self, topics: WatchedTopics) -> None:
        """Watches them from now on."""
        assert self._siblings is not None
        key = _connection(topics.watch.properties)
        cluster = self._clusters.get(key)
        if cluster is None:
            cluster = self._clusters[key] = _Cluster(dict(key), self._client_id)
            self._siblings.start(self._life(key, cluster), name="topic watches")
        cluster.add(topics)

    def remove(self, topics: WatchedTopics) -> None:
        """Ends their watch; does nothing when they are not watched."""
        cluster = self._clusters.get(_connection(topics.watch.properties))
        if cluster is not None:
            cluster.remove(topics)

    async def _life(self, key: tuple[tuple[str, str], ...], cluster: _Cluster) -> None:
        try:
            await cluster.run()
        finally:
            del self._clusters[key]


class _Cluster:
    """Watches one cluster's partitions."""

    def __init__(self, properties: Mapping[str, str], client_id: str) -> None:
        self._properties = properties
        self._client_id = client_id
        self._committed = reads_committed(properties)
        self._by_part: dict[Part, list[WatchedTopics]] = {}
        self._least: dict[Part, int] = {}
        self._refreshed = 0.0
        self._counts: dict[str, int] = {}  # partitions of each topic, by the metadata of then
        self._new: list[WatchedTopics] = []
        self._ends: EndWatch | None = None
        self._silent = False
        self._backoff = Backoff(first=0.1, most=2.0)
        self.watched: dict[WatchedTopics, None] = {}

    def add(self, topics: WatchedTopics) -> None:
        self.watched[topics] = None
        self._new.append(topics)
        for part, position in topics.watch.positions.items():
            self._by_part.setdefault(part, []).append(topics)
            self._least[part] = min(position, self._least.get(part, position))
        self._look()

    def remove(self, topics: WatchedTopics) -> None:
        if self.watched.pop(topics, topics) is not None:
            return
        for part in topics.watch.positions:
            others = self._by_part[part]
            others.remove(topics)
            if others:
                self._least[part] = min(o.watch.positions[part] for o in others)
            else:
                del self._by_part[part], self._least[part]
        self._look()

    def _look(self) -> None:
        if self._ends is not None:
            self._ends.refresh_seconds = self.refresh_seconds
            self._ends.look()

    @property
    def refresh_seconds(self) -> float:
        """The interval of looks for new partitions: the shortest that any watch wants."""
        ages = (entry.watch.properties.get(AGE, "") for entry in self.watched)
        least = min((int(age) / 1000 for age in ages if age.strip().isdigit()), default=REFRESH_SECONDS)
        return max(LEAST_REFRESH_SECONDS, min(least, REFRESH_SECONDS))

    async def run(self) -> None:
        """Runs until nothing is watched any more. A cluster that does not answer is tried again and again."""
        while self.watched:
            try:
                opened = EndWatch.open(self._properties, self._least, self._on_ends, client_id=self._client_id)
                async with opened as self._ends:
                    self._ends.refresh_seconds = self.refresh_seconds
                    await self._ends.run()
            except Unavailable as error:
                if not self._silent:
                    log.warning("watched_cluster_silent", servers=self._servers, error=error.message)
                self._silent = True
                await asyncio.sleep(self._backoff.next())
            except KeelmanError as error:  # cannot be watched at all: the tasks' own clients tell why
                log.warning("watch_failed", servers=self._servers, error=error.message)
                self._wake(list(self.watched))
            finally:
                self._ends = None

    def _on_ends(self, answer: Ends) -> None:
        if self._silent:
            log.info("watched_cluster_answers_again", servers=self._servers)
        self._silent = False
        self._backoff.reset()
        if self._ends is not None:
            self._judge(answer, self._ends)

    @property
    def _servers(self) -> str:
        return self._properties.get("bootstrap.servers", "")

    def _judge(self, answer: Ends, ends: EndWatch) -> None:
        least = self._least
        moved = [part for part, end in answer.offsets.items() if end != least.get(part, end)]
        woken: dict[WatchedTopics, None] = {}
        for part in moved:
            end = answer.offsets[part]
            for topics in self._by_part[part]:
                position = topics.watch.positions[TopicPartition(*part)]
                # An end before the position is another topic of this name. For readers of committed records alone it
                # may be a transaction that is open there.
                if end > position or (end < position and not self._committed):
                    woken[topics] = None
        for part, problem in answer.gone.items():
            for topics in self._by_part.get(part, ()):
                log.info("watched_partition_gone", topic=part[0], partition=part[1], error=problem)
                woken[topics] = None
        if ends.refreshed != self._refreshed:
            self._refreshed = ends.refreshed
            woken |= dict.fromkeys(self._grown(ends))
        new, self._new = self._new, []
        for topics in new:
            counts = {t: ends.partitions_of(t) for t in {p.topic for p in topics.watch.positions}}
            if all(counts.values()):
                topics.partitions = counts
            elif topics in self.watched:  # it came while the request about the others was under way
                self._new.append(topics)
        self._wake(list(woken))

    def _grown(self, ends: EndWatch) -> Iterable[WatchedTopics]:
        """Returns those that watch a topic which has more partitions than before."""
        counts = {topic: ends.partitions_of(topic) for topic in dict.fromkeys(topic for topic, _ in self._by_part)}
        if counts == self._counts:
            return []
        self._counts = counts
        return [
            topics
            for topics in self.watched
            if topics.partitions and any(counts.get(topic, 0) > count for topic, count in topics.partitions.items())
        ]

    def _wake(self, woken: list[WatchedTopics]) -> None:
        for topics in woken:
            self.remove(topics)
            topics.wake()


def _connection(properties: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Returns the properties that make clients alike: tasks that differ in others share one request."""
    return tuple(sorted((k, v) for k, v in properties.items() if k.startswith(CONNECTION)))
