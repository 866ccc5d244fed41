"""Checks properties of Apache Kafka Connect's workers on another host: finds what each such worker refuses at its
start.

Keys, types and bounds are those of DistributedConfig of Kafka 4.3 (tests/recorded/data/worker_facts.json); besides, the
refusals of its group and its storage before it answers. Values that only its host knows count as right: values behind
references, classes, files, certificates.
"""

from __future__ import annotations

from collections.abc import Mapping

from keelman.connect.config.definition import ConfigKey, Type, Validator, at_least, between, one_of, one_of_any_case
from keelman.connect.config.references import references
from keelman.connect.errors import ConfigValueError
from keelman.model.errors import Violation
from keelman.workers.properties.access import read_header_rules
from keelman.workers.properties.listeners import HTTPS_PREFIX
from keelman.workers.properties.reader import PropertyReader
from keelman.workers.properties.signature_algorithms import (
    HMAC_SHA256,
    KEY_ALGORITHM,
    KEY_SIZE,
    MIN_KEY_BITS,
    SIGNATURE,
    VERIFIED,
    accepted_algorithms,
)
from keelman.workers.properties.typed import REQUIRED, REQUIRED_OF_A_GROUP, TOPIC_NAME, is_topic

MAX_INT = 2**31 - 1
SESSION, HEARTBEAT = "session.timeout.ms", "heartbeat.interval.ms"
SESSION_MS, HEARTBEAT_MS = 10_000, 3_000
"""Connect's defaults."""
TOPICS = tuple(key for key in REQUIRED_OF_A_GROUP if key.endswith(".topic"))


def _partitions(name: str, value: int) -> None:
    """Raises ConfigValueError where Connect refuses the number; -1 means the brokers' default."""
    if value != -1 and value < 1:
        raise ConfigValueError(name, value, "Number must be at least 1, or -1 to use the broker's default")


def _keys(kind: Type, *names: str, rule: Validator | None = None) -> list[ConfigKey]:
    return [ConfigKey(name, kind, None, validator=rule) for name in names]


KEYS = (
    *_keys(Type.LONG, "connections.max.idle.ms", "offset.flush.interval.ms", "offset.flush.timeout.ms"),
    *_keys(Type.LONG, "task.shutdown.graceful.timeout.ms"),
    *_keys(
        Type.LONG,
        "metadata.max.age.ms",
        "metadata.recovery.rebootstrap.trigger.ms",
        "metrics.sample.window.ms",
        "reconnect.backoff.max.ms",
        "reconnect.backoff.ms",
        "retry.backoff.max.ms",
        "retry.backoff.ms",
        "socket.connection.setup.timeout.max.ms",
        "socket.connection.setup.timeout.ms",
        rule=at_least(0),
    ),
    *_keys(Type.INT, KEY_SIZE, "rebalance.timeout.ms", "rest.advertised.port", SESSION, HEARTBEAT),
    *_keys(Type.INT, "worker.sync.timeout.ms", "worker.unsync.backoff.ms"),
    *_keys(Type.INT, "request.timeout.ms", rule=at_least(0)),
    *_keys(Type.INT, "receive.buffer.bytes", "send.buffer.bytes", rule=at_least(-1)),
    *_keys(Type.INT, "metrics.num.samples", rule=at_least(1)),
    *_keys(Type.INT, "inter.worker.key.ttl.ms", "scheduled.rebalance.max.delay.ms", rule=between(0, MAX_INT)),
    *_keys(Type.INT, "offset.storage.partitions", "status.storage.partitions", rule=_partitions),
    *_keys(
        Type.SHORT,
        "config.storage.replication.factor",
        "offset.storage.replication.factor",
        "status.storage.replication.factor",
        rule=_partitions,
    ),
    *_keys(Type.BOOLEAN, "sasl.oauthbearer.assertion.claim.jti.include", "sasl.oauthbearer.header.urlencode"),
    *_keys(Type.LONG, "sasl.kerberos.min.time.before.relogin"),
    *_keys(Type.INT, "sasl.login.connect.timeout.ms", "sasl.login.read.timeout.ms"),
    *_keys(Type.LONG, "sasl.login.retry.backoff.max.ms", "sasl.login.retry.backoff.ms"),
    *_keys(Type.SHORT, "sasl.login.refresh.buffer.seconds", rule=between(0, 3600)),
    *_keys(Type.SHORT, "sasl.login.refresh.min.period.seconds", rule=between(0, 900)),
    *_keys(Type.DOUBLE, "sasl.kerberos.ticket.renew.jitter", "sasl.kerberos.ticket.renew.window.factor"),
    *_keys(Type.DOUBLE, "sasl.login.refresh.window.factor", rule=between(0.5, 1.0)),
    *_keys(Type.DOUBLE, "sasl.login.refresh.window.jitter", rule=between(0.0, 0.25)),
    *_keys(Type.INT, "sasl.oauthbearer.assertion.claim.exp.seconds", rule=between(0, 86_400)),
    *_keys(Type.INT, "sasl.oauthbearer.assertion.claim.nbf.seconds", rule=between(0, 3600)),
    *_keys(Type.INT, "sasl.oauthbearer.clock.skew.seconds"),
    *_keys(Type.LONG, "sasl.oauthbearer.jwks.endpoint.refresh.ms"),
    *_keys(Type.LONG, "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms"),
    *_keys(Type.LONG, "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms"),
    *_keys(Type.STRING, "sasl.oauthbearer.assertion.algorithm", rule=one_of_any_case("ES256", "RS256")),
    *_keys(Type.STRING, "ssl.client.auth", rule=one_of("required", "requested", "none")),
    *_keys(Type.BOOLEAN, "topic.creation.enable", "topic.tracking.allow.reset", "topic.tracking.enable"),
    *_keys(
        Type.STRING,
        "client.dns.lookup",
        rule=one_of("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"),
    ),
    *_keys(Type.STRING, "connect.protocol", rule=one_of_any_case("eager", "compatible", "sessioned")),
    *_keys(Type.STRING, "exactly.once.source.support", rule=one_of_any_case("disabled", "preparing", "enabled")),
    *_keys(Type.STRING, "metadata.recovery.strategy", rule=one_of_any_case("none", "rebootstrap")),
    *_keys(Type.STRING, "metrics.recording.level", rule=one_of("INFO", "DEBUG")),
    *_keys(
        Type.STRING,
        "plugin.discovery",
        rule=one_of_any_case("only_scan", "hybrid_warn", "hybrid_fail", "service_load"),
    ),
    *_keys(
        Type.STRING,
        "security.protocol",
        rule=one_of_any_case("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
    ),
)

HMAC_KEY_SIZE = ConfigKey(KEY_SIZE, Type.INT, MIN_KEY_BITS, validator=at_least(MIN_KEY_BITS))


def refusals(properties: Mapping[str, str], *, https: bool) -> tuple[Violation, ...]:
    """Returns the problems of the complete properties of a worker of a group, each under its key. `https`: its
    listeners need a certificate."""
    elsewhere = {key for key, value in properties.items() if references(value)}
    present = {key: value for key, value in properties.items() if key not in elsewhere}
    reader = PropertyReader(present, unknown=elsewhere)
    for key, legal in (REQUIRED | REQUIRED_OF_A_GROUP).items():
        if not present.get(key, "").strip():
            reader.missing(key, legal)
    for known_key in KEYS:
        if known_key.name in present:
            reader.take(lambda key=known_key: key.parse(present), None)  # type: ignore[misc]
    for key in TOPICS:
        if (topic := present.get(key, "").strip()) and not is_topic(topic):
            reader.refuse(key, topic, TOPIC_NAME)
    _check_heartbeat(reader)
    if reader.knows(KEY_ALGORITHM) and present.get(KEY_ALGORITHM, HMAC_SHA256).strip().startswith("Hmac"):
        reader.take(lambda: HMAC_KEY_SIZE.parse(present), None)
    if reader.knows(SIGNATURE, VERIFIED) and (signature := present.get(SIGNATURE, "").strip()):
        accepted = accepted_algorithms(present)
        if signature not in accepted:
            reader.refuse(SIGNATURE, signature, f"one of those in {VERIFIED}: {', '.join(accepted)}")
    read_header_rules(reader)
    if https:
        _check_keystore(reader)
    return tuple(dict.fromkeys(reader.problems))


def _check_heartbeat(reader: PropertyReader) -> None:
    if not reader.knows(SESSION, HEARTBEAT):
        return
    try:
        session, heartbeat = (
            int(reader.raw.get(key, default)) for key, default in ((SESSION, SESSION_MS), (HEARTBEAT, HEARTBEAT_MS))
        )
    except ValueError:
        return  # already noted
    if heartbeat >= session:
        reader.refuse(HEARTBEAT, heartbeat, f"less than session.timeout.ms ({session})")


def _check_keystore(reader: PropertyReader) -> None:
    """Notes that clients could not reach its listeners by https: Java starts them without a certificate."""
    prefix = f"{HTTPS_PREFIX}ssl." if any(key.startswith(f"{HTTPS_PREFIX}ssl.") for key in reader.raw) else "ssl."
    if not reader.knows(under=(f"{HTTPS_PREFIX}ssl.", "ssl.")):
        return
    if not any(reader.raw.get(f"{prefix}keystore.{what}", "").strip() for what in ("location", "key")):
        key = f"{prefix}keystore.location"
        reader.note(key, f"{key} is missing: an https listener needs a key and a certificate")
