"""Renewed certificates of a broker: seen at its port before they count, or loaded by a restart if it is too late."""

from __future__ import annotations

import asyncio
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from keelman.broker import service
from keelman.broker.settings import Settings
from keelman.broker.tls import Stores
from keelman.model.errors import Unavailable
from keelman.runtime.home import write_file
from keelman.runtime.settings import load
from support.certificates import Authority
from support.eventually import eventually

CA, HOST = Authority(), "127.0.0.1"


def issue(stores: Stores, *, ended: bool = False) -> Stores:
    """Renews the files."""
    issued = CA.issue("broker", HOST, ended=ended)
    write_file(stores.truststore, CA.pem.encode())
    write_file(stores.keystore, (issued.key_pem + issued.chain_pem).encode())
    return stores


@pytest.fixture
def stores(tmp_path: Path) -> Stores:
    return issue(Stores(tmp_path / "keystore.pem", tmp_path / "ca.pem", client_certificates=True))


async def test_a_certificate_that_the_port_does_not_show_was_not_read(stores: Stores) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(stores.truststore))
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(stores.keystore)

    async def close(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with await asyncio.start_server(close, HOST, 0, ssl=context) as server:
        port = server.sockets[0].getsockname()[1]
        await stores.check_shown(HOST, port)
        issue(stores)
        with pytest.raises(Unavailable, match=r"shows another certificate than that in .*keystore\.pem"):
            await stores.check_shown(HOST, port)
    with pytest.raises(Unavailable, match=f"the broker at {HOST}:{port} was not reached"):
        await stores.check_shown(HOST, port)


def test_what_the_user_has_brokers_show_is_not_ours(stores: Stores) -> None:
    def shown(**properties: str) -> bool:
        files = {"tls_keystore": stores.keystore, "tls_truststore": stores.truststore, "home": stores.keystore.parent}
        found_stores = Stores.of(load(Settings, "broker", flags={**files, "properties": properties}).settings)
        assert found_stores is not None
        return found_stores.is_shown

    assert shown(**{"listener.name.tls.ssl.truststore.location": "/ca"})
    assert not shown(**{"listener.name.tls.ssl.keystore.location": "/mine"})
    assert not shown(**{"ssl.keystore.location": "/mine"})


async def test_one_that_ended_before_a_later_one_was_read_ends_the_broker(
    stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "CHECK_SECONDS", 0.05)
    tries = 0

    async def refuse(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal tries
        tries += 1
        writer.close()

    async with await asyncio.start_server(refuse, HOST, 0) as server:
        flags = {"home": stores.keystore.parent, "port": server.sockets[0].getsockname()[1]}
        settings = load(Settings, "broker", flags=flags).settings
        now = datetime.now(UTC)
        for end, is_ended in ((now + timedelta(hours=1), False), (now, True)):
            issue(stores, ended=is_ended)
            expected = tries + 2
            following = asyncio.ensure_future(service._follow(settings, stores, HOST, (), end))
            await eventually(lambda: tries >= expected, seconds=10)  # noqa: B023
            assert not following.done(), "it is tried again"
            if not is_ended:
                following.cancel()
        issue(stores)
        with pytest.raises(service.CertificateEnded, match=r"restart it with the certificate in .* was not"):
            await asyncio.wait_for(following, 10)
