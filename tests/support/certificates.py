"""Issues certificates for tests, as PEM texts, PKCS12 and JKS stores."""

from __future__ import annotations

import datetime
import ipaddress
import subprocess
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)
from cryptography.x509.oid import NameOID

from keelman.runtime.java.installation import find

PASSWORD = "store-secret"
_DAY = datetime.timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Issued:
    """A certificate and its private key, with the certificate of the authority."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey
    authority: x509.Certificate

    @property
    def chain_pem(self) -> str:
        """Its certificate, then the authority's."""
        return "".join(item.public_bytes(Encoding.PEM).decode() for item in (self.certificate, self.authority))

    @property
    def key_pem(self) -> str:
        """The private key, PKCS#8, not encrypted."""
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()

    def write_pkcs12(self, file: Path) -> Path:
        """Key and chain as a PKCS12 store under PASSWORD."""
        encryption = BestAvailableEncryption(PASSWORD.encode())
        chain = [self.authority]
        file.write_bytes(pkcs12.serialize_key_and_certificates(b"me", self.key, self.certificate, chain, encryption))
        return file


class Authority:
    """Issues certificates; programs that trust it accept them."""

    def __init__(self, name: str = "tests") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self.certificate = self._signed(name, self._key, authority=True)

    @property
    def pem(self) -> str:
        """Its own certificate."""
        return self.certificate.public_bytes(Encoding.PEM).decode()

    def issue(self, name: str, *hosts: str, ended: bool = False) -> Issued:
        """A certificate for these names, addresses and URIs, or none; good for 30 days, or expired for an hour."""
        key = ec.generate_private_key(ec.SECP256R1())
        return Issued(self._signed(name, key, hosts=hosts, ended=ended), key, self.certificate)

    def write_trust(self, file: Path, *others: Authority) -> Path:
        """Writes a PKCS12 trust store under PASSWORD, with Java's mark on its entries: this authority and others."""
        encryption = BestAvailableEncryption(PASSWORD.encode())
        authorities = (self, *others)
        trusted = [
            pkcs12.PKCS12Certificate(authority.certificate, b"authority%d" % n)
            for n, authority in enumerate(authorities)
        ]
        file.write_bytes(pkcs12.serialize_java_truststore(trusted, encryption))
        return file

    def _signed(
        self,
        name: str,
        key: ec.EllipticCurvePrivateKey,
        *,
        hosts: tuple[str, ...] = (),
        authority: bool = False,
        ended: bool = False,
    ) -> x509.Certificate:
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        now = datetime.datetime.now(datetime.UTC)
        extension = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(subject if authority else self.certificate.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _DAY)
            .not_valid_after(now - _DAY / 24 if ended else now + 30 * _DAY)
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        )
        if hosts:
            extension = extension.add_extension(
                x509.SubjectAlternativeName([_general(host) for host in hosts]), critical=False
            )
        return extension.sign(self._key, hashes.SHA256())


def as_jks(store: Path, file: Path) -> Path:
    """A PKCS12 store as a JKS file, by Java's own keytool."""
    command = [str(find().home / "bin" / "keytool"), "-importkeystore", "-noprompt", "-srckeystore", str(store)]
    command += ["-srcstorepass", PASSWORD, "-destkeystore", str(file), "-deststoretype", "JKS"]
    command += ["-deststorepass", PASSWORD]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    return file


def _general(host: str) -> x509.GeneralName:
    if "://" in host:
        return x509.UniformResourceIdentifier(host)
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
