"""Lists topics for people: the resources, and the brokers' other topics."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

from keelman.cli import kinds
from keelman.cli.client.gateway import Gateway
from keelman.cli.output.lines import TopicLine
from keelman.model.errors import InvalidArgument, KeelmanError, NotFound
from keelman.workers.properties.storage_topics import storage_topics_of

OWN_PREFIXES = ("__", "keelman.events.", "keelman.reports.", "keelman.audit.")
"""The prefixes of the topics of Kafka and of keelman."""
"""Kinds of a worker cluster's storage topics, and the endings of their default names."""


async def find_topics(gateway: Gateway, brokers: str, name: str | None, *, internal: bool = True) -> Sequence[Any]:
    """Returns the topic resources, of one broker cluster if it is named; then, as lines, the other topics of its
    brokers (without a name: of the only broker cluster, or the one called default). `name` selects one topic by the
    name of its resource or, if no resource has it, by its name in Kafka. Without `internal` returns only users' topics.

    If there are resources, unreachable brokers are only a remark on stderr. Raises NotFound and the errors of
    `Gateway.client_properties` and `list_topics`.
    """
    from keelman.kafka.browsing import list_topics  # noqa: PLC0415  (a client of Kafka is long to load)

    if name is not None and (topic := await resource_of(gateway, brokers, name)) is not None:
        return [topic]
    mine = [] if name is not None else list(await gateway.list(kinds.TOPICS, brokers=brokers))
    try:
        cluster = brokers or await gateway.only_broker_cluster()
        others = await list_topics(await gateway.client_properties(cluster), name)
    except KeelmanError as error:
        if not mine or (brokers and isinstance(error, NotFound)):
            raise
        print(f"keelman: what else the brokers have is not shown: {error.message}", file=sys.stderr)
        return mine
    own_names = {resource.spec.topic for resource in mine if resource.spec.broker_cluster == cluster}
    lines = [TopicLine(t.name, t.partitions, t.replication, t.offsets, t.name, cluster) for t in others]
    if name is None and not internal:
        own = own_topics(await gateway.list(kinds.WORKER_CLUSTERS))
        own_names |= {t.name for t in others if t.name in own or t.name.startswith(OWN_PREFIXES)}
    return [*mine, *(line for line in lines if line.name not in own_names)]


def own_topics(clusters: Iterable[Any]) -> set[str]:
    """Returns the storage topics of these worker clusters."""
    return {topic for c in clusters for topic in storage_topics_of(c.name, c.spec.properties).values()}


async def resource_of(gateway: Gateway, brokers: str, name: str) -> Any | None:
    """Returns the topic resource with this name, or the only resource with this topic in Kafka, on the broker cluster
    if it is named; None for none."""
    try:
        resource = await gateway.get(kinds.TOPICS, name)
    except (NotFound, InvalidArgument):  # a topic may have a name that is illegal for a resource
        named = [topic for topic in await gateway.list(kinds.TOPICS, brokers=brokers) if topic.spec.topic == name]
        return await gateway.get(kinds.TOPICS, named[0].name) if len(named) == 1 else None
    return resource if brokers in ("", resource.spec.broker_cluster) else None
