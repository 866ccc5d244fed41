"""One glance at clusters for many mirrors that look together: each question is put once, for all of them.

A worker may have thousands of mirrors, each of which looks every few minutes whether there is anything to do. Nearly
all find nothing, so what that costs is what they cost.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from keelman.connectors.mirror_clusters import CLUSTERS, Acls, Cluster, TopicConfig, answered
from keelman.connectors.mirror_config import Side, admin_properties, admin_settings

MOST_SECONDS = 10.0  # for one question: the mirrors of other clusters wait meanwhile, and who got no answer asks alone


class Glance:
    """A cluster as it is when it is first looked at: what was answered once is not asked again. In one thread."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._told: dict[Hashable, Any] = {}
        self._wanted: set[str] = set()
        self._configs: dict[str, Future[TopicConfig]] = {}

    @property
    def client(self) -> AdminClient:
        """The cluster's."""
        return self._cluster.client

    def partition_counts(self, seconds: float) -> Mapping[str, int]:
        """How many partitions each topic has. Raises KafkaException, the same one each time."""
        counts: Mapping[str, int] = self._once("topics", self._cluster.partition_counts, seconds)
        return counts

    def chosen(self, counts: Mapping[str, int], choice: Hashable, choose: Callable[[], Sequence[str]]) -> Sequence[str]:
        """As `Cluster.chosen`."""
        return self._cluster.chosen(counts, choice, choose)

    def want(self, topics: Iterable[str]) -> None:
        """Those whose configuration somebody will ask for: all of them are in the first question."""
        self._wanted.update(topics)

    def configs(self, topics: Sequence[str], seconds: float) -> Mapping[str, TopicConfig]:
        """How these topics are configured, those that are gone left out. Raises KafkaException."""
        missing = self._wanted.union(topics).difference(self._configs)
        if missing:
            self._configs |= self._cluster.described(sorted(missing), min(seconds, MOST_SECONDS))
        return answered(topics, self._configs)

    def acls(self, seconds: float) -> Acls:
        """The topics' ACLs. Raises KafkaException, the same one each time."""
        acls: Acls = self._once("acls", self._cluster.acls, seconds)
        return acls

    def _once(self, question: Hashable, ask: Callable[[float], object], seconds: float) -> Any:
        if question not in self._told:
            try:
                self._told[question] = ask(min(seconds, MOST_SECONDS))
            except KafkaException as error:
                self._told[question] = error
        told = self._told[question]
        if isinstance(told, KafkaException):
            raise KafkaException(*told.args)
        return told


class Glances:
    """The clusters that are looked at in one go. In one thread."""

    def __init__(self) -> None:
        self._known: dict[Hashable, Glance] = {}

    def at(self, config: Mapping[str, str], side: Side) -> Glance:
        """The one that a mirror's configuration names. Raises ConfigValueError, and what `Clusters.at` raises."""
        key = frozenset(admin_properties(config, side).items())
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = Glance(CLUSTERS.at(admin_settings(config, side)))
        return known
