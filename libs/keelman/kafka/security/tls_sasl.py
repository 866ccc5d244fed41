"""Translates TLS and SASL of Java's client properties for both client libraries. Reads files once where possible."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from keelman.kafka.security import jaas, oauth
from keelman.kafka.security.tokens import Tokens
from keelman.model.errors import InvalidArgument
from keelman.runtime.tls.followed import FollowedContext, Properties, of_tls, stores_changed

if TYPE_CHECKING:
    from keelman.runtime.tls.stores import TlsIdentity

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS = {
    "PLAIN": (jaas.PLAIN, jaas.SCRAM),
    "SCRAM-SHA-256": (jaas.SCRAM, jaas.PLAIN),
    "SCRAM-SHA-512": (jaas.SCRAM, jaas.PLAIN),
    "OAUTHBEARER": (jaas.OAUTHBEARER,),
}
_NAMES = "ssl.endpoint.identification.algorithm"


def protocol(properties: Mapping[str, str]) -> str:
    """Returns `security.protocol`. Raises InvalidArgument."""
    text = properties.get("security.protocol", "").strip().upper() or "PLAINTEXT"
    if text not in PROTOCOLS:
        raise InvalidArgument.of("security.protocol", text, "one of " + ", ".join(PROTOCOLS))
    return text


def login(properties: Mapping[str, str]) -> tuple[str, jaas.LoginModule]:
    """Returns mechanism and login module of a SASL client. Raises InvalidArgument, which names the property."""
    mechanism = properties.get("sasl.mechanism", "").strip() or "GSSAPI"
    if mechanism == "GSSAPI":
        raise InvalidArgument(
            "sasl.mechanism: 'GSSAPI' (Kerberos), Java's default, is not supported: set one of " + ", ".join(MECHANISMS)
        )
    if mechanism not in MECHANISMS:
        raise InvalidArgument.of("sasl.mechanism", mechanism, "one of " + ", ".join(MECHANISMS))
    text = properties.get("sasl.jaas.config", "").strip()
    if not text:
        raise InvalidArgument(
            f'sasl.jaas.config is missing: {mechanism} needs {MECHANISMS[mechanism][0]} required OPTION="VALUE" ...;'
        )
    module = jaas.parse(text)
    if module.name not in MECHANISMS[mechanism]:
        raise InvalidArgument(f"sasl.jaas.config: {mechanism} needs {MECHANISMS[mechanism][0]}, not {module.name}")
    if mechanism != "OAUTHBEARER":
        for option in ("username", "password"):
            if option not in module.options:
                raise InvalidArgument(f"sasl.jaas.config: {option} is missing: {mechanism} needs username and password")
        if module.options.get("tokenauth", "").lower() == "true":
            raise InvalidArgument("sasl.jaas.config: tokenauth: delegation tokens are not supported")
    return mechanism, module


def for_aiokafka(properties: Mapping[str, str]) -> dict[str, Any]:
    """Returns aiokafka's arguments, without the OAUTHBEARER provider of `tokens`. Raises InvalidArgument."""
    spoken = protocol(properties)
    settings: dict[str, Any] = {"security_protocol": spoken}
    if spoken.endswith("SSL"):
        settings["ssl_context"] = FollowedContext(properties)
    if spoken.startswith("SASL"):
        mechanism, module = login(properties)
        settings["sasl_mechanism"] = mechanism
        if mechanism != "OAUTHBEARER":
            settings["sasl_plain_username"] = module.options["username"]
            settings["sasl_plain_password"] = module.options["password"]
    return settings


def for_librdkafka(properties: Mapping[str, str]) -> dict[str, Any]:
    """Returns librdkafka's settings. Raises InvalidArgument."""
    spoken = protocol(properties)
    settings: dict[str, Any] = {} if spoken == "PLAINTEXT" else {"security.protocol": spoken}
    if spoken.endswith("SSL"):
        settings |= _tls_settings(properties)
    if spoken.startswith("SASL"):
        mechanism, module = login(properties)
        settings["sasl.mechanism"] = mechanism
        if mechanism == "OAUTHBEARER":
            settings["oauth_cb"] = _callback(tokens(properties))
        else:
            settings["sasl.username"], settings["sasl.password"] = (
                module.options["username"],
                module.options["password"],
            )
    return settings


def own_certificate_ends(properties: Mapping[str, str]) -> datetime | None:
    """Returns when the client's own certificate expires; None if it has none. Raises InvalidArgument."""
    from cryptography import x509  # noqa: PLC0415  (the same)

    identity = _stores(of_tls(properties), stores_changed(properties))[1]
    return None if identity is None else x509.load_pem_x509_certificate(identity.certificates).not_valid_after_utc


def tokens(properties: Mapping[str, str]) -> Tokens:
    """Returns the tokens of an OAUTHBEARER client: shared by all clients of a process with the same properties."""
    options = login(properties)[1].options
    if properties.get(oauth.URL_KEY, "").strip():
        oauth.checked_url(properties[oauth.URL_KEY].strip())
    chosen = {k: v for k, v in properties.items() if k.startswith(("sasl.oauthbearer.", "sasl.login."))}
    return _tokens(tuple(sorted(chosen.items())), tuple(sorted(options.items())))


@lru_cache(maxsize=64)
def _tokens(properties: tuple[tuple[str, str], ...], options: tuple[tuple[str, str], ...]) -> Tokens:
    return oauth.tokens(dict(properties), dict(options))


def _callback(source: Tokens) -> Callable[[str], tuple[str, float, str, dict[str, str]]]:
    def token(_config: str) -> tuple[str, float, str, dict[str, str]]:
        token = source.current()
        return token.text, token.ends, token.principal, dict(token.extensions)

    return token


def _tls_settings(properties: Mapping[str, str]) -> dict[str, Any]:
    from keelman.runtime.tls.contexts import openssl_suites  # noqa: PLC0415  (7 MB that a client without TLS need not have)

    trusted, identity = _stores(of_tls(properties), stores_changed(properties))
    algorithm = properties.get(_NAMES, "https").strip().lower()
    if algorithm not in ("", "https"):
        raise InvalidArgument.of(_NAMES, algorithm, "https or empty")
    settings: dict[str, Any] = {_NAMES: algorithm or "none"}
    if trusted is not None:
        settings["ssl.ca.pem"] = trusted.decode()
    if identity is not None:
        settings["ssl.key.pem"], settings["ssl.certificate.pem"] = identity.key.decode(), identity.certificates.decode()
    suites = openssl_suites(properties.get("ssl.cipher.suites", ""))
    return {**settings, "ssl.cipher.suites": suites} if suites else settings


@lru_cache(maxsize=64)
def _stores(properties: Properties, _changed: tuple[int, ...]) -> tuple[bytes | None, TlsIdentity | None]:
    from keelman.runtime.tls.stores import read_identity, read_trusted  # noqa: PLC0415  (the same)

    return read_trusted(dict(properties)), read_identity(dict(properties))
