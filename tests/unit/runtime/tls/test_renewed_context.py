"""The certificate of an https server follows its renewal."""

from __future__ import annotations

import asyncio
import ssl

from cryptography import x509

from keelman.runtime.http.server import serve_http
from keelman.runtime.processes.ports import free_ports
from keelman.runtime.tls.server_contexts import renewed_context
from support.certificates import Authority, Issued


async def answer(scope: object, receive: object, send: object) -> None:
    """Is never called: connections only shake hands."""


async def test_new_connections_have_the_newest_certificate() -> None:
    authority = Authority()
    issued: list[Issued] = [authority.issue("first", "127.0.0.1")]
    [port] = free_ports(1)
    trusting = ssl.create_default_context(cadata=authority.pem)

    async def shown() -> str:
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusting)
        der = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.close()
        return x509.load_der_x509_certificate(der).subject.rfc4514_string()

    context = renewed_context(lambda: (issued[-1].chain_pem.encode(), issued[-1].key_pem.encode()))
    async with serve_http(answer, host="127.0.0.1", port=port, label="x", tls=context):
        assert await shown() == "CN=first"
        issued.append(authority.issue("second", "127.0.0.1"))
        assert await shown() == "CN=second"
