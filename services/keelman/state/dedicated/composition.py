"""Makes the worker cluster and the broker cluster of a dedicated connector. Pure."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping

from keelman.model.annotations import Annotations, Origin
from keelman.model.autoscale import Autoscale
from keelman.model.cluster import BrokerCluster, ExternalBrokers, WorkerClusterSpec, WorkerEngine
from keelman.model.connectors.dedicated_connector import DedicatedConnector, DedicatedConnectorSpec
from keelman.model.connectors.worker_configuration import WorkerConfiguration
from keelman.model.log_delivery import LogDelivery
from keelman.state.kafka.properties import OFFSET_TOPIC
from keelman.state.resources.snapshot import Snapshot
from keelman.workers.configurations import DEFAULT_PROPERTIES, ROLES, converters_of_plugins, properties_of, without

KEELMAN = "keelman"
"""The API in the origins of resources that a dedicated connector creates."""
TOPIC_PREFIX = "keelman_connect_"
OWN_TOPICS = {"config.storage.topic": "configs", OFFSET_TOPIC: "offsets", "status.storage.topic": "status"}
FIXED = ("group.id", "config.storage.topic", "status.storage.topic")
"""Worker properties that differ in each incarnation."""


def internal_topics(spec: DedicatedConnectorSpec) -> dict[str, str]:
    """Returns the topics of its workers, by property, unless a property names another."""
    return {key: f"{spec.topic_prefix}{what}_{spec.connector}_{spec.topic_suffix}" for key, what in OWN_TOPICS.items()}


def worker_cluster_spec(
    connector: DedicatedConnector, broker_cluster: str, configured: Mapping[str, str] | None
) -> WorkerClusterSpec:
    """Returns the spec of its worker cluster. `configured`: the properties of its worker configuration, None if it
    names none.

    Each incarnation has another group, as transactional ids contain it; several may share a named offset topic.
    """
    spec = connector.spec
    properties = {**(DEFAULT_PROPERTIES if configured is None else configured), **spec.properties}
    if spec.engine is WorkerEngine.KEELMAN:  # its workers know only their own converters: others are the connector's
        properties = {**DEFAULT_PROPERTIES, **without(properties, converters_of_plugins(properties))}
    return WorkerClusterSpec(
        broker_cluster=broker_cluster,
        count=spec.capacity.count,
        autoscale=_autoscale(spec),
        properties={**internal_topics(spec), **properties, "group.id": f"keelman-{connector.name}-{connector.uid}"},
        node_selector=spec.node_selector,
        shared_offset_topic=bool(properties.get(OFFSET_TOPIC)),
        limits=spec.capacity.worker_limits,
        plugins=spec.plugins,
        libraries=spec.libraries,
        engine=spec.engine,
        log_delivery=_log_delivery(spec),
        annotations=Annotations(origin=Origin(KEELMAN, connector.NOUN, connector.name)),
    )


def _autoscale(spec: DedicatedConnectorSpec) -> Autoscale | None:
    """Returns the autoscaling without tasks: these are the connector's."""
    autoscale = spec.capacity.autoscale
    if autoscale is None:
        return None
    return dataclasses.replace(autoscale, tasks_per_worker=0, max_tasks=0, tasks_up_to_partitions=False)


def tasks_max_of(spec: DedicatedConnectorSpec, workers: int, partitions: int = 0) -> int:
    """Returns `tasks.max` of a connector with so many workers and partitions to read (0: unknown); 0 means that of its
    configuration."""
    autoscale = spec.capacity.autoscale
    return 0 if autoscale is None else autoscale.tasks_max(workers, partitions)


def _log_delivery(spec: DedicatedConnectorSpec) -> LogDelivery | None:
    """Returns the log delivery, in a folder of the connector's name unless it names another."""
    log_delivery = spec.log_delivery
    return None if log_delivery is None else dataclasses.replace(log_delivery, name=log_delivery.name or spec.connector)


def runtime_config(connector: DedicatedConnector, configured: Mapping[str, str] | None) -> dict[str, str]:
    """Returns the configuration for its workers: with the converters of plugins that its workers would have as their
    own, if it has none itself. `configured`: as of `worker_cluster_spec`."""
    spec = connector.spec
    converters = {}
    if spec.engine is WorkerEngine.KEELMAN:
        converters = converters_of_plugins({**(configured or {}), **spec.properties})
    for key in (f"{role}.converter" for role in ROLES):
        if spec.config.get(key, "").strip():
            converters = {
                converter: text
                for converter, text in converters.items()
                if converter != key and not converter.startswith(f"{key}.")
            }
    tasks = {"tasks.max": str(connector.tasks_max)} if connector.tasks_max else {}
    return {**converters, **spec.config, **tasks}


def configured_by(spec: DedicatedConnectorSpec, snapshot: Snapshot) -> dict[str, str] | None:
    """Returns the properties of the worker configuration that a spec names; None if it names none.

    Raises NotFound for an unknown configuration or revision.
    """
    ref = spec.worker_configuration
    if ref is None:
        return None
    named: WorkerConfiguration = snapshot.named(WorkerConfiguration.NOUN, ref.name)
    return properties_of(named.revision(ref.revision).content)


def brokers_of(spec: DedicatedConnectorSpec) -> ExternalBrokers:
    """Returns the spec of the broker cluster to create for a connector's spec."""
    content = ExternalBrokers(spec.bootstrap_servers, spec.client_properties)
    digest = hashlib.sha256(repr(content_of(content)).encode()).hexdigest()
    origin = Origin(KEELMAN, f"{DedicatedConnector.NOUN}-brokers", digest)
    return ExternalBrokers(spec.bootstrap_servers, spec.client_properties, Annotations(origin=origin))


def is_made(cluster: BrokerCluster) -> bool:
    """Returns whether a broker cluster was created for dedicated connectors, to be deleted with the last of them."""
    origin = cluster.spec.annotations.origin
    return origin is not None and (origin.api, origin.scope) == (KEELMAN, f"{DedicatedConnector.NOUN}-brokers")


def content_of(brokers: ExternalBrokers) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    """Returns a value that is equal for two specs of the same brokers."""
    servers = tuple(sorted({part.strip().lower() for part in brokers.bootstrap_servers.split(",") if part.strip()}))
    return servers, tuple(sorted(brokers.connection.items()))
