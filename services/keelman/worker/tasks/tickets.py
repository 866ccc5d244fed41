"""Makes start tickets: all that a slot needs to copy for one task."""

from __future__ import annotations

from collections.abc import Mapping

from keelman.api.copy.v1 import ticket_pb2 as wire
from keelman.connect.config.copying_keys import PLUGIN_RUNS, machine_keys
from keelman.connect.plugin import Connector, Direction
from keelman.connectors.plugins.plugin_path import InstalledPlugin
from keelman.engine.source.split import bulk_of
from keelman.model.errors import NotFound
from keelman.model.work import Work
from keelman.worker.asking.third_party import plugin_for, plugin_of
from keelman.worker.connector_facts import class_of, shared_worker_properties, transactional_id
from keelman.worker.offsets.source_offsets import offset_topics
from keelman.workers.properties.typed import WorkerProperties

StartTicket = wire.StartTicket


def plugin_folder(connector_config: Mapping[str, str]) -> str:
    """Returns the folder of the plugin that slots need, for the class or for Java's named beside it; empty without one,
    and for an unknown class."""
    try:
        plugin = plugin_for(class_of(connector_config), connector_config)
    except NotFound:
        return ""
    return "" if plugin is None else str(plugin.folder)


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
    """Returns the ticket for one copy run, of resolved configurations; `hidden` are the values that must not be shown.

    Raises NotFound for an unknown class, and the class's own errors.
    """
    kind = class_of(connector_config)
    source = kind.direction is Direction.SOURCE
    offset_topic, worker_offset_topic = offset_topics(properties, connector_config) if source else ("", "")
    exactly = properties.exactly_once_sources if source else kind.supports_exactly_once(connector_config)
    plugin = plugin_for(kind, connector_config)
    with_java = plugin is not None and plugin_of(kind) is None
    return wire.StartTicket(
        run_uid=uid,
        worker_cluster=worker_cluster,
        worker_id=worker,
        connector=work.connector,
        task=work.task,
        group_generation=generation,
        config_offset=config_offset,
        direction=wire.COPY_DIRECTION_SOURCE if source else wire.COPY_DIRECTION_SINK,
        connector_config=connector_config,
        task_config=task_config,
        worker_config=shared_worker_properties(properties.raw),
        delivery=wire.DELIVERY_GUARANTEE_EXACTLY_ONCE if exactly else wire.DELIVERY_GUARANTEE_AT_LEAST_ONCE,
        transactional_id=transactional_id(properties.group_id, work) if source and exactly else "",
        offset_topic=offset_topic,
        worker_offset_topic=worker_offset_topic,
        limits=limits,
        hidden=hidden,
        bulk=_bulk(kind, connector_config) if source and exactly and not with_java else None,
        plugin=None if plugin is None else _plugin(plugin, properties, connector_config),
    )


def _plugin(plugin: InstalledPlugin, properties: WorkerProperties, config: Mapping[str, str]) -> wire.Plugin:
    """Returns the plugin's entry in a ticket. Tasks of a Java plugin may share a virtual machine; Python code is alone
    in its process."""
    java = plugin.java is not None
    runs = PLUGIN_RUNS.among(properties.raw) if java else 0
    own = [f"{key}={config[key].strip()}" for key in machine_keys().keys if config.get(key, "").strip()]
    return wire.Plugin(
        name=str(plugin),
        folder=str(plugin.folder),
        runs_per_slot=runs,
        java=java,
        machine=" ".join(own) if java else "",
    )


def _bulk(kind: type[Connector], config: Mapping[str, str]) -> wire.Bulk | None:
    if kind.data_set(config) is not None:
        return wire.Bulk(slots=kind.data_slots(config) + 1, data=True)
    return bulk_of(config)
