"""Reads key and trust stores by Java's names (`ssl.keystore.*`, `ssl.truststore.*`) into PEM.

JKS is read with the JDK's own keytool, PKCS12 and PEM with cryptography. The first bytes of a file decide its format,
as in Java's own loader: a PKCS12 file under the type JKS opens, and the other way round.
"""

from __future__ import annotations

import os
import re
import secrets
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from keelman.model.errors import InvalidArgument
from keelman.runtime.java.installation import JavaMissing, find

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
    from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12KeyAndCertificates, PKCS12PrivateKeyTypes
    from cryptography.x509 import Certificate

TYPES = ("JKS", "PKCS12", "PEM")
STORES = ("keystore", "truststore")
KEYTOOL_SECONDS = 60.0
JKS_MAGIC = bytes.fromhex("feedfeed")
_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----\s?", re.DOTALL)
_KEY = re.compile(rb"-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----.+?-----END (?:[A-Z]+ )?PRIVATE KEY-----", re.DOTALL)
_LATER_IN_CHAIN = re.compile(rb"^Certificate\[(?!1\])\d+\]:\s*-----BEGIN.+?-----END CERTIFICATE-----", re.DOTALL | re.M)


@dataclass(frozen=True, slots=True)
class TlsIdentity:
    """A private key (PEM, PKCS#8, not encrypted) and its certificates (PEM, its own first)."""

    key: bytes = field(repr=False)
    certificates: bytes


def read_identity(properties: Mapping[str, str], prefix: str = "ssl.") -> TlsIdentity | None:
    """Returns the keystore that `<prefix>keystore.*` and `<prefix>key.password` name; None if they name none.

    Raises InvalidArgument naming the property at fault, never a password.
    """
    key = f"{prefix}keystore"
    inline, chain = properties.get(f"{key}.key", ""), properties.get(f"{key}.certificate.chain", "")
    location, password = properties.get(f"{key}.location", ""), properties.get(f"{key}.password", "")
    key_password = properties.get(f"{prefix}key.password", "")
    kind = _kind(properties, key)
    if inline or chain:
        if not (inline and chain):
            missing = f"{key}.certificate.chain" if inline else f"{key}.key"
            raise InvalidArgument(f"{missing} is missing: key and certificates must be set together")
        return _pem_identity(inline.encode(), chain.encode(), key_password, f"{key}.key", prefix)
    if not location:
        return None
    data = _read(location, f"{key}.location")
    if _is_pem(kind, data, location, f"{key}.type"):
        return _pem_identity(data, data, key_password, f"{key}.location", prefix)
    if data.startswith(JKS_MAGIC):
        data, passing = _as_pkcs12(location, data, password, key_password or password, prefix)
        return _pkcs12_identity(data, passing, location, f"{key}.location")
    return _pkcs12_identity(data, password, location, f"{key}.password")


def read_trusted(properties: Mapping[str, str], prefix: str = "ssl.") -> bytes | None:
    """Returns the certificates (PEM) of the truststore that `<prefix>truststore.*` name; None if they name none.

    Raises InvalidArgument naming the property at fault, never a password.
    """
    key = f"{prefix}truststore"
    inline, location = properties.get(f"{key}.certificates", ""), properties.get(f"{key}.location", "")
    password = properties.get(f"{key}.password", "")
    kind = _kind(properties, key)
    if inline:
        return _certificates(inline.encode(), f"{key}.certificates")
    if not location:
        return None
    data = _read(location, f"{key}.location")
    if _is_pem(kind, data, location, f"{key}.type"):
        return _certificates(data, f"{key}.location")
    if data.startswith(JKS_MAGIC):
        # Of a key's own chain Java trusts only the first certificate.
        listed = _LATER_IN_CHAIN.sub(b"", _listed(location, data, password, f"{key}.password"))
        return _certificates(listed, f"{key}.location")
    store = _pkcs12(data, password, location, f"{key}.password")
    trusted = [store.cert, *store.additional_certs] if store.cert else list(store.additional_certs)
    return _certificates(_pem(entry.certificate for entry in trusted), f"{key}.location")


def names_identity(properties: Mapping[str, str], prefix: str = "ssl.") -> bool:
    """Returns whether the properties name a keystore, or contain one."""
    names = ("location", "key", "certificate.chain")
    return any(properties.get(f"{prefix}keystore.{name}") for name in names)


def check_kinds(properties: Mapping[str, str], prefix: str = "ssl.") -> None:
    """Raises InvalidArgument for an illegal type of a store."""
    for store in STORES:
        _kind(properties, f"{prefix}{store}")


def _kind(properties: Mapping[str, str], key: str) -> str:
    kind = properties.get(f"{key}.type", "").upper()
    if kind and kind not in TYPES:
        raise InvalidArgument.of(f"{key}.type", kind, "one of " + ", ".join(TYPES))
    return kind


def _read(location: str, key: str) -> bytes:
    try:
        return Path(location).read_bytes()
    except OSError as error:
        raise InvalidArgument(f"{key}: {location!r} cannot be read: {error.strerror}") from None


def _is_pem(kind: str, data: bytes, location: str, key: str) -> bool:
    """Returns whether the file is text of certificates. Raises InvalidArgument if it does not fit the type."""
    pem = b"-----BEGIN" in data
    if kind and pem != (kind == "PEM"):
        raise InvalidArgument.of(key, kind, f"PEM or unset: {location!r} is " + ("PEM" if pem else "no PEM file"))
    return pem


def _certificates(pem: bytes, key: str) -> bytes:
    pems = _CERTIFICATE.findall(pem)
    if not pems:
        raise InvalidArgument(f"{key}: no certificate in it")
    text = b"".join(pem.replace(b"\r", b"").strip() + b"\n" for pem in pems)
    from cryptography import x509  # noqa: PLC0415  (a worker without TLS starts without it)

    try:
        x509.load_pem_x509_certificates(text)
    except ValueError as error:
        raise InvalidArgument(f"{key}: not legal: {error}") from None
    return text


def _pem_identity(key_text: bytes, chain: bytes, password: str, key: str, prefix: str) -> TlsIdentity:
    match = _KEY.search(key_text)
    if match is None:
        raise InvalidArgument(f"{key}: no private key in it")
    from cryptography.hazmat.primitives.serialization import load_pem_private_key  # noqa: PLC0415  (the same)

    try:
        private = load_pem_private_key(match[0], password.encode() if password else None)
    except TypeError:
        said = "the private key is not encrypted" if password else "the private key is encrypted"
        raise InvalidArgument(f"{prefix}key.password: {said} ({key})") from None
    except ValueError:
        raise InvalidArgument(f"{key}: the private key cannot be read, or {prefix}key.password is wrong") from None
    return TlsIdentity(_plain(private), _certificates(chain, key))


def _plain(private: PrivateKeyTypes | PKCS12PrivateKeyTypes) -> bytes:
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415  (the same)

    pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    return private.private_bytes(pem, pkcs8, serialization.NoEncryption())


def _pem(certificates: Iterable[Certificate]) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding  # noqa: PLC0415  (the same)

    return b"".join(certificate.public_bytes(Encoding.PEM) for certificate in certificates)


def _pkcs12(data: bytes, password: str, location: str, key: str) -> PKCS12KeyAndCertificates:
    from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12  # noqa: PLC0415  (the same)

    try:
        return load_pkcs12(data, password.encode() if password else None)
    except ValueError:
        raise InvalidArgument(
            f"{key}: the password does not open {location!r}, or that is not a JKS, PKCS12 or PEM file"
        ) from None


def _pkcs12_identity(data: bytes, password: str, location: str, key: str) -> TlsIdentity:
    store = _pkcs12(data, password, location, key)
    if store.key is None or store.cert is None:
        raise InvalidArgument(f"{key}: no private key with a certificate in {location!r}")
    chain = [store.cert.certificate, *(entry.certificate for entry in store.additional_certs)]
    return TlsIdentity(_plain(store.key), _pem(chain))


@lru_cache(maxsize=8)  # a JVM for each client that a worker opens would take its time
def _as_pkcs12(location: str, data: bytes, password: str, key_password: str, prefix: str) -> tuple[bytes, str]:
    """Returns the first private key of a JKS file (`data`), as a PKCS12 store with its password."""
    key, passing = f"{prefix}keystore.location", secrets.token_hex(16)
    listed = _listed(location, data, password, f"{prefix}keystore.password")
    entry = re.search(rb"Alias name: (.+)\n(?:.*\n)?Entry type: PrivateKeyEntry", listed)
    if entry is None:
        raise InvalidArgument(f"{key}: no private key in {location!r}")
    with tempfile.TemporaryDirectory(prefix="keelman-") as folder:
        out = Path(folder) / "store.p12"
        command = ["-importkeystore", "-noprompt", "-srckeystore", location, "-srcstoretype", "JKS"]
        command += ["-srcstorepass:env", "STORE", "-srcalias", entry[1].decode().strip(), "-srckeypass:env", "KEY"]
        command += ["-destkeystore", str(out), "-deststoretype", "PKCS12"]
        command += ["-deststorepass:env", "PASSING", "-destkeypass:env", "PASSING"]
        _keytool(command, {"STORE": password, "KEY": key_password, "PASSING": passing}, key)
        if not out.exists():
            raise InvalidArgument(f"{key}: {location!r} cannot be read, or {prefix}key.password is wrong")
        return out.read_bytes(), passing


@lru_cache(maxsize=8)
def _listed(location: str, data: bytes, password: str, key: str) -> bytes:
    """Returns keytool's listing of a JKS file whose content is `data`, with its certificates."""
    command = ["-list", "-rfc", "-keystore", location, "-storetype", "JKS"]
    # Without a password Java reads a truststore too, only unverified: an empty line answers keytool's question.
    command += ["-storepass:env", "STORE"] if password else []
    answer = _keytool(command, {"STORE": password}, key)
    if b"Alias name:" not in answer:
        raise InvalidArgument(f"{key}: the password does not open {location!r}, or there is nothing in it")
    return answer


def _keytool(command: list[str], passwords: Mapping[str, str], key: str) -> bytes:
    """Returns keytool's output, in English; passwords go through the environment, which other users cannot list."""
    try:
        program = find().home / "bin" / "keytool"
    except JavaMissing as error:
        raise InvalidArgument(
            f"{key}: a JKS store needs Java's keytool, or convert it to PEM. {error.message}"
        ) from None
    environment = {**os.environ, **passwords}
    environment.pop("JAVA_TOOL_OPTIONS", None)
    english = ["-J-Duser.language=en", "-J-Duser.country=US", "-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC"]
    try:
        answer = subprocess.run(
            [str(program), *english, *command],
            input=b"\n",
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            timeout=KEYTOOL_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InvalidArgument(f"{key}: keytool does not answer: {error}") from None
    return answer.stdout
