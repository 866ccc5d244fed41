"""Makes start tickets: all that a slot needs to copy for one task."""

from __future__ import annotations

from collections.abc import Mapping

from keelman.api.copy.v1 import ticket_pb2 as wire
from keelman.connect.config.connector_keys import WORKER_SUPPORT
from keelman.connect.plugin import Connector, Direction, load_connector
from keelman.engine.bulk import bulk_of
from keelman.kafka.layout import Work
from keelman.model.errors import NotFound
from keelman.worker.offsets.source_offsets import offset_topics
from keelman.worker.properties.typed import WorkerProperties
from keelman.worker.tasks.third_party import plugin_of

StartTicket = wire.StartTicket

# What of the worker's properties matters to copying.
PREFIXES = (
    "bootstrap.servers",
    "key.converter",
    "value.converter",
    "header.converter",
    "producer.",
    "consumer.",
    "admin.",
    "security.",
    "sasl.",
    "ssl.",
    "offset.",
    "topic.",
    "keelman.",
    "group.id",
    WORKER_SUPPORT,
    "connector.client.config.override.policy",
)


def told_of_worker(raw: Mapping[str, str]) -> dict[str, str]:
    """What of the worker's properties goes to other processes, in tickets and in questions: no more does."""
    return {key: value for key, value in raw.items() if key.startswith(PREFIXES)}


def is_source(connector_config: Mapping[str, str]) -> bool:
    """True for a connector that writes to Kafka. Raises NotFound for an unknown class."""
    return _class_of(connector_config).direction is Direction.SOURCE


def _class_of(config: Mapping[str, str]) -> type[Connector]:
    return load_connector(config.get("connector.class", ""), config.get("connector.plugin.version"))


def is_sink(connector_config: Mapping[str, str]) -> bool:
    """True for a connector that reads from Kafka; False for an unknown class."""
    try:
        return not is_source(connector_config)
    except NotFound:
        return False


def plugin_folder(connector_config: Mapping[str, str]) -> str:
    """The folder of the plugin that the class comes from; empty for one that we ship and for an unknown class."""
    try:
        plugin = plugin_of(_class_of(connector_config))
    except NotFound:
        return ""
    return "" if plugin is None else str(plugin.folder)


def is_exactly_once_source(properties: WorkerProperties, connector_config: Mapping[str, str]) -> bool:
    """True for a source whose tasks write in transactions; False for a sink and for an unknown class."""
    try:
        return properties.exactly_once_sources and is_source(connector_config)
    except NotFound:
        return False


def transactional_id(group_id: str, work: Work) -> str:
    """The id of a source task's producer: the one that Connect uses, so that each side fences the other."""
    return f"{group_id}-{work.connector}-{work.task}"


def grant(
    properties: WorkerProperties,
    *,
    uid: str,
    worker_cluster: str,
    worker: str,
    work: Work,
    generation: int,
    config_offset: int,
    connector_config: Mapping[str, str],
    task_config: Mapping[str, str],
    limits: wire.Limits,
    hidden: Mapping[str, str],
) -> wire.StartTicket:
    """The ticket for one copy run, of resolved configurations; `hidden` is what must not be shown of them.

    Raises NotFound for an unknown class, and what the class raises.
    """
    kind = _class_of(connector_config)
    source = kind.direction is Direction.SOURCE
    offset_topic, worker_offset_topic = offset_topics(properties, connector_config) if source else ("", "")
    exactly = properties.exactly_once_sources if source else kind.supports_exactly_once(connector_config)
    plugin = plugin_of(kind)
    return wire.StartTicket(
        run_uid=uid,
        worker_cluster=worker_cluster,
        worker=worker,
        connector=work.connector,
        task=work.task,
        group_generation=generation,
        config_offset=config_offset,
        direction=wire.COPY_DIRECTION_SOURCE if source else wire.COPY_DIRECTION_SINK,
        connector_config=connector_config,
        task_config=task_config,
        worker_config=told_of_worker(properties.raw),
        delivery=wire.DELIVERY_GUARANTEE_EXACTLY_ONCE if exactly else wire.DELIVERY_GUARANTEE_AT_LEAST_ONCE,
        transactional_id=transactional_id(properties.group_id, work) if source and exactly else "",
        offset_topic=offset_topic,
        worker_offset_topic=worker_offset_topic,
        limits=limits,
        hidden=hidden,
        bulk=_bulk(kind, connector_config) if source and exactly else None,
        plugin=None if plugin is None else wire.Plugin(name=str(plugin), folder=str(plugin.folder)),
    )


def _bulk(kind: type[Connector], config: Mapping[str, str]) -> wire.Bulk | None:
    if kind.data_set(config) is not None:
        return wire.Bulk(slots=kind.data_slots(config) + 1, data=True)
    return bulk_of(config)
