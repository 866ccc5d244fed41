"""Checks a worker's Connect properties once, and returns them typed."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from keelman.connect.config.connector_keys import WORKER_SUPPORT
from keelman.connect.config.copying_keys import (
    COMMIT_INTERVAL,
    JVM_HEAP,
    JVM_OPTIONS,
    PARK_AFTER,
    PLUGIN_RUNS,
    SLOT_MEMORY,
    WORKER_LABELS,
)
from keelman.connect.config.life_keys import life_keys
from keelman.connect.config.plugin_kinds import PluginType
from keelman.connect.config.providers import LEGAL_SCOPE, SCOPE, SECRET_NAMES, scope_of
from keelman.connect.converters.configured import CONVERTERS, converter_for
from keelman.connect.converters.converter import Role
from keelman.connect.errors import ConfigValueError
from keelman.connect.policy.policy import ConnectorPolicy, policies_of
from keelman.kafka.properties.keys import HOST_AND_PORT, Servers
from keelman.kafka.topics import CompactedTopic
from keelman.model.errors import InvalidArgument
from keelman.model.rules.labels import labels_of
from keelman.workers.properties.access import RestAccess, read_access
from keelman.workers.properties.basic_auth import BasicAuth, asks_for_passwords
from keelman.workers.properties.client_checks import check_clients
from keelman.workers.properties.listeners import Listeners, read_listeners
from keelman.workers.properties.plugin_bounds import read_bounds
from keelman.workers.properties.reader import PropertyReader
from keelman.workers.properties.signature_algorithms import check_algorithms

REQUIRED = {
    "bootstrap.servers": "host:port of brokers, comma-separated",
    "key.converter": "a converter class, e.g. org.apache.kafka.connect.json.JsonConverter",
    "value.converter": "a converter class, e.g. org.apache.kafka.connect.json.JsonConverter",
}
REQUIRED_OF_A_GROUP = {
    "group.id": "the name of the worker cluster's Kafka group",
    "config.storage.topic": "a topic name",
    "offset.storage.topic": "a topic name",
    "status.storage.topic": "a topic name",
}
OFFSET_FILE = "offset.storage.file.filename"
REQUIRED_ALONE = {OFFSET_FILE: "the file that keeps the offsets of sources"}
STANDALONE = "standalone"
REBALANCE_DELAY = "scheduled.rebalance.max.delay.ms"
SECRETS_POLICY, ALLOW, REFERENCES = "keelman.secrets.policy", "allow", "references"
SUPPORT = ("disabled", "preparing", "enabled")
TOPIC_CREATION = "topic.creation.enable"
TOPIC_NAME = "a topic name (letters, digits, '.', '_', '-')"
TOPIC_PARTITIONS = {"config": 1, "offset": 25, "status": 5}
MIN_MEMORY_BYTES = 64 << 20  # below that no slot could live
STORAGE_KEYS = ("topic", "partitions", "replication.factor", "cleanup.policy")
_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")


@dataclass(frozen=True, slots=True)
class WorkerProperties:
    """The worker's properties that keelman reads; `raw` has all of them as they are in the file."""

    raw: Mapping[str, str]
    group_id: str
    config_topic: CompactedTopic
    offset_topic: CompactedTopic
    status_topic: CompactedTopic
    offset_file: Path | None
    offset_flush_ms: int
    listeners: Listeners
    access: RestAccess
    basic_auth: BasicAuth | None
    session_ms: int
    heartbeat_ms: int
    rebalance_ms: int
    rebalance_delay_ms: int
    sync_ms: int
    key_ttl_ms: int
    shutdown_ms: int
    exactly_once: str
    cpus: float
    memory_bytes: int
    plugin_path: str
    topic_tracking: bool
    """Whether the worker tracks the topics that a connector uses."""
    topic_reset: bool
    """Whether the tracked topics may be reset on request."""
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def standalone(self) -> bool:
        """True for a worker without a group and without topics of its own."""
        return self.offset_file is not None

    @property
    def fenced(self) -> bool:
        """True when the leader writes the config topic with a transaction that fences its predecessor."""
        return self.exactly_once != "disabled"

    @property
    def exactly_once_sources(self) -> bool:
        """True when sources commit records and offsets together."""
        return self.exactly_once == "enabled"


def read_typed(
    reader: PropertyReader, users: Callable[[], BasicAuth | None] = lambda: None, *, standalone: bool = False
) -> WorkerProperties:
    """Returns the reader's properties, typed; the reader notes errors. `users` reads the file of users, which is on the
    worker's host, and raises InvalidArgument."""
    raw = reader.raw
    reader.choice(SECRETS_POLICY, ALLOW, (ALLOW, REFERENCES))
    reader.take(partial(policies_of, raw), tuple[ConnectorPolicy, ...]())
    if not all(map(SECRET_NAMES.fullmatch, scope_of(raw.get(SCOPE, "")))):
        reader.refuse(SCOPE, raw[SCOPE], LEGAL_SCOPE)
    required = REQUIRED | (REQUIRED_ALONE if standalone else REQUIRED_OF_A_GROUP)
    for key, legal in required.items():
        if not raw.get(key):
            reader.missing(key, legal)
    if servers := raw.get("bootstrap.servers"):
        for server in not_servers(servers):
            reader.refuse("bootstrap.servers", server, HOST_AND_PORT)
    _check_converters(reader)
    reader.flag(TOPIC_CREATION, default=True)  # read in slots
    session = reader.number("session.timeout.ms", 6000, 1)
    heartbeat = reader.number("heartbeat.interval.ms", 1000, 1)
    if heartbeat >= session and reader.knows("heartbeat.interval.ms", "session.timeout.ms"):
        reader.refuse("heartbeat.interval.ms", heartbeat, f"less than session.timeout.ms ({session})")
    support = reader.choice(WORKER_SUPPORT, "enabled", SUPPORT)
    # These are read where they are needed, the connector's value before this one.
    for rule in (
        PARK_AFTER,
        COMMIT_INTERVAL,
        SLOT_MEMORY,
        JVM_HEAP,
        JVM_OPTIONS,
        PLUGIN_RUNS,
        *life_keys().keys.values(),
    ):
        reader.take(partial(rule.among, raw), None)
    read_bounds(reader)
    check_clients(reader)
    if not standalone:
        _check_topics(reader)
    check_algorithms(reader)
    return WorkerProperties(
        raw=dict(raw),
        group_id=STANDALONE if standalone else raw.get("group.id", ""),
        config_topic=_topic(reader, "config", standalone=standalone),
        offset_topic=_topic(reader, "offset", standalone=standalone),
        status_topic=_topic(reader, "status", standalone=standalone),
        offset_file=Path(raw.get(OFFSET_FILE, "")) if standalone else None,
        offset_flush_ms=reader.number("offset.flush.interval.ms", 1000, 1),
        listeners=read_listeners(reader),
        access=read_access(reader),
        basic_auth=reader.take(lambda: users() if asks_for_passwords(raw) else None, None),
        session_ms=session,
        heartbeat_ms=heartbeat,
        rebalance_ms=reader.number("rebalance.timeout.ms", 60_000, 1),
        rebalance_delay_ms=reader.number(REBALANCE_DELAY, 3000, 0),
        sync_ms=reader.number("worker.sync.timeout.ms", 3000, 1),
        key_ttl_ms=reader.number("inter.worker.key.ttl.ms", 3_600_000, 0),
        shutdown_ms=reader.number("task.shutdown.graceful.timeout.ms", 5000, 0),
        exactly_once=support,
        cpus=reader.positive("keelman.cpus"),
        memory_bytes=reader.number("keelman.memory.bytes", 0, MIN_MEMORY_BYTES),
        plugin_path=raw.get("plugin.path", ""),
        topic_tracking=reader.flag("topic.tracking.enable", default=True),
        topic_reset=reader.flag("topic.tracking.allow.reset", default=True),
        labels=reader.take(lambda: labels_of(raw.get(WORKER_LABELS, ""), key=WORKER_LABELS), {}),
    )


def _check_topics(reader: PropertyReader) -> None:
    """Notes each of the three topics whose name is that of one before it."""
    taken: set[str] = set()
    for kind in TOPIC_PARTITIONS:
        topic = reader.raw.get(key := f"{kind}.storage.topic", "")
        if topic in taken:
            reader.refuse(key, topic, "three different topics")
        taken |= {topic} - {""}


def _topic(reader: PropertyReader, kind: str, *, standalone: bool) -> CompactedTopic:
    """Returns one of the three topics. A standalone worker has none: its CompactedTopic only names a table in memory;
    that of offsets has an empty name, by which copy runs know that they write no offsets."""
    if standalone:
        return CompactedTopic("" if kind == "offset" else kind, 1)
    prefix = f"{kind}.storage."
    name = reader.raw.get(f"{prefix}topic", "")
    if name and not is_topic(name):
        reader.refuse(f"{prefix}topic", name, TOPIC_NAME)
    partitions = reader.count(f"{prefix}partitions", TOPIC_PARTITIONS[kind]) if kind != "config" else 1
    factor = reader.count(f"{prefix}replication.factor", 0)
    settings = {
        key.removeprefix(prefix): value
        for key, value in reader.raw.items()
        if key.startswith(prefix) and key.removeprefix(prefix) not in STORAGE_KEYS
    }
    return CompactedTopic(
        name=name,
        partitions=partitions,
        replication_factor=factor or None,
        exact=kind == "config",
        settings=settings,
        setting_key=f"{prefix}topic",
    )


def _check_converters(reader: PropertyReader) -> None:
    roles: tuple[Role, ...] = ("key", "value", "header")
    for role in roles:
        key = f"{role}.converter"
        if (role == "header" or reader.raw.get(key)) and reader.knows(key, under=f"{key}."):
            reader.take(partial(_check_converter, role, reader.raw), None)


def _check_converter(role: Role, raw: Mapping[str, str]) -> None:
    key = f"{role}.converter"
    try:
        converter_for(role, {}, raw)
    except ConfigValueError as error:
        if error.key != key:
            raise
        kind = PluginType.HEADER_CONVERTER if role == "header" else PluginType.CONVERTER
        legal = ", ".join(name for name, converter in CONVERTERS.items() if kind in converter.kinds)
        raise InvalidArgument(f"{error} Those there are: {legal}", metadata={"field": key}) from None


def not_servers(text: str) -> list[str]:
    """Returns the items of a comma-separated list that are not host:port."""
    return [server for server in map(str.strip, text.split(",")) if not _is_server(server)]


def _is_server(text: str) -> bool:
    try:
        return bool(Servers().address("", text))
    except InvalidArgument:
        return False


def is_port(text: str) -> bool:
    """Returns whether this is a number from 1 to 65535."""
    return text.isdecimal() and len(text) < 6 and 0 < int(text) < 65536


def is_topic(text: str) -> bool:
    """Returns whether Kafka takes this as the name of a topic."""
    return bool(_TOPIC.fullmatch(text)) and text not in (".", "..")
