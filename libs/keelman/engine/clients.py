"""Client properties: from the names of Java's clients, in worker and connector configurations, to librdkafka's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from keelman.connect.errors import ConfigValueError
from keelman.kafka.clients import jaas_credentials

# Names that mean the same in both clients; any other Java property is ignored, as Java ignores unknown ones.
_COMMON = frozenset(
    {
        "bootstrap.servers",
        "client.id",
        "client.rack",
        "enable.metrics.push",
        "metadata.max.age.ms",
        "reconnect.backoff.ms",
        "reconnect.backoff.max.ms",
        "retry.backoff.ms",
        "connections.max.idle.ms",
        "security.protocol",
        "sasl.mechanism",
        "sasl.kerberos.service.name",
        "ssl.cipher.suites",
        "ssl.endpoint.identification.algorithm",
        "ssl.key.password",
        "ssl.keystore.location",
        "ssl.keystore.password",
    }
)
_PRODUCER = _COMMON | {
    "acks",
    "batch.size",
    "compression.type",
    "delivery.timeout.ms",
    "enable.idempotence",
    "linger.ms",
    "max.in.flight.requests.per.connection",
    "request.timeout.ms",
    "retries",
    "transaction.timeout.ms",
    "transactional.id",
}
_CONSUMER = _COMMON | {
    "auto.offset.reset",
    "check.crcs",
    "fetch.max.bytes",
    "fetch.min.bytes",
    "heartbeat.interval.ms",
    "isolation.level",
    "max.poll.interval.ms",
    "partition.assignment.strategy",
    "session.timeout.ms",
}
_RENAMED = {
    "max.request.size": "message.max.bytes",
    "max.partition.fetch.bytes": "max.partition.fetch.bytes",
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
}
_ASSIGNORS = {
    "RangeAssignor": "range",
    "RoundRobinAssignor": "roundrobin",
    "CooperativeStickyAssignor": "cooperative-sticky",
    "StickyAssignor": "range",
}


def given_to_producers(worker: Mapping[str, str], connector: Mapping[str, str]) -> dict[str, str]:
    """Java's properties of a producer: the worker's, its `producer.`, then the connector's `producer.override.`."""
    common = {k: v for k, v in worker.items() if k in _COMMON or k.startswith(("ssl.", "sasl."))}
    return {**common, **_under("producer.", worker), **_under("producer.override.", connector)}


def producer_properties(worker: Mapping[str, str], connector: Mapping[str, str]) -> dict[str, Any]:
    """For producers: the worker's common keys, its `producer.`, then the connector's `producer.override.`."""
    return _merged(worker, "producer.", connector, "producer.override.", _PRODUCER)


def consumer_properties(worker: Mapping[str, str], connector: Mapping[str, str]) -> dict[str, Any]:
    """For consumers: the worker's common keys, its `consumer.`, then the connector's `consumer.override.`."""
    return _merged(worker, "consumer.", connector, "consumer.override.", _CONSUMER)


def admin_properties(worker: Mapping[str, str], connector: Mapping[str, str]) -> dict[str, Any]:
    """For admin clients, the same way."""
    return _merged(worker, "admin.", connector, "admin.override.", _COMMON)


def _merged(
    worker: Mapping[str, str], prefix: str, connector: Mapping[str, str], override: str, known: frozenset[str]
) -> dict[str, Any]:
    common = {k: v for k, v in worker.items() if k in _COMMON or k.startswith(("ssl.", "sasl."))}
    given = {**common, **_under(prefix, worker), **_under(override, connector)}
    made: dict[str, Any] = {}
    for key, value in given.items():
        if key in known:
            made[key] = value
        elif key in _RENAMED:
            made[_RENAMED[key]] = value
    if "partition.assignment.strategy" in made:
        names = [part.strip().rpartition(".")[2] for part in made["partition.assignment.strategy"].split(",")]
        made["partition.assignment.strategy"] = ",".join(dict.fromkeys(_ASSIGNORS.get(n, n) for n in names))
    if "sasl.jaas.config" in given:
        made |= {f"sasl.{name}": value for name, value in jaas_credentials(given["sasl.jaas.config"]).items()}
    if "ssl.truststore.location" in given:
        if given.get("ssl.truststore.type", "JKS").upper() != "PEM":
            whole = "Invalid value for configuration ssl.truststore.type: only PEM trust stores can be read"
            raise ConfigValueError("ssl.truststore.type", given.get("ssl.truststore.type"), whole=whole)
        made["ssl.ca.location"] = given["ssl.truststore.location"]
    return made


def _under(prefix: str, config: Mapping[str, str]) -> dict[str, str]:
    return {k[len(prefix) :]: v for k, v in config.items() if k.startswith(prefix)}


def commit_interval_seconds(worker: Mapping[str, str], connector: Mapping[str, str]) -> float:
    """`keelman.commit.interval.ms` of the connector, else of the worker, else 500 ms. Raises ConfigValueError."""
    key = "keelman.commit.interval.ms"
    text = connector.get(key, worker.get(key, "500")).strip()
    if not text.isdigit() or not 1 <= int(text) <= 600_000:
        raise ConfigValueError(key, text, "Value must be a number of milliseconds between 1 and 600000")
    return int(text) / 1000
