"""Checks the properties that users give to clusters, and completes those of a worker. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from keelman.connect.config.providers import NAMES, secret_providers
from keelman.kafka.properties.table import ALL, TABLE
from keelman.kafka.security.oauth import ALLOWED_KEY
from keelman.model.cluster import WorkerCluster, WorkerClusterSpec, WorkerEngine
from keelman.model.errors import InvalidArgument, Violation
from keelman.state.clusters.listeners import ADMIN_LISTENERS, OF_PORTS, listeners
from keelman.workers.properties import kafka_connect
from keelman.workers.properties.known_properties import notes, notes_of_kafka_connect
from keelman.workers.properties.refusals import refusals

JSON_CONVERTER = "org.apache.kafka.connect.json.JsonConverter"
TOPICS = ("config.storage.topic", "offset.storage.topic", "status.storage.topic")
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
"""Where to, who of several clients one is, and what is the connector's to say."""
NO_PROPERTIES: Mapping[str, str] = {}
WORKER_FIXED = {"bootstrap.servers": "it follows from spec.broker_cluster", **OF_PORTS}


def group_of(name: str, properties: Mapping[str, str]) -> str:
    """Connect's group.id of a worker cluster."""
    return properties.get("group.id") or f"keelman-{name}"


def topics_of(name: str, properties: Mapping[str, str]) -> dict[str, str]:
    """Topic by property of a worker cluster's three Connect topics."""
    defaults = zip(TOPICS, ("configs", "offsets", "status"), strict=True)
    return {key: properties.get(key) or f"{name}.connect-{what}" for key, what in defaults}


def worker_properties(
    cluster: WorkerCluster,
    *,
    bootstrap_servers: str,
    brokers: int,
    listener: str,
    client_properties: Mapping[str, str] = NO_PROPERTIES,
) -> dict[str, str]:
    """Connect's worker properties of one worker, complete, in the order of their names: ours, those of the broker
    cluster's clients over ours, the user's over all."""
    given = {**for_workers(client_properties), **cluster.spec.properties}
    return completed(cluster.name, given, bootstrap_servers=bootstrap_servers, brokers=brokers, listener=listener)


def for_workers(client_properties: Mapping[str, str]) -> dict[str, str]:
    """Client properties of a broker cluster as worker properties. Who one is to the brokers, and how one trusts them,
    holds for the worker and, as it passes that on, for its connectors' clients; to other brokers it is never sent. All
    else is each client's own, under its prefix."""
    found: dict[str, str] = {}
    for key, value in client_properties.items():
        if key.startswith(SECURITY) or key == ALLOWED_KEY:
            found[key] = value
        elif key not in NOT_SHARED:
            found |= {f"{client}.{key}": value for client in CLIENTS}
            if key in CONNECTION:
                found[key] = value
    return found


def completed(
    name: str, given: Mapping[str, str], *, bootstrap_servers: str, brokers: int, listener: str
) -> dict[str, str]:
    """What a user gives, with all that a worker of a cluster of that name has besides."""
    replicas = str(min(3, brokers))
    complete = {
        "group.id": group_of(name, given),
        **topics_of(name, given),
        **dict.fromkeys(REPLICATION, replicas),
        "key.converter": JSON_CONVERTER,
        "value.converter": JSON_CONVERTER,
        **given,
        "bootstrap.servers": bootstrap_servers,
        "listeners": listener,
    }
    return dict(sorted(complete.items()))


def notes_on(engine: WorkerEngine, given: Mapping[str, str]) -> list[str]:
    """What workers of an engine make of properties that they do not use, for whoever sets them."""
    return notes(given) if engine is WorkerEngine.KEELMAN else notes_of_kafka_connect(given)


def check_worker_properties(
    name: str, spec: WorkerClusterSpec, client_properties: Mapping[str, str] = NO_PROPERTIES
) -> None:
    """Raises InvalidArgument with each property that a worker would refuse at its start, or that is not the user's.

    `client_properties` are those of its broker cluster, over which the user's go."""
    given = dict(spec.properties)
    found: list[Violation] = []
    for key, why in WORKER_FIXED.items():
        value = given.pop(key, None)
        if value or (value == "" and key != ADMIN_LISTENERS):  # an empty one says that there is no such listener
            found += InvalidArgument.of(f"spec.properties.{key}", value, f"leave it out: {why}").violations
    if spec.engine is WorkerEngine.KAFKA_CONNECT:
        for provider in secret_providers(given):
            key = f"{NAMES}.{provider}.class"
            legal = "a class of Kafka's: only keelman's own workers read secrets of the installation"
            found += InvalidArgument.of(f"spec.properties.{key}", given[key], legal).violations
    given = {**for_workers(client_properties), **given}
    complete = completed(name, given, bootstrap_servers="a-node:9092", brokers=1, listener="") | listeners(
        "a-node", 8083, admin_port=spec.admin_port, metrics_port=spec.metrics_port, https=spec.https
    )
    if spec.engine is WorkerEngine.KAFKA_CONNECT:
        wrong = kafka_connect.refusals(complete, https=spec.https)
    else:
        wrong = refusals(complete)
    raise_all(found + in_field("spec.properties", wrong))


def in_field(field: str, found: Iterable[Violation]) -> list[Violation]:
    """What is wrong with properties, under the names that these have in a request."""
    return [
        Violation(name, f"{field}.{text}" if text.startswith(key) else f"{name}: {text}")
        for key, name, text in ((one.field, f"{field}.{one.field}", one.description) for one in found)
    ]


def raise_all(found: Sequence[Violation]) -> None:
    """Raises InvalidArgument with everything that is wrong, if anything is."""
    if found:
        raise InvalidArgument.of_all(found)
