"""Sorts worker properties: those in use here, those that are ignored and why, and unknown ones.

Connect accepts every key: its clients and plugins may know keys that the worker does not. The keys are those of
DistributedConfig and StandaloneConfig of Kafka 4.3, as their start-up logs list them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from keelman.connect.config.copying_keys import COMMIT_INTERVAL, PARK_AFTER, WORKER_LABELS
from keelman.connect.config.life_keys import life_keys
from keelman.connect.config.near_keys import mistyped, similar
from keelman.connect.config.override_policies import ALLOWED_KEY
from keelman.connect.config.providers import SCOPE
from keelman.connect.policy import policy
from keelman.kafka.properties.keys import ClientKind
from keelman.kafka.properties.settings import ignored as passed_over
from keelman.kafka.properties.settings import ignored_by_workers
from keelman.kafka.properties.table import TABLE
from keelman.model.keys import under
from keelman.workers.properties.listeners import METRICS

USED = frozenset(
    {
        "admin.listeners",
        "bootstrap.servers",
        "config.providers",
        "connector.client.config.override.policy",
        ALLOWED_KEY,
        "exactly.once.source.support",
        "group.id",
        "header.converter",
        "heartbeat.interval.ms",
        "key.converter",
        "listeners",
        "plugin.path",
        "rebalance.timeout.ms",
        "rest.advertised.host.name",
        "rest.advertised.listener",
        "rest.advertised.port",
        "rest.extension.classes",
        "scheduled.rebalance.max.delay.ms",
        "session.timeout.ms",
        "task.shutdown.graceful.timeout.ms",
        "topic.creation.enable",
        "topic.tracking.allow.reset",
        "topic.tracking.enable",
        "value.converter",
        "worker.sync.timeout.ms",
        "offset.flush.interval.ms",
    }
)
PREFIXES = (
    *("access.control.", "response.http.", "inter.worker."),
    *("config.providers.", "config.storage.", "offset.storage.", "status.storage."),
    *("key.converter.", "value.converter.", "header.converter."),
    *("producer.", "consumer.", "admin.", "listeners.https.", "ssl.", "sasl."),
)
_STORAGE = ("topic", "partitions", "replication.factor", "file.filename")
OWN = frozenset(
    {
        *life_keys().keys,
        COMMIT_INTERVAL.name,
        PARK_AFTER.name,
        WORKER_LABELS,
        "keelman.cpus",
        "keelman.jaas.file",
        "keelman.memory.bytes",
        METRICS,
        "keelman.oauthbearer.allowed.urls",
        "keelman.plugin.answer.timeout.ms",
        "keelman.plugin.host.memory.bytes",
        "keelman.plugin.jvm.heap.bytes",
        "keelman.plugin.jvm.options",
        "keelman.plugin.libraries",
        "keelman.plugin.slot.memory.bytes",
        "keelman.plugin.tasks.per.slot",
        *(prefix + rule for prefix in (policy.OWN, policy.INSTALLATION) for rule in policy.RULES),
        "keelman.secrets.policy",
        SCOPE,
    }
)
IGNORED = {
    "connect.protocol": "all workers of a group speak keelman's own protocol",
    "inter.worker.signature.algorithm": "a worker sends no requests to others that need a signature",
    "metadata.recovery.strategy": "clients look for their brokers again by themselves",
    "offset.flush.timeout.ms": "offsets are committed together with their records, so no flush can be late",
    "plugin.discovery": "plugins are found by their packages, without a scan",
    "plugin.version": "it belongs to a connector",
    "worker.unsync.backoff.ms": "a worker that cannot catch up tries on, and has no work meanwhile",
}
IGNORED_PREFIXES = {
    # Connect's before 3.0; files that images and playbooks write still have them.
    "internal.key.converter": "as in Connect since 3.0: its topics are JSON without schemas",
    "internal.value.converter": "as in Connect since 3.0: its topics are JSON without schemas",
    "rest.host.name": "as in Connect since 3.0: set listeners",
    "rest.port": "as in Connect since 3.0: set listeners",
    "metric.": "metrics are served on /metrics",
    "metrics.": "metrics are served on /metrics",
}
IGNORED_ALONE = ("group.id", "config.storage.", "status.storage.", "offset.storage.topic")


_CLIENTS = frozenset(row.name for row in TABLE)
_PREFIXED = frozenset(
    {
        *(f"{topic}.storage.{name}" for topic in ("config", "offset", "status") for name in _STORAGE),
        *(f"{client}.{name}" for client in ("producer", "consumer", "admin") for name in _CLIENTS),
        *(f"{role}.converter.schemas.enable" for role in ("key", "value")),
    }
)
"""Usual keys after some of PREFIXES: brokers, clients and converters may read more."""


def unknown(properties: Mapping[str, str]) -> list[str]:
    """Returns the unknown keys, sorted: those that Java's clients would not know either, and keys after a prefix that
    are a slip away from a usual one."""
    usable = USED | OWN | IGNORED.keys() | _CLIENTS | _PREFIXED
    others = (*PREFIXES, *IGNORED_PREFIXES)
    return sorted(k for k in properties if k not in usable and (not k.startswith(others) or mistyped(k, _PREFIXED)))


def near(key: str) -> str:
    """Returns the key followed by the key that may be meant."""
    likely = mistyped(key, USED | OWN | _PREFIXED) or similar(key, USED | OWN)
    return f"{key} ({likely}?)" if likely else key


def notes(properties: Mapping[str, str]) -> list[str]:
    """Returns notes for users who set these properties for a worker of a group: ignored keys and why, and unknown
    keys."""
    lines = [f"{key}: ignored: {reason}" for key, reason in ignored(properties, standalone=False).items()]
    usable = USED | OWN | _PREFIXED
    for key in unknown(properties):
        meant = mistyped(key, usable) or similar(key, USED | OWN)
        lines.append(f"{key}: unknown, " + (f"did you mean {meant}?" if meant else "nothing reads it"))
    return lines


def notes_of_kafka_connect(properties: Mapping[str, str]) -> list[str]:
    """Returns the notes for workers of Apache Kafka Connect, which read all keys but ours."""
    reason = "ignored: workers of Apache Kafka Connect know no keys of keelman's"
    return [f"{key}: {reason}" for key in sorted(properties) if key.startswith("keelman.")]


def ignored(properties: Mapping[str, str], *, standalone: bool) -> dict[str, str]:
    """Returns the keys that Connect's workers read, or once read, and ours do not, each with the reason."""
    reasons = {}
    for key in sorted(properties):
        reason = IGNORED.get(key) or next((w for p, w in IGNORED_PREFIXES.items() if key.startswith(p)), "")
        if standalone and key.startswith(IGNORED_ALONE):
            reason = "a standalone worker has no group and no topics of its own"
        if reason:
            reasons[key] = reason
    return {**_ignored_by_clients(properties), **reasons}


def _ignored_by_clients(properties: Mapping[str, str]) -> dict[str, str]:
    """Returns the ignored client properties, alone and after a client's prefix."""
    reasons = {k: reason for k, reason in ignored_by_workers(properties).items() if k not in USED}
    for client in get_args(ClientKind):
        own = under(f"{client}.", properties)
        reasons |= {f"{client}.{key}": reason for key, reason in passed_over(own, client).items()}
    return reasons
