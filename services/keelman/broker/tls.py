"""TLS of a broker: the stores that its Java reads, and the reload of a renewed certificate while the broker runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from keelman.broker.settings import Settings
from keelman.kafka.probe import ask_certificate, unset_broker_configs
from keelman.model.errors import InvalidArgument, Unavailable
from keelman.runtime.tls.certificates import CertificateFacts, certificate_facts, digest_of_der
from keelman.runtime.tls.stores import read_identity, read_trusted

LISTENER = "TLS"
"""Name of the listener for clients and brokers if it uses TLS."""
OF_CLIENTS, OF_CONTROLLERS = f"listener.name.{LISTENER.lower()}.", "listener.name.controller."
RELOADED = (f"{OF_CLIENTS}ssl.keystore.location",)
SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Stores:
    """PEM files: the broker's private key with its certificates, and the certificates of the CA that it trusts."""

    keystore: Path
    truststore: Path
    client_certificates: bool
    is_shown: bool = True
    """Whether clients get the keystore's certificate: the user's properties may name another."""

    @classmethod
    def of(cls, settings: Settings) -> Stores | None:
        """Returns the stores of a broker's settings; None for plain text. Raises InvalidArgument for one store without
        the other, and for client_certificates without both."""
        key, trust = settings.tls_keystore, settings.tls_truststore
        if key is None and trust is None:
            if settings.client_certificates:
                raise InvalidArgument.of("broker.client_certificates", True, "false without tls_keystore")
            return None
        if key is None or trust is None:
            missing = "tls_keystore" if key is None else "tls_truststore"
            raise InvalidArgument.of(f"broker.{missing}", "", "a PEM file: tls_keystore and tls_truststore go together")
        others = tuple(f"{prefix}ssl.keystore." for prefix in ("", OF_CLIENTS))
        is_shown = not any(name.startswith(others) for name in settings.properties)
        return cls(key.absolute(), trust.absolute(), settings.client_certificates, is_shown)

    @property
    def files(self) -> dict[str, str]:
        """The stores as Kafka properties, for brokers and clients."""
        return {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.keystore),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.truststore),
        }

    @property
    def properties(self) -> dict[str, str]:
        """The broker's properties. A peer of a controller must always have a certificate: it is a broker. A renewed
        certificate may lack hosts of the old one: without `ssl.allow.san.changes` Kafka would keep the old one."""
        mode = "required" if self.client_certificates else "none"
        return {
            **self.files,
            "ssl.allow.san.changes": "true",
            f"{OF_CLIENTS}ssl.client.auth": mode,
            f"{OF_CONTROLLERS}ssl.client.auth": "required",
        }

    @property
    def client(self) -> dict[str, str]:
        """The properties of a client on the broker's host, which may use an address that the certificate
        does not name."""
        return {"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": "", **self.files}

    def check(self) -> None:
        """Raises InvalidArgument with the name of the setting for a store that cannot be used."""
        for setting, read in (("tls_keystore", read_identity), ("tls_truststore", read_trusted)):
            try:
                read(self.files)
            except InvalidArgument as error:
                raise InvalidArgument(f"broker.{setting}: {error.message}") from None

    def facts(self) -> CertificateFacts:
        """Returns the facts of the certificate in the keystore. Raises InvalidArgument if there is none."""
        identity = read_identity(self.files)
        assert identity is not None  # the files name one
        return certificate_facts(identity.certificates)

    def stamp(self) -> tuple[int, ...]:
        """Returns a value that changes when a file is written again."""
        try:
            return tuple(file.stat().st_mtime_ns for file in (self.keystore, self.truststore))
        except OSError:
            return ()  # one of the two files is just being replaced

    async def reload(self, host: str, port: int, node_id: int) -> None:
        """Has the broker at that address, and the controller in its process, read their files again: each change of a
        broker's dynamic configuration does that, even the removal of a key that was never set.

        Source: KAFKA-14136, and reloadUpdatedFilesWithoutConfigChange of DynamicBrokerConfig.scala in Kafka. Raises
        InvalidArgument for files that cannot be used, and Unavailable if the broker cannot be called, or has not
        loaded the certificate.
        """
        self.check()
        await unset_broker_configs(host, port, node_id, RELOADED, self.client, seconds=SECONDS)
        if self.is_shown:
            await self.check_shown(host, port)

    async def check_shown(self, host: str, port: int) -> None:
        """Raises Unavailable unless the broker at that address presents the certificate in the keystore."""
        shown = await ask_certificate(host, port, self.client, seconds=SECONDS)
        if digest_of_der(shown) != self.facts().digest:
            raise Unavailable(f"the broker at {host}:{port} shows another certificate than that in {self.keystore}")
