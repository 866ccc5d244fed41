"""The installation's CA: signs certificates that identify their holders."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from keelman.model.errors import InvalidArgument
from keelman.rpc.identity import DOMAIN, Identity, server_name
from keelman.runtime.tls.certificates import normal_host, public_key_digest

AUTHORITY_YEARS = 20
BEFORE = timedelta(minutes=5)
"""How far a host's clock may be behind that of the state service, or by a tenth of a certificate's life."""
MIN_RSA_BITS = 2048
MAX_HOSTS = 32


@dataclass(frozen=True)
class Authority:
    """The CA: its certificate and its private key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey = field(repr=False)

    @classmethod
    def made(cls, now: datetime) -> Authority:
        """Makes a new CA."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "keelman installation")])
        usage = _usage(key_cert_sign=True, crl_sign=True)
        builder = (
            _builder(name, name, key.public_key(), now - BEFORE, now + timedelta(days=365 * AUTHORITY_YEARS))
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        )
        return cls(builder.sign(key, hashes.SHA256()), key)

    @classmethod
    def of(cls, certificate: str, key: str) -> Authority:
        """Returns the CA of these PEM texts."""
        private = load_pem_private_key(key.encode(), password=None)
        assert isinstance(private, ec.EllipticCurvePrivateKey)
        return cls(x509.load_pem_x509_certificate(certificate.encode()), private)

    @cached_property
    def pem(self) -> str:
        """Its certificate."""
        return self.certificate.public_bytes(Encoding.PEM).decode()

    @property
    def key_pem(self) -> str:
        """Its private key, not encrypted."""
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of its certificate, in hex."""
        return self.certificate.fingerprint(hashes.SHA256()).hex()

    def sign(self, request: str, holder: Identity, hosts: Iterable[str], now: datetime, life: timedelta) -> str:
        """Returns the certificate of a request's maker, in PEM and followed by the CA's. Raises InvalidArgument."""
        signing_request = read_request(request)
        public = signing_request.public_key()
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, holder.common_name)])
        names = [
            x509.UniformResourceIdentifier(holder.uri),
            x509.DNSName(server_name(holder)),
            *(_general(host) for host in hosts),
        ]
        uses = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
        of_authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key())
        begin = now - min(BEFORE, life / 10)
        end = min(now + life, self.certificate.not_valid_after_utc)
        builder = (
            _builder(subject, self.certificate.subject, public, begin, end)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(digital_signature=True), critical=True)
            .add_extension(uses, critical=False)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
            .add_extension(of_authority, critical=False)
        )
        signed = builder.sign(self.key, hashes.SHA256())
        return signed.public_bytes(Encoding.PEM).decode() + self.pem


def read_request(text: str) -> x509.CertificateSigningRequest:
    """Returns a request whose signature proves that its maker has the key. Raises InvalidArgument."""
    legal = "a PKCS#10 request in PEM, signed with an elliptic key or with one of RSA of 2048 bits or more"
    try:
        signing_request = x509.load_pem_x509_csr(text.encode())
        key = signing_request.public_key()
        is_right = signing_request.is_signature_valid and (
            isinstance(key, ec.EllipticCurvePublicKey)
            or (isinstance(key, rsa.RSAPublicKey) and key.key_size >= MIN_RSA_BITS)
        )
    except (ValueError, InvalidSignature, UnsupportedAlgorithm):
        is_right = False
    if not is_right:
        raise InvalidArgument.of("certificate_request", text[:40], legal)
    return signing_request


def key_digest_of(request: str) -> str:
    """Returns the SHA-256 of the public key of a request. Raises InvalidArgument."""
    return public_key_digest(read_request(request).public_key())


def checked_hosts(hosts: Iterable[str]) -> list[str]:
    """Returns addresses and host names in their normal form, each once. Raises InvalidArgument for anything else, and
    for names that only keelman gives."""
    normal = list(dict.fromkeys(map(normal_host, hosts)))
    if len(normal) > MAX_HOSTS:
        raise InvalidArgument.of("hosts", len(normal), f"at most {MAX_HOSTS} addresses and host names")
    for host in normal:
        try:
            ipaddress.ip_address(host)
        except ValueError:
            is_name = host and host.isascii() and len(host) <= 253 and all(c.isalnum() or c in "-._" for c in host)
            if not is_name or host.rstrip(".").endswith(DOMAIN):
                raise InvalidArgument.of("hosts", host, f"an address or a host's name, outside of {DOMAIN}") from None
    return normal


def _builder(
    subject: x509.Name, issuer: x509.Name, key: object, begin: datetime, end: datetime
) -> x509.CertificateBuilder:
    return x509.CertificateBuilder(
        subject_name=subject,
        issuer_name=issuer,
        public_key=key,  # type: ignore[arg-type]
        serial_number=x509.random_serial_number(),
        not_valid_before=begin,
        not_valid_after=end,
    )


def _usage(*, digital_signature: bool = False, key_cert_sign: bool = False, crl_sign: bool = False) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=digital_signature,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=key_cert_sign,
        crl_sign=crl_sign,
        encipher_only=False,
        decipher_only=False,
    )


def _general(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
