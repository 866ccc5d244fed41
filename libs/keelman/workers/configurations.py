"""Checks worker configurations: the properties that users set for connectors with workers of their own. Pure.

The lists are those of the managed Connect service's documentation, name by name. `producer.` and `consumer.` names that
are not on their list are refused; of all other names those on the denied lists, by name or prefix.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping

import javaproperties

from keelman.connect.config.secret_keys import shown_value, without_words
from keelman.connect.converters.configured import is_own
from keelman.model.errors import InvalidArgument, Violation
from keelman.runtime.logs.redaction import HIDDEN
from keelman.workers.properties.refusals import refusals

MAX_BYTES = 64 << 10
KEY_CONVERTER, VALUE_CONVERTER = REQUIRED = ("key.converter", "value.converter")
STRING_CONVERTER = "org.apache.kafka.connect.storage.StringConverter"
DEFAULT_PROPERTIES: Mapping[str, str] = dict.fromkeys(REQUIRED, STRING_CONVERTER)
"""The properties of workers without a worker configuration."""

ROLES = ("key", "value", "header")
PRODUCER, CONSUMER = "producer.", "consumer."
ALLOWED: Mapping[str, tuple[str, ...]] = {
    PRODUCER: (
        "acks", "batch.size", "buffer.memory", "compression.type", "enable.idempotence", "key.serializer",
        "max.request.size", "metadata.max.age.ms", "metadata.max.idle.ms", "reconnect.backoff.max.ms",
        "reconnect.backoff.ms", "request.timeout.ms", "retry.backoff.ms", "value.serializer",
    ),
    CONSUMER: (
        "allow.auto.create.topics", "auto.offset.reset", "check.crcs", "fetch.max.bytes", "fetch.max.wait.ms",
        "fetch.min.bytes", "heartbeat.interval.ms", "key.deserializer", "max.partition.fetch.bytes", "max.poll.records",
        "metadata.max.age.ms", "partition.assignment.strategy", "reconnect.backoff.max.ms", "reconnect.backoff.ms",
        "request.timeout.ms", "retry.backoff.ms", "session.timeout.ms", "value.deserializer",
    ),
}  # fmt: skip
"""The legal names after these two prefixes."""
DENIED_PREFIXES = (
    "access.control.", "admin.", "admin.listeners.https.", "client.", "connect.", "inter.worker.", "internal.",
    "listeners.https.", "metrics.", "metrics.context.", "rest.", "sasl.", "security.", "socket.", "ssl.",
    "topic.tracking.", "worker.",
)  # fmt: skip
DENIED = frozenset(
    (
        "bootstrap.servers", "config.storage.topic", "connections.max.idle.ms",
        "connector.client.config.override.policy", "group.id", "listeners", "metric.reporters", "plugin.path",
        "receive.buffer.bytes", "response.http.headers.config", "scheduled.rebalance.max.delay.ms",
        "send.buffer.bytes", "status.storage.topic",
    )
)  # fmt: skip
_ELSEWHERE: Mapping[str, str] = {
    "bootstrap.servers": "broker:9092",
    "group.id": "group",
    "config.storage.topic": "configs",
    "offset.storage.topic": "offsets",
    "status.storage.topic": "status",
}
"""Properties that a worker gets from elsewhere, so that the worker's own rules can check the rest."""


def properties_of(content: bytes, field: str = "content") -> dict[str, str]:
    """Returns the properties in a file as java.util.Properties reads them; the last value of a repeated key.

    The text is UTF-8, or else ISO-8859-1. Raises InvalidArgument for an invalid escape.
    """
    try:
        return dict(javaproperties.loads(_text(content)))
    except javaproperties.InvalidUEscapeError as error:
        raise InvalidArgument.of(field, error.escape, "\\u and four hexadecimal digits") from None


def checked_content(content: bytes, field: str = "content") -> dict[str, str]:
    """Returns the properties in the content of a worker configuration. Raises InvalidArgument naming each property that
    is missing or not allowed, with the legal values."""
    if len(content) > MAX_BYTES:
        raise InvalidArgument.of(field, f"{len(content)} bytes", f"at most {MAX_BYTES} bytes")
    properties = properties_of(content, field)
    if problems := list(violations(properties)):
        raise InvalidArgument.of_all(problems)
    return properties


def violations(properties: Mapping[str, str]) -> Iterator[Violation]:
    """Yields the problems of a worker configuration's properties, each under its key: first the properties that it may
    not set, then those that every worker would refuse."""
    missing = [key for key in REQUIRED if not properties.get(key, "").strip()]
    for key in missing:
        legal = f"a converter's class, e.g. {STRING_CONVERTER}"
        yield Violation(key, f"{key} is missing: a worker configuration has to set it: {legal}")
    judged = {}
    for key, value in properties.items():
        if legal := _denied(key):
            yield Violation(key, f"{key}: {shown_value(key, value)!r} cannot be set in a worker configuration: {legal}")
        elif key not in missing:
            judged[key] = value
    own = without(judged, converters_of_plugins(judged))
    yield from (refusal for refusal in refusals({**_ELSEWHERE, **DEFAULT_PROPERTIES, **own}) if refusal.field in own)


def converters_of_plugins(properties: Mapping[str, str]) -> dict[str, str]:
    """Returns those of a worker's properties that are about converters other than keelman's own: a plugin of its
    connector must have them, and decides their legal values."""
    converters: dict[str, str] = {}
    for key in (f"{role}.converter" for role in ROLES):
        named = properties.get(key, "").strip()
        if named and not is_own(named):
            converters |= {name: text for name, text in properties.items() if name == key or name.startswith(f"{key}.")}
    return converters


def without(properties: Mapping[str, str], keys: Container[str]) -> dict[str, str]:
    """Returns the properties without these keys."""
    return {key: text for key, text in properties.items() if key not in keys}


def _denied(key: str) -> str:
    """Returns the legal alternative to a property that may not be set; empty for an allowed one."""
    for prefix, names in ALLOWED.items():
        if key.startswith(prefix):
            return "" if key.removeprefix(prefix) in names else f"of {prefix}* only {', '.join(names)}"
    if not key:
        return "every property has a name"
    if key in DENIED:
        return "keelman sets it for the connector's own workers"
    if prefix := next((prefix for prefix in DENIED_PREFIXES if key.startswith(prefix)), ""):
        return f"no property may begin with {prefix!r}"
    return ""


def shown_content(content: bytes) -> bytes:
    """Returns the content for people: the same but for secrets, which are hidden."""
    return "".join(map(_shown, javaproperties.parse(_text(content)))).encode("utf-8", "surrogateescape")


def _shown(element: javaproperties.PropertiesElement) -> str:
    source: str = element.source
    end = "\n" if source.endswith(("\n", "\r")) else ""
    if isinstance(element, javaproperties.Comment):
        try:
            was = list(javaproperties.parse(element.value.lstrip("#! ")))
        except javaproperties.InvalidUEscapeError:
            return f"# {HIDDEN}{end}"
        said = "".join(_shown(piece) for piece in was)
        if said != "".join(piece.source for piece in was):
            return f"# {said}{end}"
        return without_words(source.rstrip("\r\n")) + source[len(source.rstrip("\r\n")) :]
    if not isinstance(element, javaproperties.KeyValue):
        return source
    shown = shown_value(element.key, element.value)
    return source if shown == element.value else javaproperties.join_key_value(element.key, shown) + end


def _text(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content.decode("iso-8859-1")
