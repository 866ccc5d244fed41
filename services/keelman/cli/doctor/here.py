"""Checks the connection from this host to the gateway, and the home of a system that runs on this host."""

from __future__ import annotations

import asyncio
import shutil
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

from keelman.cli.doctor.finding import Finding
from keelman.cli.doctor.nodes import MIN_DISK_BYTES
from keelman.cli.output.words import size
from keelman.model.errors import KeelmanError

CONNECT_SECONDS = 5.0


async def gateway_findings(address: str, source: str, error: KeelmanError) -> list[Finding]:
    """Returns why a gateway at host:port cannot be called: its name, its port, or its answer. `source` is the origin of
    the address."""
    host, _, port = address.rpartition(":")
    host, subject = host.strip("[]"), f"gateway {address}"
    loop = asyncio.get_running_loop()
    try:
        await loop.getaddrinfo(host, int(port), type=socket.SOCK_STREAM)
    except OSError as wrong:
        remedy = f"another address in {source}, or an entry in the name service or /etc/hosts"
        return [Finding("network", subject, f"{host} has no address here: {wrong.strerror}", remedy)]
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            _, writer = await asyncio.open_connection(host, int(port))
        writer.close()
    except (OSError, TimeoutError) as wrong:
        reason = "no answer" if isinstance(wrong, TimeoutError) else str(wrong)
        remedy = f"start it (`keelman up`, `systemctl start keelman-gateway`), or set its address (from {source})"
        return [Finding("network", subject, f"no process accepts connections there: {reason}", remedy)]
    remedy = "see its log: the port is open, and does not answer like a gateway; TLS or a token may be missing"
    return [Finding("gateway", subject, error.message, remedy)]


async def degraded_findings(http: str, certificates: bytes | None) -> list[Finding]:
    """Returns why a gateway at this URL reports that it is degraded: the state of its access file, of the keys of
    issuers, of the state service. None for a gateway whose HTTP server is not reached from here."""
    import httpx  # noqa: PLC0415  (a tenth of a second)

    tls = True if certificates is None else ssl.create_default_context(cadata=certificates.decode())
    try:
        async with httpx.AsyncClient(timeout=CONNECT_SECONDS, trust_env=False, verify=tls) as client:
            answer = (await client.get(f"{http.rstrip('/')}/readyz")).json()
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError):
        return []
    if not isinstance(answer, dict) or answer.get("status") != "degraded":
        return []
    remedy = "mend what it names: a file must be legal and belong to the gateway's user; a server must answer"
    return [Finding("gateway", f"gateway {http}", str(answer.get("message", "")), remedy)]


def home_findings(home: Path) -> Iterator[Finding]:
    """Yields the problems of the home of the system that runs on this host."""
    try:
        free = shutil.disk_usage(home).free
    except OSError as wrong:
        yield Finding("disk", str(home), f"it cannot be read: {wrong.strerror}", "its owner and mode, or --home")
        return
    if free < MIN_DISK_BYTES:
        remedy = "free some: below 1 GiB the state service and brokers soon cannot write"
        yield Finding("disk", str(home), f"{size(free)} of disk are free", remedy)
