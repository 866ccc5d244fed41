"""Queries clusters for all mirrors of a process: through one admin client, with one query for many mirrors.

A worker may have thousands of mirrors of the same two clusters. A separate client for each look, with its threads and
connections, would cost many times as much as the look. Mirrors that look together send each query once, for all of
them: nearly all of these mirrors find nothing, so the queries are most of their cost.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import Future, wait
from typing import Any, Generic, Protocol, TypeVar

from confluent_kafka import KafkaError, KafkaException, admin

from keelman.connectors.mirror.config import Side, admin_properties, admin_settings
from keelman.engine.clients import with_token

T = TypeVar("T")
TopicConfig = Mapping[str, admin.ConfigEntry]
KnownConfigs = Mapping[str, TopicConfig | None]
Acls = Mapping[str, AbstractSet[admin.AclBinding]]  # by the topic that they name, those of no pattern
UNUSED_SECONDS = 120.0
MAX_GATHERED = 100  # topics in one caller's query for configurations: larger answers are not kept for other callers
MAX_KEPT = 16  # mirrors of as many clusters as there are mirrors must not keep a client each

_OF_TOPICS = admin.AclBindingFilter(
    admin.ResourceType.TOPIC,
    None,
    admin.ResourcePatternType.ANY,
    None,
    None,
    admin.AclOperation.ANY,
    admin.AclPermissionType.ANY,
)
MAX_SECONDS = 10.0  # for one query: other clusters' mirrors wait meanwhile; without an answer a mirror queries alone


def answered(topics: Sequence[str], answers: Mapping[str, Future[TopicConfig]]) -> KnownConfigs:
    """Returns the answers for these topics: without deleted topics, None for topics that this client may not describe.
    Raises KafkaException."""
    configs: dict[str, TopicConfig | None] = {}
    for topic in topics:
        try:
            configs[topic] = answers[topic].result()
        except KafkaException as error:
            if error.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                configs[topic] = None
            elif error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise
    return configs


class View(Protocol):
    """A cluster as a mirror looks at it; all but `client` block. Errors are KafkaException."""

    @property
    def client(self) -> admin.AdminClient:
        """The client to change the cluster with."""

    def partition_counts(self, seconds: float) -> Mapping[str, int]:
        """Returns the number of partitions of each topic; the same object while the numbers are the same."""

    def chosen(self, counts: Mapping[str, int], choice: Hashable, choose: Callable[[], Sequence[str]]) -> Sequence[str]:
        """Returns the result of `choose` for these topics: calls it once for each choice until the topics change."""

    def configs(self, topics: Sequence[str], seconds: float) -> KnownConfigs:
        """Returns these topics' configurations: without deleted topics, None where this client may not describe one."""

    def acls(self, seconds: float) -> Acls:
        """Returns the topics' ACLs."""


class SharedQuestion(Generic[T]):
    """A query whose answer is the same for all callers. Safe in threads."""

    def __init__(self, ask: Callable[[float], T]) -> None:
        """`ask` takes its timeout in seconds and raises KafkaException."""
        self._ask = ask
        self._asking = threading.Lock()
        self._began = self._failed = float("-inf")
        self._answer: T
        self._error = KafkaException(KafkaError(KafkaError._TIMED_OUT))

    def answer(self, seconds: float) -> T:
        """Returns the answer to a query that was sent after this call; callers that wait at the same time share it.

        Raises KafkaException, also when another caller's query failed meanwhile: so no caller waits for two queries.
        """
        called = time.monotonic()
        if not self._asking.acquire(timeout=seconds):
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        try:
            if self._failed > called:
                raise KafkaException(*self._error.args)
            if self._began <= called:
                began = time.monotonic()
                self._answer = self._ask(seconds)
                self._began = began
            return self._answer
        except KafkaException as error:
            self._failed, self._error = time.monotonic(), error
            raise
        finally:
            self._asking.release()


class GatheredQuestion(Generic[T]):
    """A query about several names, sent once for all callers that wait at the same time. Safe in threads."""

    def __init__(self, ask: Callable[[Sequence[str], float], Mapping[str, T]]) -> None:
        """`ask` takes names and its timeout in seconds, and raises KafkaException."""
        self._names: set[str] = set()
        self._gathering = threading.Lock()
        self._ask = ask
        self._shared = SharedQuestion(self._ask_for_all)

    def answer(self, names: Sequence[str], seconds: float) -> Mapping[str, T]:
        """Returns the answers for these names, from a query that was sent after this call. Raises KafkaException."""
        with self._gathering:
            self._names.update(names)
        answers = self._shared.answer(seconds)
        missing = [name for name in names if name not in answers]
        # An earlier query than the shared query took the missing names.
        return {**answers, **self._ask(missing, seconds)} if missing else answers

    def _ask_for_all(self, seconds: float) -> Mapping[str, T]:
        with self._gathering:
            names, self._names = self._names, set()
        return self._ask(sorted(names), seconds) if names else {}


class MirrorCluster:
    """A cluster and a way to log in to it. `client` is safe in any thread."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.client = admin.AdminClient(dict(settings))
        self._partitions = SharedQuestion(self._ask_partitions)
        self._configs = GatheredQuestion(self.described)
        self._acls = SharedQuestion(self._ask_acls)
        self._counts: Mapping[str, int] = {}
        self._chosen: tuple[Mapping[str, int], dict[Hashable, Sequence[str]]] = {}, {}

    def partition_counts(self, seconds: float) -> Mapping[str, int]:
        """Returns the current partition counts; the same object while they are the same. Raises KafkaException."""
        return self._partitions.answer(seconds)

    def chosen(self, counts: Mapping[str, int], choice: Hashable, choose: Callable[[], Sequence[str]]) -> Sequence[str]:
        """Returns the result of `choose` for these topics: calls it once for each choice until the topics change."""
        cached = self._chosen
        if cached[0] is not counts:
            cached = self._chosen = counts, {}
        names = cached[1].get(choice)
        if names is None:
            names = cached[1][choice] = choose()
        return names

    def configs(self, topics: Sequence[str], seconds: float) -> KnownConfigs:
        """Returns the current configurations, as `View.configs`. Raises KafkaException."""
        ask = self._configs.answer if len(topics) <= MAX_GATHERED else self.described
        return answered(topics, ask(topics, seconds))

    def acls(self, seconds: float) -> Acls:
        """Returns the topics' current ACLs. Raises KafkaException."""
        return self._acls.answer(seconds)

    def _ask_partitions(self, seconds: float) -> Mapping[str, int]:
        topics = self.client.list_topics(timeout=seconds).topics
        counts = {name: len(topic.partitions) for name, topic in topics.items() if topic.error is None}
        if counts != self._counts:
            self._counts = counts
        return self._counts

    def _ask_acls(self, seconds: float) -> Acls:
        acl_bindings: dict[str, set[admin.AclBinding]] = {}
        for acl in self.client.describe_acls(_OF_TOPICS, request_timeout=seconds).result():
            if acl.resource_pattern_type is admin.ResourcePatternType.LITERAL:
                acl_bindings.setdefault(acl.name, set()).add(acl)
        return acl_bindings

    def described(self, topics: Sequence[str], seconds: float) -> Mapping[str, Future[TopicConfig]]:
        """Queries the topics' configurations separately. Returns the broker's answer for each topic."""
        resources = [admin.ConfigResource(admin.ResourceType.TOPIC, topic) for topic in topics]
        answers = self.client.describe_configs(resources, request_timeout=seconds)
        wait(answers.values())
        return {resource.name: answer for resource, answer in answers.items()}


class Clusters:
    """The recently used clusters, by the settings of their clients. Safe in threads."""

    def __init__(self, *, unused_seconds: float = UNUSED_SECONDS, most: int = MAX_KEPT) -> None:
        """Closes a client that is unused for `unused_seconds`, and the longest unused clients beyond `most`."""
        self._unused = unused_seconds
        self._most = most
        self.forget()
        self._inherited: list[object] = []

    def forget(self) -> None:
        """Begins again with no clusters, and leaves the former ones untouched."""
        self._lock = threading.Lock()
        self._known: dict[tuple[tuple[str, str], ...], tuple[MirrorCluster, float]] = {}
        self._timer: threading.Timer | None = None

    def forked(self) -> None:
        """Sets the parent's clients aside in a forked child: without threads they cannot work or close."""
        self._inherited.append(self._known)
        self.forget()

    def __len__(self) -> int:
        return len(self._known)

    def at(self, settings: Mapping[str, Any]) -> MirrorCluster:
        """Returns the cluster that these librdkafka settings lead to; call it again at each look.

        A cluster with a login by our code (OAUTHBEARER) is never shared between callers. Raises Unauthenticated and
        Unavailable while there is no token for it.
        """
        if any(callable(value) for value in settings.values()):
            return MirrorCluster(with_token(settings))
        key = tuple(sorted((name, str(value)) for name, value in settings.items()))
        with self._lock:
            entry = self._known.pop(key, None)
            cluster = MirrorCluster(settings) if entry is None else entry[0]
            self._known[key] = cluster, time.monotonic()
            surplus = [self._known.pop(old) for old in list(self._known)[: -self._most]]
            self._arm()
        del surplus  # closes them here, where no thread waits for the lock
        return cluster

    def _arm(self) -> None:
        if self._timer is None and self._known:
            self._timer = threading.Timer(self._unused / 2, self._close_unused)
            self._timer.daemon = True
            self._timer.start()

    def _close_unused(self) -> None:
        with self._lock:
            late = time.monotonic() - self._unused
            unused = [self._known.pop(key) for key, (_, used) in list(self._known.items()) if used < late]
            self._timer = None
            self._arm()
        del unused


CLUSTERS = Clusters()
os.register_at_fork(after_in_child=CLUSTERS.forked)


class Glance:
    """A cluster as it was at the first look: each query is sent once and its answer kept. In one thread."""

    def __init__(self, cluster: MirrorCluster) -> None:
        self._cluster = cluster
        self._answers: dict[Hashable, Any] = {}
        self._wanted: set[str] = set()
        self._configs: dict[str, Future[TopicConfig]] = {}

    @property
    def client(self) -> admin.AdminClient:
        """The cluster's client."""
        return self._cluster.client

    def partition_counts(self, seconds: float) -> Mapping[str, int]:
        """Returns the number of partitions of each topic. Raises KafkaException, the same one each time."""
        counts: Mapping[str, int] = self._once("topics", self._cluster.partition_counts, seconds)
        return counts

    def chosen(self, counts: Mapping[str, int], choice: Hashable, choose: Callable[[], Sequence[str]]) -> Sequence[str]:
        """Chooses topics as `Cluster.chosen` does."""
        return self._cluster.chosen(counts, choice, choose)

    def want(self, topics: Iterable[str]) -> None:
        """Announces topics whose configurations `configs` will need: the first query includes all of them."""
        self._wanted.update(topics)

    def configs(self, topics: Sequence[str], seconds: float) -> KnownConfigs:
        """Returns configurations as `View.configs` does. Raises KafkaException."""
        missing = self._wanted.union(topics).difference(self._configs)
        if missing:
            self._configs |= self._cluster.described(sorted(missing), min(seconds, MAX_SECONDS))
        return answered(topics, self._configs)

    def acls(self, seconds: float) -> Acls:
        """Returns the topics' ACLs. Raises KafkaException, the same one each time."""
        acls: Acls = self._once("acls", self._cluster.acls, seconds)
        return acls

    def _once(self, question: Hashable, ask: Callable[[float], object], seconds: float) -> Any:
        if question not in self._answers:
            try:
                self._answers[question] = ask(min(seconds, MAX_SECONDS))
            except KafkaException as error:
                self._answers[question] = error
        answer = self._answers[question]
        if isinstance(answer, KafkaException):
            raise KafkaException(*answer.args)
        return answer


class Glances:
    """The clusters of one look, shared by many mirrors. In one thread."""

    def __init__(self) -> None:
        self._known: dict[Hashable, Glance] = {}

    def at(self, config: Mapping[str, str], side: Side) -> Glance:
        """Returns the cluster that a mirror's configuration names. Raises as `Clusters.at`, and ConfigValueError."""
        key = frozenset(admin_properties(config, side).items())
        glance = self._known.get(key)
        if glance is None:
            glance = self._known[key] = Glance(CLUSTERS.at(admin_settings(config, side)))
        return glance
