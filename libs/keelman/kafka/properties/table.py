"""A table of all properties of Java's producers, consumers and admin clients, and their use here, as of Kafka 4.3.

The single table for all code that creates clients; docs/client-properties.md is generated from it. A key that is not
here is unknown to Java's clients too, which only warn about it. Types and defaults, used only by `validate`, are in
keelman.connect.config.client_definitions, which may not import this package. For a new version of Kafka:
tests/recorded/data/record_clients.py, which checks that both have the same keys.
"""

from __future__ import annotations

from collections.abc import Iterator

from keelman.kafka.properties.keys import Choice, Classes, ClientKey, Number, Servers, Text, Value
from keelman.kafka.properties.security_table import SECURITY

ALL = "pca"
MOST = 2**31 - 1
DAY_MS = 86_400_000
_ANY = Text()
_FLAG = Choice({"true": "true", "false": "false"})
ASSIGNMENT, COOPERATIVE = "partition.assignment.strategy", "cooperative-sticky"
ASSIGNORS = Classes(
    "org.apache.kafka.clients.consumer",
    {
        "RangeAssignor": "range",
        "RoundRobinAssignor": "roundrobin",
        "StickyAssignor": "range",
        "CooperativeStickyAssignor": COOPERATIVE,
    },
)
"""The assignors of a consumer group; librdkafka has no `sticky`, which Java's own consumer has."""
_BYTES = "payloads are bytes here, which converters make and read"
_METRICS = "metrics are served on /metrics"
_NO_JAVA = "no Java code runs here"
_NOT_OURS = "for sinks' consumers and admin clients; keelman's own producers ignore it"


def _used(
    name: str, clients: str, librdkafka: str = "", value: Value = _ANY, *, says: str = "", aiokafka: str = ""
) -> ClientKey:
    return ClientKey(name, clients, "used", says, librdkafka, value, aiokafka)


def _of_librdkafka(name: str, value: Value, librdkafka: str = "", *, aiokafka: str = "") -> ClientKey:
    return ClientKey(name, ALL, "used", _NOT_OURS, librdkafka or name, value, aiokafka, ("",), not_by="p")


def _ignored(name: str, clients: str, reason: str, *accepted: str, value: Value = _ANY) -> ClientKey:
    return ClientKey(name, clients, "ignored", reason, value=value, accepted=("", *accepted))


def _refused(name: str, clients: str, reason: str, *accepted: str) -> ClientKey:
    return ClientKey(name, clients, "refused", reason, accepted=("", *accepted))


_COMMON = (
    _used("bootstrap.servers", ALL, "bootstrap.servers", Servers(), aiokafka="bootstrap_servers"),
    _refused("bootstrap.controllers", "a", "clients talk to brokers here: set bootstrap.servers"),
    _used("client.id", ALL, "client.id", says="name of the client at the brokers; own clients of a worker keep theirs"),
    ClientKey(
        "client.dns.lookup",
        ALL,
        "used",
        "for sinks' consumers and admin clients; keelman's own producers try all addresses of a name",
        "client.dns.lookup",
        Choice({name: name for name in ("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only")}),
        accepted=("", "use_all_dns_ips"),
        not_by="p",
    ),
    _used(
        "connections.max.idle.ms",
        ALL,
        "connections.max.idle.ms",
        Number(0, MOST, like={-1: 0}),
        aiokafka="connections_max_idle_ms",
    ),
    _used(
        "metadata.max.age.ms",
        ALL,
        "topic.metadata.refresh.interval.ms",
        Number(10, 3_600_000),
        says="how often a sink looks for new topics and partitions; 5 s if not set",
        aiokafka="metadata_max_age_ms",
    ),
    _of_librdkafka(
        "metadata.recovery.strategy",
        Choice({"none": "none", "rebootstrap": "rebootstrap"}),
    ),
    _of_librdkafka("metadata.recovery.rebootstrap.trigger.ms", Number(0, MOST)),
    _of_librdkafka("reconnect.backoff.ms", Number(0, 3_600_000)),
    _of_librdkafka("reconnect.backoff.max.ms", Number(0, 3_600_000)),
    _of_librdkafka("retry.backoff.ms", Number(1, 300_000), aiokafka="retry_backoff_ms"),
    _of_librdkafka("retry.backoff.max.ms", Number(1, 300_000)),
    _of_librdkafka("send.buffer.bytes", Number(0, 100_000_000), "socket.send.buffer.bytes"),
    _of_librdkafka("receive.buffer.bytes", Number(0, 100_000_000), "socket.receive.buffer.bytes"),
    _of_librdkafka("socket.connection.setup.timeout.ms", Number(1_000, MOST)),
    _ignored("socket.connection.setup.timeout.max.ms", ALL, "each try to connect has the same time"),
    _of_librdkafka("enable.metrics.push", _FLAG),
    _ignored("default.api.timeout.ms", "ca", "each request has its own deadline"),
    _ignored("config.providers", ALL, "the worker's own config.providers serve its clients too"),
    _ignored("metric.reporters", ALL, _METRICS),
    _ignored("metrics.num.samples", ALL, _METRICS),
    _ignored("metrics.recording.level", ALL, _METRICS),
    _ignored("metrics.sample.window.ms", ALL, _METRICS),
    _ignored("interceptor.classes", "pc", _NO_JAVA),
)
_PRODUCER = (
    _ignored(
        "acks",
        "p",
        "data always waits for all replicas in sync",
        "all",
        "-1",
        value=Choice({n: n for n in ("all", "-1", "0", "1")}),
    ),
    _used("batch.size", "p", "batch.size", Number(1, MOST), says="bytes in a record batch; 1,000,000 when unset"),
    _used(
        "buffer.memory",
        "p",
        "queue.buffering.max.kbytes",
        Number(1, MOST, per=1024),
        says="bytes on their way to the brokers, 12 MiB at most; less on slow targets",
    ),
    _used(
        "compression.type",
        "p",
        "compression.type",
        Choice({n: n for n in ("none", "gzip", "snappy", "lz4", "zstd")}),
        says="of record batches",
    ),
    _ignored("compression.gzip.level", "p", "each codec's usual level is used"),
    _ignored("compression.lz4.level", "p", "each codec's usual level is used"),
    _ignored("compression.zstd.level", "p", "each codec's usual level is used"),
    _used(
        "delivery.timeout.ms",
        "p",
        "delivery.timeout.ms",
        Number(0, MOST),
        says="time without any delivery; less than a transaction lives, 30 s without one",
    ),
    _ignored("enable.idempotence", "p", "data is always written once", "true", value=_FLAG),
    _ignored("key.serializer", "p", _BYTES),
    _ignored("value.serializer", "p", _BYTES),
    _ignored("linger.ms", "p", "data goes out when a batch is full or a commit is due", value=Number(0, 900_000)),
    _ignored("max.block.ms", "p", "a copy run waits for its brokers, and shows that it does"),
    _used(
        "max.in.flight.requests.per.connection",
        "p",
        "max.in.flight.requests.per.connection",
        Number(1, 5),
        says="requests in flight at a broker; order is preserved",
    ),
    _used(
        "max.request.size", "p", "message.max.bytes", Number(1_000, 1_000_000_000), says="bytes that a record may have"
    ),
    _ignored("metadata.max.idle.ms", "p", "a copy run knows its topics only"),
    _ignored("partitioner.adaptive.partitioning.enable", "p", "records without key fill one batch after the other"),
    _ignored("partitioner.availability.timeout.ms", "p", "records without key fill one batch after the other"),
    _refused(
        "partitioner.class", "p", "records of a key would go to other partitions than before; Java's default is used"
    ),
    _refused("partitioner.ignore.keys", "p", "records with one key would be spread over partitions", "false"),
    _used(
        "request.timeout.ms",
        "p",
        "request.timeout.ms",
        Number(1, 900_000),
        says="a request's deadline, at most half the time of delivery",
    ),
    _ignored(
        "retries", "p", "data is tried until its time of delivery (delivery.timeout.ms) is over", value=Number(0, MOST)
    ),
    _used(
        "transaction.timeout.ms",
        "p",
        "transaction.timeout.ms",
        Number(1_000, MOST),
        says="how long an open transaction lives; 10 s when unset",
    ),
    _refused("transaction.two.phase.commit.enable", "p", "transactions end with their copy run", "false"),
    _ignored("transactional.id", "p", "each task has its own, by which it shuts its predecessor out"),
)
_CONSUMER = (
    _used(
        "allow.auto.create.topics",
        "c",
        "allow.auto.create.topics",
        _FLAG,
        says="mirrors never have topics made in the source cluster",
    ),
    _ignored("auto.commit.interval.ms", "c", "offsets are committed with the data, see keelman.commit.interval.ms"),
    _used(
        "auto.offset.reset",
        "c",
        "auto.offset.reset",
        Choice({"earliest": "earliest", "latest": "latest", "none": "error"}),
        says="where to begin without an offset; a time (by_duration) is refused",
    ),
    _used("check.crcs", "c", "check.crcs", _FLAG),
    _used("client.rack", "c", "client.rack", says="replicas of the same rack are read"),
    _ignored("enable.auto.commit", "c", "offsets are committed with the data", "false"),
    _ignored("exclude.internal.topics", "c", "patterns never match topics that begin with __", "true"),
    _used("fetch.max.bytes", "c", "fetch.max.bytes", Number(1_000_000, 2_147_483_135)),
    _used("fetch.max.wait.ms", "c", "fetch.wait.max.ms", Number(0, 300_000)),
    _used("fetch.min.bytes", "c", "fetch.min.bytes", Number(1, 100_000_000)),
    _used("group.id", "c", "group.id", says="of a sink's consumers; connect-<name> when unset"),
    _ignored("group.instance.id", "c", "each sink task has its own, <group.id>-<name>-<task>"),
    _ignored("group.protocol", "c", "sinks are in classic groups", "classic"),
    _ignored("group.remote.assignor", "c", "sinks are in classic groups"),
    _used("heartbeat.interval.ms", "c", "heartbeat.interval.ms", Number(1, 3_600_000)),
    _ignored("internal.throw.on.fetch.stable.offset.unsupported", "c", "Kafka Streams only"),
    _used("isolation.level", "c", "isolation.level", Choice({n: n for n in ("read_uncommitted", "read_committed")})),
    _ignored("key.deserializer", "c", _BYTES),
    _ignored("value.deserializer", "c", _BYTES),
    _used("max.partition.fetch.bytes", "c", "fetch.message.max.bytes", Number(1, 1_000_000_000)),
    _used("max.poll.interval.ms", "c", "max.poll.interval.ms", Number(1, DAY_MS)),
    _used("max.poll.records", "c", says="most records that a sink gets at once; 2,000 when unset"),
    _used(
        ASSIGNMENT,
        "c",
        ASSIGNMENT,
        ASSIGNORS,
        says="for sinks that are not Java's StickyAssignor counts as RangeAssignor, CooperativeStickyAssignor beside "
        "others not at all: a warning names it (sink_assignors_passed_over)",
    ),
    _used("session.timeout.ms", "c", "session.timeout.ms", Number(1, 3_600_000)),
    _ignored("share.acknowledgement.mode", "c", "share groups only"),
    _ignored("share.acquire.mode", "c", "share groups only"),
)
_OTHERS = (
    _used("request.timeout.ms", "ca", "socket.timeout.ms", Number(1_000, 300_000)),
    _ignored("retries", "a", "each request has its own deadline"),
)
FETCHED = frozenset(
    {
        *("auto.offset.reset", "check.crcs", "client.id", "client.rack", "isolation.level"),
        *("fetch.max.bytes", "fetch.max.wait.ms", "fetch.min.bytes", "max.partition.fetch.bytes"),
    }
)
"""The consumer keys, beside those of connections, that our own fetcher, used by mirrors, supports."""
TABLE: tuple[ClientKey, ...] = (*_COMMON, *SECURITY, *_PRODUCER, *_CONSUMER, *_OTHERS)


def rows(name: str) -> Iterator[ClientKey]:
    """Returns the rows of a key: more than one if clients differ."""
    return (row for row in TABLE if row.name == name)
