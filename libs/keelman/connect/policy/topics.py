"""The topics that no connector reads or writes, whatever its policy: Kafka's, keelman's and workers' own. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from keelman.connect.policy.policy import matches, policies_of

INTERNAL = (
    "__*",
    "keelman.*",
    "keelman_connect_*",
    *(f"{before}connect-{kind}" for before in ("", "*.") for kind in ("configs", "offsets", "status")),
)
"""Those of Kafka's brokers and of keelman, and the usual names of workers' storage topics."""
OPEN = ("__debezium*",)
"""Topics of connectors that have such a name by default."""
OFFSET_TOPIC = "offset.storage.topic"
STORAGE = ("config.storage.topic", OFFSET_TOPIC, "status.storage.topic")


class InternalTopics:
    """Knows a worker's: those above, the worker's own storage topics, and those that its policies deny."""

    def __init__(self, worker: Mapping[str, str]) -> None:
        """`worker`: its properties. Raises InvalidArgument for an illegal policy."""
        own = (worker.get(key, "").strip() for key in STORAGE)
        denied = (pattern for policy in policies_of(worker) for pattern in policy.topics_denied)
        self._own = frozenset(topic for topic in own if topic)
        self._denied = tuple(denied)

    def has(self, topic: str) -> bool:
        """Returns whether no connector may read or write the topic."""
        if topic in self._own or matches(self._denied, topic):
            return True
        return matches(INTERNAL, topic) and not matches(OPEN, topic)

    def without(self, topics: Iterable[str]) -> list[str]:
        """Returns the others of these topics, in their order."""
        return [topic for topic in topics if not self.has(topic)]

    @staticmethod
    def why(topic: str) -> str:
        """Returns the reason why a connector may not use one of them, with what is legal."""
        return (
            f"topic {topic} is internal: connectors neither read nor write topics of Kafka, of keelman and of workers' "
            "storage, whatever their policy; name another topic"
        )
