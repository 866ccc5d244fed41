"""Keys of converters with a schema registry, under Confluent's names: of its serializers and its client.

https://docs.confluent.io/platform/current/schema-registry/connect.html. In a converter's configuration the client's
keys may also have the prefix `schema.registry.`, as there; its TLS is set by `schema.registry.ssl.*`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from keelman.connect.config import converter_keys
from keelman.connect.config.definition import (
    REQUIRED,
    ConfigDef,
    ConfigKey,
    Importance,
    Password,
    Type,
    at_least,
    one_of,
)
from keelman.connect.config.rules import Rule, refuse
from keelman.connect.config.secret_keys import without_users
from keelman.connect.registry import subjects

URL = "schema.registry.url"
NORMALIZE, AUTO_REGISTER = "normalize.schemas", "auto.register.schemas"
USE_ID, ID_STRICT = "use.schema.id", "id.compatibility.strict"
USE_LATEST, LATEST_STRICT, LATEST_SECONDS = "use.latest.version", "latest.compatibility.strict", "latest.cache.ttl.sec"
CREDENTIALS, USER_INFO = "basic.auth.credentials.source", "basic.auth.user.info"
BEARER_SOURCE, BEARER_TOKEN = "bearer.auth.credentials.source", "bearer.auth.token"
MAX_SCHEMAS = "max.schemas.per.subject"
CONNECT_MS, READ_MS = "http.connect.timeout.ms", "http.read.timeout.ms"
RETRIES, RETRY_WAIT_MS, RETRY_MOST_MS = "max.retries", "retries.wait.ms", "retries.max.wait.ms"
PROXY_HOST, PROXY_PORT = "proxy.host", "proxy.port"
CACHE_SIZE = "schemas.cache.config"
_ID_STRICT_DOC = (
    "Without effect, unlike Confluent's: schemas are not compared, since each record is written with the schema of the "
    "id, and one that does not fit it is an error about that record."
)
_HIGH, _MEDIUM, _LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW


def _is_url_list(key: str, value: Any) -> None:
    if value is not None and not value:
        raise refuse(key, "", "at least one URL, http://host:port")
    for url in value or ():
        if not url.lower().startswith(("http://", "https://")):
            raise refuse(key, without_users(url), "not a URL of http or https")


_URLS = Rule(_is_url_list, "a list of URLs, http://host:port")


def registry_keys() -> ConfigDef:
    """Returns the keys of every converter with a registry."""
    flag, text, number, secret = Type.BOOLEAN, Type.STRING, Type.INT, Type.PASSWORD
    table: tuple[tuple[str, Type, Any, Importance, str, Rule | None], ...] = (
        (URL, Type.LIST, REQUIRED, _HIGH, "URLs of the schema registry, comma-separated; tried in turn.", _URLS),
        (AUTO_REGISTER, flag, True, _MEDIUM, "Register the schemas of written records.", None),
        (NORMALIZE, flag, False, _MEDIUM, "Have the registry bring schemas into one form first.", None),
        (USE_ID, number, -1, _LOW, "Write with the schema of this id; not together with registering.", None),
        (ID_STRICT, flag, True, _LOW, _ID_STRICT_DOC, None),
        (USE_LATEST, flag, False, _LOW, "Write with the subject's newest schema; not together with registering.", None),
        (LATEST_STRICT, flag, True, _LOW, "Only if the record's own schema is compatible with it.", None),
        (LATEST_SECONDS, number, -1, _LOW, "How long, in s, a version is taken to be the newest; -1: for good.", None),
        (MAX_SCHEMAS, number, 1000, _LOW, "Schemas kept in memory of each subject.", at_least(1)),
        (
            "key.subject.name.strategy",
            Type.CLASS,
            subjects.TOPIC_NAME,
            _MEDIUM,
            "The subject of keys' schemas.",
            subjects.check,
        ),
        (
            "value.subject.name.strategy",
            Type.CLASS,
            subjects.TOPIC_NAME,
            _MEDIUM,
            "The subject of values' schemas.",
            subjects.check,
        ),
        (
            CREDENTIALS,
            text,
            "URL",
            _MEDIUM,
            "Where user and password are: in the URL, USER_INFO or SASL_INHERIT (sasl.jaas.config).",
            one_of("URL", "USER_INFO", "SASL_INHERIT"),
        ),
        (USER_INFO, secret, Password(""), _MEDIUM, "user:password, with USER_INFO.", None),
        (f"schema.registry.{USER_INFO}", secret, Password(""), _MEDIUM, "The same, an older name.", None),
        (BEARER_SOURCE, text, "STATIC_TOKEN", _MEDIUM, "Where the token comes from.", one_of("STATIC_TOKEN")),
        (BEARER_TOKEN, secret, Password(""), _MEDIUM, "A token to send along.", None),
        (CONNECT_MS, number, 5_000, _LOW, "The longest that a connection may take, in ms.", at_least(1)),
        (READ_MS, number, 10_000, _LOW, "The longest that an answer may take, in ms.", at_least(1)),
        (RETRIES, number, 1, _LOW, "How often all URLs are tried again before the task gets the error.", at_least(0)),
        (RETRY_WAIT_MS, number, 200, _LOW, "The wait before the first of these, in ms; then it doubles.", at_least(0)),
        (RETRY_MOST_MS, number, 2_000, _LOW, "The longest of these waits, in ms.", at_least(0)),
        (PROXY_HOST, text, "", _LOW, "A proxy on the way to the registry.", None),
        (PROXY_PORT, number, -1, _LOW, "Its port.", None),
        (f"schema.registry.{PROXY_HOST}", text, "", _LOW, "The same as proxy.host, and before it.", None),
        (f"schema.registry.{PROXY_PORT}", number, -1, _LOW, "The same as proxy.port, and before it.", None),
        *((f"schema.registry.{row[0]}", *row[1:]) for row in _tls_keys()),
    )
    return converter_keys.common_keys() + ConfigDef(*(ConfigKey(*row) for row in table))


def _tls_keys() -> tuple[tuple[str, Type, Any, Importance, str, Rule | None], ...]:
    """Returns the supported keys for TLS, as for Kafka's clients; see keelman.runtime.tls.contexts."""
    text, secret, several = Type.STRING, Type.PASSWORD, Type.LIST
    return (
        ("ssl.truststore.location", text, None, _HIGH, "A file of certificates to trust; else the system's.", None),
        ("ssl.truststore.password", secret, None, _HIGH, "Its password, of JKS and PKCS12.", None),
        ("ssl.truststore.type", text, "JKS", _MEDIUM, "JKS, PKCS12 or PEM.", None),
        ("ssl.truststore.certificates", secret, None, _HIGH, "The certificates themselves, PEM.", None),
        ("ssl.keystore.location", text, None, _HIGH, "A file of the client's own key and certificate.", None),
        ("ssl.keystore.password", secret, None, _HIGH, "Its password, of JKS and PKCS12.", None),
        ("ssl.keystore.type", text, "JKS", _MEDIUM, "JKS, PKCS12 or PEM.", None),
        ("ssl.keystore.key", secret, None, _HIGH, "The client's private key itself, PEM.", None),
        ("ssl.keystore.certificate.chain", secret, None, _HIGH, "Its certificates, PEM.", None),
        ("ssl.key.password", secret, None, _HIGH, "The password of the private key.", None),
        ("ssl.endpoint.identification.algorithm", text, "https", _LOW, "Empty: no check of the server's name.", None),
        (
            "ssl.enabled.protocols",
            several,
            ("TLSv1.2", "TLSv1.3"),
            _MEDIUM,
            "Versions of TLS that may be spoken.",
            None,
        ),
        ("ssl.cipher.suites", several, None, _LOW, "Of TLS 1.2, in Java's names.", None),
    )


def data_keys() -> ConfigDef:
    """Returns the keys that the converters' translations of schemas share."""
    cache_doc, sums = "Schemas kept translated.", "Keep that a struct came from a union, in the same way for all kinds."
    return ConfigDef(
        ConfigKey(CACHE_SIZE, Type.INT, 1000, _LOW, cache_doc, at_least(1)),
        ConfigKey("generalized.sum.type.support", Type.BOOLEAN, False, _MEDIUM, sums),
        ConfigKey(
            "ignore.default.for.nullables", Type.BOOLEAN, False, _MEDIUM, "Null stays null in spite of a default."
        ),
    )


class ConverterOptions:
    """Base of dataclasses with slots that hold a converter's parsed configuration: their fields are named as its keys,
    with underscores for dots."""

    __slots__: tuple[str, ...] = ()

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Self:
        """Returns the options of a parsed configuration."""
        return cls(**{name: config[name.replace("_", ".")] for name in cls.__slots__})
