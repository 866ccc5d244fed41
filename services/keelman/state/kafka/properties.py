"""Checks the properties that users give to clusters, and completes those of a worker. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from keelman.connect.config.providers import NAMES, secret_providers
from keelman.connect.policy.policy import INSTALLATION, OWN
from keelman.kafka.properties.table import ALL, TABLE
from keelman.kafka.security.oauth import ALLOWED_KEY
from keelman.model.cluster import WorkerCluster, WorkerClusterSpec, WorkerEngine
from keelman.model.errors import InvalidArgument, Violation
from keelman.state.kafka.listeners import ADMIN_LISTENERS, OF_PORTS, listeners
from keelman.workers.properties import kafka_connect
from keelman.workers.properties.known_properties import notes, notes_of_kafka_connect
from keelman.workers.properties.refusals import refusals
from keelman.workers.properties.storage_topics import storage_topics_of

JSON_CONVERTER = "org.apache.kafka.connect.json.JsonConverter"
REPLICATION = (
    "config.storage.replication.factor", "offset.storage.replication.factor", "status.storage.replication.factor",
)  # fmt: skip
OFFSET_TOPIC = "offset.storage.topic"

CLIENTS = ("producer", "consumer", "admin")
SECURITY = ("security.", "ssl.", "sasl.")
CONNECTION = frozenset(row.name for row in TABLE if row.clients == ALL)
NOT_SHARED = frozenset(
    ("bootstrap.servers", "client.id", "group.id", "group.instance.id", "transactional.id", "key.serializer",
     "value.serializer", "key.deserializer", "value.deserializer", "enable.auto.commit", "auto.offset.reset")
)  # fmt: skip
"""Properties of the address, the identity of each of several clients, and settings that belong to the connector."""
NO_PROPERTIES: Mapping[str, str] = {}
WORKER_FIXED = {"bootstrap.servers": "it follows from spec.broker_cluster", **OF_PORTS}


def group_of(name: str, properties: Mapping[str, str]) -> str:
    """Returns Connect's group.id of a worker cluster."""
    return properties.get("group.id") or f"keelman-{name}"


def worker_properties(
    cluster: WorkerCluster,
    *,
    bootstrap_servers: str,
    brokers: int,
    listener: str,
    client_properties: Mapping[str, str] = NO_PROPERTIES,
) -> dict[str, str]:
    """Returns Connect's worker properties of one worker, complete, in the order of their names: the user's override
    those of the broker cluster's clients, which override ours."""
    properties = {**for_workers(client_properties, cluster.spec.engine), **cluster.spec.properties}
    return completed(cluster.name, properties, bootstrap_servers=bootstrap_servers, brokers=brokers, listener=listener)


def for_workers(client_properties: Mapping[str, str], engine: WorkerEngine = WorkerEngine.KEELMAN) -> dict[str, str]:
    """Returns client properties of a broker cluster as worker properties. Authentication and trust hold for the worker
    and for its connectors' clients; they are never sent to other brokers. Workers of keelman pass them on, those of
    Apache Kafka Connect need them behind each client's prefix, as all other properties."""
    properties: dict[str, str] = {}
    for key, value in client_properties.items():
        if key.startswith(SECURITY) or key == ALLOWED_KEY:
            properties[key] = value
            if engine is WorkerEngine.KAFKA_CONNECT:
                properties |= {f"{client}.{key}": value for client in CLIENTS}
        elif key not in NOT_SHARED:
            properties |= {f"{client}.{key}": value for client in CLIENTS}
            if key in CONNECTION:
                properties[key] = value
    return properties


def completed(
    name: str, own: Mapping[str, str], *, bootstrap_servers: str, brokers: int, listener: str
) -> dict[str, str]:
    """Returns a user's properties, completed with the other properties of a worker of a cluster of that name."""
    replicas = str(min(3, brokers))
    complete = {
        "group.id": group_of(name, own),
        **storage_topics_of(name, own),
        **dict.fromkeys(REPLICATION, replicas),
        "key.converter": JSON_CONVERTER,
        "value.converter": JSON_CONVERTER,
        **own,
        "bootstrap.servers": bootstrap_servers,
        "listeners": listener,
    }
    return dict(sorted(complete.items()))


def notes_on(engine: WorkerEngine, properties: Mapping[str, str]) -> list[str]:
    """Returns notes on properties that workers of an engine do not use."""
    return notes(properties) if engine is WorkerEngine.KEELMAN else notes_of_kafka_connect(properties)


def check_worker_properties(
    name: str, spec: WorkerClusterSpec, client_properties: Mapping[str, str] = NO_PROPERTIES
) -> None:
    """Raises InvalidArgument with each property that a worker would refuse at its start, or that users may not set.
    `client_properties` are those of its broker cluster, which the user's override."""
    properties = dict(spec.properties)
    violations: list[Violation] = []
    for key, reason in WORKER_FIXED.items():
        value = properties.pop(key, None)
        if value or (value == "" and key != ADMIN_LISTENERS):  # an empty value means that there is no such listener
            violations += InvalidArgument.of(f"spec.properties.{key}", value, f"leave it out: {reason}").violations
    for key in [key for key in properties if key.startswith(INSTALLATION)]:
        legal = f"leave it out: it follows from state.connector_policy; {OWN}{key.removeprefix(INSTALLATION)} is yours"
        violations += InvalidArgument.of(f"spec.properties.{key}", properties.pop(key), legal).violations
    if spec.engine is WorkerEngine.KAFKA_CONNECT:
        for provider in secret_providers(properties):
            key = f"{NAMES}.{provider}.class"
            legal = "a class of Kafka's: only keelman's own workers read secrets of the installation"
            violations += InvalidArgument.of(f"spec.properties.{key}", properties[key], legal).violations
    properties = {**for_workers(client_properties, spec.engine), **properties}
    complete = completed(name, properties, bootstrap_servers="a-node:9092", brokers=1, listener="") | listeners(
        "a-node", 8083, admin_port=spec.admin_port, metrics_port=spec.metrics_port, https=spec.https
    )
    if spec.engine is WorkerEngine.KAFKA_CONNECT:
        wrong = kafka_connect.refusals(complete, https=spec.https)
    else:
        wrong = refusals(complete)
    raise_all(violations + in_field("spec.properties", wrong))


def in_field(field: str, violations: Iterable[Violation]) -> list[Violation]:
    """Returns the violations of properties, under their names in a request."""
    return [
        Violation(name, f"{field}.{text}" if text.startswith(key) else f"{name}: {text}")
        for key, name, text in (
            (violation.field, f"{field}.{violation.field}", violation.description) for violation in violations
        )
    ]


def raise_all(violations: Sequence[Violation]) -> None:
    """Raises InvalidArgument with all violations, if there are any."""
    if violations:
        raise InvalidArgument.of_all(violations)
