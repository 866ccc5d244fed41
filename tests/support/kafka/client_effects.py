"""The effect of a value of each client property, client by client: the data of a test of docs/client-properties.md.

An effect is a part of the client's construction: of a producer its options and the arguments of its connections, of a
sink's consumer and of an administrator the settings of the client library.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Made = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Effect:
    """`seen` holds the differences from a client without the key, by the client's own names.

    None: the client ignores the key, and a warning names it.
    """

    key: str
    client: str
    value: str
    seen: Made | None


def _rows(client: str, rows: Mapping[str, tuple[str, Made | None]]) -> Iterator[Effect]:
    return (Effect(key, client, value, seen) for key, (value, seen) in rows.items())


def _same(name: str, value: str) -> tuple[str, Made]:
    """The client library's setting has this name, and the value unchanged."""
    return value, {name: value}


_LIBRARY: dict[str, tuple[str, Made | None]] = {
    "bootstrap.servers": ("PLAINTEXT://h:7", {"bootstrap.servers": "h:7"}),
    "client.dns.lookup": _same("client.dns.lookup", "resolve_canonical_bootstrap_servers_only"),
    "client.id": _same("client.id", "mine"),
    "connections.max.idle.ms": _same("connections.max.idle.ms", "7000"),
    "enable.metrics.push": _same("enable.metrics.push", "true"),
    "metadata.max.age.ms": ("7000", {"topic.metadata.refresh.interval.ms": "7000", "metadata.max.age.ms": "21000"}),
    "metadata.recovery.rebootstrap.trigger.ms": _same("metadata.recovery.rebootstrap.trigger.ms", "7000"),
    "metadata.recovery.strategy": _same("metadata.recovery.strategy", "none"),
    "receive.buffer.bytes": _same("socket.receive.buffer.bytes", "7000"),
    "reconnect.backoff.max.ms": ("7000", {"reconnect.backoff.ms": "50", "reconnect.backoff.max.ms": "7000"}),
    "reconnect.backoff.ms": ("70", {"reconnect.backoff.ms": "70", "reconnect.backoff.max.ms": "1000"}),
    "request.timeout.ms": _same("socket.timeout.ms", "7000"),
    "retry.backoff.max.ms": _same("retry.backoff.max.ms", "7000"),
    "retry.backoff.ms": _same("retry.backoff.ms", "70"),
    "send.buffer.bytes": _same("socket.send.buffer.bytes", "7000"),
    "socket.connection.setup.timeout.ms": _same("socket.connection.setup.timeout.ms", "7000"),
    "default.api.timeout.ms": ("7000", None),
}
_PASSED_OVER: dict[str, tuple[str, Made | None]] = {
    key: (value, None)
    for key, value in {
        "config.providers": "file",
        "metric.reporters": "io.example.Reporter",
        "metrics.num.samples": "7",
        "metrics.recording.level": "DEBUG",
        "metrics.sample.window.ms": "7000",
        "sasl.kerberos.kinit.cmd": "/kinit",
        "sasl.kerberos.min.time.before.relogin": "7000",
        "sasl.kerberos.service.name": "kafka",
        "sasl.kerberos.ticket.renew.jitter": "0.7",
        "sasl.kerberos.ticket.renew.window.factor": "0.7",
        "sasl.login.refresh.buffer.seconds": "70",
        "sasl.login.refresh.min.period.seconds": "70",
        "sasl.login.refresh.window.jitter": "0.7",
        "sasl.oauthbearer.assertion.algorithm": "ES256",
        "sasl.oauthbearer.assertion.claim.aud": "me",
        "sasl.oauthbearer.assertion.claim.exp.seconds": "70",
        "sasl.oauthbearer.assertion.claim.iss": "me",
        "sasl.oauthbearer.assertion.claim.jti.include": "true",
        "sasl.oauthbearer.assertion.claim.nbf.seconds": "70",
        "sasl.oauthbearer.assertion.claim.sub": "me",
        "sasl.oauthbearer.assertion.private.key.passphrase": "x",
        "sasl.oauthbearer.assertion.template.file": "/file",
        "sasl.oauthbearer.clock.skew.seconds": "70",
        "sasl.oauthbearer.expected.audience": "me",
        "sasl.oauthbearer.expected.issuer": "me",
        "sasl.oauthbearer.jwks.endpoint.refresh.ms": "7000",
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms": "7000",
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms": "70",
        "sasl.oauthbearer.jwks.endpoint.url": "https://idp.example/keys",
        "sasl.oauthbearer.jwt.validator.class": "io.example.Validator",
        "sasl.oauthbearer.scope.claim.name": "scopes",
        "security.providers": "io.example.Provider",
        "socket.connection.setup.timeout.max.ms": "7000",
        "ssl.keymanager.algorithm": "PKIX",
        "ssl.protocol": "TLSv1.2",
        "ssl.provider": "SunJSSE",
        "ssl.secure.random.implementation": "SHA1PRNG",
        "ssl.trustmanager.algorithm": "PKIX",
    }.items()
}
_PRODUCER: dict[str, tuple[str, Made | None]] = {
    "bootstrap.servers": ("PLAINTEXT://h:7", {"bootstrap_servers": ["h:7"]}),
    "client.id": ("mine", {"client_id": "mine"}),
    "connections.max.idle.ms": ("7000", {"connections_max_idle_ms": 7000}),
    "metadata.max.age.ms": ("7000", {"metadata_max_age_ms": 7000}),
    "batch.size": ("7000", {"batch_bytes": 7000}),
    "buffer.memory": ("2000000", {"most_waiting_bytes": 2_000_000}),
    "compression.type": ("zstd", {"codec": 4}),
    "delivery.timeout.ms": ("7000", {"delivery_timeout_ms": 7000, "request_timeout_ms": 3500}),
    "max.in.flight.requests.per.connection": ("2", {"max_in_flight": 2}),
    "max.request.size": ("2000000", {"request_bytes": 2_000_000}),
    "request.timeout.ms": ("700", {"request_timeout_ms": 700}),
    "transaction.timeout.ms": (
        "7000",
        {"transaction_timeout_ms": 7000, "delivery_timeout_ms": 6000, "request_timeout_ms": 3000},
    ),
    **{
        key: (value, None)
        for key, value in {
            "acks": "1",
            "client.dns.lookup": "resolve_canonical_bootstrap_servers_only",
            "compression.gzip.level": "7",
            "compression.lz4.level": "7",
            "compression.zstd.level": "7",
            "enable.idempotence": "false",
            "enable.metrics.push": "false",
            "interceptor.classes": "io.example.Interceptor",
            "key.serializer": "io.example.Serializer",
            "linger.ms": "7",
            "max.block.ms": "7",
            "metadata.max.idle.ms": "7000",
            "metadata.recovery.rebootstrap.trigger.ms": "7000",
            "metadata.recovery.strategy": "none",
            "partitioner.adaptive.partitioning.enable": "false",
            "partitioner.availability.timeout.ms": "7",
            "receive.buffer.bytes": "7000",
            "reconnect.backoff.max.ms": "7000",
            "reconnect.backoff.ms": "70",
            "retries": "7",
            "retry.backoff.max.ms": "7000",
            "retry.backoff.ms": "70",
            "send.buffer.bytes": "7000",
            "socket.connection.setup.timeout.ms": "7000",
            "transactional.id": "mine",
            "value.serializer": "io.example.Serializer",
        }.items()
    },
}
_CONSUMER: dict[str, tuple[str, Made | None]] = {
    **_LIBRARY,
    "allow.auto.create.topics": _same("allow.auto.create.topics", "true"),
    "auto.offset.reset": _same("auto.offset.reset", "latest"),
    "check.crcs": _same("check.crcs", "true"),
    "client.rack": _same("client.rack", "r1"),
    "fetch.max.bytes": _same("fetch.max.bytes", "7000000"),
    "fetch.max.wait.ms": _same("fetch.wait.max.ms", "70"),
    "fetch.min.bytes": _same("fetch.min.bytes", "7000"),
    "group.id": ("mine", {"group.id": "mine", "group": "mine"}),
    "heartbeat.interval.ms": _same("heartbeat.interval.ms", "700"),
    "isolation.level": _same("isolation.level", "read_committed"),
    "max.partition.fetch.bytes": _same("fetch.message.max.bytes", "7000"),
    "max.poll.interval.ms": ("70000", {"max.poll.interval.ms": 70_000}),
    "max.poll.records": ("7", {"most": 7}),
    "partition.assignment.strategy": (
        "org.apache.kafka.clients.consumer.RoundRobinAssignor",
        {"partition.assignment.strategy": "roundrobin"},
    ),
    "session.timeout.ms": _same("session.timeout.ms", "70000"),
    **{
        key: (value, None)
        for key, value in {
            "auto.commit.interval.ms": "7",
            "enable.auto.commit": "true",
            "exclude.internal.topics": "false",
            "group.instance.id": "mine",
            "group.protocol": "consumer",
            "group.remote.assignor": "uniform",
            "interceptor.classes": "io.example.Interceptor",
            "internal.throw.on.fetch.stable.offset.unsupported": "true",
            "key.deserializer": "io.example.Deserializer",
            "share.acknowledgement.mode": "explicit",
            "share.acquire.mode": "record_limit",
            "value.deserializer": "io.example.Deserializer",
        }.items()
    },
}
_ADMIN: dict[str, tuple[str, Made | None]] = {**_LIBRARY, "retries": ("7", None)}

EFFECTS = (
    *_rows("producer", {**_PASSED_OVER, **_PRODUCER}),
    *_rows("consumer", {**_PASSED_OVER, **_CONSUMER}),
    *_rows("admin", {**_PASSED_OVER, **_ADMIN}),
)
REFUSED = {
    "bootstrap.controllers": "h:7",
    "partitioner.class": "io.example.Partitioner",
    "partitioner.ignore.keys": "true",
    "sasl.client.callback.handler.class": "io.example.Handler",
    "sasl.login.callback.handler.class": "io.example.Handler",
    "sasl.login.class": "io.example.Login",
    "sasl.oauthbearer.assertion.file": "/file",
    "sasl.oauthbearer.assertion.private.key.file": "/file",
    "sasl.oauthbearer.jwt.retriever.class": "io.example.Retriever",
    "ssl.engine.factory.class": "io.example.Engine",
    "transaction.two.phase.commit.enable": "true",
}
"""Keys with a value that no client takes."""
