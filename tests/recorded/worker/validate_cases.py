"""Requests about plugins and configurations, sent to Kafka Connect and to our workers: workers, requests, names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

POLICY = "connector.client.config.override.policy"
# In addition to a worker's required keys: string converters, its topics, its group.
WORKERS: dict[str, dict[str, str]] = {
    "enabled": {"exactly.once.source.support": "enabled", POLICY: "All"},
    "preparing": {"exactly.once.source.support": "preparing", POLICY: "None", "topic.creation.enable": "false"},
    "disabled": {
        "exactly.once.source.support": "disabled",
        POLICY: "Principal",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
        "header.converter": "org.apache.kafka.connect.storage.StringConverter",
    },
    "allowlist": {
        "exactly.once.source.support": "disabled",
        POLICY: "Allowlist",
        "connector.client.config.override.allowlist": "client.id,linger.ms,max.poll.records,request.timeout.ms",
    },
}
FILE = "org.apache.kafka.connect.file.FileStream"
BASES: dict[str, dict[str, str]] = {
    "source": {"name": "s", "connector.class": "FileStreamSource", "topic": "t", "file": "/in"},
    "sink": {"name": "k", "connector.class": "FileStreamSink", "topics": "t", "file": "/out"},
    "mirror": {
        "name": "m",
        "connector.class": "MirrorSource",
        "source.cluster.alias": "a",
        "target.cluster.alias": "b",
        "source.cluster.bootstrap.servers": "127.0.0.1:1",
        "target.cluster.bootstrap.servers": "127.0.0.1:1",
    },
}
JSON, STRING = "org.apache.kafka.connect.json.JsonConverter", "org.apache.kafka.connect.storage.StringConverter"
SIMPLE = "org.apache.kafka.connect.storage.SimpleHeaderConverter"
PREDICATES = "org.apache.kafka.connect.transforms.predicates."
TRANSFORMS = "org.apache.kafka.connect.transforms."
GROUPED = {"topic.creation.default.replication.factor": "1", "topic.creation.default.partitions": "1"}
REQUIRED = {"exactly.once.support": "required"}
PARTED = {"transforms": "x", "transforms.x.type": f"{TRANSFORMS}InsertField$Value"}
TESTED = {**PARTED, "transforms.x.predicate": "p", "predicates": "p"}
MATCHING = {**TESTED, "predicates.p.type": f"{PREDICATES}TopicNameMatches"}

Change = dict[str, str | None]


class Case(NamedTuple):
    """One request: the worker that gets it, the method, the path and the body."""

    name: str
    worker: str
    method: str
    path: str
    body: Any = None


# Base, worker, and the changes to the base; None removes a key.
CHANGES: list[tuple[str, str, Change]] = [
    *((base, "enabled", {}) for base in BASES),
    ("source", "preparing", {}),
    ("source", "disabled", {}),
    ("sink", "disabled", {}),
    # The common keys, one by one.
    *(
        ("source", "enabled", {key: value})
        for key, values in {
            "name": (None, "", " ", "a\u0001b\u007f", "ünï cödé", " padded ", "\t\n"),
            "connector.class": ("FileStreamSourceConnector", f"{FILE}SourceConnector"),
            "connector.plugin.version": ("4.3.0", "[4.3.0]", "[4.0,5.0)", "latest", "9.9", "[9.0,)", "", "[oops", "]4"),
            "tasks.max": ("0", "-1", "1", " 3 ", "+4", "x", "", "1.0", "2147483647", "2147483648", "0x10", "\u0661"),
            "tasks.max.enforce": ("false", " TRUE ", "yes", "", "0"),
            "config.action.reload": ("none", "restart", "RESTART", "", "later"),
            "errors.retry.timeout": ("-1", "60000", "x", "", "9223372036854775808", "1e3"),
            "errors.retry.delay.max.ms": ("0", "-5", "soon"),
            "errors.tolerance": ("all", "none", "ALL", "some", ""),
            "errors.log.enable": ("true", "oui"),
            "errors.log.include.messages": ("true", "2"),
            "exactly.once.support": ("requested", "REQUIRED", "maybe", ""),
            "transaction.boundary": ("poll", "Interval", "CONNECTOR", "never", ""),
            "transaction.boundary.interval.ms": ("0", "1", "1000", "-1", "x", ""),
            "offsets.storage.topic": ("own", "", " ", " own "),
            "topic": (None, "", " ", " t "),
            "file": (None, "", " "),
            "batch.size": ("1", "0", "-1", "x", "2147483648", ""),
            "unknown.key": ("x",),
            "key.converter": (JSON, "JsonConverter", "Json", STRING, "NoSuch", "", " ", f" {JSON} ", SIMPLE),
            "value.converter": ("java.lang.String", f"{FILE}SourceConnector", "org.x.Y", "String", JSON),
            "header.converter": (JSON, SIMPLE, "SimpleHeaderConverter", "Simple", "NoSuch", "", "org.x.Y", STRING),
            "key.converter.plugin.version": ("4.3.0", "1.0", "[oops", ""),
            "topic.creation.groups": ("", "g", "default", "a,a", " a , b ", ",", "default,g"),
            "transforms": ("", "x", "x,x", " x , y ", ",", "x,"),
            "predicates": ("", "p", "p,p", "p,"),
        }.items()
        for value in values
    ),
    # Null values.
    *(("source", "enabled", {key: "\0"}) for key in ("file", "topic", "tasks.max", "transforms", "unknown", "name")),
    ("sink", "enabled", {"topics": "\0"}),
    # Converters with keys of their own.
    ("source", "enabled", {"value.converter": JSON, "value.converter.schemas.enable": "false"}),
    ("source", "enabled", {"value.converter": JSON, "value.converter.schemas.enable": "maybe"}),
    ("source", "enabled", {"value.converter": JSON, "value.converter.schemas.cache.size": "-1"}),
    ("source", "enabled", {"value.converter": JSON, "value.converter.schemas.cache.size": "x"}),
    ("source", "enabled", {"key.converter": JSON, "key.converter.decimal.format": "numeric"}),
    ("source", "enabled", {"key.converter": JSON, "key.converter.decimal.format": "roman"}),
    ("source", "enabled", {"value.converter": JSON, "value.converter.schema.content": '{"type":"string"}'}),
    ("source", "enabled", {"value.converter": JSON, "value.converter.schema.content": ""}),
    ("source", "enabled", {"key.converter": JSON, "key.converter.schema.content": "{"}),
    ("source", "enabled", {"header.converter": JSON, "header.converter.schema.content": '{"type":"int32"}'}),
    ("source", "enabled", {"value.converter.schemas.enable": "maybe"}),
    ("source", "disabled", {"value.converter.schemas.enable": "maybe"}),
    ("source", "enabled", {"key.converter": STRING, "key.converter.converter.encoding": "ISO-8859-1"}),
    ("source", "enabled", {"key.converter": STRING, "key.converter.converter.encoding": "no-such-set"}),
    ("source", "enabled", {"key.converter": "org.apache.kafka.connect.converters.ByteArrayConverter"}),
    ("source", "enabled", {"key.converter": "org.apache.kafka.connect.converters.LongConverter"}),
    ("source", "enabled", {"header.converter": JSON, "header.converter.schemas.enable": "x"}),
    ("source", "enabled", {"value.converter": JSON, "value.converter.plugin.version": "9.0"}),
    ("source", "enabled", {"key.converter": JSON, "value.converter": JSON, "header.converter": JSON}),
    ("sink", "enabled", {"key.converter": JSON, "value.converter": "NoSuch", "header.converter": "Nor this"}),
    # Exactly once.
    *(("source", worker, REQUIRED) for worker in ("enabled", "preparing", "disabled")),
    *(("source", worker, {**REQUIRED, "file": None}) for worker in ("enabled", "disabled")),
    ("mirror", "enabled", REQUIRED),
    ("mirror", "enabled", {**REQUIRED, "source.consumer.isolation.level": "read_committed"}),
    ("source", "enabled", {"transaction.boundary": "interval", "transaction.boundary.interval.ms": "7"}),
    # New topics.
    ("source", "enabled", GROUPED),
    ("source", "preparing", GROUPED),
    ("source", "enabled", {"topic.creation.groups": "a,b", **GROUPED}),
    ("source", "enabled", {"topic.creation.groups": "a,b"}),
    ("source", "enabled", {"topic.creation.groups": "a", **GROUPED, "topic.creation.a.include": "x.*, y"}),
    ("source", "enabled", {"topic.creation.groups": "a", **GROUPED, "topic.creation.a.include": "("}),
    ("source", "enabled", {"topic.creation.groups": "a", **GROUPED, "topic.creation.a.partitions": "0"}),
    ("source", "enabled", {**GROUPED, "topic.creation.default.partitions": "0"}),
    ("source", "enabled", {**GROUPED, "topic.creation.default.partitions": "-1"}),
    ("source", "enabled", {**GROUPED, "topic.creation.default.replication.factor": "x"}),
    ("source", "enabled", {**GROUPED, "topic.creation.default.cleanup.policy": "compact"}),
    ("source", "enabled", {**GROUPED, "topic.creation.default.include": "a"}),
    ("source", "enabled", {"topic.creation.default.partitions": "1"}),
    ("source", "enabled", {"topic.creation.default.replication.factor": "1"}),
    ("source", "enabled", {"topic.creation.groups": "a,a", **GROUPED}),
    ("source", "enabled", {"topic.creation.groups": "default", **GROUPED}),
    # The topics that sinks read, and the topics for records that they cannot read.
    *(
        ("sink", "enabled", change)
        for change in (
            {"topics": None},
            {"topics": ""},
            {"topics": " "},
            {"topics": ","},
            {"topics": "a,,b"},
            {"topics": "a,a"},
            {"topics": None, "topics.regex": "t.*"},
            {"topics.regex": "t.*"},
            {"topics.regex": ""},
            {"topics.regex": "("},
            {"topics": None, "topics.regex": "("},
            {"topics": None, "topics.regex": "[a-z&&[^bc]]+"},
            {"topics": "a,b", "errors.deadletterqueue.topic.name": "b"},
            {"topics": "a,b", "errors.deadletterqueue.topic.name": "c"},
            {"topics": None, "topics.regex": "b.*", "errors.deadletterqueue.topic.name": "bb"},
            {"errors.deadletterqueue.topic.name": ""},
            {"errors.deadletterqueue.topic.replication.factor": "x"},
            {"errors.deadletterqueue.topic.replication.factor": "0"},
            {"errors.deadletterqueue.topic.replication.factor": "40000"},
            {"errors.deadletterqueue.context.headers.enable": "maybe"},
            {"errors.deadletterqueue.topic.name": "t"},
            {"file": None},
            {"name": None, "topics": None, "tasks.max": "x"},
            {"consumer.override.group.id": "g"},
        )
    ),
    ("mirror", "enabled", {"source.cluster.alias": None, "topics": "(", "replication.factor": "x"}),
    ("mirror", "enabled", {"offset-syncs.topic.location": "moon", "topics.exclude": ""}),
    ("mirror", "enabled", {"replication.policy.class": "NoSuch", "sync.topic.acls.enabled": "x"}),
    # Transforms and predicates.
    *(
        (base, "enabled", change)
        for base, changes in {
            "source": (
                PARTED,
                {**PARTED, "transforms.x.topic.field": "f"},
                {**PARTED, "transforms.x.replace.null.with.default": "x"},
                {"transforms": "x", "transforms.x.type": "InsertField"},
                {"transforms": "x", "transforms.x.type": "InsertField$Value"},
                {"transforms": "x", "transforms.x.type": "Value"},
                {"transforms": "x", "transforms.x.type": f"{TRANSFORMS}InsertField"},
                {"transforms": "x", "transforms.x.type": "NoSuch"},
                {"transforms": "x", "transforms.x.type": ""},
                {"transforms": "x", "transforms.x.type": "java.lang.String"},
                {"transforms": "x", "transforms.x.type": JSON},
                {"transforms": "x,y", "transforms.x.type": "RegexRouter", "transforms.y.type": "Filter"},
                {"transforms": "x", "transforms.x.type": "RegexRouter", "transforms.x.regex": "("},
                {"transforms": "x", "transforms.x.type": "TimestampRouter", "transforms.x.plugin.version": "9"},
                {"transforms": "x", "transforms.x.type": "TimestampRouter", "transforms.x.plugin.version": "4.3.0"},
                {**PARTED, "transforms.x.negate": "true"},
                {**PARTED, "transforms.x.negate": "maybe", "transforms.x.predicate": "p"},
                {**PARTED, "transforms.x.predicate": "p"},
                {**PARTED, "transforms.x.predicate": ""},
                TESTED,
                MATCHING,
                {**MATCHING, "predicates.p.pattern": "t.*"},
                {**MATCHING, "predicates.p.pattern": "("},
                {**MATCHING, "transforms.x.predicate": "q"},
                {**MATCHING, "predicates.p.type": "TopicNameMatches", "predicates.p.pattern": "x"},
                {**MATCHING, "predicates.p.type": "RecordIsTombstone", "transforms.x.negate": "true"},
                {**MATCHING, "predicates.p.type": "NoSuch"},
                {**MATCHING, "predicates.p.type": f"{TRANSFORMS}Filter"},
                {"predicates": "p"},
                {"predicates": "p", "predicates.p.type": "HasHeaderKey", "predicates.p.name": "h"},
                {"predicates": "p", "predicates.p.type": "HasHeaderKey", "predicates.p.name": ""},
                {"transforms": "x,x", "transforms.x.type": "Filter", "transforms.x.predicate": "p"},
                {"transforms": "a b", "transforms.a b.type": "Filter"},
            ),
            "sink": (
                PARTED,
                {**MATCHING, "predicates.p.pattern": "t.*"},
                {"transforms": "x"},
                {"transforms": "x", "transforms.x.type": "RegexRouter"},
            ),
        }.items()
        for change in changes
    ),
    # Clients of the connector's own, under each policy.
    *(
        (base, worker, {key: value})
        for worker in WORKERS
        for base, key, value in (
            ("source", "producer.override.linger.ms", "5"),
            ("source", "producer.override.acks", "all"),
            ("source", "producer.override.sasl.jaas.config", "x"),
            ("source", "producer.override.unknown", "x"),
            ("source", "admin.override.request.timeout.ms", "5"),
            ("source", "consumer.override.client.id", "c"),
            ("sink", "consumer.override.max.poll.records", "5"),
            ("sink", "consumer.override.security.protocol", "PLAINTEXT"),
            ("sink", "consumer.override.isolation.level", "read_committed"),
            ("sink", "producer.override.linger.ms", "5"),
            ("sink", "admin.override.retries", "1"),
        )
    ),
    ("source", "enabled", {"producer.override.linger.ms": "x"}),
    ("source", "preparing", {"producer.override.linger.ms": "x"}),
    (
        "sink",
        "preparing",
        {"errors.deadletterqueue.topic.name": "d", "producer.override.acks": "1", "admin.override.retries": "1"},
    ),
    # Many faults in one configuration: the order of errors.
    (
        "source",
        "enabled",
        {
            "name": "",
            "topic": None,
            "batch.size": "x",
            "tasks.max": "0",
            "value.converter": JSON,
            "value.converter.schemas.enable": "x",
            "key.converter": "NoSuch",
            "errors.tolerance": "some",
            "transforms": "x",
            "exactly.once.support": "no",
            "predicates": "p,p",
        },
    ),
    (
        "sink",
        "preparing",
        {
            "topics.regex": "(",
            "consumer.override.client.id": "c",
            "header.converter": JSON,
            "header.converter.schemas.enable": "x",
            "errors.log.enable": "x",
            "tasks.max": "-1",
        },
    ),
]
# A connector that is created with any of these is refused.
REFUSED: list[tuple[str, str, Change]] = [
    ("source", "enabled", {"topic": None}),
    ("source", "enabled", {"tasks.max": "0", "batch.size": "x", "transforms": "x", "errors.tolerance": "some"}),
    ("sink", "enabled", {"topics": None}),
    ("sink", "enabled", {"topics.regex": "("}),
    ("source", "preparing", {"producer.override.acks": "1", "producer.override.linger.ms": "3"}),
    ("source", "disabled", {**REQUIRED, "file": None}),
    ("source", "enabled", {"value.converter": JSON, "value.converter.schemas.enable": "x", "name": "other\u0007"}),
    ("source", "enabled", {"connector.class": None}),
    ("source", "enabled", {"connector.class": "NoSuch"}),
    ("source", "enabled", {"connector.class": ""}),
    ("source", "enabled", {"connector.plugin.version": "9.9"}),
    ("source", "enabled", {"connector.plugin.version": "[oops"}),
    ("source", "enabled", {"producer.override.linger.ms": "x"}),
    ("sink", "enabled", {"file": "\0", "topics": "\0"}),
    ("source", "enabled", {"unknown": "\0"}),
    ("sink", "enabled", {"consumer.override.group.id": "validate-enabled"}),
]
# Plugin of the path, and the body.
MATCHES: list[tuple[str, Any]] = [
    ("FileStreamSource", BASES["sink"]),
    ("Source", BASES["source"]),
    ("StreamSourceConnector", BASES["source"]),
    ("NoSuch", BASES["source"]),
    ("NoSuch", {**BASES["source"], "connector.class": "NoSuch"}),
    ("NoSuchConnector", {**BASES["source"], "connector.class": "org.x.NoSuchConnector"}),
    ("FileStreamSource", {}),
    ("FileStreamSource", {"name": "n"}),
    ("FileStreamSource", {**BASES["source"], "connector.class": ""}),
    ("FileStreamSource", {**BASES["source"], "connector.class": " FileStreamSource "}),
    ("JsonConverter", {"connector.class": "JsonConverter"}),
    ("Connector", {"connector.class": "Connector"}),
]
CONVERTERS = [
    JSON,
    STRING,
    SIMPLE,
    *(
        f"org.apache.kafka.connect.converters.{kind}Converter"
        for kind in ("ByteArray", "Boolean", "Short", "Integer", "Long", "Float", "Double")
    ),
]
ASKED = [
    *(base["connector.class"] for base in BASES.values()),
    *CONVERTERS,
    *("Json", "String", "Simple", "JsonConverter", "ByteArray", "SimpleHeaderConverter"),
    *("NoSuch", "org.x.NoSuch", "java.lang.String", "Value", "InsertField", f"{TRANSFORMS}InsertField"),
    *("RegexRouter", f"{TRANSFORMS}InsertField$Value", f"{PREDICATES}TopicNameMatches", "RecordIsTombstone"),
]
VERSIONS = ("latest", "4.3.0", "[4.0,)", "9.9", "[oops", "")


def changed(base: str, change: Change) -> dict[str, str | None]:
    """Returns a base's configuration with a change; a single NUL means null."""
    merged = {k: v for k, v in {**BASES[base], **change}.items() if v is not None}
    return {k: None if v == "\0" else v for k, v in merged.items()}


def cases() -> Iterator[Case]:
    """All requests, each with a unique name."""
    for base, worker, change in CHANGES:
        body = changed(base, change)
        shown = ", ".join(f"{k}={v!r}" for k, v in change.items())
        plugin = body["connector.class"]
        yield Case(f"{worker}: {base} {shown}", worker, "PUT", f"/connector-plugins/{plugin}/config/validate", body)
    for base, worker, change in REFUSED:
        body = changed(base, change)
        shown = ", ".join(f"{k}={v!r}" for k, v in change.items())
        create = {"name": body.get("name"), "config": body}
        yield Case(f"{worker}: create {base} {shown}", worker, "POST", "/connectors", create)
    for plugin, body in MATCHES:
        path = f"/connector-plugins/{plugin}/config/validate"
        name = f"enabled: {plugin} asked about {body.get('connector.class')!r}, {len(body)}"
        yield Case(name, "enabled", "PUT", path, body)
    for plugin in dict.fromkeys(ASKED):
        yield Case(f"enabled: keys of {plugin}", "enabled", "GET", f"/connector-plugins/{plugin}/config")
    for version in VERSIONS:
        path = f"/connector-plugins/FileStreamSource/config?version={version}"
        yield Case(f"enabled: keys of version {version!r}", "enabled", "GET", path)
    for query in ("", "?connectorsOnly=true", "?connectorsOnly=false", "?connectorsOnly=no"):
        yield Case(f"enabled: list {query}", "enabled", "GET", f"/connector-plugins{query}")
