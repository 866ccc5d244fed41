"""The address of this service for its slots, and the proof that it is theirs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from keelman.model.errors import InvalidArgument
from keelman.model.workload import joined_address
from keelman.rpc.server import Tls, is_loopback
from keelman.spark.settings import Settings
from keelman.workers.spark_master import Master


@dataclass(frozen=True, slots=True)
class SlotListener:
    """A listener for slots alone. Workers stay on loopback, since their link authenticates no client."""

    host: str
    port: int
    tls: Tls | None


@dataclass(frozen=True, slots=True)
class SlotHome:
    """`address` is host:port, `ca` the PEM certificates to trust at the start (empty: no TLS), from `ca_file`;
    `listener` None for the main port."""

    address: str
    ca: str = ""
    server_name: str = ""
    listener: SlotListener | None = None
    ca_file: Path | None = None

    def newest_ca(self) -> str:
        """Returns the certificates that a slot trusts that starts now: the file's, while it can be read."""
        if self.ca_file is None:
            return self.ca
        try:
            return _pem("tls_ca", self.ca_file) or self.ca
        except InvalidArgument:
            return self.ca

    @classmethod
    def of(cls, settings: Settings, master: Master) -> SlotHome:
        """Reads the settings. Raises InvalidArgument for an address that slots could not reach or could not trust."""
        tls = Tls.of("spark", settings.tls_certificate, settings.tls_key)
        if not settings.advertised_address:
            if master.remote and not master.near:
                raise InvalidArgument.of(
                    "spark.advertised_address", "", f"host:port of this host that executors of {master.shown} reach"
                )
            if settings.link_tls_certificate is not None and master.remote:
                legal = "host:port for slots: with link_tls_certificate the port answers links of workers only"
                raise InvalidArgument.of("spark.advertised_address", "", legal)
            if settings.port and settings.link_tls_certificate is None:
                return cls(joined_address(settings.host, settings.port))
            if settings.health_socket is None:
                raise InvalidArgument.of("spark.port", 0, "1 to 65535, or 0 with health_socket")
            return cls(f"unix:{settings.health_socket}")
        host, port = split_address("spark.advertised_address", settings.advertised_address)
        bind = settings.advertised_bind_host or host
        if tls is None:
            if not (is_loopback(host) and is_loopback(bind)):
                raise InvalidArgument.of(
                    "spark.advertised_address",
                    settings.advertised_address,
                    "an address with tls_certificate and tls_key, as it is not loopback",
                )
            return cls(settings.advertised_address, listener=SlotListener(bind, port, None))
        name, file = ("tls_ca", settings.tls_ca) if settings.tls_ca else ("tls_certificate", tls.certificate)
        return cls(
            settings.advertised_address, _pem(name, file), settings.tls_server_name, SlotListener(bind, port, tls), file
        )


def split_address(setting: str, address: str) -> tuple[str, int]:
    """Returns host and port of host:port or [v6]:port. Raises InvalidArgument naming the setting."""
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise InvalidArgument.of(setting, address, "host:port")
    return host.strip("[]"), int(port)


def _pem(name: str, file: Path) -> str:
    try:
        return file.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not one"
        raise InvalidArgument.of(f"spark.{name}", str(file), f"a readable PEM file ({reason})") from None
