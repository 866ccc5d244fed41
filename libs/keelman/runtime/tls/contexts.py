"""Creates TLS contexts from Java's `ssl.*` properties, for servers and for clients."""

from __future__ import annotations

import ssl
from collections.abc import Mapping

from keelman.model.errors import InvalidArgument
from keelman.runtime.tls.pairs import load_pair
from keelman.runtime.tls.server_contexts import OutspokenContext
from keelman.runtime.tls.stores import STORES, TlsIdentity, check_kinds, names_identity, read_identity, read_trusted

CLIENT_AUTH = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}
VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
OLDER = ("SSLv3", "TLSv1", "TLSv1.1")  # refused by this Python's OpenSSL as by present Javas


def server_context(properties: Mapping[str, str], prefix: str = "ssl.") -> ssl.SSLContext:
    """Returns a server's context: its keystore, and its clients' truststore if `client.auth` requires certificates.

    Raises InvalidArgument naming the property at fault.
    """
    identity = read_identity(properties, prefix)
    if identity is None:
        raise _no_identity(prefix)
    context = OutspokenContext(ssl.PROTOCOL_TLS_SERVER)
    _limit(context, properties, prefix)
    _own(context, identity, f"{prefix}keystore.location")
    context.verify_mode = _client_auth(properties, prefix)
    if context.verify_mode is not ssl.CERT_NONE:
        _trust(context, properties, prefix)
    return context


def check_server(properties: Mapping[str, str], prefix: str = "ssl.") -> None:
    """Raises InvalidArgument as `server_context` does, for properties that no host can use: files are not read."""
    if not _names_files(properties, prefix):
        server_context(properties, prefix)
        return
    check_kinds(properties, prefix)
    if not names_identity(properties, prefix):
        raise _no_identity(prefix)
    _limit(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), properties, prefix)
    _client_auth(properties, prefix)


def check_client(properties: Mapping[str, str], prefix: str = "ssl.") -> None:
    """Raises InvalidArgument as `client_context` does, for properties that no host can use: files are not read."""
    if not _names_files(properties, prefix):
        client_context(properties, prefix)
        return
    check_kinds(properties, prefix)
    _limit(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), properties, prefix)
    _checks_host(properties, prefix)


def _names_files(properties: Mapping[str, str], prefix: str) -> bool:
    return any(properties.get(f"{prefix}{store}.location") for store in STORES)


def _no_identity(prefix: str) -> InvalidArgument:
    key = f"{prefix}keystore.location"
    text = f"{key} is missing: an https listener needs a key and a certificate"
    return InvalidArgument(text, metadata={"field": key})


def _client_auth(properties: Mapping[str, str], prefix: str) -> ssl.VerifyMode:
    mode = properties.get(f"{prefix}client.auth", "") or "none"
    if mode not in CLIENT_AUTH:
        raise InvalidArgument.of(f"{prefix}client.auth", mode, "one of " + ", ".join(CLIENT_AUTH))
    return CLIENT_AUTH[mode]


def _checks_host(properties: Mapping[str, str], prefix: str) -> bool:
    algorithm = properties.get(f"{prefix}endpoint.identification.algorithm", "https")
    if algorithm.lower() not in ("", "https"):
        raise InvalidArgument.of(f"{prefix}endpoint.identification.algorithm", algorithm, "https or empty")
    return bool(algorithm)


def client_context(properties: Mapping[str, str], prefix: str = "ssl.") -> ssl.SSLContext:
    """Returns a client's context: its truststore (the system's authorities without one), and its own key if any.

    An empty `endpoint.identification.algorithm` switches off the check of the server's name, as in Java. Raises
    InvalidArgument naming the property at fault.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    _limit(context, properties, prefix)
    _trust(context, properties, prefix)
    context.check_hostname = _checks_host(properties, prefix)
    identity = read_identity(properties, prefix)
    if identity is not None:
        _own(context, identity, f"{prefix}keystore.location")
    return context


def _limit(context: ssl.SSLContext, properties: Mapping[str, str], prefix: str) -> None:
    """Sets protocol versions and ciphers."""
    key = f"{prefix}enabled.protocols"
    names = [n.strip() for n in properties.get(key, "").split(",") if n.strip()] or list(VERSIONS)
    unknown = [n for n in names if n not in VERSIONS and n not in OLDER]
    versions = [VERSIONS[n] for n in names if n in VERSIONS]
    if unknown or not versions:
        raise InvalidArgument.of(key, ",".join(names), "one or more of " + ", ".join(VERSIONS))
    context.minimum_version, context.maximum_version = min(versions), max(versions)
    suites = properties.get(f"{prefix}cipher.suites", "")
    older = openssl_suites(suites)
    if older:
        try:
            context.set_ciphers(older)
        except ssl.SSLError:
            raise InvalidArgument.of(f"{prefix}cipher.suites", suites, "cipher suites as Java names them") from None


def openssl_suites(java: str) -> str:
    """Returns OpenSSL's list of the TLS 1.2 suites in a list of Java's names; empty if there is none.

    TLS 1.3's have the same names in OpenSSL, where they cannot be chosen one by one.
    """
    names = [n.strip() for n in java.split(",") if n.strip()]
    return ":".join(_openssl_name(n) for n in names if not n.startswith(("TLS_AES_", "TLS_CHACHA20_")))


def _openssl_name(java: str) -> str:
    """Returns OpenSSL's name of a TLS 1.2 suite: TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 is
    ECDHE-RSA-AES128-GCM-SHA256."""
    name = java.removeprefix("TLS_").replace("_WITH_", "_").replace("AES_128", "AES128").replace("AES_256", "AES256")
    if name.startswith("RSA_"):
        name = name.removeprefix("RSA_").replace("_CBC", "")
    name = name.replace("_CBC_", "_").replace("CHACHA20_POLY1305_SHA256", "CHACHA20_POLY1305")
    return name.replace("_", "-")


def _own(context: ssl.SSLContext, identity: TlsIdentity, key: str) -> None:
    try:
        load_pair(context, identity.certificates, identity.key)
    except ssl.SSLError as error:
        raise InvalidArgument(f"{key}: its key and certificate cannot be used: {error.reason}") from None


def _trust(context: ssl.SSLContext, properties: Mapping[str, str], prefix: str) -> None:
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # to Java every truststore certificate is an anchor
    trusted = read_trusted(properties, prefix)
    if trusted is None:
        context.load_default_certs()
    else:
        context.load_verify_locations(cadata=trusted.decode())
