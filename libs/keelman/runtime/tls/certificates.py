"""Creates private keys and certificate requests, and reads certificates: for the members of an installation."""

from __future__ import annotations

import hashlib
import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography import x509


@dataclass(frozen=True, slots=True)
class CertificateFacts:
    """The contents of a certificate. `uris` and `hosts`, names and addresses, are its alternative names. Times are
    aware; digests are SHA-256 in hex, of the whole certificate and of the public key."""

    uris: tuple[str, ...]
    hosts: tuple[str, ...]
    begin: datetime
    end: datetime
    digest: str
    key_digest: str

    def renewal(self) -> datetime:
        """Returns when two thirds of its time are over."""
        return self.begin + (self.end - self.begin) * 2 / 3


def normal_host(host: str) -> str:
    """Returns an address or host name in its form for comparison: an address as Python writes it, a name in lower case
    and without the dot at its end."""
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        return host.lower().removesuffix(".")


def made_key() -> bytes:
    """Returns a new private key in PEM: elliptic, P-256."""
    from cryptography.hazmat.primitives import serialization as form  # noqa: PLC0415  (slow; few need it)
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415  (the same)

    key = ec.generate_private_key(ec.SECP256R1())
    return key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())


def certificate_request(key: bytes) -> str:
    """Returns a PKCS#10 request in PEM, signed with a private key in PEM; its signer sets the names. Raises
    ValueError."""
    from cryptography import x509  # noqa: PLC0415  (slow; few need it)
    from cryptography.hazmat.primitives import hashes, serialization  # noqa: PLC0415  (the same)

    private = serialization.load_pem_private_key(key, password=None)
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([]))
    return builder.sign(private, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()  # type: ignore[arg-type]


@lru_cache(maxsize=256)
def certificate_facts(pem: bytes) -> CertificateFacts:
    """Returns the content of the first certificate of a PEM text. Raises ValueError if there is none."""
    from cryptography import x509  # noqa: PLC0415  (slow; few need it)
    from cryptography.hazmat.primitives.hashes import SHA256  # noqa: PLC0415  (the same)

    certificate = x509.load_pem_x509_certificate(pem)
    uris, hosts = _names(certificate)
    return CertificateFacts(
        uris=uris,
        hosts=hosts,
        begin=certificate.not_valid_before_utc,
        end=certificate.not_valid_after_utc,
        digest=certificate.fingerprint(SHA256()).hex(),
        key_digest=public_key_digest(certificate.public_key()),
    )


def public_key_digest(key: object) -> str:
    """Returns the SHA-256 of a public key (SubjectPublicKeyInfo), in hex."""
    from cryptography.hazmat.primitives import serialization as form  # noqa: PLC0415  (slow; few need it)

    encoded = key.public_bytes(form.Encoding.DER, form.PublicFormat.SubjectPublicKeyInfo)  # type: ignore[attr-defined]
    return hashlib.sha256(encoded).hexdigest()


def private_key_digest(pem: bytes) -> str:
    """Returns the SHA-256 of the public key of a private key in PEM, in hex. Raises ValueError for an unusable key."""
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415  (slow; few need it)

    try:
        return public_key_digest(serialization.load_pem_private_key(pem, password=None).public_key())
    except TypeError as error:  # it is encrypted
        raise ValueError(str(error)) from None


@lru_cache(maxsize=256)
def issued_by(pem: bytes, authorities: bytes) -> bool:
    """Returns whether the first certificate of a PEM text is signed by one of another."""
    from cryptography import x509  # noqa: PLC0415  (slow; few need it)

    try:
        certificate, known = x509.load_pem_x509_certificate(pem), x509.load_pem_x509_certificates(authorities)
    except ValueError:
        return False
    return any(_is_issued_by(certificate, authority) for authority in known)


def _is_issued_by(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415  (slow; few need it)

    try:
        certificate.verify_directly_issued_by(authority)
    except (InvalidSignature, TypeError, ValueError):
        return False
    return True


@lru_cache(maxsize=256)
def last_digest(pem: bytes) -> str:
    """Returns the SHA-256 of the last certificate of a PEM text, in hex: of its CA, where that follows. Raises
    ValueError if there is none."""
    from cryptography import x509  # noqa: PLC0415  (slow; few need it)
    from cryptography.hazmat.primitives.hashes import SHA256  # noqa: PLC0415  (the same)

    return x509.load_pem_x509_certificates(pem)[-1].fingerprint(SHA256()).hex()


def digest_of_der(certificate: bytes) -> str:
    """Returns the SHA-256 of a certificate in DER, in hex."""
    return hashlib.sha256(certificate).hexdigest()


def shown_time(time: datetime) -> str:
    """Returns a time for people, in UTC."""
    return time.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _names(certificate: x509.Certificate) -> tuple[tuple[str, ...], tuple[str, ...]]:
    from cryptography import x509  # noqa: PLC0415  (slow; few need it)

    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return (), ()
    addresses = map(str, names.get_values_for_type(x509.IPAddress))
    hosts = (*names.get_values_for_type(x509.DNSName), *addresses)
    return tuple(names.get_values_for_type(x509.UniformResourceIdentifier)), hosts
