"""Reads a worker's REST listeners and advertised address: keys, defaults and order as in Connect.

https takes the `listeners.https.ssl.*` keys, or, if none of them is set, the plain `ssl.*` ones (all or nothing); admin
listeners take `admin.listeners.https.*` in the same way. Listeners of metrics and requests to other workers take the
first of them.
"""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from keelman.model.errors import InvalidArgument
from keelman.model.workload import joined_address
from keelman.runtime.tls.contexts import check_client, check_server, client_context, server_context
from keelman.workers.properties.reader import PropertyReader

SCHEMES = ("http", "https")
MAX_PORT = 65535
METRICS = "keelman.metrics.listeners"
HTTPS_PREFIX, ADMIN_HTTPS_PREFIX = "listeners.https.", "admin.listeners.https."
LEGAL = "http://host:port or https://host:port, comma-separated; without a host it means every address"
HOST = "a host name or address alone, without http:// and without a port"
_HOST = re.compile(r"[0-9a-z\-%._:]+", re.IGNORECASE)
_FORM = re.compile(r"(https?)://\[?([0-9a-z\-%._:]*?)\]?:([0-9]+)/?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ListenerAddress:
    """One address that the REST API answers at; an empty host means all of this machine."""

    scheme: str
    host: str
    port: int

    @property
    def tls(self) -> bool:
        """Whether the listener speaks https."""
        return self.scheme == "https"


ANYWHERE = ListenerAddress("http", "", 8083)


@dataclass(frozen=True, slots=True)
class Listeners:
    """All of a worker's listeners."""

    main: tuple[ListenerAddress, ...]
    admin: tuple[ListenerAddress, ...] | None
    """Listeners of the admin endpoints only; None if the main listeners serve these, empty if they are not served."""
    advertised: ListenerAddress
    """The address for other workers, with port 0 for the port that the listener gets."""
    metrics: tuple[ListenerAddress, ...] = ()
    """Listeners that serve only /metrics."""

    def url(self, ports: Mapping[ListenerAddress, int]) -> str:
        """Returns the advertised URL, which ends with a slash; `ports` are the actual ports of the main listeners."""
        return f"{self.advertised.scheme}://{self.worker_id(ports)}/"

    def worker_id(self, ports: Mapping[ListenerAddress, int]) -> str:
        """Returns the worker's id, host:port."""
        alike = [listener for listener in self.main if listener.scheme == self.advertised.scheme] or list(self.main)
        return joined_address(self.advertised.host, self.advertised.port or ports[alike[0]])


def read_listeners(reader: PropertyReader) -> Listeners:
    """Reads the listeners; the reader notes errors."""
    raw = reader.raw
    main = _parsed(reader, "listeners", raw.get("listeners", "http://:8083"))
    if not main:
        reader.refuse("listeners", raw.get("listeners", ""), LEGAL)
        main = (ANYWHERE,)
    admin = _parsed(reader, "admin.listeners", raw["admin.listeners"]) if "admin.listeners" in raw else None
    schemes = [listener.scheme for listener in main]
    scheme = reader.choice("rest.advertised.listener", "http" if "http" in schemes else "https", SCHEMES)
    alike = next((listener for listener in main if listener.scheme == scheme), main[0])
    host = raw.get("rest.advertised.host.name", "").removeprefix("[").removesuffix("]")
    if host and (not _HOST.fullmatch(host) or host.count(":") == 1):
        reader.refuse("rest.advertised.host.name", host, HOST)
    port = reader.number("rest.advertised.port", 0, 0)
    if port > MAX_PORT:
        reader.refuse("rest.advertised.port", port, f"a whole number from 0 to {MAX_PORT}")
    advertised = ListenerAddress(scheme, host or alike.host or socket.gethostname(), port)
    return Listeners(main, admin, advertised, _parsed(reader, METRICS, raw.get(METRICS, "")))


def server_tls(raw: Mapping[str, str], *, admin: bool = False) -> ssl.SSLContext:
    """Returns the context of the https listeners. Raises InvalidArgument naming the property at fault."""
    return server_context(raw, _prefix(raw, ADMIN_HTTPS_PREFIX if admin else HTTPS_PREFIX))


def client_tls(raw: Mapping[str, str]) -> ssl.SSLContext:
    """Returns the context of requests to other workers: the listeners' own settings, as in Connect.

    Raises InvalidArgument naming the property at fault.
    """
    return client_context(raw, _prefix(raw, HTTPS_PREFIX))


def check_tls(reader: PropertyReader, listeners: Listeners) -> None:
    """Notes settings of the https listeners' keys and certificates that no host can use; reads no file."""
    main = (*listeners.main, *listeners.metrics)
    for those, own_prefix in ((main, HTTPS_PREFIX), (listeners.admin or (), ADMIN_HTTPS_PREFIX)):
        if not any(listener.tls for listener in those) or not reader.knows(under=("ssl.", f"{own_prefix}ssl.")):
            continue
        prefix = _prefix(reader.raw, own_prefix)
        reader.take(partial(check_server, reader.raw, prefix), None)
        if those is main:
            reader.take(partial(check_client, reader.raw, prefix), None)


def _prefix(raw: Mapping[str, str], own_prefix: str) -> str:
    return f"{own_prefix}ssl." if any(key.startswith(f"{own_prefix}ssl.") for key in raw) else "ssl."


def _parsed(reader: PropertyReader, key: str, text: str) -> tuple[ListenerAddress, ...]:
    def one(url: str) -> ListenerAddress:
        match = _FORM.fullmatch(url)
        if match is None or int(match[3]) > MAX_PORT:
            raise InvalidArgument.of(key, url, LEGAL)
        return ListenerAddress(match[1].lower(), match[2].lower(), int(match[3]))

    return tuple(reader.take(partial(one, url.strip()), ANYWHERE) for url in text.split(",") if url.strip())
