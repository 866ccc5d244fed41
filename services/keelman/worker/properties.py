"""The worker's Connect properties: read from the file, checked once, typed."""

from __future__ import annotations

import math
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import javaproperties

from keelman.kafka.topics import CompactedTopic
from keelman.model.errors import InvalidArgument

REQUIRED = {
    "bootstrap.servers": "host:port of brokers, comma-separated",
    "group.id": "the name of the worker cluster's Kafka group",
    "key.converter": "a converter class, e.g. org.apache.kafka.connect.json.JsonConverter",
    "value.converter": "a converter class, e.g. org.apache.kafka.connect.json.JsonConverter",
    "config.storage.topic": "a topic name",
    "offset.storage.topic": "a topic name",
    "status.storage.topic": "a topic name",
}
SUPPORT = ("disabled", "preparing", "enabled")
TOPIC_PARTITIONS = {"config": 1, "offset": 25, "status": 5}
LEAST_MEMORY_BYTES = 64 << 20  # below that no slot could live
COPY_DEFAULTS = (("keelman.park.after.ms", 10_000, -1), ("keelman.commit.interval.ms", 500, 1))  # read in slots
STORAGE_KEYS = ("topic", "partitions", "replication.factor", "cleanup.policy")


@dataclass(frozen=True, slots=True)
class Listener:
    """Where the REST API listens."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class WorkerProperties:
    """All that keelman reads of a worker's properties; `raw` holds every one as it stands in the file."""

    raw: Mapping[str, str]
    group_id: str
    config_topic: CompactedTopic
    offset_topic: CompactedTopic
    status_topic: CompactedTopic
    listeners: tuple[Listener, ...]
    advertised_host: str
    advertised_port: int
    session_ms: int
    heartbeat_ms: int
    rebalance_ms: int
    rebalance_delay_ms: int
    sync_ms: int
    shutdown_ms: int
    exactly_once: str
    cpus: float
    memory_bytes: int
    plugin_path: str
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def fenced(self) -> bool:
        """True when the leader writes the config topic with a transaction that fences its predecessor."""
        return self.exactly_once != "disabled"

    @property
    def exactly_once_sources(self) -> bool:
        """True when sources commit records and offsets together."""
        return self.exactly_once == "enabled"


def read_properties(file: Path) -> WorkerProperties:
    """Reads and checks the file. Raises InvalidArgument with one message that names key, value and what is legal."""
    try:
        with file.open("rb") as stream:
            raw = {k: v.strip() for k, v in javaproperties.load(stream).items()}
    except OSError as error:
        raise InvalidArgument(f"worker.properties_file: {str(file)!r} cannot be read: {error.strerror}") from None
    except javaproperties.InvalidUEscapeError as error:
        raise InvalidArgument(f"worker.properties_file: {str(file)!r} is not a .properties file: {error}") from None
    return checked(raw)


def checked(raw: Mapping[str, str]) -> WorkerProperties:
    """The typed properties. Raises InvalidArgument."""
    for key, legal in REQUIRED.items():
        if not raw.get(key):
            raise InvalidArgument(f"{key} is missing: it must be set in the worker's properties: {legal}")
    _servers(raw["bootstrap.servers"])
    session = _number(raw, "session.timeout.ms", 6000, 1)
    heartbeat = _number(raw, "heartbeat.interval.ms", 1000, 1)
    if heartbeat >= session:
        raise InvalidArgument.of("heartbeat.interval.ms", heartbeat, f"less than session.timeout.ms ({session})")
    support = raw.get("exactly.once.source.support", "enabled").lower()
    if support not in SUPPORT:
        raise InvalidArgument.of("exactly.once.source.support", support, "one of " + ", ".join(SUPPORT))
    listeners = tuple(_listener(text) for text in raw.get("listeners", "http://:8083").split(",") if text.strip())
    if not listeners:
        raise InvalidArgument.of("listeners", raw["listeners"], "http://host:port, comma-separated")
    for key, default, least in COPY_DEFAULTS:
        _number(raw, key, default, least)
    topics = {raw[f"{kind}.storage.topic"] for kind in TOPIC_PARTITIONS}
    if len(topics) != len(TOPIC_PARTITIONS):
        raise InvalidArgument.of("status.storage.topic", raw["status.storage.topic"], "three different topics")
    return WorkerProperties(
        raw=dict(raw),
        group_id=raw["group.id"],
        config_topic=_topic(raw, "config"),
        offset_topic=_topic(raw, "offset"),
        status_topic=_topic(raw, "status"),
        listeners=listeners,
        advertised_host=raw.get("rest.advertised.host.name") or listeners[0].host or socket.gethostname(),
        advertised_port=_number(raw, "rest.advertised.port", 0, 0),
        session_ms=session,
        heartbeat_ms=heartbeat,
        rebalance_ms=_number(raw, "rebalance.timeout.ms", 60_000, 1),
        rebalance_delay_ms=_number(raw, "scheduled.rebalance.max.delay.ms", 3000, 0),
        sync_ms=_number(raw, "worker.sync.timeout.ms", 3000, 1),
        shutdown_ms=_number(raw, "task.shutdown.graceful.timeout.ms", 5000, 0),
        exactly_once=support,
        cpus=_cpus(raw),
        memory_bytes=_number(raw, "keelman.memory.bytes", 0, LEAST_MEMORY_BYTES),
        plugin_path=raw.get("plugin.path", ""),
    )


def _cpus(raw: Mapping[str, str]) -> float:
    text = raw.get("keelman.cpus", "")
    try:
        value = float(text or 0)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or (text and value <= 0):
        raise InvalidArgument.of("keelman.cpus", text, "a number of processors greater than 0, e.g. 1.5")
    return value


def _number(raw: Mapping[str, str], key: str, default: int, least: int) -> int:
    text = raw.get(key, "")
    if not text:
        return default
    try:
        value = int(text)
    except ValueError:
        raise InvalidArgument.of(key, text, f"a whole number, at least {least}") from None
    if value < least:
        raise InvalidArgument.of(key, text, f"a whole number, at least {least}")
    return value


def _topic(raw: Mapping[str, str], kind: str) -> CompactedTopic:
    prefix = f"{kind}.storage."
    partitions = _number(raw, f"{prefix}partitions", TOPIC_PARTITIONS[kind], 1) if kind != "config" else 1
    factor = _number(raw, f"{prefix}replication.factor", 0, -1)
    settings = {
        key.removeprefix(prefix): value
        for key, value in raw.items()
        if key.startswith(prefix) and key.removeprefix(prefix) not in STORAGE_KEYS
    }
    return CompactedTopic(
        name=raw[f"{prefix}topic"],
        partitions=partitions,
        replication_factor=factor or None,
        exact=kind == "config",
        settings=settings,
        setting_key=f"{prefix}topic",
    )


def _servers(text: str) -> None:
    for server in text.split(","):
        host, _, port = server.strip().rpartition(":")
        if not host or not port.isdigit():
            raise InvalidArgument.of("bootstrap.servers", server.strip(), "host:port, comma-separated")


def _listener(text: str) -> Listener:
    url = text.strip()
    try:
        parts = urlsplit(url.lower())
        port = parts.port
    except ValueError:
        port = None
    if port is None or parts.scheme != "http" or parts.path not in ("", "/"):
        raise InvalidArgument.of("listeners", url, "http://host:port, comma-separated")
    return Listener(parts.hostname or "", port)
