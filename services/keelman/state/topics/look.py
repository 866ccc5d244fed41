"""Queries the brokers about topics that are resources, every few seconds and at once after a change; keeps the answers.

Each broker cluster has its own follower, so that an unreachable one delays no other. Reading all topics of a cluster
takes at most a twentieth of the time; topics that just changed are read alone.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence

from keelman.kafka.topic_brokers import TopicBrokers, TopicConfigValue, opened
from keelman.model.cluster import BrokerCluster, ExternalBrokers
from keelman.model.errors import KeelmanError, Unavailable
from keelman.model.topic import Topic
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.reconciler import Reconciler
from keelman.runtime.supervise import Siblings, deadline
from keelman.state.resources.hub import Hub
from keelman.state.resources.snapshot import BROKER_CLUSTER, TOPIC
from keelman.state.resources.store import ResourceStore
from keelman.state.resources.transaction import Change
from keelman.state.topics.broker_views import NOT_SEEN, Seen, seen_of
from keelman.state.topics.reaching import asked_properties

log = get_logger()
LOOK_SECONDS = 3.0
SHARE = 20
"""After a read of all topics, the next waits this many times as long as the read took."""
CONFIG_SECONDS = 30.0
CONFIGS_AT_ONCE = 200
ANSWER_SECONDS = 5.0
WHOLE_SECONDS = 60.0


class TopicLook:
    """Remembers the brokers' answers: `run` it; `seen` answers at once."""

    def __init__(self, store: ResourceStore, commits: Hub) -> None:
        self._store = store
        self._commits = commits
        self._followed: dict[str, _Follower] = {}
        store.listen(self._changed)

    def seen(self, topic: Topic) -> Seen:
        """Returns the last answer of the topic's brokers."""
        follower = self._followed.get(topic.spec.broker_cluster)
        return NOT_SEEN if follower is None else follower.seen(topic)

    def note(self, topic: Topic, seen: Seen) -> None:
        """Stores what an operation has just read of a topic."""
        follower = self._followed.get(topic.spec.broker_cluster)
        if follower is not None:
            follower.found[topic.name] = seen

    async def run(self) -> None:
        """Follows each broker cluster that has topic resources, until cancelled."""
        tasks: dict[str, asyncio.Task[None]] = {}
        async with Siblings() as followers:
            with self._commits.subscribe(TOPIC, BROKER_CLUSTER) as changed:
                while True:
                    changed.clear()
                    clusters = self._store.snapshot.clusters_with_topics()
                    for name in self._followed.keys() - clusters:
                        tasks.pop(name).cancel()
                        del self._followed[name]
                    for name in sorted(clusters - self._followed.keys()):
                        follower = self._followed[name] = _Follower(self._store, name)
                        tasks[name] = followers.start(follower.run(), name=f"topics of {name}")
                    await changed.wait()

    def _changed(self, changes: Sequence[Change]) -> None:
        for change in changes:
            if change.noun == TOPIC:
                topic: Topic = change.new or change.old
                if (follower := self._followed.get(topic.spec.broker_cluster)) is not None:
                    if change.old is None or change.new is None or change.old.uid != change.new.uid:
                        follower.found.pop(change.name, None)  # the answer may be about another topic
                    follower.look_at(change.name)
            elif change.noun == BROKER_CLUSTER and (follower := self._followed.get(change.name)) is not None:
                follower.look_again(change.old, change.new)


class _Follower:
    """Queries one broker cluster."""

    def __init__(self, store: ResourceStore, cluster: str) -> None:
        self._store = store
        self._cluster = cluster
        self._reconciler = Reconciler(f"topics of {cluster}", self._look, LOOK_SECONDS)
        self._brokers: TopicBrokers | None = None
        self._properties: Mapping[str, str] = {}
        self._due: set[str] = set()
        self._whole_at = float("-inf")
        self._configs: dict[str, tuple[float, Mapping[str, TopicConfigValue]]] = {}
        self.found: dict[str, Seen] = {}
        self._problem = NOT_SEEN.problem

    def seen(self, topic: Topic) -> Seen:
        """Returns the brokers' last answer on a topic."""
        if self._problem:
            return Seen(problem=self._problem)
        return self.found.get(topic.name, NOT_SEEN)

    def look_at(self, name: str) -> None:
        """Requests an early read of one topic."""
        self._due.add(name)
        self._configs.pop(name, None)
        self._reconciler.wake()

    def look_again(self, old: BrokerCluster | None, new: BrokerCluster | None) -> None:
        """Requests an early read of all topics if the cluster's address or client properties have changed."""
        if old is None or new is None or _address(old) != _address(new):
            self._whole_at = float("-inf")
            self._reconciler.wake()

    async def run(self) -> None:
        """Runs until cancelled."""
        try:
            await self._reconciler.run()
        finally:
            await self._close()

    async def _look(self) -> None:
        snapshot = self._store.snapshot
        cluster = snapshot.broker_clusters.get(self._cluster)
        topics = {topic.name: topic for topic in snapshot.topics_of(self._cluster)}
        whole = time.monotonic() >= self._whole_at
        due, self._due = self._due, set()
        chosen = topics if whole else {name: topics[name] for name in due if name in topics}
        if cluster is None or not chosen:
            return
        begun = time.monotonic()
        try:
            late = Unavailable(f"the brokers did not answer about topics in {WHOLE_SECONDS:g} s")
            async with deadline(WHOLE_SECONDS, late):
                answers = await self._ask(cluster, chosen)
        except KeelmanError as error:
            await self._failed(error)
            return
        if self._problem and not whole:
            self._reconciler.wake()
        self.found |= answers
        self._problem = ""
        if whole:
            now = time.monotonic()
            self._whole_at = now + max(LOOK_SECONDS * 0.9, SHARE * (now - begun))
            for name in self.found.keys() - topics.keys():
                self.found.pop(name, None)
                self._configs.pop(name, None)

    async def _failed(self, error: KeelmanError) -> None:
        await self._close()
        self._whole_at = float("-inf")
        if self._problem != error.message:
            log.info("topics_not_asked", broker_cluster=self._cluster, error=error.message)
        self._problem = error.message

    async def _ask(self, cluster: BrokerCluster, topics: Mapping[str, Topic]) -> dict[str, Seen]:
        brokers = await self._open(asked_properties(cluster))
        names = {topic.spec.topic for topic in topics.values()}
        described = await brokers.describe(names)
        now = self._store.database.clock()
        offsets = await brokers.offsets(described.topics)
        await self._read_configs(brokers, {n: t for n, t in topics.items() if t.spec.topic in described.topics})
        configs = {name: self._configs[name][1] for name in topics if name in self._configs}
        return {
            name: seen_of(described, topic.spec.topic, offsets, configs.get(name), now)
            for name, topic in topics.items()
        }

    async def _read_configs(self, brokers: TopicBrokers, topics: Mapping[str, Topic]) -> None:
        now = time.monotonic()
        age = {name: self._configs[name][0] if name in self._configs else float("-inf") for name in topics}
        due = sorted((name for name in topics if now - age[name] >= CONFIG_SECONDS), key=lambda name: age[name])
        some = due[:CONFIGS_AT_ONCE]
        if not some:
            return
        configs = await brokers.configs({topics[name].spec.topic for name in some})
        for name in some:
            config = configs.get(topics[name].spec.topic)
            if config is not None:
                self._configs[name] = (now, config)

    async def _open(self, properties: Mapping[str, str]) -> TopicBrokers:
        if self._brokers is not None and properties != self._properties:
            await self._close()
        if self._brokers is None:
            late = Unavailable(f"no broker answers at {properties['bootstrap.servers']} within {ANSWER_SECONDS:g} s")
            async with deadline(ANSWER_SECONDS, late):
                self._brokers = await opened(properties, answer_seconds=ANSWER_SECONDS)
            self._properties = properties
        return self._brokers

    async def _close(self) -> None:
        brokers, self._brokers = self._brokers, None
        if brokers is not None:
            await brokers.close()


def _address(cluster: BrokerCluster) -> tuple[object, ...]:
    spec = cluster.spec
    external = (spec.bootstrap_servers, dict(spec.connection)) if isinstance(spec, ExternalBrokers) else ()
    return cluster.goal, cluster.status.bootstrap_servers, external
