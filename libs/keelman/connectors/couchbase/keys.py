"""The keys of both connectors: the official one's with its groups, types and defaults, and those of 2016."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from keelman.connect.config.definition import REQUIRED, ConfigDef, ConfigKey, Importance, Type, at_least, one_of
from keelman.connect.config.types import Password
from keelman.connect.errors import ConfigValueError, ConnectError
from keelman.connect.tasks.source_task import SourceTask
from keelman.connectors.couchbase.documents import HEADERS, SERVED
from keelman.connectors.couchbase.values import NO_TOPIC, collection_of, duration, seconds, size, topics_by_collection
from keelman.couchbase.manifest import Collection, Selection
from keelman.couchbase.seeds import BucketAccess, seeds_of
from keelman.model.errors import InvalidArgument
from keelman.runtime.tls.contexts import client_context
from keelman.runtime.version import version

ALL_PASS = "com.couchbase.connect.kafka.filter.AllPassFilter"
ALL_PASS_SYSTEM = "com.couchbase.connect.kafka.filter.AllPassIncludingSystemFilter"
STREAM_FROM = ("SAVED_OFFSET_OR_BEGINNING", "SAVED_OFFSET_OR_NOW", "BEGINNING", "NOW")
_TLS_KEYS = {
    "ssl.keystore.location": "couchbase.client.certificate.path",
    "ssl.keystore.password": "couchbase.client.certificate.password",
    "ssl.key.password": "couchbase.client.certificate.password",
    "ssl.truststore.location": "couchbase.trust.certificate.path or couchbase.trust.store.path",
    "ssl.truststore.password": "couchbase.trust.store.password",
    "ssl.endpoint.identification.algorithm": "couchbase.enable.hostname.verification",
}
COLLECTIONS = "couchbase.collections"
DEFAULT_BUFFER_BYTES = 20_971_520
_TEXT, _LIST, _FLAG, _INT, _SECRET, _CLASS = (
    Type.STRING, Type.LIST, Type.BOOLEAN, Type.INT, Type.PASSWORD, Type.CLASS,
)  # fmt: skip
_CONNECTION, _SECURITY, _LOGGING, _SOURCE, _SCHEMA, _DCP = (
    "Connection", "Security", "Logging", "Source Behavior", "Schema", "Database Change Protocol",
)  # fmt: skip


def _key(  # noqa: PLR0917  a row of a table
    name: str, kind: Type, default: Any, group: str, doc: str, check: Any = None, dependents: tuple[str, ...] = ()
) -> ConfigKey:
    high = name in ("seed.nodes", "username", "password", "bucket")
    importance = Importance.HIGH if high else Importance.MEDIUM
    return ConfigKey(
        f"couchbase.{name}", kind, default, importance, doc, check, group=group,
        dependents=tuple(f"couchbase.{dependent}" for dependent in dependents),
    )  # fmt: skip


def _seeds(name: str, value: Any) -> None:
    try:
        if not seeds_of(value or ()):
            raise ValueError("names no node")
    except ValueError as error:
        raise ConfigValueError(name, ",".join(value or ()), str(error)) from None


def _handler(name: str, value: Any) -> None:
    if value not in SERVED:
        raise ConfigValueError(name, value, f"must be one of {', '.join(SERVED)}; other handlers are not served")


def _headers(name: str, value: Any) -> None:
    for header in value or ():
        if header not in HEADERS:
            raise ConfigValueError(name, ",".join(value), f"{header!r} is no header: there are {', '.join(HEADERS)}")


def _not_served(name: str, value: Any) -> None:
    if value:
        raise ConfigValueError(name, value, "is not served: leave it empty")


def _collections(name: str, value: Any) -> None:
    for collection in value or ():
        try:
            collection_of(collection)
        except ValueError as error:
            raise ConfigValueError(name, ",".join(value), str(error)) from None


def _topics(name: str, value: Any) -> None:
    for entry in value or ():
        collection, _, topic = entry.partition("=")
        try:
            collection_of(collection)
            if not topic.strip():
                raise ValueError(f"{entry!r} names no topic: write scope.collection=topic")
        except ValueError as error:
            raise ConfigValueError(name, ",".join(value), str(error)) from None


def _connection_keys(*, official: bool) -> list[ConfigKey]:
    """How the cluster is reached; the connector of 2016 takes them too."""
    user = REQUIRED if official else ""
    tls = ("enable.hostname.verification", "trust.certificate.path", "trust.store.path", "trust.store.password",
           "client.certificate.path", "client.certificate.password")  # fmt: skip
    return [
        _key("username", _TEXT, user, _CONNECTION, "User of the cluster."),
        _key("password", _SECRET, user, _CONNECTION, "Its password; KAFKA_COUCHBASE_PASSWORD of the environment wins."),
        _key(
            "network",
            _TEXT,
            "auto",
            _CONNECTION,
            "Which addresses of nodes to use.",
            one_of("auto", "default", "external"),
        ),
        _key("bootstrap.timeout", _TEXT, "30s", _CONNECTION, "Longest time to the first usable cluster map.", duration),
        _key("enable.tls", _FLAG, False, _SECURITY, "Connect with TLS.", None, tls),
        _key("enable.hostname.verification", _FLAG, True, _SECURITY, "Check that certificates name the nodes."),
        _key(
            "trust.certificate.path",
            _TEXT,
            "",
            _SECURITY,
            "PEM file of the authority that signed the nodes' certificates.",
        ),
        _key("trust.store.path", _TEXT, "", _SECURITY, "Java key store with that authority."),
        _key(
            "trust.store.password", _SECRET, "", _SECURITY, "Its password; KAFKA_COUCHBASE_TRUST_STORE_PASSWORD wins."
        ),
        _key(
            "client.certificate.path", _TEXT, "", _SECURITY, "Java key store with the client's key, in place of a user."
        ),
        _key("client.certificate.password", _SECRET, "", _SECURITY, "Its password."),
    ]


@cache
def official_keys() -> ConfigDef:
    """Those of the official connector."""
    return ConfigDef(
        _key("seed.nodes", _LIST, REQUIRED, _CONNECTION, "Nodes to connect to first: host or host:port.", _seeds),
        _key("bucket", _TEXT, "", _CONNECTION, "Bucket to read."),
        *_connection_keys(official=True),
        _key("log.redaction", _TEXT, "NONE", _LOGGING, "Without effect.", one_of("NONE", "PARTIAL", "FULL")),
        _key("log.document.lifecycle", _FLAG, False, _LOGGING, "Without effect."),
        _key("metrics.interval", _TEXT, "10m", _LOGGING, "Without effect.", duration),
        _key("topic", _TEXT, "${bucket}.${scope}.${collection}", _SOURCE, "Topic of the records."),
        _key(
            "collection.to.topic",
            _LIST,
            [],
            _SOURCE,
            "Topics of single collections: scope.collection=topic.",
            _topics,
        ),
        _key("source.handler", _CLASS, REQUIRED, _SOURCE, "What makes records of changes.", _handler),
        _key("headers", _LIST, [], _SOURCE, "Headers of each record.", _headers),
        _key("header.name.prefix", _TEXT, "couchbase.", _SOURCE, "What their names begin with."),
        _key(
            "event.filter",
            _CLASS,
            ALL_PASS,
            _SOURCE,
            "Which changes are passed over.",
            one_of(ALL_PASS, ALL_PASS_SYSTEM),
        ),
        _key("black.hole.topic", _TEXT, "", _SOURCE, "Topic of a record for each change that is passed over."),
        _key("initial.offset.topic", _TEXT, "", _SOURCE, "Topic of a record for each vbucket that begins with now."),
        _key("batch.size.max", _INT, 2000, _SOURCE, "Most records at a time.", at_least(1)),
        _key("no.value", _FLAG, False, _SOURCE, "Read no contents of documents."),
        _key("connector.name.in.offsets", _FLAG, False, _SOURCE, "Name the connector in source partitions."),
        _key("stream.from", _TEXT, STREAM_FROM[0], _SOURCE, "Where to begin.", one_of(*STREAM_FROM)),
        _key("scope", _TEXT, "", _SOURCE, "Read this scope alone."),
        _key("collections", _LIST, [], _SOURCE, "Read these collections alone: scope.collection.", _collections),
        _key("jsonpath.filter", _TEXT, "", _SOURCE, "Not served.", _not_served),
        _key("value.schema", _TEXT, "", _SCHEMA, "Without effect: of a handler that is not served."),
        _key("dlq.topic", _TEXT, "couchbase.dlq", _SCHEMA, "Without effect: of a handler that is not served."),
        _key("schema.failure.action", _TEXT, "TERMINATE", _SCHEMA, "Without effect: of a handler that is not served."),
        _key(
            "compression", _TEXT, "ENABLED", _DCP, "Compression on the wire.", one_of("ENABLED", "DISABLED", "FORCED")
        ),
        _key(
            "persistence.polling.interval",
            _TEXT,
            "100ms",
            _DCP,
            "How often to query what all copies have on disk; changes wait for it. 0: they do not wait.",
            duration,
        ),
        _key("flow.control.buffer", _TEXT, "16m", _DCP, "Most bytes on their way, for each node and task.", size),
        _key("xattrs", _FLAG, False, _DCP, "Have extended attributes sent; no handler that is served shows them."),
        _key("enable.dcp.trace", _FLAG, False, _LOGGING, "Without effect."),
        _key("dcp.trace.document.id.regex", _TEXT, ".*", _LOGGING, "Without effect."),
    )


def _whole(name: str, least: int) -> Any:
    def check(_: str, value: Any) -> None:
        if value is None:
            return
        if not re.fullmatch(r"\s*-?\d+\s*", str(value)):
            raise ConfigValueError(name, value, whole=f"'{name}' setting should be an integer")
        if int(value) < least:
            raise ConfigValueError(name, value, f"must be at least {least}")

    return check


@cache
def first_keys() -> ConfigDef:
    """Those of the connector of 2016."""
    high, low = Importance.HIGH, Importance.LOW
    rate, buffer = "dcp.maximum.drainrate", "couchbase.dcpConnectionBufferSize"
    return ConfigDef(
        ConfigKey("topic", _TEXT, None, high, "The prefix of the topic's name, before the bucket's name."),
        ConfigKey("schema.name", _TEXT, None, high, "Name of the records' schema."),
        ConfigKey(
            "couchbase.nodes", _TEXT, None, high, "Nodes to connect to first, separated by commas or semicolons."
        ),
        ConfigKey("couchbase.bucket", _TEXT, None, high, "Bucket to read."),
        ConfigKey("couchbase.buckets", _TEXT, None, low, "The same."),
        ConfigKey(rate, _TEXT, None, high, "Most changes to read in a second.", _whole(rate, 1)),
        ConfigKey(
            buffer, _TEXT, str(DEFAULT_BUFFER_BYTES), low, "Most bytes on their way; 0 for 20 MiB.", _whole(buffer, 0)
        ),
        *_connection_keys(official=False),
    )


def access_of(parsed: Mapping[str, Any], seeds: list[str], bucket: str, task: SourceTask | None = None) -> BucketAccess:
    """How the cluster is reached, by a task or by whom makes tasks. Raises ConnectError for files of certificates that
    are none."""

    def secret(name: str, variable: str = "") -> str:
        value = parsed[name]
        return os.environ.get(variable, "") or ("" if value is None else str(getattr(value, "value", value)))

    user = str(parsed["couchbase.username"] or "")
    tls = None
    if parsed["couchbase.enable.tls"]:
        properties = {
            "ssl.endpoint.identification.algorithm": "https" if parsed["couchbase.enable.hostname.verification"] else ""
        }
        if parsed["couchbase.trust.certificate.path"]:
            properties |= {
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": parsed["couchbase.trust.certificate.path"],
            }
        elif parsed["couchbase.trust.store.path"]:
            password = secret("couchbase.trust.store.password", "KAFKA_COUCHBASE_TRUST_STORE_PASSWORD")
            properties |= {
                "ssl.truststore.location": parsed["couchbase.trust.store.path"],
                "ssl.truststore.password": password,
            }
        if parsed["couchbase.client.certificate.path"]:
            user = ""
            password = secret("couchbase.client.certificate.password")
            properties |= {
                "ssl.keystore.location": parsed["couchbase.client.certificate.path"],
                "ssl.keystore.password": password, "ssl.key.password": password,
            }  # fmt: skip
        try:
            tls = client_context(properties)
        except InvalidArgument as error:
            raise ConnectError(_in_our_words(error.message)) from error
    return BucketAccess(
        seeds=seeds_of(seeds),
        bucket=bucket,
        user=user,
        password=secret("couchbase.password", "KAFKA_COUCHBASE_PASSWORD"),
        tls=tls,
        network=parsed["couchbase.network"],
        bootstrap_seconds=seconds(parsed["couchbase.bootstrap.timeout"]),
        agent=f"keelman/{version()}" + (f" ({task.connector}; task-{task.task})" if task else ""),
        compression=parsed.get("couchbase.compression", "ENABLED"),
    )


def reached_by(parsed: Mapping[str, Any], seeds: list[str], bucket: str) -> dict[str, str]:
    """How a bucket is reached, as texts that `access_by` takes; and the collection, where a single one is read."""
    config = {"couchbase.seed.nodes": ",".join(seeds), "couchbase.bucket": bucket}
    chosen: list[str] = parsed.get(COLLECTIONS) or []
    if len(chosen) == 1:
        config[COLLECTIONS] = chosen[0].strip()
    for key in _connection_keys(official=False):
        value = parsed[key.name]
        if value is not None:
            text = value.value if isinstance(value, Password) else value
            config[key.name] = str(text).lower() if isinstance(text, bool) else str(text)
    return config


def access_by(properties: Mapping[str, str]) -> BucketAccess:
    """The same for a client. Raises ConnectError."""
    parsed = ConfigDef(*_connection_keys(official=False)).parse(properties)
    return access_of(parsed, properties["couchbase.seed.nodes"].split(","), properties["couchbase.bucket"])


def _in_our_words(message: str) -> str:
    """Returns an error of certificate files with the connectors' keys in place of Kafka's."""
    for theirs, ours in _TLS_KEYS.items():
        message = message.replace(theirs, ours)
    return message


def without_tls(config: Mapping[str, str], parsed: Mapping[str, Any]) -> list[ConfigValueError]:
    """A client's certificate where there is no TLS to show it in."""
    key = "couchbase.client.certificate.path"
    if not parsed[key] or parsed["couchbase.enable.tls"]:
        return []
    return [ConfigValueError(key, config[key], "needs couchbase.enable.tls=true")]


def without_topic(config: Mapping[str, str], parsed: Mapping[str, Any]) -> list[ConfigValueError]:
    """No topic for all, where not each collection that is read has its own."""
    topic, chosen = parsed["couchbase.topic"], set(map(collection_of, parsed["couchbase.collections"]))
    if topic.strip() or (chosen and chosen <= topics_of(config, parsed).keys()):
        return []
    text = f"{NO_TOPIC}; it may be empty where each of couchbase.collections has a topic of its own"
    return [ConfigValueError("couchbase.topic", topic, text)]


def selection_of(parsed: Mapping[str, Any]) -> Selection:
    """What of a bucket is read."""
    return Selection(parsed["couchbase.scope"], tuple(map(collection_of, parsed["couchbase.collections"])))


def topics_of(config: Mapping[str, str], parsed: Mapping[str, Any]) -> dict[Collection, str]:
    """Topics of single collections, by the old key and the new one."""
    old = (entry.partition("=") for entry in parsed["couchbase.collection.to.topic"])
    return {collection_of(name): topic.strip() for name, _, topic in old} | topics_by_collection(config)
