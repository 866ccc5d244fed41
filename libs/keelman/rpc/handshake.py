"""Finds out why a TLS handshake between a server and a client fails: grpc itself only reports that the server is
unavailable."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Sequence
from datetime import UTC, datetime

from keelman.rpc.credentials import Pems
from keelman.runtime.tls.certificates import certificate_facts, issued_by, shown_time
from keelman.runtime.tls.pairs import load_pair

SECONDS = 3.0
ALERT_SECONDS = 0.5
"""The time for a server to refuse a client's certificate: the client's side of the handshake is complete before."""
UNKNOWN_CA = "it does not trust the CA of this process's certificate"
NO_CERTIFICATE = "it requires a client certificate, and this process has none: join first"
ALERTS = {
    "UNKNOWN_CA": UNKNOWN_CA,
    "CERTIFICATE_EXPIRED": "by its clock this process's certificate has ended or is not valid yet: check the clocks "
    "of both hosts",
    "CERTIFICATE_REQUIRED": NO_CERTIFICATE,
    "BAD_CERTIFICATE": "it does not accept this process's certificate",
    "CERTIFICATE_UNKNOWN": "it does not accept this process's certificate",
    "UNSUPPORTED_CERTIFICATE": "it does not accept this process's certificate as a client certificate",
    "WRONG_VERSION_NUMBER": "it speaks no TLS",
    "HANDSHAKE_FAILURE": "no TLS version or cipher in common, or it does not accept this process's certificate",
}
UNTRUSTED = ("self-signed certificate", "self signed certificate", "unable to get local issuer", "unable to verify")


async def handshake_problem(address: str, pems: Pems, server_name: str = "") -> str:
    """Returns why TLS with host:port fails, for people; empty if it works, or if nothing listens there."""
    host, _, port = address.rpartition(":")
    host, context = host.strip("[]"), _context(pems)
    name = server_name or host
    try:
        async with asyncio.timeout(SECONDS):
            reader, writer = await asyncio.open_connection(host, int(port), ssl=context, server_hostname=name)
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(ALERT_SECONDS):
                    if not await reader.read(1):  # grpc's servers begin to speak at once, or close without an alert
                        return _refused(pems)
        finally:
            writer.transport.abort()
    except ssl.SSLCertVerificationError as error:
        return _of_server(error, name)
    except ssl.SSLError as error:
        return _of_client(error)
    except ConnectionResetError:
        return _refused(pems)
    except (OSError, TimeoutError, ValueError):
        pass
    return ""


async def ask_chain(host: str, port: int) -> Sequence[bytes]:
    """Returns the certificates, in DER, that a server sends to any client: none is verified, and nothing is sent.

    Raises OSError for a server that cannot be reached, and its subclass ssl.SSLError for one without TLS.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    async with asyncio.timeout(SECONDS * 2):
        _, writer = await asyncio.open_connection(host, port, ssl=context)
    try:
        shown = writer.get_extra_info("ssl_object")
        if hasattr(shown, "get_unverified_chain"):  # Python 3.13 and later
            return [bytes(certificate) for certificate in shown.get_unverified_chain()]
        chain = shown._sslobj.get_unverified_chain() or ()
        return [ssl.PEM_cert_to_DER_cert(certificate.public_bytes()) for certificate in chain]
    finally:
        writer.transport.abort()


def _context(pems: Pems) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_alpn_protocols(["h2"])
    context.load_verify_locations(cadata=pems.roots.decode("ascii"))
    if pems.chain:
        load_pair(context, pems.chain, pems.key)
    return context


def _of_server(error: ssl.SSLCertVerificationError, name: str) -> str:
    reason = error.verify_message
    if "not yet valid" in reason or "expired" in reason:
        return f"its {reason}, by the clock of this host: check the clocks of both"
    if any(text in reason for text in UNTRUSTED):
        return "its certificate is of another CA than the trusted one"
    if "ostname mismatch" in reason or "IP address mismatch" in reason:
        return f"its certificate is of another host: {name} is not in it"
    return f"its certificate is not accepted: {reason}"


def _refused(pems: Pems) -> str:
    """Returns the likely reason why a server closed the connection when it got our certificate."""
    if not pems.chain:
        return NO_CERTIFICATE
    facts, now = certificate_facts(pems.chain), datetime.now(UTC)
    if now >= facts.end or now < facts.begin:
        good = f"is good from {shown_time(facts.begin)} to {shown_time(facts.end)}, and here it is {shown_time(now)}"
        return f"this process's certificate {good}: check the clock, or join again"
    if not issued_by(pems.chain, pems.roots):
        return UNKNOWN_CA
    return f"it does not accept this process's certificate, by its CA or by its clock: here it is {shown_time(now)}"


def _of_client(error: ssl.SSLError) -> str:
    reason = error.reason or ""
    return next((text for alert, text in ALERTS.items() if alert in reason), f"TLS failed: {reason or error}")
